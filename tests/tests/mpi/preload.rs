//! A program that cannot be rebuilt: the runtime is a library that is loaded before that of MPI.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use scope_runtime::profile::{MessageKind, MessageSizes, Messages};
use scope_runtime::recording::Recording;
use tests::mpi::{self, Mpi, calls, paths};

/// A job of a program with the library loaded first, and with these variables.
fn with_library(mpi: &Mpi, ranks: usize, program: &Path, variables: &[&str]) -> Command {
    let preload = format!("LD_PRELOAD={}", mpi.runtime_library().display());
    let variables = variables.iter().map(OsStr::new);
    let arguments: Vec<&OsStr> =
        [OsStr::new(&preload)].into_iter().chain(variables).chain([program.as_os_str()]).collect();
    mpi.job(ranks, "env".as_ref(), &arguments)
}

#[test]
fn a_program_in_c_is_recorded_by_a_library_that_is_loaded_first() {
    mpi::with_each(|mpi| {
        let library = mpi.runtime_library();
        let program = mpi.compile("plain", &[], &["c/plain.c", "c/ring.c"]);
        let bare = mpi::run(&mut mpi.job(3, &program, &[] as &[&str])).expect_success();
        let only_ranks = with_library(mpi, 3, &program, &[]);
        let mut launcher_too = mpi.job(3, &program, &[] as &[&str]);
        launcher_too.env("LD_PRELOAD", &library);
        for (name, mut command) in [("only-ranks", only_ranks), ("launcher-too", launcher_too)] {
            let job = mpi.start(&mut command, &format!("preload-{name}")).expect_success();
            assert_eq!(job.stdout, bare.stdout);
            assert!(job.stderr.contains("scope: 3 ranks"), "{name}: {}", job.stderr);
            for recording in job.recordings(3) {
                let expected = ["MPI_Init", "MPI_Recv", "MPI_Send", "MPI_Bcast", "MPI_Finalize"];
                let expected = BTreeMap::from(expected.map(|region| (region.to_string(), 1)));
                assert_eq!(calls(recording.profile()), expected, "{name}");
                assert_eq!(recording.profile().messages.len(), 3, "{name}");
                assert!(recording.info().sealed, "{name}");
            }
        }
    });
}

#[test]
fn a_program_in_fortran_is_recorded_as_one_in_c() {
    mpi::with_each(|mpi| {
        for (name, flags) in [("mpif", &[][..]), ("module", &["-DMODULE"]), ("f08", &["-DF08"])] {
            let program = mpi.compile(&format!("fortran-{name}"), flags, &["fortran/ring.F90"]);
            let bare = mpi::run(&mut mpi.job(3, &program, &[] as &[&str])).expect_success();
            assert_eq!(bare.stdout, "the sum is 3\n");
            // With all addresses known at the start there is nothing to look up at the first call of each.
            for now in ["LD_BIND_NOW=", "LD_BIND_NOW=1"] {
                let mut command = with_library(mpi, 3, &program, &[now]);
                let job = mpi.start(&mut command, &format!("fortran-{name}")).expect_success();
                assert_eq!(job.stdout, bare.stdout);
                for recording in job.recordings(3) {
                    let profile = recording.profile();
                    let expected =
                        ["MPI_Init", "MPI_Recv", "MPI_Isend", "MPI_Wait", "MPI_Allreduce", "MPI_Finalize"];
                    let expected = BTreeMap::from(expected.map(|region| (region.to_string(), 1)));
                    assert_eq!(calls(profile), expected, "{name} {now}");
                    let bytes: Vec<u64> = profile.messages.iter().map(|row| row.sizes.bytes).collect();
                    assert_eq!(bytes, [4; 3], "{name}: {:?}", profile.messages);
                    let peer = Some((profile.rank + 1) % 3);
                    assert!(
                        profile.messages.iter().any(|row| row.kind == MessageKind::Sent && row.peer == peer)
                    );
                }
            }
        }
    });
}

