//! What the runtime asks of the operating system: the same functions for each.
//!
//! Linux has all of it. Elsewhere, and with `--cfg scope_plain_buffers` for a test on Linux, the
//! variant in `portable.rs` keeps events in plain memory and copies them into the recording; its
//! head says what that costs. These files are the only ones that ask for the system.

use std::fs::File;
use std::io;

#[cfg(all(target_os = "linux", not(scope_plain_buffers)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(scope_plain_buffers))))]
mod portable;

#[cfg(all(target_os = "linux", not(scope_plain_buffers)))]
pub(crate) use self::linux::*;
#[cfg(not(all(target_os = "linux", not(scope_plain_buffers))))]
pub(crate) use self::portable::*;

/// The file by a descriptor that is none of a standard stream: where a program has closed one, what it prints
/// would go into the file.
pub(crate) fn beside_standard_streams(file: File) -> io::Result<File> {
    #[cfg(unix)]
    if std::os::fd::AsRawFd::as_raw_fd(&file) <= libc::STDERR_FILENO {
        // A duplicate never is.
        return file.try_clone();
    }
    Ok(file)
}

/// Whether a file has no name any more; `false` where that cannot be asked.
pub(crate) fn is_removed(file: &File) -> bool {
    #[cfg(unix)]
    return file.metadata().is_ok_and(|file| std::os::unix::fs::MetadataExt::nlink(&file) == 0);
    #[cfg(not(unix))]
    {
        let _ = file;
        false
    }
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
