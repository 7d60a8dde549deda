//! What is missing from exports and tables.

use scope_runtime::call_stack::NestingError;

use crate::merged::MergedProfile;
use crate::units::duration;

/// So many lanes are named.
const MOST_LINES: usize = 10;

/// What is missing from what was made: lanes whose calls do not nest, of which there are none in profiles
/// with call ids or with totals per path, so in all that this tool records; and calls after the end of a
/// timeline.
#[derive(Clone, Debug, Default)]
pub struct LeftOut {
    /// When the timeline of a run ends, in words.
    timelines: Vec<String>,
    lines: Vec<String>,
    more: usize,
}

impl LeftOut {
    /// Notes that something is taken from the calls of `profile`, if its timeline ends before its totals do.
    pub(super) fn add_calls_of(&mut self, profile: &MergedProfile) {
        if let Some(after) = timeline_end(profile) {
            let lacks = "later calls are in the totals only, and what single calls tell lacks them";
            self.timelines = vec![format!("the timeline ends after {after}: {lacks}")];
        }
    }

    pub(super) fn add(&mut self, rank: u32, errors: &[NestingError]) {
        let named = errors.len().min(MOST_LINES - self.lines.len());
        self.lines
            .extend(errors[..named].iter().map(|error| format!("rank {rank}: a lane is left out: {error}")));
        self.more += errors.len() - named;
    }

    /// Adds those of a run of this label.
    pub(super) fn join(&mut self, label: Option<&str>, other: LeftOut) {
        let labelled = |line| match label {
            Some(label) => format!("{label}: {line}"),
            None => line,
        };
        self.timelines.extend(other.timelines.into_iter().map(labelled));
        let named = other.lines.len().min(MOST_LINES - self.lines.len());
        self.more += other.more + other.lines.len() - named;
        self.lines.extend(other.lines.into_iter().take(named).map(labelled));
    }

    /// One line per timeline that ends early, one per lane with the two calls at fault, one for those beyond the
    /// first ten, and one with the remedy.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let more = (self.more > 0).then(|| format!("{} more lane(s) are left out", self.more));
        let remedy = (!self.lines.is_empty()).then(|| {
            "calls overlap like this where threads or tasks were not told apart, or a region was left out of \
             turn: with scope-profiler, record with `track_threads=True` or `track_async=True`"
                .to_owned()
        });
        self.timelines.iter().chain(&self.lines).cloned().chain(more).chain(remedy)
    }
}

/// How long after its start the timeline of a profile ends, in words; `None` where it has all calls.
pub(crate) fn timeline_end(profile: &MergedProfile) -> Option<String> {
    let end_ns = profile.metadata_integer("timeline_end_ns")?;
    Some(duration(end_ns.saturating_sub(profile.metadata_integer("start_time_ns")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_lanes_take_few_lines() {
        let (mut all, mut one) = (LeftOut::default(), LeftOut::default());
        one.add(3, &vec![NestingError::TooManyCalls(7); 8]);
        all.join(Some("run"), one.clone());
        all.join(None, one);
        let lines: Vec<_> = all.lines().collect();
        assert_eq!(lines.len(), 12, "{lines:?}");
        assert!(lines[7].starts_with("run: rank 3: a lane is left out: "), "{lines:?}");
        assert!(lines[8].starts_with("rank 3: a lane is left out: "), "{lines:?}");
        assert_eq!(lines[10], "6 more lane(s) are left out");
        assert!(lines[11].contains("track_threads=True"), "{lines:?}");
    }
}
