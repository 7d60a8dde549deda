//! The begin and the end of MPI: what the ranks do together.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use mpi_sys::{
    MPI_Comm, PMPI_Allreduce, PMPI_Comm_dup, PMPI_Comm_rank, PMPI_Comm_set_errhandler, PMPI_Comm_size,
    PMPI_Finalize, PMPI_Init, PMPI_Init_thread, RSMPI_COMM_WORLD, RSMPI_ERRORS_RETURN, RSMPI_INT32_T,
    RSMPI_MIN,
};

use super::call::{Call, Function, function};
use super::exchange::{Exchange, GaveUp, Round};
#[cfg(feature = "mpio")]
use super::profile;
use super::{clocks, combine};
use crate::environment::{MPI_TIMEOUT, Place};
use crate::format::{Fields, kind};
use crate::job::JobTotals;
use crate::lane::{ON, STATE};
#[cfg(feature = "hdf5")]
use crate::own_profile;
use crate::recorder::Recorder;
use crate::recording::{ClockOffset, Recording};
use crate::region::Site;
use crate::{environment, finalize, lane, lock, report, session};

/// The ranks that record together.
#[derive(Clone, Copy)]
pub(super) struct Job {
    /// A duplicate of the communicator of all ranks, which only recorders use.
    pub(super) comm: MPI_Comm,
    pub(super) rank: u32,
    pub(super) ranks: u32,
    /// Whether all of them write a profile when MPI ends; never without the feature `mpio`.
    writes_profile: bool,
}

// SAFETY: a communicator may be used by any thread; who uses this one has taken the job out.
unsafe impl Send for Job {}

static JOB: Mutex<Option<Job>> = Mutex::new(None);
static TOTALS: Mutex<Option<JobTotals>> = Mutex::new(None);

/// How long a rank waits for others at the begin, where all come at the same time.
const TIMEOUT_AT_BEGIN: Duration = Duration::from_secs(2);

/// The functions of MPI that are defined here.
#[allow(dead_code, reason = "only where calls from Fortran are led here")]
pub(super) static BEGIN_AND_END: &[Function] =
    &[function!(MPI_Init), function!(MPI_Init_thread), function!(MPI_Finalize)];

/// `MPI_Init`: begins the job too.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
    static SITE: Site = Site::named("MPI_Init", "MPI", "", 0);
    let _call = Call::enter(&SITE);
    // SAFETY: what the caller vouches for, the library's function asks for.
    let result = unsafe { PMPI_Init(argc, argv) };
    begin_after(result)
}

/// `MPI_Init_thread`: begins the job too.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPI_Init_thread(
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    static SITE: Site = Site::named("MPI_Init_thread", "MPI", "", 0);
    let _call = Call::enter(&SITE);
    // SAFETY: what the caller vouches for, the library's function asks for.
    let result = unsafe { PMPI_Init_thread(argc, argv, required, provided) };
    begin_after(result)
}

/// `MPI_Finalize`: puts the totals together before MPI goes down.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPI_Finalize() -> c_int {
    static SITE: Site = Site::named("MPI_Finalize", "MPI", "", 0);
    let _call = Call::enter(&SITE);
    let job = lock(&JOB).take();
    if let (Some(job), Some(recorder)) = (job, session::recorder()) {
        lane::unrecorded(|| job.end(recorder));
    }
    // SAFETY: what the caller vouches for, the library's function asks for.
    unsafe { PMPI_Finalize() }
}

fn begin_after(result: c_int) -> c_int {
    if result == 0 {
        lane::unrecorded(|| {
            let job = Job::begin();
            if let (Some(job), Some(recorder)) = (&job, session::recorder()) {
                let compared = clocks::compare(&job.exchange(Round::Begin, TIMEOUT_AT_BEGIN));
                note_offset(recorder, compared);
            }
            *lock(&JOB) = job;
        });
    }
    result
}

impl Job {
    /// Finds out whether all ranks record; `None` where not, or where the user wants them not to talk.
    ///
    /// All ranks of the job come here, as each of its programs has this in it.
    fn begin() -> Option<Job> {
        if !may_combine() {
            return None;
        }
        let records = session::recorder().is_some() && STATE.load(Relaxed) == ON;
        let (own, mut all) = ([records, wishes_profile()].map(i32::from), [0_i32; 2]);
        let mut comm = MaybeUninit::<MPI_Comm>::uninit();
        let (mut rank, mut ranks) = (0, 0);
        // SAFETY: MPI was initialised just now; the buffers are ours, and of the type that is said.
        unsafe {
            let (own, all) = ((&raw const own).cast(), (&raw mut all).cast());
            PMPI_Allreduce(own, all, 2, RSMPI_INT32_T, RSMPI_MIN, RSMPI_COMM_WORLD);
        }
        // SAFETY: as above; all ranks take the same way.
        let made = all[0] == 1
            && unsafe {
                PMPI_Comm_dup(RSMPI_COMM_WORLD, comm.as_mut_ptr()) == 0
                    && PMPI_Comm_set_errhandler(comm.assume_init(), RSMPI_ERRORS_RETURN) == 0
                    && PMPI_Comm_rank(comm.assume_init(), &raw mut rank) == 0
                    && PMPI_Comm_size(comm.assume_init(), &raw mut ranks) == 0
            };
        if let (1, Some(recorder)) = (ranks, session::recorder()) {
            note_other_launcher(recorder.place());
        }
        made.then(|| Job {
            // SAFETY: the first of the calls has written it.
            comm: unsafe { comm.assume_init() },
            rank: rank as u32,
            ranks: ranks as u32,
            // That of a job of one rank is written at its very end.
            writes_profile: all[1] == 1 && ranks > 1,
        })
    }

