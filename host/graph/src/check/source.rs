//! A document as a tree of values, with the line of each value.

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::limit::DOCUMENT_LIMIT_BYTES;
use crate::toml_depth;
use crate::toml_lines::{TomlLines, line_at};

/// A parsed document with the lines of its values.
pub(super) struct SourceDocument {
    pub(super) root: Value,
    /// Empty for JSON, whose parser does not report lines of values.
    lines: TomlLines,
}

/// A syntax error: the line if it is known, and the message.
pub(super) type SyntaxError = (Option<u32>, String);

impl SourceDocument {
    /// Parses a TOML document and records the line of each value.
    pub(super) fn toml(text: &str) -> Result<Self, SyntaxError> {
        check_size(text)?;
        toml_depth::check(text).map_err(|error| (Some(error.line), error.to_string()))?;
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map(|span| line_at(text, span.start));
            (line, error.message().replace('\n', ", "))
        })?;
        let lines = TomlLines::new(text, table.get_ref());
        let root = read_table("", table.get_ref(), &lines)?;
        Ok(Self { root, lines })
    }

    /// Parses a JSON document. The lines of its values stay unknown; see [`SourceDocument`].
    pub(super) fn json(text: &str) -> Result<Self, SyntaxError> {
        check_size(text)?;
        let root = serde_json::from_str(text)
            .map_err(|error| (u32::try_from(error.line()).ok(), error.to_string()))?;
        Ok(Self { root, lines: TomlLines::default() })
    }

    /// Returns the line of a path, or of its nearest parent with a line.
    pub(super) fn line(&self, path: &str) -> Option<u32> {
        self.lines.line(path)
    }
}

fn check_size(text: &str) -> Result<(), SyntaxError> {
    if text.len() <= DOCUMENT_LIMIT_BYTES {
        return Ok(());
    }
    Err((None, format!("the document has more than {DOCUMENT_LIMIT_BYTES} bytes")))
}

/// Converts a table into a JSON object.
fn read_table(path: &str, table: &DeTable<'_>, lines: &TomlLines) -> Result<Value, SyntaxError> {
    let mut fields = Map::new();
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        fields.insert(name.to_owned(), read_value(&path, value.get_ref(), lines)?);
    }
    Ok(Value::Object(fields))
}

fn read_value(path: &str, value: &DeValue<'_>, lines: &TomlLines) -> Result<Value, SyntaxError> {
    let no_json =
        |what: &str| (lines.line(path), format!("`{path}` is {what}, which JSON cannot represent"));
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
            let read = |(index, item): (usize, &Spanned<DeValue<'_>>)| {
                read_value(&format!("{path}[{index}]"), item.get_ref(), lines)
            };
            Value::Array(items.iter().enumerate().map(read).collect::<Result<_, SyntaxError>>()?)
        }
        DeValue::Table(table) => read_table(path, table, lines)?,
    })
}
