//! Libraries as the loader of glibc has them in memory: where they keep the addresses of functions that they
//! call in others.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libc::{
    Elf64_Phdr, Elf64_Sym, PROT_READ, PROT_WRITE, PT_DYNAMIC, PT_GNU_RELRO, dl_iterate_phdr, dl_phdr_info,
};

/// Entries of a table of the dynamic section.
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;

/// Kinds of places that hold the address of a function, and nothing else.
#[cfg(target_arch = "x86_64")]
const ADDRESSES: [u32; 2] = [6, 7];
#[cfg(target_arch = "aarch64")]
const ADDRESSES: [u32; 2] = [1025, 1026];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ADDRESSES: [u32; 0] = [];

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

/// A place that the loader fills in.
#[repr(C)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: i64,
}

/// What to lead where: addresses by name, in libraries whose file names begin with one of `libraries`.
pub(super) struct Redirection<'a> {
    pub(super) libraries: &'a [&'a str],
    /// Asked only where there is such a library.
    pub(super) functions: fn() -> HashMap<&'a [u8], usize>,
}

impl Redirection<'_> {
    /// Leads the calls of all libraries that are loaded by now. No other thread may run yet.
    pub(super) fn apply(&self) {
        // SAFETY: the function gets what it expects.
        unsafe { dl_iterate_phdr(Some(visit), std::ptr::from_ref(self).cast_mut().cast()) };
    }

    fn is_meant(&self, path: &CStr) -> bool {
        let name = Path::new(OsStr::from_bytes(path.to_bytes())).file_name().unwrap_or_default();
        self.libraries.iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()))
    }
}

unsafe extern "C" fn visit(info: *mut dl_phdr_info, _size: usize, redirection: *mut c_void) -> c_int {
    // SAFETY: the loader gives what it has loaded, and what `apply` handed over.
    let (info, redirection) = unsafe { (&*info, &*redirection.cast_const().cast::<Redirection>()) };
    if info.dlpi_name.is_null() || info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader's name ends by 0.
    if redirection.is_meant(unsafe { CStr::from_ptr(info.dlpi_name) }) {
        // SAFETY: the loader has read these headers.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        // SAFETY: they are those of the library that lies there.
        unsafe { redirect(info.dlpi_addr as usize, headers, &(redirection.functions)()) };
    }
    0
}

/// # Safety
/// The library with these headers is loaded at `base`.
unsafe fn redirect(base: usize, headers: &[Elf64_Phdr], functions: &HashMap<&[u8], usize>) {
    let Some(dynamic) = headers.iter().find(|header| header.p_type == PT_DYNAMIC) else { return };
    let mut entry = (base + dynamic.p_vaddr as usize) as *const Dynamic;
    let mut values = HashMap::new();
    // SAFETY: the section is loaded, and its last entry has the tag 0.
    while let Some(Dynamic { tag: tag @ 1.., value }) = unsafe { entry.as_ref() } {
        values.insert(*tag, *value);
        entry = entry.wrapping_add(1);
    }
    // Some loaders leave addresses as they are in the file.
    let address = |tag| values.get(&tag).map(|&value| if value < base { base + value } else { value });
    let (Some(names), Some(symbols)) = (address(DT_STRTAB), address(DT_SYMTAB)) else { return };
    let mut places = Vec::new();
    for (table, size) in [(DT_JMPREL, DT_PLTRELSZ), (DT_RELA, DT_RELASZ)] {
        let (Some(table), Some(&bytes)) = (address(table), values.get(&size)) else { continue };
        let len = bytes / size_of::<Relocation>();
        // SAFETY: the library says that so many are there.
        let relocations = unsafe { std::slice::from_raw_parts(table as *const Relocation, len) };
        for place in relocations.iter().filter(|place| ADDRESSES.contains(&(place.info as u32))) {
            // SAFETY: the loader has looked at this symbol, and at its name.
            let name = unsafe {
                let symbol = (symbols as *const Elf64_Sym).add((place.info >> 32) as usize);
                CStr::from_ptr((names as *const c_char).add((*symbol).st_name as usize))
            };
            if let Some(&own) = functions.get(name.to_bytes()) {
                places.push((base + place.offset, own));
            }
        }
    }
    if places.is_empty() {
        return;
    }
    // What holds addresses that were known at the start cannot be written any more.
    let relro = headers.iter().find(|header| header.p_type == PT_GNU_RELRO).map_or(0..0, |header| {
        let begin = base + header.p_vaddr as usize;
        pages(begin)..pages(begin + header.p_memsz as usize)
    });
    let is_open = protect(&relro, PROT_READ | PROT_WRITE);
    for (place, own) in places {
        if is_open || !relro.contains(&place) {
            // SAFETY: an aligned word of the library's, writable, that holds the address of a function of the
            // same signature.
            unsafe { AtomicUsize::from_ptr(place as *mut usize) }.store(own, Relaxed);
        }
    }
    if is_open {
        protect(&relro, PROT_READ);
    }
}

/// The begin of the page in which an address is.
fn pages(address: usize) -> usize {
    // SAFETY: it asks for a number that is always known.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    address / size * size
}

fn protect(pages: &Range<usize>, protection: c_int) -> bool {
    // SAFETY: they are a library's, which the loader has made as readable as they are and stay.
    pages.is_empty() || unsafe { libc::mprotect(pages.start as *mut c_void, pages.len(), protection) } == 0
}
