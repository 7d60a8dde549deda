//! The feature `mpio`: when MPI ends, the ranks write one `profile.h5` together.
//!
//! ```text
//! rank 0                                       every other rank
//!       who came last to which collective call, up the tree and down again
//! takes one share after the other        <--   its share: all but the columns of its calls
//! makes the file, with room for columns
//!                                        -->   where the file is, and the rank's place in it
//!                                        <--   whether it can be opened there
//!                                        -->   whether all of them can open it
//!        all open it through MPI-IO, write their columns, and close it
//!                                        <--   what went wrong
//! gives the file its name, or removes it
//! ```
//!
//! Messages have deadlines. Only opening and closing are the library's own affair, which waits for all
//! ranks; that they are there and can open the file was said just before.

mod own;
mod place;

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use self::own::{Own, OwnCalls};
use self::place::{Gathered, Place};
use super::exchange::{Exchange, GaveUp, Round};
use super::job::Job;
use crate::collect::{LastArrivals, RunInfo, Share};
use crate::own_profile::{self, attempt};
use crate::profile_file::Error;
use crate::recording::Recording;

/// What rank 0 takes for the share of a rank, at most.
const TIME_PER_RANK: Duration = Duration::from_millis(10);
/// In front of a share, and of what is said in place of one.
const SHARE: u8 = 1;
const PROBLEM: u8 = 0;

/// Writes the profile of the job beside rank 0's recording. Where that fails there is none, and a line of
/// rank 0 that says why.
///
/// All ranks of a job that [`writes its profile`](Job::writes_profile) come here, or to [`refuse`].
pub(super) fn write(job: &Job, recording: Recording, timeout: Duration) {
    let path = own_profile::beside(recording.path());
    let talk = Talk { job, path: &path, timeout, awaited: Cell::new(Awaited::Always) };
    let outcome = attempt(&path, || {
        let own = attempt(&path, || Own::of(recording));
        if job.rank == 0 { talk.lead(own) } else { talk.follow(own) }
    });
    if let Err(problem) = outcome {
        talk.awaited.get().refuse(job);
        if job.rank == 0 {
            own_profile::report_failure(&problem, &path);
        }
    }
}

/// Tells all who may wait for this rank that nothing will come.
pub(super) fn refuse(job: &Job) {
    Awaited::Always.refuse(job);
}

/// Who may wait for a word of this rank. Words that nobody hears make some libraries complain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    /// All that talk to it, whatever comes first.
    Always,
    /// All others wait for what rank 0 has for them: it has taken their shares.
    ByAll,
    No,
}

impl Awaited {
    /// Tells them that nothing more will come.
    fn refuse(self, job: &Job) {
        let exchange = job.exchange(Round::Profile, Duration::ZERO);
        let others = if job.rank == 0 { 1..job.ranks } else { 0..1 };
        match self {
            Awaited::No => (),
            Awaited::ByAll => others.for_each(|rank| exchange.offer_nothing(rank)),
            Awaited::Always => {
                let neighbours = exchange.below().chain(exchange.above());
                let neighbours = neighbours.filter(|rank| !others.contains(rank));
                for rank in others.clone().chain(neighbours) {
                    exchange.offer_nothing(rank);
                    exchange.take_nothing(rank);
                }
            }
        }
    }
}

/// The ranks, as they talk about the file that is to be at a path.
struct Talk<'a> {
    job: &'a Job,
    path: &'a Path,
    timeout: Duration,
    awaited: Cell<Awaited>,
}