    pub(super) fn exchange(&self, round: Round, timeout: Duration) -> Exchange {
        let Job { comm, rank, ranks, .. } = *self;
        Exchange { comm, rank, ranks, deadline: Instant::now() + timeout, round }
    }

    /// Compares the clocks of the ranks once more, puts their totals together, and has them write their profile
    /// where they do that themselves.
    fn end(self, recorder: &'static Recorder) {
        let timeout = environment::mpi_timeout().unwrap_or_else(|problem| {
            report(format_args!("{problem}; waiting {} s", MPI_TIMEOUT.as_secs()));
            MPI_TIMEOUT
        });
        #[cfg(feature = "hdf5")]
        self.leave_profile();
        match self.combine(recorder, timeout) {
            Ok((totals, recording)) => {
                if let Some(job) = totals {
                    show(&job);
                    *lock(&TOTALS) = Some(job);
                }
                #[cfg(feature = "mpio")]
                if self.writes_profile {
                    profile::write(&self, recording, timeout);
                }
                #[cfg(not(feature = "mpio"))]
                drop(recording);
            }
            Err(GaveUp) => {
                self.exchange(Round::End, Duration::ZERO).give_up();
                #[cfg(feature = "mpio")]
                if self.writes_profile {
                    profile::refuse(&self);
                }
                if self.rank == 0 {
                    let seconds = timeout.as_secs_f64();
                    report(format_args!(
                        "not all ranks came to the end of MPI within {seconds} s (SCOPE_MPI_TIMEOUT): the \
                         table comes from the recordings"
                    ));
                }
            }
        }
    }

    /// Has this process write no profile at its end: it is that of the job, which no rank is to replace by its own,
    /// whatever a launcher said of ranks.
    #[cfg(feature = "hdf5")]
    fn leave_profile(&self) {
        if self.ranks == 1 {
            return;
        }
        if self.rank == 0 {
            // Tells what is wrong with the wish, if anything is.
            own_profile::is_wanted();
        }
        own_profile::leave_to_others();
    }

    /// The totals of all ranks, on rank 0, and what this one has recorded so far, with its collective calls if
    /// it writes a profile.
    fn combine(
        &self,
        recorder: &'static Recorder,
        timeout: Duration,
    ) -> Result<(Option<JobTotals>, Recording), GaveUp> {
        // Before the totals, which are in ns of rank 0 from then on.
        note_offset(recorder, Ok(clocks::compare(&self.exchange(Round::End, timeout))?));
        let mut recording = finalize::so_far(recorder, self.writes_profile).map_err(|problem| {
            report(format_args!("{problem}"));
            GaveUp
        })?;
        // Where it stands is what MPI says: a launcher may have said nothing.
        recording.set_rank(self.rank, self.ranks);
        // How long reading took is no time in which a rank did not come: the others may have read as long.
        let exchange = self.exchange(Round::End, timeout);
        let totals = combine::combine(&exchange, JobTotals::of_rank(recording.profile()))?;
        Ok((totals, recording))
    }
}

/// Says where a launcher started several ranks that do not know of each other, each of them alone for MPI. The
/// place is what the launcher said before MPI began, which may say something else in the environment.
fn note_other_launcher(place: Place) {
    if let Place { rank: 0, ranks: 2.. } = place {
        report(format_args!(
            "the launcher started {} ranks, but MPI knows of one only: the launcher is of another MPI than the \
             program's, or `srun` needs the right `--mpi`",
            place.ranks
        ));
    }
}

/// Whether this rank would write a profile together with the others.
fn wishes_profile() -> bool {
    #[cfg(feature = "mpio")]
    return own_profile::wish().unwrap_or(false);
    #[cfg(not(feature = "mpio"))]
    false
}

/// Whether the ranks are to talk to each other: `SCOPE_MPI_COMBINE`, else not where the job has several
/// programs, of which some may not have this in them.
fn may_combine() -> bool {
    match environment::is_on("SCOPE_MPI_COMBINE") {
        Ok(by_hand) => by_hand.unwrap_or_else(|| {
            let programs = std::env::var("OMPI_NUM_APP_CTX").ok().and_then(|number| number.parse().ok());
            programs.unwrap_or(1_u32) <= 1
        }),
        Err(problem) => {
            report(format_args!("{problem}; ranks do not put their totals together"));
            false
        }
    }
}

/// Shows the table of the job, unless `SCOPE_MPI_TABLE=0`.
fn show(job: &JobTotals) {
    if environment::is_on("SCOPE_MPI_TABLE").is_ok_and(|on| on.unwrap_or(true)) {
        report(format_args!("{} ranks\n\n{}", job.ranks, job.render()));
    }
}

fn note_offset(recorder: &Recorder, compared: Result<ClockOffset, GaveUp>) {
    if let Ok(ClockOffset { at_ns, offset_ns, uncertainty_ns }) = compared {
        let numbers = [at_ns, offset_ns, uncertainty_ns];
        let fields = numbers.iter().fold(Fields::default(), |fields, ns| fields.u64(ns.cast_unsigned()));
        recorder.append(kind::CLOCK_OFFSET, 0, &fields.0);
    }
}

/// The totals of all ranks, as they were when MPI ended; only on rank 0, and only where the ranks came
/// together.
///
/// # Examples
/// ```no_run
/// if let Some(job) = scope_runtime::mpi::totals() {
///     println!("{}", job.render());
/// }
/// ```
pub fn totals() -> Option<JobTotals> {
    lock(&TOTALS).clone()
}
