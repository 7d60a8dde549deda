//! Tables as Python's `pstats` prints them, character for character.

use std::io::{self, Write};

use super::dict::{Caller, Entry, Key};
use super::stats::{Restriction, Stats};

impl Stats {
    /// Prints the heading and one line per entry that the restrictions leave.
    ///
    /// `ncalls tottime percall cumtime percall filename:lineno(function)`; tottime is self time,
    /// cumtime inclusive time, both in seconds; `3/1` calls are 3 of which 1 is primitive.
    ///
    /// # Errors
    ///
    /// Those of `to`, as for all that print.
    pub fn print_stats(&self, to: &mut impl Write, restrictions: &[Restriction]) -> io::Result<()> {
        let (calls, primitive) = (self.total_calls(), self.primitive_calls());
        write!(to, "         {calls} function calls ")?;
        if calls != primitive {
            write!(to, "({primitive} primitive calls) ")?;
        }
        writeln!(to, "in {:.3} seconds\n", self.self_s())?;
        let list = self.heading(to, restrictions)?;
        if list.is_empty() {
            return Ok(());
        }
        writeln!(to, "   ncalls  tottime  percall  cumtime  percall filename:lineno(function)")?;
        for entry in list {
            let Entry { key, cc, nc, tt_s, ct_s, .. } = entry;
            let calls = if cc == nc { nc.to_string() } else { format!("{nc}/{cc}") };
            let (each_tt, each_ct) = (per_call(*tt_s, *nc), per_call(*ct_s, *cc));
            writeln!(to, "{calls:>9} {tt_s:8.3} {each_tt:>8} {ct_s:8.3} {each_ct:>8} {key}")?;
        }
        writeln!(to, "\n")
    }

    /// Prints, for each entry that the restrictions leave, by whom it was called.
    ///
    /// # Errors
    ///
    /// Those of `to`.
    pub fn print_callers(&self, to: &mut impl Write, restrictions: &[Restriction]) -> io::Result<()> {
        let list = self.heading(to, restrictions)?;
        let width = self.width(&list);
        self.call_heading(to, &list, width, "was called by...")?;
        for entry in &list {
            let callers = entry.callers.iter().map(|(key, caller)| (key, *caller)).collect();
            call_lines(to, width, &entry.key, callers, "<-")?;
        }
        if list.is_empty() { Ok(()) } else { writeln!(to, "\n") }
    }

    /// Prints, for each entry that the restrictions leave, what it called.
    ///
    /// # Errors
    ///
    /// Those of `to`.
    pub fn print_callees(&self, to: &mut impl Write, restrictions: &[Restriction]) -> io::Result<()> {
        let list = self.heading(to, restrictions)?;
        let width = self.width(&list);
        self.call_heading(to, &list, width, "called...")?;
        let entries = self.profile().entries();
        let places: std::collections::HashMap<&Key, usize> =
            entries.iter().enumerate().map(|(at, entry)| (&entry.key, at)).collect();
        let callees = self.callees();
        for entry in &list {
            let called = &callees[places[&entry.key]];
            let called = called.iter().map(|(callee, numbers)| (&entries[*callee].key, *numbers));
            call_lines(to, width, &entry.key, called.collect(), "->")?;
        }
        if list.is_empty() { Ok(()) } else { writeln!(to, "\n") }
    }

    /// Says how the list is ordered and cut; gives the list.
    fn heading(&self, to: &mut impl Write, restrictions: &[Restriction]) -> io::Result<Vec<&Entry>> {
        let mut message = if self.sorted_by.is_empty() {
            "   Random listing order was used\n".to_owned()
        } else {
            let words: Vec<&str> = self.sorted_by.iter().map(|key| key.words()).collect();
            format!("   Ordered by: {}\n", words.join(", "))
        };
        let mut list = self.entries(&[]);
        for applied in 1..=restrictions.len() {
            let before = list.len();
            list = self.entries(&restrictions[..applied]);
            if list.len() != before {
                let restriction = match &restrictions[applied - 1] {
                    Restriction::Count(count) => count.to_string(),
                    Restriction::Fraction(part) => format!("{part:?}"),
                    Restriction::Contains(text) => format!("'{text}'"),
                };
                message += &format!(
                    "   List reduced from {before} to {} due to restriction <{restriction}>\n",
                    list.len()
                );
            }
        }
        if !list.is_empty() {
            writeln!(to, "{message}")?;
        }
        Ok(list)
    }

    /// Width of the first column: the longest text that is printed, and two.
    fn width(&self, list: &[&Entry]) -> usize {
        list.iter().map(|entry| entry.key.to_string().chars().count()).max().unwrap_or(0) + 2
    }

    fn call_heading(
        &self,
        to: &mut impl Write,
        list: &[&Entry],
        width: usize,
        title: &str,
    ) -> io::Result<()> {
        if list.is_empty() {
            return Ok(());
        }
        writeln!(to, "{:width$}{title}", "Function ")?;
        if self.profile().entries().iter().any(|entry| !entry.callers.is_empty()) {
            writeln!(to, "{:width$}    ncalls  tottime  cumtime", "")?;
        }
        Ok(())
    }
}

fn per_call(seconds: f64, calls: i64) -> String {
    if calls == 0 { String::new() } else { format!("{:8.3}", seconds / calls as f64) }
}

fn call_lines(
    to: &mut impl Write,
    width: usize,
    of: &Key,
    mut others: Vec<(&Key, Caller)>,
    arrow: &str,
) -> io::Result<()> {
    write!(to, "{:width$}{arrow} ", of.to_string())?;
    if others.is_empty() {
        return writeln!(to);
    }
    others.sort_by_key(|(key, _)| *key);
    let (mut left, mut counts_width) = (0, 7);
    for (key, Caller { nc, cc, tt_s, ct_s }) in others {
        let calls = if nc == cc { nc.to_string() } else { format!("{nc}/{cc}") };
        writeln!(to, "{:left$}{calls:>counts_width$} {tt_s:8.3} {ct_s:8.3}  {key}", "")?;
        (left, counts_width) = (width + 1, 9);
    }
    Ok(())
}
