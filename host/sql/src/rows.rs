//! Reads rows up to the limits.

use futures::TryStreamExt as _;
use futures::stream::BoxStream;
use sqlx::Either;
use wattle_run::hostcall::sql::{Column, Executed, Rows, SqlValue};
use wattle_run::json::bounded::JsonBudget;
use wattle_run::limit::{JSON_VALUES_BYTES, SqlLimits};

use crate::failure::StatementError;
use crate::limit::RESULT_VALUES_FACTOR;

/// Bytes that each value counts against the limit in addition to its content, so that rows of NULLs
/// also count.
const VALUE_OVERHEAD_BYTES: u64 = 8;

/// Bytes of a row, as the database sent it, that do not count as content of its values: texts of
/// numbers and prefixes of bytes. A row of PostgreSQL has at most 1,664 columns.
const ROW_OVERHEAD_BYTES: u64 = 64 << 10;

/// Reads the rows of one dialect.
pub(crate) trait RowReader {
    type Row;
    type Outcome;

    /// Returns the bytes of the values of a row as the database sent them. Returns 0 for a dialect
    /// whose database limits the length of a row.
    fn sent_bytes(row: &Self::Row) -> Result<u64, sqlx::Error>;

    fn columns(row: &Self::Row) -> Vec<Column>;

    /// Returns the values of a row. JSON documents are parsed within a budget that all rows of a
    /// result share.
    fn values(row: &Self::Row, json: &JsonBudget) -> Result<Vec<SqlValue>, StatementError>;

    fn affected(outcome: &Self::Outcome) -> u64;
}

/// What happens to the remaining rows at a limit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnLimit {
    /// Stops reading: the statement only reads.
    Stop,
    /// Lets the statement finish: it writes.
    Finish,
}

/// The stream of rows and outcomes of a statement.
pub(crate) type RowStream<'a, R> =
    BoxStream<'a, Result<Either<<R as RowReader>::Outcome, <R as RowReader>::Row>, sqlx::Error>>;

pub(crate) async fn collect<R: RowReader>(
    mut stream: RowStream<'_, R>,
    limits: &SqlLimits,
    rest: OnLimit,
) -> Result<Executed, StatementError> {
    let json = JsonBudget::new(max_json_bytes(limits));
    let mut executed = Executed::default();
    let mut bytes = 0;
    while let Some(answer) = stream.try_next().await? {
        match answer {
            Either::Left(outcome) => executed.rows_affected += R::affected(&outcome),
            Either::Right(_) if executed.returned.truncated => {}
            Either::Right(row) => {
                if executed.returned.columns.is_empty() {
                    executed.returned.columns = R::columns(&row);
                }
                // Values are copies of the row.
                if R::sent_bytes(&row)? > max_sent_bytes(limits) {
                    executed.returned.truncated = true;
                } else {
                    let values = R::values(&row, &json)?;
                    push_row(&mut executed.returned, values, &mut bytes, limits);
                }
            }
        }
        if executed.returned.truncated && rest == OnLimit::Stop {
            break;
        }
    }
    Ok(executed)
}

/// Returns the maximum bytes of the values of a row as the database sends them. A row that a result
/// can contain has fewer, since bytes are sent as two digits each. A JSON document is an exception:
/// whitespace, escapes and repeated keys do not count in a result.
fn max_sent_bytes(limits: &SqlLimits) -> u64 {
    limits.bytes.saturating_mul(2).saturating_add(ROW_OVERHEAD_BYTES)
}

/// Returns the maximum bytes in memory of the values and keys of all JSON documents in a result.
fn max_json_bytes(limits: &SqlLimits) -> u64 {
    limits.bytes.saturating_mul(RESULT_VALUES_FACTOR).max(JSON_VALUES_BYTES)
}

fn push_row(rows: &mut Rows, row: Vec<SqlValue>, bytes: &mut u64, limits: &SqlLimits) {
    *bytes += row.iter().map(value_bytes).sum::<u64>();
    if rows.rows.len() as u64 >= limits.rows || *bytes > limits.bytes {
        rows.truncated = true;
    } else {
        rows.rows.push(row);
    }
}

fn value_bytes(value: &SqlValue) -> u64 {
    let content = match value {
        SqlValue::Null | SqlValue::Boolean(_) | SqlValue::Integer(_) | SqlValue::Real(_) => 0,
        SqlValue::Text(text) | SqlValue::Other(text) => text.len(),
        SqlValue::Bytes(bytes) => bytes.len(),
        SqlValue::Json(value) => value.to_string().len(),
    };
    VALUE_OVERHEAD_BYTES + content as u64
}
