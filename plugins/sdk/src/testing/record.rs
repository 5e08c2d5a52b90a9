//! Recorded calls of a fake host, and the results of its SQL script.

use serde_json::Value;

use crate::log::Level;
use crate::sql::{Executed, Rows};

/// A recorded log message.
#[derive(Debug, Clone, PartialEq)]
pub struct Logged {
    /// Severity of the message.
    pub level: Level,
    /// Text of the message.
    pub message: String,
    /// Structured fields.
    pub fields: Vec<(String, Value)>,
}

/// A recorded SQL statement. `BEGIN`, `COMMIT` and `ROLLBACK` are recorded as well.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Name of the database.
    pub database: String,
    /// The SQL text.
    pub text: String,
    /// Parameters of the statement.
    pub parameters: Vec<crate::sql::Value>,
    /// True if the statement was executed in a transaction.
    pub in_transaction: bool,
}

/// The scripted result of a statement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SqlAnswer {
    /// Rows of a query, or of a `RETURNING` clause.
    pub rows: Rows,
    /// Number of changed rows.
    pub rows_affected: u64,
}

impl SqlAnswer {
    /// Creates the result of a statement that changed rows and returns none.
    pub fn affected(rows: u64) -> Self {
        Self { rows: Rows::default(), rows_affected: rows }
    }
}

impl From<Rows> for SqlAnswer {
    fn from(rows: Rows) -> Self {
        Self { rows_affected: rows.len() as u64, rows }
    }
}

impl From<SqlAnswer> for Executed {
    fn from(answer: SqlAnswer) -> Self {
        Self { rows_affected: answer.rows_affected, returned: answer.rows }
    }
}
