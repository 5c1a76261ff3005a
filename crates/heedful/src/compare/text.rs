//! Tables as text: aligned Markdown, and CSV as in RFC 4180.

use std::fmt::Write;

use crate::plot::Table;
use crate::plot::markup::is_wide;

/// Shown for a missing value.
pub(super) const MISSING: &str = "–";

/// A heading and the table, with padded columns; columns of numbers are right-aligned.
pub(super) fn markdown(table: &Table) -> String {
    let cell = |text: &String| text.replace('|', "\\|");
    let lines: Vec<Vec<String>> =
        [&table.columns].into_iter().chain(&table.rows).map(|line| line.iter().map(cell).collect()).collect();
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| terminal_width(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(|column| width(column).max(3)).collect();
    let is_number = |cell: &String| {
        let number = cell.strip_suffix(" %").unwrap_or(cell);
        number == MISSING || number == "−∞" || number.parse::<f64>().is_ok()
    };
    let is_numeric: Vec<bool> = (0..table.columns.len())
        .map(|column| table.rows.iter().filter_map(|row| row.get(column)).all(is_number))
        .collect();
    let mut text = format!("## {}\n\n", table.title);
    for (number, line) in lines.iter().enumerate() {
        for ((cell, &width), is_number) in line.iter().zip(&widths).zip(&is_numeric) {
            let space = " ".repeat(width - terminal_width(cell));
            let _ = match is_number {
                true => write!(text, "| {space}{cell} "),
                false => write!(text, "| {cell}{space} "),
            };
        }
        text += "|\n";
        if number == 0 {
            for (&width, is_number) in widths.iter().zip(&is_numeric) {
                let end = if *is_number { ':' } else { '-' };
                let _ = write!(text, "| {}{end} ", "-".repeat(width - 1));
            }
            text += "|\n";
        }
    }
    text
}

/// The number of terminal columns of a text: full-width characters take two.
fn terminal_width(text: &str) -> usize {
    text.chars().map(|c| if is_wide(c) { 2 } else { 1 }).sum()
}

impl Table {
    /// The table as aligned Markdown.
    pub fn to_markdown(&self) -> String {
        markdown(self)
    }
}

/// Headings and rows as CSV.
pub(super) fn csv(columns: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<String>| cells.join(",") + "\n";
    let heading = line(columns.iter().map(|column| quoted(column)).collect());
    let rows = rows.iter().map(|row| line(row.iter().map(|cell| quoted(cell)).collect()));
    heading + &rows.collect::<String>()
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_aligned_and_bars_are_escaped() {
        let rows = vec![vec!["a|b".to_owned(), "1".to_owned()], vec!["c".to_owned(), "12345".to_owned()]];
        let table = super::super::table("title", &["name", "number"], rows);
        let expected =
            "## title\n\n| name | number |\n| ---- | -----: |\n| a\\|b |      1 |\n| c    |  12345 |\n";
        assert_eq!(markdown(&table), expected);
        // Chinese characters are two columns wide, and percentages count as numbers.
        let rows =
            vec![vec!["动物".to_owned(), "5.0 %".to_owned()], vec!["cat".to_owned(), "10.0 %".to_owned()]];
        let expected =
            "## title\n\n| name |  share |\n| ---- | -----: |\n| 动物 |  5.0 % |\n| cat  | 10.0 % |\n";
        assert_eq!(markdown(&super::super::table("title", &["name", "share"], rows)), expected);
    }

    #[test]
    fn cells_with_commas_and_quotes_are_quoted() {
        let rows = vec![vec!["a, \"b\"".to_owned(), "2".to_owned()]];
        assert_eq!(csv(&["x", "y"], &rows), "x,y\n\"a, \"\"b\"\"\",2\n");
    }
}
