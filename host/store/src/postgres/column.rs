//! Values of columns and of parameters.

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use wattle_run::ports::store::StoreError;

use crate::error::corrupt;

/// Reads a column of packed bytes.
pub(super) fn bytes<'r>(row: &'r PgRow, column: &str) -> Result<&'r [u8], StoreError> {
    row.try_get(column).map_err(|error| corrupt(column, error))
}

/// Converts a number of rows to a parameter.
pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a number of bytes to a parameter.
pub(super) fn size(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
