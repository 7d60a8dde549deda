//! Linux: each a safe function over libc.

use std::cell::Cell;
use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use super::OwnFile;

/// `CLOCK_MONOTONIC` in ns.
pub(crate) fn monotonic_ns() -> u64 {
    #[cfg(test)]
    if let Some(ns) = crate::clock::simulated() {
        return ns;
    }
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time that the calling thread has used, in ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call, which only writes to it.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) } != 0;
    if failed { 0 } else { time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned() }
}

/// Thread id of the calling thread.
pub(crate) fn thread_id() -> u64 {
    // SAFETY: no arguments, cannot fail.
    u64::from(unsafe { libc::gettid() }.cast_unsigned())
}

/// Name of this machine in its network; empty when it has none.
pub(crate) fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the buffer is ours and as long as is said.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len()) } != 0;
    let length = name.iter().position(|&byte| byte == 0).filter(|_| !failed).unwrap_or(0);
    String::from_utf8_lossy(&name[..length]).into_owned()
}

/// Reserves `len` bytes of `file` at `offset` on the disk, so that writing to them through a
/// mapping cannot fail for want of room.
pub(crate) fn reserve(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
    let (offset, len) = (offset.try_into().map_err(too_large)?, len.try_into().map_err(too_large)?);
    without_file_size_signal(|| {
        // SAFETY: the descriptor is open for as long as `file` is borrowed.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), offset, len) } {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    })
}

/// Fills `bytes` from `file` at `offset`.
pub(crate) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(bytes, offset)
}

/// Reads what there is of `bytes` at `offset`; gives how many, 0 at the end.
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(bytes, offset)
}

/// Writes `bytes` to `file` at `offset`.
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

/// Maps `len` bytes of `file` at the page-aligned `offset`, shared and writable. The mapping is
/// never undone: threads that outlive the recording may still write to it.
pub(crate) fn map_shared(file: &OwnFile, offset: u64, len: usize) -> io::Result<*mut u8> {
    let offset = offset.try_into().map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    file.with(|file| {
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                offset,
            )
        };
        if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(address.cast()) }
    })
}

/// Makes sure that the files hold what was written to memory from [`map_shared`]: that is what a
/// shared mapping does by itself.
pub(crate) fn write_back() {}

/// Asks for large pages for memory that is not written to yet.
///
/// The system gives fresh memory a page at a time, when it is first written: for columns of 10^7
/// rows in pages of 4 KiB that takes as long as filling them.
pub(crate) fn ask_for_large_pages<T>(memory: &mut [T]) {
    const PAGE: usize = 4096;
    let bytes = size_of_val(memory);
    let start = memory.as_mut_ptr().cast::<u8>();
    let skipped = start.align_offset(PAGE).min(bytes);
    // SAFETY: the pages lie inside the memory; the advice changes no byte and no access
    // to it. That it may be refused makes no difference.
    unsafe {
        let pages = start.add(skipped).cast();
        libc::madvise(pages, (bytes - skipped) / PAGE * PAGE, libc::MADV_HUGEPAGE);
    }
}

/// Runs `write` such that exceeding the file size limit is an error and not a signal.
///
/// The signal is blocked on this thread while `write` runs; one that came is taken off.
pub(crate) fn without_file_size_signal<T>(write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if SIGNALS_BLOCKED.get() {
        return write();
    }
    let mut limit_signal = empty_signal_set();
    // SAFETY: the set was initialised.
    unsafe { libc::sigaddset(&raw mut limit_signal, libc::SIGXFSZ) };
    let before = block_signals(&limit_signal);
    let outcome = write();
    let exceeded = matches!(&outcome, Err(error) if error.raw_os_error() == Some(libc::EFBIG));
    // SAFETY: both sets are initialised; the time-out is a constant.
    unsafe {
        if exceeded && libc::sigismember(&raw const before, libc::SIGXFSZ) == 0 {
            let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            libc::sigtimedwait(&raw const limit_signal, std::ptr::null_mut(), &raw const at_once);
        }
    }
    restore_signals(&before);
    outcome
}

thread_local! {
    /// Whether all signals are blocked on this thread for good.
    static SIGNALS_BLOCKED: Cell<bool> = const { Cell::new(false) };
}

/// Says that the calling thread was started in [`with_signals_blocked`], which spares it some calls.
pub(crate) fn signals_stay_blocked() {
    SIGNALS_BLOCKED.set(true);
}

/// Runs `work` with every signal blocked on this thread; threads started in it inherit that.
pub(crate) fn with_signals_blocked<T>(work: impl FnOnce() -> T) -> T {
    let mut all = empty_signal_set();
    // SAFETY: the set was initialised.
    unsafe { libc::sigfillset(&raw mut all) };
    let before = block_signals(&all);
    let result = work();
    restore_signals(&before);
    result
}

fn empty_signal_set() -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set it is given.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

fn block_signals(set: &libc::sigset_t) -> libc::sigset_t {
    let mut before = empty_signal_set();
    // SAFETY: both sets are initialised.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set, &raw mut before) };
    before
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: the set came from `block_signals`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}

/// Calls `handler` when the process ends by a return from `main` or by `exit`.
pub(crate) fn at_exit(handler: extern "C" fn()) {
    // SAFETY: the handler is a plain function that lives as long as the program.
    unsafe { libc::atexit(handler) };
}

/// Calls the three around every `fork`: before it and after it in the parent, on the forking
/// thread, and after it in the child.
pub(crate) fn at_fork(before: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) {
    // SAFETY: plain functions that live as long as the program.
    unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
}

/// A value whose being set makes the system call a function when the thread ends.
///
/// Such functions run after all destructors of Rust's thread-locals, so a region that opens in
/// one of those is still recorded.
pub(crate) struct ThreadEnd(libc::pthread_key_t);

impl ThreadEnd {
    /// # Errors
    /// When the process has used up its keys.
    pub(crate) fn new(handler: unsafe extern "C" fn(*mut libc::c_void)) -> io::Result<ThreadEnd> {
        let mut key = 0;
        // SAFETY: `key` is written by the call; the handler is a plain function.
        let code: c_int = unsafe { libc::pthread_key_create(&raw mut key, Some(handler)) };
        if code == 0 { Ok(ThreadEnd(key)) } else { Err(io::Error::from_raw_os_error(code)) }
    }

    /// Has the handler called at the end of the calling thread.
    pub(crate) fn arm(&self) {
        // SAFETY: the key is never deleted; the value is only a mark and never dereferenced.
        unsafe { libc::pthread_setspecific(self.0, std::ptr::without_provenance(1)) };
    }
}
