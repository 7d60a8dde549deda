//! Messages between the ranks' recorders, which nobody waits for longer than until a deadline.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::time::Instant;

use super::clocks::ANSWER_BYTES;
use mpi_sys::{
    MPI_Comm, MPI_Request, MPI_Status, PMPI_Cancel, PMPI_Irecv, PMPI_Isend, PMPI_Test, RSMPI_UINT8_T,
};

/// The deadline has passed, or the library has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GaveUp;

/// A communicator of the recorders, and until when to wait.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    pub(super) comm: MPI_Comm,
    pub(super) rank: u32,
    pub(super) ranks: u32,
    pub(super) deadline: Instant,
    pub(super) round: Round,
}

/// When the ranks talk. What was left behind where they gave up at the begin must not be taken for an answer
/// at the end.
#[derive(Clone, Copy)]
pub(super) enum Round {
    Begin,
    End,
    /// When the profile of the job is written.
    #[cfg(feature = "mpio")]
    Profile,
}

/// What a message is about.
#[derive(Clone, Copy)]
pub(super) enum Tag {
    /// Length of the content to come, from a rank to the one that takes it.
    Offer,
    /// Whether it does.
    Answer,
    /// Totals of some ranks, or whatever else it was.
    Content,
    /// What time is it?
    Ask,
    /// It is this.
    Time,
}

/// Answers to an offer.
const TAKEN: [u8; 1] = [1];
const NOT_TAKEN: [u8; 1] = [0];
/// Offered in place of a length by a rank that has nothing to give any more.
const NOTHING: u64 = u64::MAX;
/// Bytes of the largest message: there are libraries that count them in 31 bits.
const PIECE: usize = 1 << 30;
/// Tests before the processor is left to others: on another one the message comes soon.
const SPINS: u32 = 2_000;

impl Exchange {
    /// Sends bytes and waits until they are on their way.
    pub(super) fn send(&self, to: u32, tag: Tag, bytes: Vec<u8>) -> Result<(), GaveUp> {
        let len = c_int::try_from(bytes.len()).map_err(|_| GaveUp)?;
        let mut request = MaybeUninit::<MPI_Request>::uninit();
        // SAFETY: the bytes stay where they are until they are sent: where that is not known to have
        // happened, for good.
        let begun = unsafe {
            let (to, tag) = (to as c_int, self.tag(tag));
            PMPI_Isend(bytes.as_ptr().cast(), len, RSMPI_UINT8_T, to, tag, self.comm, request.as_mut_ptr())
        };
        if begun != 0 {
            return Err(GaveUp);
        }
        // SAFETY: the call has written it.
        let outcome = self.wait(unsafe { request.assume_init_mut() });
        if outcome.is_err() {
            std::mem::forget(bytes);
        }
        outcome
    }

    /// Receives as many bytes as are expected.
    pub(super) fn receive(&self, from: u32, tag: Tag, len: usize) -> Result<Vec<u8>, GaveUp> {
        let count = c_int::try_from(len).map_err(|_| GaveUp)?;
        let mut bytes = vec![0_u8; len];
        let mut request = MaybeUninit::<MPI_Request>::uninit();
        // SAFETY: the bytes stay where they are until they are received: where that is not known to
        // have happened, for good.
        let begun = unsafe {
            let (from, tag) = (from as c_int, self.tag(tag));
            let buffer = bytes.as_mut_ptr().cast();
            PMPI_Irecv(buffer, count, RSMPI_UINT8_T, from, tag, self.comm, request.as_mut_ptr())
        };
        if begun != 0 {
            return Err(GaveUp);
        }
        // SAFETY: the call has written it.
        let request = unsafe { request.assume_init_mut() };
        if self.wait(request).is_ok() {
            return Ok(bytes);
        }
        // SAFETY: the request is still under way.
        unsafe { PMPI_Cancel(request) };
        std::mem::forget(bytes);
        Err(GaveUp)
    }

