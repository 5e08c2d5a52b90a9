//! A document as a tree of values, with the line of each value.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

use crate::limit::DOCUMENT_LIMIT_BYTES;
use crate::toml_depth;

/// A parsed document with the lines of its values.
pub(super) struct SourceDocument {
    pub(super) root: Value,
    /// Line of each value by its path; empty for JSON, whose parser does not report lines of
    /// values.
    lines: BTreeMap<String, u32>,
}

/// A syntax error: the line if it is known, and the message.
pub(super) type SyntaxError = (Option<u32>, String);

impl SourceDocument {
    /// Parses a TOML document and records the line of each value.
    pub(super) fn toml(text: &str) -> Result<Self, SyntaxError> {
        check_size(text)?;
        toml_depth::check(text).map_err(|error| (Some(error.line), error.to_string()))?;
        let starts = line_starts(text);
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map(|span| line_at(&starts, span.start));
            (line, error.message().replace('\n', ", "))
        })?;
        let mut reader = TomlReader { starts, lines: BTreeMap::new() };
        let root = reader.table("", table.get_ref())?;
        Ok(Self { root, lines: reader.lines })
    }

    /// Parses a JSON document. The lines of its values stay unknown; see [`SourceDocument`].
    pub(super) fn json(text: &str) -> Result<Self, SyntaxError> {
        check_size(text)?;
        let root = serde_json::from_str(text)
            .map_err(|error| (u32::try_from(error.line()).ok(), error.to_string()))?;
        Ok(Self { root, lines: BTreeMap::new() })
    }

    /// Returns the line of a path, or of its nearest parent with a line.
    pub(super) fn line(&self, path: &str) -> Option<u32> {
        let mut path = path;
        loop {
            if let Some(line) = self.lines.get(path) {
                return Some(*line);
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }
}

fn check_size(text: &str) -> Result<(), SyntaxError> {
    if text.len() <= DOCUMENT_LIMIT_BYTES {
        return Ok(());
    }
    Err((None, format!("the document has more than {DOCUMENT_LIMIT_BYTES} bytes")))
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

fn line_at(starts: &[usize], offset: usize) -> u32 {
    starts.partition_point(|start| *start <= offset) as u32
}

/// Converts TOML into JSON values and collects their lines.
struct TomlReader {
    starts: Vec<usize>,
    lines: BTreeMap<String, u32>,
}

impl TomlReader {
    fn table(&mut self, path: &str, table: &DeTable<'_>) -> Result<Value, SyntaxError> {
        let mut fields = Map::new();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            let line = line_at(&self.starts, key.span().start);
            self.lines.insert(path.clone(), line);
            fields.insert(name.to_owned(), self.value(&path, line, value.get_ref())?);
        }
        Ok(Value::Object(fields))
    }

    fn value(&mut self, path: &str, line: u32, value: &DeValue<'_>) -> Result<Value, SyntaxError> {
        let no_json =
            |what: &str| (Some(line), format!("`{path}` is {what}, which JSON cannot represent"));
        Ok(match value {
            DeValue::String(text) => Value::String(text.clone().into_owned()),
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Datetime(time) => Value::String(time.to_string()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map(|number| Value::Number(number.into()))
                .map_err(|_| no_json("a number beyond 64 bits"))?,
            DeValue::Float(number) => number
                .as_str()
                .parse()
                .ok()
                .and_then(Number::from_f64)
                .map(Value::Number)
                .ok_or_else(|| no_json("not a finite number"))?,
            DeValue::Array(items) => {
                let mut values = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    let line = line_at(&self.starts, item.span().start);
                    self.lines.insert(path.clone(), line);
                    values.push(self.value(&path, line, item.get_ref())?);
                }
                Value::Array(values)
            }
            DeValue::Table(table) => self.table(path, table)?,
        })
    }
}