#[test]
fn a_library_for_fortran_may_be_read_only() {
    mpi::with_each(|mpi| {
        // Only by its name it is one.
        for (name, recorded) in [("libmpi_mpifh_sealed.so", true), ("libmpi_tool_sealed.so", false)] {
            let sealed = ["-shared", "-fPIC", "-Wl,-z,relro,-z,now"];
            let library = mpi.compile(name, &sealed, &["c/barrier.c"]);
            let program =
                mpi.compile(&format!("through-{name}"), &[&library.to_string_lossy()], &["c/barriers.c"]);
            let mut command = with_library(mpi, 2, &program, &[]);
            let job = mpi.start(&mut command, &format!("sealed-{recorded}")).expect_success();
            if recorded {
                for recording in job.recordings(2) {
                    let expected = [("MPI_Init", 1), ("MPI_Barrier", 2), ("MPI_Finalize", 1)];
                    let expected = expected.map(|(region, calls)| (region.to_string(), calls));
                    assert_eq!(calls(recording.profile()), BTreeMap::from(expected));
                }
            } else {
                assert!(!job.stderr.contains("MPI_Barrier"), "{}", job.stderr);
            }
        }
    });
}

/// Calls and messages of each rank as lines, in order.
fn recorded(mpi: &Mpi, ranks: usize, program: &Path) -> Vec<Vec<String>> {
    let mut command = with_library(mpi, ranks, program, &[]);
    let name = program.file_name().unwrap().to_str().unwrap();
    let job = mpi.start(&mut command, name).expect_success();
    let of_rank = |recording: &Recording| {
        let profile = recording.profile();
        let paths = paths(profile);
        let message = |row: &Messages| {
            let MessageSizes { messages, bytes, .. } = row.sizes;
            format!("{} {:?} {:?}: {messages}, {bytes} bytes", paths[row.path.0 as usize], row.kind, row.peer)
        };
        let calls = calls(profile).into_iter().map(|(path, calls)| format!("{path} {calls} times"));
        let mut lines: Vec<String> = calls.chain(profile.messages.iter().map(message)).collect();
        lines.sort();
        lines
    };
    job.recordings(ranks).iter().map(of_rank).collect()
}

#[test]
fn calls_with_large_counts_are_as_those_with_small_ones() {
    mpi::with_each(|mpi| {
        let small = recorded(mpi, 3, &mpi.compile("counts", &[], &["c/counts.c"]));
        for line in ["MPI_Win_fence 2 times", "MPI_Allreduce Collective None: 1, 16 bytes"] {
            assert!(small.iter().all(|lines| lines.iter().any(|known| known == line)), "{line}: {small:?}");
        }
        let large = "MPI_Bcast Collective Some(0): 1, 3221225472 bytes";
        assert!(small[0].iter().any(|line| line == large), "{:?}", small[0]);
        // Debian's Open MPI is of version 3.
        if mpi.family == "mpich" {
            let large = recorded(mpi, 3, &mpi.compile("counts-large", &["-DLARGE"], &["c/counts.c"]));
            assert!(large[0].iter().any(|line| line == "MPI_Bcast_c 2 times"), "{large:?}");
            let plain = |lines: &Vec<String>| {
                let mut lines: Vec<String> = lines.iter().map(|line| line.replace("_c ", " ")).collect();
                lines.sort();
                lines
            };
            assert_eq!(large.iter().map(plain).collect::<Vec<_>>(), small);
        }
    });
}

#[test]
fn calls_of_version_4_are_recorded() {
    mpi::with_each(|mpi| {
        if mpi.family == "openmpi" {
            return;
        }
        let ranks = recorded(mpi, 2, &mpi.compile("version-4", &[], &["c/version_4.c"]));
        for (lines, peer) in ranks.into_iter().zip([1, 0]) {
            let expected = [
                "MPI_Allreduce_init 1 times".into(),
                "MPI_Barrier_init 1 times".into(),
                "MPI_Comm_idup_with_info 1 times".into(),
                "MPI_Finalize 1 times".into(),
                "MPI_Init 1 times".into(),
                "MPI_Isendrecv 1 times".into(),
                format!("MPI_Isendrecv Sent Some({peer}): 1, 12 bytes"),
                "MPI_Request_free 2 times".into(),
                "MPI_Start 4 times".into(),
                "MPI_Wait 6 times".into(),
            ];
            assert_eq!(lines, expected);
        }
    });
}
