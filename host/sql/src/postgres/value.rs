//! Conversion of values to literals and from text.

use std::fmt::Write as _;

use bytes::Bytes;
use sqlx::postgres::{PgColumn, PgQueryResult, PgRow};
use sqlx::{Column as _, Row as _, TypeInfo as _, ValueRef as _};
use wattle_run::hostcall::sql::{Column, SqlValue};
use wattle_run::json::bounded::{JsonBudget, JsonError, JsonLimit};

use crate::failure::StatementError;
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

    fn values(row: &PgRow, json: &JsonBudget) -> Result<Vec<SqlValue>, StatementError> {
        (0..row.len()).map(|index| value(row, index, json)).collect()
    }

    fn affected(outcome: &PgQueryResult) -> u64 {
        outcome.rows_affected()
    }
}

fn value(row: &PgRow, index: usize, json: &JsonBudget) -> Result<SqlValue, StatementError> {
    let raw = row.try_get_raw(index)?;
    if raw.is_null() {
        return Ok(SqlValue::Null);
    }
    let text = raw.as_str().map_err(sqlx::Error::Decode)?;
    let parsed = match &*type_name(row.column(index)) {
        "json" | "jsonb" => parse_json(text, json)?,
        type_name => parse_typed(type_name, text),
    };
    Ok(parsed.unwrap_or_else(|| SqlValue::Other(text.to_owned())))
}

/// Parses a JSON document. Returns `None` for a document that the host cannot represent, such as
/// one with a number out of range or with too many levels; it is returned as text.
///
/// # Errors
///
/// [`JsonLimit::Values`] if the documents of the result exceed the budget.
fn parse_json(text: &str, budget: &JsonBudget) -> Result<Option<SqlValue>, JsonLimit> {
    match budget.parse(text) {
        Ok(document) => Ok(Some(SqlValue::Json(document))),
        Err(JsonError::Limit(exceeded @ JsonLimit::Values(_))) => Err(exceeded),
        Err(JsonError::Limit(JsonLimit::Depth) | JsonError::Syntax(_)) => Ok(None),
    }
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
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use serde_json::json;
    use sqlx::Either;
    use wattle_run::hostcall::sql::Executed;
    use wattle_run::limit::{JSON_MESSAGE_DEPTH, SqlLimits};

    use super::*;
    use crate::failure::OperationContext;
    use crate::rows::{OnLimit, RowStream, collect};

    /// Reads rows that consist of a JSON document.
    struct DocumentReader;

    impl RowReader for DocumentReader {
        type Row = String;
        type Outcome = ();

        fn sent_bytes(_row: &String) -> Result<u64, sqlx::Error> {
            Ok(0)
        }

        fn columns(_row: &String) -> Vec<Column> {
            Vec::new()
        }

        fn values(row: &String, json: &JsonBudget) -> Result<Vec<SqlValue>, StatementError> {
            Ok(parse_json(row, json)?.into_iter().collect())
        }

        fn affected(_outcome: &()) -> u64 {
            0
        }
    }

    /// Collects rows with some 36 MB of numbers each.
    async fn collect_numbers(rows: usize, bytes: u64) -> Result<Executed, StatementError> {
        let numbers = format!("[{}0]", "0,".repeat(500_000));
        let rows = std::iter::repeat_n(numbers, rows).map(|row| Ok(Either::Right(row)));
        let rows: RowStream<'_, DocumentReader> = futures::stream::iter(rows).boxed();
        let limits = SqlLimits { bytes, ..SqlLimits::default() };
        collect::<DocumentReader>(rows, &limits, OnLimit::Stop).await
    }

    #[tokio::test]
    async fn documents_of_a_result_share_a_budget() {
        assert_eq!(collect_numbers(1, 8 << 20).await.unwrap().returned.rows.len(), 1);
        let exceeded = collect_numbers(2, 8 << 20).await.unwrap_err();
        let failure = OperationContext { operation: "query", database: "shop" }.failure(exceeded);
        assert!(failure.message.starts_with("JSON of database `shop` cannot be read"), "{failure}");
        let details = json!({ "limit": "json_values_bytes", "allowed": 64 << 20 });
        assert_eq!((&*failure.code, failure.details), ("limit", Some(details)));
        let more = collect_numbers(2, 16 << 20).await.unwrap();
        assert_eq!(more.returned.rows.len(), 2, "the limit grows with the bytes of a result");
    }

    #[test]
    fn documents_without_a_representation_stay_text() {
        let budget = JsonBudget::default();
        let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let raw = r#"{"$serde_json::private::RawValue":"[1]"}"#;
        for text in [nested(JSON_MESSAGE_DEPTH + 1), "1e400".to_owned(), raw.to_owned()] {
            assert_eq!(parse_json(&text, &budget), Ok(None), "{text}");
        }
        assert_eq!(parse_json(r#"{"a":1}"#, &budget), Ok(Some(SqlValue::Json(json!({"a": 1})))));
    }

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
