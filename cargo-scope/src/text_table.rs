//! Text in columns.

use unicode_width::UnicodeWidthStr;

/// Rows with their columns under each other; `sides` has for each of them `<` where the cells begin at one
/// place, `>` where they end there.
pub(crate) fn aligned<const N: usize>(rows: &[[String; N]], sides: &[u8; N]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = " ".repeat(width - cell.width());
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
        assert_eq!(aligned(&rows, b"<<>"), "a     kind     1\n测试  b     1000\n");
    }
}
