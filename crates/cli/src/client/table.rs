//! Rows in columns.

use ringfence_fs::diff::quoted;

use crate::output::{Colour, Paint};

/// Rows below their titles, each column as wide as its widest cell. What others have named is
/// quoted, so that it cannot move the reader's cursor.
pub(super) fn table(titles: &[&str], rows: &[Vec<String>], paint: Paint) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| shown(cell)).collect()).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(titles[column].len())
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let heading: Vec<String> = titles.iter().map(|title| title.to_string()).collect();
    let mut text = paint.text(Colour::Grey, &line(&heading, &widths)) + "\n";
    for row in &rows {
        text += &line(row, &widths);
        text.push('\n');
    }
    text
}

/// Titles and values below each other, without those that are empty.
pub(super) fn sheet(fields: &[(&str, String)], paint: Paint) -> String {
    let there = fields.iter().filter(|(_, value)| !value.is_empty());
    let width = there.clone().map(|(title, _)| title.len()).max().unwrap_or(0);
    let lines = there.map(|(title, value)| {
        format!("{}  {}\n", paint.text(Colour::Grey, &format!("{title:<width$}")), shown(value))
    });
    lines.collect()
}

fn shown(cell: &str) -> String {
    quoted(cell.as_bytes()).into_owned()
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| {
        let missing = width.saturating_sub(cell.chars().count());
        format!("{cell}{}", " ".repeat(missing))
    });
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let rows = vec![vec!["a".into(), "long".into()], vec!["bcd".into(), "x\ny".into()]];
        let text = table(&["ID", "N"], &rows, Paint::none());
        assert_eq!(text, "ID   N\na    long\nbcd  \"x\\ny\"\n");
    }

    #[test]
    fn a_sheet_leaves_out_what_is_empty() {
        let text = sheet(&[("id", "x".into()), ("name", String::new())], Paint::none());
        assert_eq!(text, "id  x\n");
    }
}
