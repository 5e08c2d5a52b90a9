//! The lines of the values of TOML documents.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The line of each key of a document, and of each item of an array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TomlLines(BTreeMap<String, u32>);

impl TomlLines {
    /// Records the lines of a document that was parsed from `text`.
    pub fn new(text: &str, document: &DeTable<'_>) -> Self {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(starts).collect();
        let mut reader = LineReader { starts, lines: BTreeMap::new() };
        reader.table("", document);
        Self(reader.lines)
    }

    /// Returns the line of a path such as `graphs.g.edges[0].to`, from 1, or that of its nearest
    /// parent with a line.
    pub fn line(&self, path: &str) -> Option<u32> {
        let mut path = path;
        loop {
            if let Some(line) = self.0.get(path) {
                return Some(*line);
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }
}

/// Returns the line of a byte of a text, from 1.
pub fn line_at(text: &str, offset: usize) -> u32 {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() as u32 + 1
}

struct LineReader {
    /// Offsets of the first bytes of the lines.
    starts: Vec<usize>,
    lines: BTreeMap<String, u32>,
}

impl LineReader {
    fn table(&mut self, path: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let name = key.get_ref();
            let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            self.value(path, key.span().start, value);
        }
    }

    fn value(&mut self, path: String, offset: usize, value: &Spanned<DeValue<'_>>) {
        match value.get_ref() {
            DeValue::Table(table) => self.table(&path, table),
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(format!("{path}[{index}]"), item.span().start, item);
                }
            }
            _ => {}
        }
        let line = self.starts.partition_point(|start| *start <= offset) as u32;
        self.lines.insert(path, line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_items_have_their_lines() {
        let text = "a = 1\n[b.c]\nd = [\n  { e = 1 },\n  2,\n]\n[[f]]\n\n[[f]]\ng.h = 3\n";
        let lines = TomlLines::new(text, DeTable::parse(text).unwrap().get_ref());
        for (path, line) in [
            ("a", Some(1)),
            ("b.c", Some(2)),
            ("b.c.d", Some(3)),
            ("b.c.d[0].e", Some(4)),
            ("b.c.d[1]", Some(5)),
            ("f[0]", Some(7)),
            ("f[1].g.h", Some(10)),
            // The nearest parent with a line.
            ("b.c.x.y", Some(2)),
            ("x", None),
        ] {
            assert_eq!(lines.line(path), line, "{path}");
        }
        assert_eq!((line_at(text, 0), line_at(text, text.len())), (1, 11));
    }
}
