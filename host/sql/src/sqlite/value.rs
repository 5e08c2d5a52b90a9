//! Conversion of SQLite values. The type of a value is independent of the type of its column.

use bytes::Bytes;
use sqlx::error::BoxDynError;
use sqlx::sqlite::{SqliteArguments, SqliteColumn, SqliteQueryResult, SqliteRow};
use sqlx::{Arguments as _, Column as _, Row as _, TypeInfo as _, ValueRef as _};
use wattle_run::hostcall::sql::{Column, SqlValue};
use wattle_run::json::bounded::JsonBudget;

use crate::failure::StatementError;
use crate::rows::RowReader;

pub(crate) fn arguments(values: &[SqlValue]) -> Result<SqliteArguments, BoxDynError> {
    let mut arguments = SqliteArguments::default();
    for value in values {
        match value {
            SqlValue::Null => arguments.add(None::<i64>)?,
            SqlValue::Boolean(value) => arguments.add(*value)?,
            SqlValue::Integer(value) => arguments.add(*value)?,
            SqlValue::Real(value) => arguments.add(*value)?,
            SqlValue::Text(value) | SqlValue::Other(value) => arguments.add(value.clone())?,
            SqlValue::Bytes(value) => arguments.add(value.to_vec())?,
            SqlValue::Json(value) => arguments.add(value.to_string())?,
        }
    }
    Ok(arguments)
}

pub(crate) fn columns(columns: &[SqliteColumn]) -> Vec<Column> {
    columns
        .iter()
        .map(|column| Column { name: column.name().to_owned(), type_name: type_name(column) })
        .collect()
}

fn type_name(column: &SqliteColumn) -> String {
    match column.type_info().name() {
        "NULL" => String::new(),
        name => name.to_lowercase(),
    }
}

/// Reads rows of SQLite.
pub(crate) struct SqliteReader;

impl RowReader for SqliteReader {
    type Row = SqliteRow;
    type Outcome = SqliteQueryResult;

    fn sent_bytes(_row: &SqliteRow) -> Result<u64, sqlx::Error> {
        Ok(0)
    }

    fn columns(row: &SqliteRow) -> Vec<Column> {
        columns(row.columns())
    }

    /// JSON of SQLite is text.
    fn values(row: &SqliteRow, _json: &JsonBudget) -> Result<Vec<SqlValue>, StatementError> {
        (0..row.len()).map(|index| Ok(value(row, index)?)).collect()
    }

    fn affected(outcome: &SqliteQueryResult) -> u64 {
        outcome.rows_affected()
    }
}

fn value(row: &SqliteRow, index: usize) -> Result<SqlValue, sqlx::Error> {
    let raw = row.try_get_raw(index)?;
    if raw.is_null() {
        return Ok(SqlValue::Null);
    }
    Ok(match raw.type_info().name() {
        "INTEGER" => integer(row, index)?,
        "REAL" => real(row.try_get_unchecked(index)?),
        "BLOB" => SqlValue::Bytes(Bytes::from(row.try_get_unchecked::<Vec<u8>, _>(index)?)),
        _ => SqlValue::Text(row.try_get_unchecked(index)?),
    })
}

/// Reads an integer. SQLite stores booleans as 0 and 1, so 0 and 1 in a column that is declared
/// `BOOLEAN` are returned as booleans.
fn integer(row: &SqliteRow, index: usize) -> Result<SqlValue, sqlx::Error> {
    let value: i64 = row.try_get_unchecked(index)?;
    let declared = row.column(index).type_info().name();
    Ok(match value {
        0 | 1 if declared == "BOOLEAN" => SqlValue::Boolean(value == 1),
        _ => SqlValue::Integer(value),
    })
}

/// Returns infinity as text, since JSON, in which the journal is stored, cannot represent it.
fn real(value: f64) -> SqlValue {
    if value.is_finite() { SqlValue::Real(value) } else { SqlValue::Other(value.to_string()) }
}
