//! Messages of any length, which go without being asked for.

use super::exchange::{Exchange, GaveUp, Tag};

impl Exchange {
    /// Sends bytes of whose number the receiver does not know.
    pub(super) fn send_sized(&self, to: u32, bytes: Vec<u8>) -> Result<(), GaveUp> {
        self.send(to, Tag::Offer, (bytes.len() as u64).to_le_bytes().to_vec())?;
        self.send(to, Tag::Content, bytes)
    }

    /// Receives such bytes.
    pub(super) fn receive_sized(&self, from: u32) -> Result<Vec<u8>, GaveUp> {
        let len = self.receive(from, Tag::Offer, 8)?;
        let len = u64::from_le_bytes(len.try_into().map_err(|_| GaveUp)?);
        self.receive(from, Tag::Content, usize::try_from(len).map_err(|_| GaveUp)?)
    }

    /// Lets a rank that waits for such bytes know that none will come.
    pub(super) fn refuse(&self, to: u32) {
        let _ = self.send(to, Tag::Offer, u64::MAX.to_le_bytes().to_vec());
    }
}
