//! Numbers as people read them.

/// `ns` in the unit that gives it one to three digits before the point, with four significant
/// digits: `0 ns`, `12 ns`, `1.234 us`, `98.77 ms`, `123.4 s`, `5000 s`.
pub fn duration(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    if ns < 1000 {
        return format!("{sign}{ns} ns");
    }
    for (unit, unit_ns) in [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000u64)] {
        for (limit, decimals) in [(10, 3), (100, 2), (1000, 1)] {
            // Rounded in integers first, so that 9999.6 us is not written as 10.000 ms.
            let step = unit_ns / 10u64.pow(decimals);
            let rounded = ns.saturating_add(step / 2) / step;
            let scale = 10u64.pow(decimals);
            if rounded < limit * scale {
                let (whole, rest) = (rounded / scale, rounded % scale);
                return format!("{sign}{whole}.{rest:0width$} {unit}", width = decimals as usize);
            }
        }
    }
    format!("{sign}{} s", ns.saturating_add(500_000_000) / 1_000_000_000)
}

/// Bytes in the unit that gives them one to three digits before the point, with four significant digits:
/// `12 B`, `1.234 KiB`, `123.4 GiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 999.95 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    let decimals = match size {
        size if size < 9.9995 => 3,
        size if size < 99.995 => 2,
        _ => 1,
    };
    format!("{size:.decimals$} {}", UNITS[unit])
}

/// `part` of `whole` in percent, with at most one decimal: `100%`, `33.3%`, `<0.1%`.
pub fn share(part: i64, whole: i64) -> String {
    if whole <= 0 || part < 0 {
        return String::new();
    }
    let percent = 100.0 * part as f64 / whole as f64;
    match percent {
        0.0 => "0%".into(),
        p if p < 0.05 => "<0.1%".into(),
        p if p >= 99.95 => format!("{p:.0}%"),
        p => format!("{p:.1}%"),
    }
}

/// `number` with a comma between groups of three digits.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 call`, `2,000 calls`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_four_digits() {
        let cases: [(i64, &str); 15] = [
            (0, "0 ns"),
            (7, "7 ns"),
            (999, "999 ns"),
            (1000, "1.000 us"),
            (9_999, "9.999 us"),
            (12_345, "12.35 us"),
            (99_994, "99.99 us"),
            (99_996, "100.0 us"),
            (999_949, "999.9 us"),
            (999_951, "1.000 ms"),
            (1_234_567_890, "1.235 s"),
            (999_960_000_000, "1000 s"),
            (5_000_000_000_000, "5000 s"),
            (-1_500, "-1.500 us"),
            (i64::MAX, "9223372037 s"),
        ];
        cases.iter().for_each(|&(ns, text)| assert_eq!(duration(ns), text));
    }

    #[test]
    fn bytes_have_four_digits() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.000 KiB"),
            (10_239, "9.999 KiB"),
            (123 * 1024, "123.0 KiB"),
            (1024 * 1024 - 1, "1.000 MiB"),
            (5 << 30, "5.000 GiB"),
            (u64::MAX, "16777216.0 TiB"),
        ];
        cases.iter().for_each(|&(number, text)| assert_eq!(bytes(number), text));
    }

    #[test]
    fn shares_say_when_they_are_small() {
        let cases =
            [(0, "0%"), (1, "<0.1%"), (333, "3.3%"), (9_999, "100%"), (10_000, "100%"), (20_000, "200%")];
        cases.iter().for_each(|&(part, text)| assert_eq!(share(part, 10_000), text));
        assert_eq!(share(1, 0), "");
    }

    #[test]
    fn counts_are_grouped() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
        cases.iter().for_each(|&(number, text)| assert_eq!(count(number), text));
        assert_eq!(counted(1, "call", "calls"), "1 call");
    }
}
