//! What is missing from exports and tables.

use scope_runtime::call_stack::NestingError;

/// So many lanes are named.
const MOST_LINES: usize = 10;

/// Lanes that are missing from what was made, as their calls do not nest. There are none in profiles with
/// call ids or with totals per path, so in all that this tool records.
#[derive(Clone, Debug, Default)]
pub struct LeftOut {
    lines: Vec<String>,
    more: usize,
}

impl LeftOut {
    pub(super) fn add(&mut self, rank: u32, errors: &[NestingError]) {
        let named = errors.len().min(MOST_LINES - self.lines.len());
        self.lines
            .extend(errors[..named].iter().map(|error| format!("rank {rank}: a lane is left out: {error}")));
        self.more += errors.len() - named;
    }

    /// Adds those of a run of this label.
    pub(super) fn join(&mut self, label: Option<&str>, other: LeftOut) {
        let named = other.lines.len().min(MOST_LINES - self.lines.len());
        self.more += other.more + other.lines.len() - named;
        self.lines.extend(other.lines.into_iter().take(named).map(|line| match label {
            Some(label) => format!("{label}: {line}"),
            None => line,
        }));
    }

    /// One line per lane with the two calls at fault, and one for those beyond the first ten.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let more = (self.more > 0).then(|| format!("{} more lane(s) are left out", self.more));
        self.lines.iter().cloned().chain(more)
    }
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
        assert_eq!(lines.len(), 11, "{lines:?}");
        assert!(lines[7].starts_with("run: rank 3: a lane is left out: "), "{lines:?}");
        assert!(lines[8].starts_with("rank 3: a lane is left out: "), "{lines:?}");
        assert_eq!(lines[10], "6 more lane(s) are left out");
    }
}
