//! Conversion of values to literals and from text.

use std::fmt::Write as _;

use bytes::Bytes;
use sqlx::postgres::{PgColumn, PgQueryResult, PgRow};
use sqlx::{Column as _, Row as _, TypeInfo as _, ValueRef as _};
use wattle_run::hostcall::sql::{Column, SqlValue};

use crate::rows::RowReader;

/// Returns parameters as `('a', NULL)`, or an empty string without parameters. Every value is a
/// quoted literal without a type, so that the server infers the type.
pub(crate) fn literals(values: &[SqlValue]) -> Result<String, String> {
    if values.is_empty() {
        return Ok(String::new());
    }
    let mut text = String::from("(");
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        match value {
            SqlValue::Null => text.push_str("NULL"),
            SqlValue::Boolean(value) => quote(&mut text, &value.to_string())?,
            SqlValue::Integer(value) => quote(&mut text, &value.to_string())?,
            SqlValue::Real(value) => quote(&mut text, &real_text(*value))?,
            SqlValue::Text(value) | SqlValue::Other(value) => quote(&mut text, value)?,
            SqlValue::Bytes(value) => quote(&mut text, &hex(value))?,
            SqlValue::Json(value) => quote(&mut text, &value.to_string())?,
        }
    }
    text.push(')');
    Ok(text)
}

/// Appends an `E` literal, in which the meaning of backslashes does not depend on the settings of
/// the session.
fn quote(text: &mut String, value: &str) -> Result<(), String> {
    text.push_str("E'");
    for character in value.chars() {
        match character {
            '\0' => return Err("PostgreSQL has no text with NUL characters".to_owned()),
            '\'' => text.push_str("''"),
            '\\' => text.push_str("\\\\"),
            other => text.push(other),
        }
    }
    text.push('\'');
    Ok(())
}

fn real_text(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    value.to_string()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::from("\\x");
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x")?.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    digits.chunks_exact(2).map(|pair| Some((digit(pair[0])? << 4) | digit(pair[1])?)).collect()
}

pub(crate) fn columns(columns: &[PgColumn]) -> Vec<Column> {
    columns
        .iter()
        .map(|column| Column { name: column.name().to_owned(), type_name: type_name(column) })
        .collect()
}

/// Returns the name of a column's type; empty if it is unknown. `sqlx` reports a type that it has
/// not looked up as `?`.
fn type_name(column: &PgColumn) -> String {
    match column.type_info().name() {
        "?" => String::new(),
        name => name.trim_matches('"').to_lowercase(),
    }
}

/// Reads rows in text format.
pub(crate) struct PostgresReader;

impl RowReader for PostgresReader {
    type Row = PgRow;
    type Outcome = PgQueryResult;

    fn sent_bytes(row: &PgRow) -> Result<u64, sqlx::Error> {
        let mut bytes = 0;
        for index in 0..row.len() {
            let raw = row.try_get_raw(index)?;
            if !raw.is_null() {
                bytes += raw.as_bytes().map_err(sqlx::Error::Decode)?.len() as u64;
            }
        }
        Ok(bytes)
    }

    fn columns(row: &PgRow) -> Vec<Column> {
        columns(row.columns())
    }

    fn values(row: &PgRow) -> Result<Vec<SqlValue>, sqlx::Error> {
        (0..row.len()).map(|index| value(row, index)).collect()
    }

    fn affected(outcome: &PgQueryResult) -> u64 {
        outcome.rows_affected()
    }
}

fn value(row: &PgRow, index: usize) -> Result<SqlValue, sqlx::Error> {
    let raw = row.try_get_raw(index)?;
    if raw.is_null() {
        return Ok(SqlValue::Null);
    }
    let text = raw.as_str().map_err(sqlx::Error::Decode)?;
    let type_name = type_name(row.column(index));
    Ok(parse_typed(&type_name, text).unwrap_or_else(|| SqlValue::Other(text.to_owned())))
}

/// Parses a value by its type. Returns `None` for types without a simple form; their values are
/// returned as text.
fn parse_typed(type_name: &str, text: &str) -> Option<SqlValue> {
    Some(match type_name {
        "bool" => SqlValue::Boolean(text == "t"),
        "int2" | "int4" | "int8" | "oid" => SqlValue::Integer(text.parse().ok()?),
        "float4" | "float8" => {
            SqlValue::Real(text.parse().ok().filter(|value: &f64| value.is_finite())?)
        }
        "text" | "varchar" | "char" | "name" | "citext" | "unknown" => {
            SqlValue::Text(text.to_owned())
        }
        "bytea" => SqlValue::Bytes(Bytes::from(from_hex(text)?)),
        "json" | "jsonb" => SqlValue::Json(serde_json::from_str(text).ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use wattle_run::hostcall::sql::SqlValue;

    use super::{from_hex, literals};

    #[test]
    fn literals_are_escaped() {
        let values = [
            SqlValue::Text("it's \\' ; DROP".to_owned()),
            SqlValue::Null,
            SqlValue::Integer(-1),
            SqlValue::Real(5.0),
            SqlValue::Bytes(Bytes::from_static(&[0, 255])),
        ];
        assert_eq!(
            literals(&values).unwrap(),
            r"(E'it''s \\'' ; DROP', NULL, E'-1', E'5', E'\\x00ff')"
        );
        assert_eq!(literals(&[]).unwrap(), "");
        literals(&[SqlValue::Text("a\0b".to_owned())]).unwrap_err();
    }

    #[test]
    fn bytea_is_decoded_from_hex() {
        assert_eq!(from_hex("\\x00ff"), Some(vec![0, 255]));
        assert_eq!(from_hex("escape"), None);
    }
}
