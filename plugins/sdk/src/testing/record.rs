//! What a fake host writes down, and what a script answers.

use serde_json::Value;

use crate::log::Level;
use crate::sql::{Executed, Rows};

/// A message that was logged.
#[derive(Debug, Clone, PartialEq)]
pub struct Logged {
    /// How serious it is.
    pub level: Level,
    /// The message.
    pub message: String,
    /// Its fields.
    pub fields: Vec<(String, Value)>,
}

/// A statement that was run. `BEGIN`, `COMMIT` and `ROLLBACK` are written down as well.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The database.
    pub database: String,
    /// The SQL text.
    pub text: String,
    /// Its parameters.
    pub parameters: Vec<crate::sql::Value>,
    /// Whether it is part of a transaction.
    pub in_transaction: bool,
}

/// What a script answers to a statement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SqlAnswer {
    /// Rows found, or returned by `RETURNING`.
    pub rows: Rows,
    /// Rows touched.
    pub rows_affected: u64,
}

impl SqlAnswer {
    /// A statement that touched rows and returns none.
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
