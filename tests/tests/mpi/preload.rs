//! A program that cannot be rebuilt: the runtime is a library that is loaded before that of MPI.

use std::collections::BTreeMap;

use tests::mpi::{self, calls};

#[test]
fn a_program_in_c_is_recorded_by_a_library_that_is_loaded_first() {
    mpi::with_each(|mpi| {
        let library = mpi.runtime_library();
        let program = mpi.compile("plain", &["plain.c", "ring.c"]);
        let bare = mpi::run(&mut mpi.job(3, &program, &[] as &[&str])).expect_success();
        let preload = format!("LD_PRELOAD={}", library.display());
        let only_ranks = mpi.job(3, "env".as_ref(), &[preload.as_ref(), program.as_os_str()]);
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
