//! The file as rank 0 makes it of the shares of all ranks, and the place of each rank in it.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use crate::collect::{Merger, RunInfo, Share};
use crate::format::{FieldReader, Fields};
use crate::merged::MergedProfile;
use crate::profile_file::publish::Temporary;
use crate::profile_file::shared::{self, Calls};

/// Where the calls of a rank belong.
pub(super) struct Place {
    /// The file, under the name that it has while it is made.
    pub(super) file: PathBuf,
    /// Bytes of the file.
    len: u64,
    /// The first of the rank's calls, counted through those of all ranks.
    pub(super) first: usize,
    /// Which of the optional columns there are.
    pub(super) has_column: Vec<bool>,
}

impl Place {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let fields = Fields::default().text(&self.file.to_string_lossy()).u64(self.len);
        self.has_column.iter().fold(fields.u64(self.first as u64), |fields, &has| fields.u32(has.into())).0
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Place> {
        let mut fields = FieldReader(bytes);
        let (file, len, first) = (fields.text()?.into(), fields.u64()?, fields.u64()? as usize);
        let has_column = std::iter::from_fn(|| Some(fields.u32()? != 0)).collect();
        Some(Place { file, len, first, has_column })
    }

    /// Whether this process has the file before it, too: ranks may be on several machines.
    pub(super) fn check(&self) -> Result<(), String> {
        let file = OpenOptions::new().write(true).open(&self.file);
        match file.and_then(|file| file.metadata()).map(|about| about.len()) {
            Ok(len) if len == self.len => Ok(()),
            Ok(len) => Err(format!("`{}` has {len} bytes, not {}", self.file.display(), self.len)),
            Err(error) => Err(format!("failed to open `{}`: {error}", self.file.display())),
        }
    }
}

/// What rank 0 makes of all shares.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) merger: Merger,
    calls: Calls,
    /// The first call of each rank.
    firsts: Vec<usize>,
}

impl Gathered {
    /// Adds the share of the next rank.
    pub(super) fn add(&mut self, share: Share) -> Result<(), String> {
        let Share { part, statistics, has_column } = share;
        self.firsts.push(self.calls.count);
        let rows = self.merger.add_part(part).map_err(|error| error.to_string())?;
        let rows = &self.merger.rows()[rows];
        self.calls.count = rows.last().map_or(self.calls.count, |row| row.events.end);
        self.calls.statistics.extend(rows.iter().map(|row| (row.rank, row.region)).zip(statistics));
        self.calls.has_column.resize(has_column.len(), false);
        self.calls.has_column.iter_mut().zip(has_column).for_each(|(has, has_too)| *has |= has_too);
        Ok(())
    }

    /// Makes the file, with room for the calls; gives the place of each rank in it.
    pub(super) fn make(self, run: &RunInfo, path: &Path) -> Result<(Temporary, Vec<Place>), String> {
        let Gathered { merger, calls, firsts } = self;
        let profile: MergedProfile = merger.finish(run).map_err(|error| error.to_string())?;
        let file = shared::make(&profile, &calls, path).map_err(|error| error.to_string())?;
        let len = fs::metadata(file.path()).map_err(|error| error.to_string())?.len();
        let firsts = firsts.into_iter().filter(|_| calls.count > 0);
        let place = |first| Place {
            file: file.path().to_path_buf(),
            len,
            first,
            has_column: calls.has_column.clone(),
        };
        let places = firsts.map(place).collect();
        Ok((file, places))
    }
}
