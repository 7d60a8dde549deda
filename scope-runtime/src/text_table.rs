//! Text in columns.

/// Rows with their columns under each other; `sides` has for each of them `<` where the cells begin at one
/// place, `>` where they end there, and `width` says how wide a text is shown.
pub fn aligned<const N: usize>(
    rows: &[[String; N]],
    sides: &[u8; N],
    width: impl Fn(&str) -> usize,
) -> String {
    let widest = |column: usize| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(widest);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, column_width)) in row.iter().zip(&widths).enumerate() {
            let gap = " ".repeat(column_width - width(cell));
            let between = if column > 0 { "  " } else { "" };
            line += &if sides[column] == b'<' {
                format!("{between}{cell}{gap}")
            } else {
                format!("{between}{gap}{cell}")
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "kind", "1"], ["测试", "b", "1000"]].map(|row| row.map(String::from));
        let on_a_terminal =
            |text: &str| text.chars().map(|letter| if letter.is_ascii() { 1 } else { 2 }).sum();
        assert_eq!(aligned(&rows, b"<<>", on_a_terminal), "a     kind     1\n测试  b     1000\n");
    }
}
