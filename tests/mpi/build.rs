//! Compiles what is in C, by the compiler of the MPI that is built with: as an object in one program, and as a
//! shared library of another.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=c");
    println!("cargo:rerun-if-env-changed=MPICC");
    let mpicc = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names a folder"));

    let objects = cc::Build::new().compiler(&mpicc).file("c/ring.c").compile_intermediates();
    println!("cargo:rustc-link-arg-bin=c_object={}", objects[0].display());

    let library = out.join("libring.so");
    let mut link = Command::new(mpicc);
    link.args(["-shared", "-fPIC", "-o"]).arg(&library).arg("c/ring.c");
    assert!(link.status().expect("the compiler starts").success());
    println!("cargo:rustc-link-arg-bin=c_library={}", library.display());
    println!("cargo:rustc-link-arg-bin=c_library=-Wl,-rpath,{}", out.display());
}
