//! Every other system, by the standard library wherever it has a word for it.
//!
//! What differs from Linux:
//!
//! * Memory is not mapped from the recording. It is plain, and copied into the file at every sign of
//!   life (100 ms) and at the end. A program that dies without its exit handlers loses what
//!   it did since the last copy, and what destructors do after those handlers is not kept.
//! * The monotonic clock is the standard library's, counted from the wall clock at its first use, so
//!   that the ranks of a machine fit together as well as their wall clocks do.
//! * The CPU time of threads is not known, and counts as 0. Thread ids are numbers of our own.
//! * A thread ends when its thread-local values are dropped: regions in the destructors of others
//!   may come too late.
//! * Nothing is known of full disks in advance; a write that fails is reported when it does.

use std::cell::Cell;
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::OwnFile;

/// Monotonic clock in ns.
pub(crate) fn monotonic_ns() -> u64 {
    #[cfg(test)]
    if let Some(ns) = crate::clock::simulated() {
        return ns;
    }
    static START: OnceLock<(Instant, u64)> = OnceLock::new();
    let &(start, start_ns) = START.get_or_init(|| {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (Instant::now(), wall.as_nanos() as u64)
    });
    start_ns + start.elapsed().as_nanos() as u64
}

/// CPU time that the calling thread has used: not known.
pub(crate) fn thread_cpu_ns() -> u64 {
    0
}

/// A number for the calling thread.
pub(crate) fn thread_id() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static ID: u64 = THREADS.fetch_add(1, Relaxed) + 1;
    }
    ID.try_with(|id| *id).unwrap_or(0)
}

/// Name of this machine, where the environment tells it.
pub(crate) fn host_name() -> String {
    let names = ["COMPUTERNAME", "HOSTNAME"].into_iter();
    names.filter_map(|name| std::env::var(name).ok()).next().unwrap_or_default()
}

/// Makes `file` reach to the end of `len` bytes at `offset`, which nobody has written to yet.
pub(crate) fn reserve(file: &File, offset: u64, len: u64) -> io::Result<()> {
    write_all_at(file, &[0], offset + len - 1)
}

/// Reads what there is of `bytes` at `offset`; gives how many, 0 at the end.
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, bytes, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, bytes, offset);
}

/// Fills `bytes` from `file` at `offset`.
pub(crate) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset);
    #[cfg(windows)]
    {
        let mut done = 0;
        while done < bytes.len() {
            match std::os::windows::fs::FileExt::seek_read(file, &mut bytes[done..], offset + done as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => done += read,
            }
        }
        Ok(())
    }
}

/// Writes `bytes` to `file` at `offset`.
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_all_at(file, bytes, offset);
    #[cfg(windows)]
    {
        let mut done = 0;
        while done < bytes.len() {
            match std::os::windows::fs::FileExt::seek_write(file, &bytes[done..], offset + done as u64)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => done += written,
            }
        }
        Ok(())
    }
}

/// Memory that stands for a part of a file.
struct Buffer {
    words: &'static [AtomicU64],
    file: Arc<OwnFile>,
    offset: u64,
    /// A forked child has the memory of its parent, but must not write to its recording.
    process: u32,
    /// Held while it is copied, so that an older copy never comes after a newer one.
    copying: Mutex<()>,
    next: *const Buffer,
}

/// The newest buffer; each knows the one before it. No lock, which a fork could leave locked.
static BUFFERS: AtomicPtr<Buffer> = AtomicPtr::new(std::ptr::null_mut());

/// Memory that begins as `len` bytes of `file` at `offset`, a multiple of 8 both, and that
/// [`write_back`] copies there. It is never given back.
pub(crate) fn map_shared(file: &Arc<OwnFile>, offset: u64, len: usize) -> io::Result<*mut u8> {
    let bytes = file.with(|file| {
        let mut bytes = vec![0; len];
        read_exact_at(file, &mut bytes, offset)?;
        Ok(bytes)
    })?;
    let words = bytes.as_chunks::<8>().0.iter().map(|word| AtomicU64::new(u64::from_ne_bytes(*word)));
    let words: &'static mut [AtomicU64] = words.collect::<Vec<_>>().leak();
    let address = words.as_mut_ptr().cast();
    let (file, process) = (Arc::clone(file), std::process::id());
    let next = BUFFERS.load(Acquire);
    let buffer = Buffer { words, file, offset, process, copying: Mutex::new(()), next };
    let buffer = Box::leak(Box::new(buffer));
    while let Err(newest) = BUFFERS.compare_exchange(buffer.next.cast_mut(), buffer, AcqRel, Acquire) {
        buffer.next = newest;
    }
    Ok(address)
}

/// Copies what was written to memory from [`map_shared`] into the files. What cannot be written now
/// is tried again the next time.
pub(crate) fn write_back() {
    // SAFETY: the pointer is null or was leaked by `map_shared`, as is that to the next one.
    let mut next = unsafe { BUFFERS.load(Acquire).as_ref() };
    while let Some(buffer) = next {
        if buffer.process == std::process::id() {
            let _one_at_a_time = crate::lock(&buffer.copying);
            let bytes: Vec<u8> =
                buffer.words.iter().flat_map(|word| word.load(Acquire).to_ne_bytes()).collect();
            let _ = buffer.file.with(|file| write_all_at(file, &bytes, buffer.offset));
        }
        // SAFETY: as above.
        next = unsafe { buffer.next.as_ref() };
    }
}

/// Does nothing.
pub(crate) fn ask_for_large_pages<T>(_: &mut [T]) {}

/// Runs `write`: there is no such signal, or it is left alone.
pub(crate) fn without_file_size_signal<T>(write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    write()
}

/// Nothing is spared here.
pub(crate) fn signals_stay_blocked() {}

/// Runs `work`.
pub(crate) fn with_signals_blocked<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// Calls `handler` when the process ends by a return from `main` or by `exit`.
pub(crate) fn at_exit(handler: extern "C" fn()) {
    // SAFETY: the handler is a plain function that lives as long as the program.
    unsafe { libc::atexit(handler) };
}

/// Calls the three around every `fork`, where there is such a thing.
#[cfg_attr(not(unix), allow(unused_variables))]
pub(crate) fn at_fork(before: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) {
    // SAFETY: plain functions that live as long as the program.
    #[cfg(unix)]
    unsafe {
        libc::pthread_atfork(Some(before), Some(parent), Some(child));
    }
}

type Handler = unsafe extern "C" fn(*mut c_void);

/// A function to be called when a thread ends.
pub(crate) struct ThreadEnd(Handler);

/// Calls its function when it is dropped.
struct AtEnd(Cell<Option<Handler>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some(handler) = self.0.get() {
            // SAFETY: the handler takes no notice of its argument.
            unsafe { handler(std::ptr::null_mut()) };
        }
    }
}

thread_local! {
    static AT_END: AtEnd = const { AtEnd(Cell::new(None)) };
}

impl ThreadEnd {
    /// # Errors
    /// None; other systems have some.
    pub(crate) fn new(handler: Handler) -> io::Result<ThreadEnd> {
        Ok(ThreadEnd(handler))
    }

    /// Has the handler called at the end of the calling thread, unless that has begun.
    pub(crate) fn arm(&self) {
        let _ = AT_END.try_with(|end| end.0.set(Some(self.0)));
    }
}
