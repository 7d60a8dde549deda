//! Compiles what is in C and Fortran, by the compilers of the MPI that is built with: as an object in one
//! program, and as a shared library of others.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=c");
    println!("cargo:rerun-if-changed=fortran");
    println!("cargo:rerun-if-env-changed=MPICC");
    let mpicc = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names a folder"));

    let objects = cc::Build::new().compiler(&mpicc).file("c/ring.c").compile_intermediates();
    println!("cargo:rustc-link-arg-bin=c_object={}", objects[0].display());

    link_library(&mpicc, "c/ring.c", &out, "c_library");
    link_library(&mpicc.replace("mpicc", "mpifort"), "fortran/pass_around.F90", &out, "fortran_library");
}

/// Makes a shared library of a file, for this program.
fn link_library(compiler: &str, file: &str, out: &Path, program: &str) {
    let library = out.join(format!("libof_{program}.so"));
    let mut link = Command::new(compiler);
    link.args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(std::path::absolute(file).expect("it has a path"));
    // A compiler of Fortran leaves its modules where it runs.
    assert!(link.current_dir(out).status().expect("the compiler starts").success());
    println!("cargo:rustc-link-arg-bin={program}={}", library.display());
    println!("cargo:rustc-link-arg-bin={program}=-Wl,-rpath,{}", out.display());
}