    fn tag(&self, tag: Tag) -> c_int {
        (self.round as c_int) << 3 | tag as c_int
    }

    fn wait(&self, request: &mut MPI_Request) -> Result<(), GaveUp> {
        let mut status = MaybeUninit::<MPI_Status>::uninit();
        for tests in 0_u32.. {
            let mut done = 0;
            // SAFETY: the request is under way, or was completed by the last test, after which it is none.
            if unsafe { PMPI_Test(request, &raw mut done, status.as_mut_ptr()) } != 0 {
                return Err(GaveUp);
            }
            if done != 0 {
                return Ok(());
            }
            if tests > SPINS {
                if Instant::now() >= self.deadline {
                    return Err(GaveUp);
                }
                std::thread::yield_now();
            }
        }
        Err(GaveUp)
    }

    /// Sends bytes of whose number the receiver does not know, once it has said that it takes them: nothing large
    /// is on its way to a rank that has given up.
    pub(super) fn offer(&self, to: u32, bytes: Vec<u8>) -> Result<(), GaveUp> {
        self.send(to, Tag::Offer, (bytes.len() as u64).to_le_bytes().to_vec())?;
        if self.receive(to, Tag::Answer, 1)? != TAKEN {
            return Err(GaveUp);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let later = rest.split_off(rest.len().min(PIECE));
            self.send(to, Tag::Content, rest)?;
            rest = later;
        }
        Ok(())
    }

    /// Receives such bytes.
    pub(super) fn take(&self, from: u32) -> Result<Vec<u8>, GaveUp> {
        let len = self.receive(from, Tag::Offer, 8)?;
        let len = u64::from_le_bytes(len.try_into().map_err(|_| GaveUp)?);
        if len == NOTHING {
            return Err(GaveUp);
        }
        self.send(from, Tag::Answer, TAKEN.to_vec())?;
        let len = usize::try_from(len).map_err(|_| GaveUp)?;
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let piece = self.receive(from, Tag::Content, (len - bytes.len()).min(PIECE))?;
            if bytes.is_empty() { bytes = piece } else { bytes.extend(piece) }
        }
        Ok(bytes)
    }

    /// Lets a rank know that this one offers nothing any more.
    #[cfg(feature = "mpio")]
    pub(super) fn offer_nothing(&self, to: u32) {
        let _ = self.send(to, Tag::Offer, NOTHING.to_le_bytes().to_vec());
    }

    /// Lets a rank know that this one takes nothing any more.
    #[cfg(feature = "mpio")]
    pub(super) fn take_nothing(&self, from: u32) {
        let _ = self.send(from, Tag::Answer, NOT_TAKEN.to_vec());
    }

    /// Tells the ranks above and below that this one will not take part any more, so that they need not
    /// wait for it. Who does not hear it waits until its own deadline.
    pub(super) fn give_up(&self) {
        for below in self.below() {
            let _ = self.send(below, Tag::Time, vec![0; ANSWER_BYTES]);
            let _ = self.send(below, Tag::Answer, NOT_TAKEN.to_vec());
        }
        if let Some(above) = self.above() {
            let _ = self.send(above, Tag::Offer, NOTHING.to_le_bytes().to_vec());
        }
    }

    /// The rank that this one reports to; `None` for rank 0. With [`Exchange::below`] this makes a tree
    /// with log2 of the ranks as its depth.
    pub(super) fn above(&self) -> Option<u32> {
        (self.rank > 0).then(|| self.rank & (self.rank - 1))
    }

    /// The ranks that report to this one, those with the fewest ranks below them first.
    pub(super) fn below(&self) -> impl DoubleEndedIterator<Item = u32> + use<> {
        let (rank, ranks) = (self.rank, self.ranks);
        let most = if rank == 0 { u32::BITS - 1 } else { rank.trailing_zeros() };
        (0..most).map(move |bit| rank | 1 << bit).filter(move |&below| below < ranks)
    }
}