impl Talk<'_> {
    /// The way of rank 0.
    fn lead(&self, own: Result<Own, String>) -> Result<(), String> {
        let last = self.last_arrivals(own.as_ref().ok()).map_err(|gave_up| self.say(gave_up))?;
        let (gathered, calls) = self.gather(own.map(|own| own.divide(self.job.rank, &last)))?;
        if gathered.merger.rows().is_empty() {
            return self.tell(|_| Vec::new());
        }
        let run = RunInfo { ends_at: Some("MPI_Finalize"), ..own_profile::run_info()? };
        let (file, places) = attempt(self.path, || gathered.make(&run, self.path))?;
        self.tell(|rank| places.get(rank).map(Place::to_bytes).unwrap_or_default())?;
        self.awaited.set(if places.is_empty() { Awaited::No } else { Awaited::ByAll });
        if let Some(own) = places.first() {
            self.hear()?;
            self.tell(|_| Vec::new())?;
            self.awaited.set(Awaited::No);
            let written = calls.write(own, self.path, self.job.comm);
            self.hear().and(written)?;
        }
        file.publish(self.path).map_err(|error| Error::rename(self.path, error).to_string())
    }

    /// The way of all other ranks.
    fn follow(&self, own: Result<Own, String>) -> Result<(), String> {
        let gave_up = |gave_up| self.say(gave_up);
        let last = self.last_arrivals(own.as_ref().ok()).map_err(gave_up)?;
        let divided = own.and_then(|own| {
            attempt(self.path, || {
                let (share, calls) = own.divide(self.job.rank, &last);
                Ok((share.to_bytes(), calls))
            })
        });
        let bytes = match &divided {
            Ok((share, _)) => [&[SHARE], &share[..]].concat(),
            Err(problem) => [&[PROBLEM], problem.as_bytes()].concat(),
        };
        self.awaited.set(Awaited::No);
        let to_rank_0 = |bytes: Vec<u8>| self.patient().offer(0, bytes).map_err(gave_up);
        let from_rank_0 = || self.patient().take(0).map_err(gave_up);
        to_rank_0(bytes)?;
        let place = from_rank_0()?;
        let (_, calls) = divided?;
        let Some(place) = Place::from_bytes(&place) else {
            // No rank has calls.
            return Ok(());
        };
        to_rank_0(words(&place.check()))?;
        from_rank_0()?;
        let written = calls.write(&place, self.path, self.job.comm);
        to_rank_0(words(&written))?;
        written
    }

    /// Who came last to each collective call. A rank without a recording has come to none.
    fn last_arrivals(&self, own: Option<&Own>) -> Result<LastArrivals, GaveUp> {
        let exchange = self.exchange();
        let receive =
            |exchange: Exchange, from| LastArrivals::from_bytes(&exchange.take(from)?).ok_or(GaveUp);
        let own = own.map(|own| LastArrivals::of_rank(self.job.rank, &own.collectives));
        let mut last = own.unwrap_or_default();
        for below in exchange.below() {
            last.add(receive(exchange, below)?);
        }
        if let Some(above) = exchange.above() {
            exchange.offer(above, last.to_bytes())?;
            last = receive(self.patient(), above)?;
        }
        let exchange = self.exchange();
        for below in exchange.below().rev() {
            exchange.offer(below, last.to_bytes())?;
        }
        Ok(last)
    }

    /// Takes the shares of all ranks, one after the other, to that of this one. All of them are taken, since each
    /// rank waits until its own is.
    fn gather(&self, own: Result<(Share, OwnCalls), String>) -> Result<(Gathered, OwnCalls), String> {
        let exchange = self.gathering();
        let mut all = own.and_then(|(share, calls)| {
            let mut gathered = Gathered::default();
            gathered.add(share).map(|()| (gathered, calls))
        });
        let mut awaited = Awaited::ByAll;
        for rank in 1..self.job.ranks {
            let share = match exchange.take(rank).as_deref() {
                Ok([SHARE, share @ ..]) => Share::from_bytes(share).ok_or_else(|| self.say(GaveUp)),
                Ok([_, problem @ ..]) => Err(format!("rank {rank}: {}", String::from_utf8_lossy(problem))),
                _ => {
                    awaited = Awaited::Always;
                    Err(self.say(GaveUp))
                }
            };
            all = all.and_then(|(mut gathered, calls)| gathered.add(share?).map(|()| (gathered, calls)));
        }
        self.awaited.set(awaited);
        all
    }

    /// Tells each of the other ranks something.
    fn tell(&self, words: impl Fn(usize) -> Vec<u8>) -> Result<(), String> {
        let exchange = self.exchange();
        let tell = |rank: u32| exchange.offer(rank, words(rank as usize));
        // All are told, whoever does not hear it.
        (1..self.job.ranks).map(tell).fold(Ok(()), Result::and).map_err(|gave_up| self.say(gave_up))
    }

    /// Hears from each of the other ranks whether all is well.
    fn hear(&self) -> Result<(), String> {
        let exchange = self.exchange();
        let hear = |rank| match exchange.take(rank) {
            Ok(words) if words.is_empty() => Ok(()),
            Ok(words) => Err(format!("rank {rank}: {}", String::from_utf8_lossy(&words))),
            Err(gave_up) => Err(self.say(gave_up)),
        };
        // All are heard, whatever one says.
        (1..self.job.ranks).map(hear).fold(Ok(()), Result::and)
    }

    /// With the deadline of whoever waits for ranks that do the same as it does.
    fn exchange(&self) -> Exchange {
        self.job.exchange(Round::Profile, self.timeout)
    }

    /// With that of rank 0 while it takes what all ranks have.
    fn gathering(&self) -> Exchange {
        self.job.exchange(Round::Profile, self.time_to_gather())
    }

    /// With that of whoever waits for rank 0, which then makes the file, and waits for ranks once more.
    fn patient(&self) -> Exchange {
        self.job.exchange(Round::Profile, 2 * self.time_to_gather() + self.timeout)
    }

    fn time_to_gather(&self) -> Duration {
        self.timeout + TIME_PER_RANK * self.job.ranks
    }

    fn say(&self, _: GaveUp) -> String {
        let seconds = self.timeout.as_secs_f64();
        format!("not all ranks took part in writing their profile within {seconds} s (SCOPE_MPI_TIMEOUT)")
    }
}

/// What is wrong, or nothing.
fn words(outcome: &Result<(), String>) -> Vec<u8> {
    outcome.as_ref().err().map(|problem| problem.clone().into_bytes()).unwrap_or_default()
}
