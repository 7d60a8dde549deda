//! What the runtime asks of the operating system: the same functions for each.
//!
//! Linux has all of it. Elsewhere, and with `--cfg scope_plain_buffers` for a test on Linux, the
//! variant in `portable.rs` keeps events in plain memory and copies them into the recording; its
//! head says what that costs. These files are the only ones that ask for the system.

#[cfg(all(target_os = "linux", not(scope_plain_buffers)))]
mod linux;
mod own_file;
#[cfg(not(all(target_os = "linux", not(scope_plain_buffers))))]
mod portable;

pub(crate) use self::own_file::OwnFile;

#[cfg(all(target_os = "linux", not(scope_plain_buffers)))]
pub(crate) use self::linux::*;
#[cfg(not(all(target_os = "linux", not(scope_plain_buffers))))]
pub(crate) use self::portable::*;

/// Number of the process that started this one; 0 where that is not known.
pub(crate) fn parent_pid() -> u32 {
    #[cfg(unix)]
    return std::os::unix::process::parent_id();
    #[cfg(not(unix))]
    0
}

/// The function of this name in the program or a library of it, where there is a loader as Unix has it.
#[cfg(feature = "mpi")]
pub(crate) fn function_of_program(name: &std::ffi::CStr) -> Option<std::ptr::NonNull<()>> {
    #[cfg(unix)]
    // SAFETY: the name ends by 0.
    return std::ptr::NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.cast());
    #[cfg(not(unix))]
    {
        let _ = name;
        None
    }
}
