//! Tables with aligned columns.

use wattle_run::text::Escaped;

/// Spaces between columns.
const GAP: usize = 2;

/// A table with a header row.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with these column names.
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(ToString::to_string).collect()] }
    }

    /// Adds a row. A line break in a cell is escaped, because the text after it would look like
    /// another row.
    pub fn row<I: Into<String>>(&mut self, cells: impl IntoIterator<Item = I>) {
        let escaped = cells.into_iter().map(|cell| Escaped::<String>(cell.into()).to_string());
        self.rows.push(escaped.collect());
    }

    /// Returns the table as text.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| {
                let padding = width.saturating_sub(cell.chars().count()) + GAP;
                format!("{cell}{}", " ".repeat(padding))
            });
            cells.collect::<String>().trim_end().to_owned()
        };
        self.rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["name", "status"]);
        table.row(["a", "idle"]);
        table.row(["longer", "interrupted"]);
        assert_eq!(table.render(), "name    status\na       idle\nlonger  interrupted");
    }

    #[test]
    fn a_cell_is_one_line() {
        let mut table = Table::new(&["name", "status"]);
        table.row(["a\nb  idle", "\u{1b}[2J"]);
        assert_eq!(table.render(), "name        status\na\\nb  idle  \\u{1b}[2J");
    }
}
