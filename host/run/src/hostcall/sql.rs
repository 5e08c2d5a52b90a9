//! SQL values, rows and statements. Transactions are in [`crate::gate::transaction`].

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::call::CallKind;
use wattle_graph::failure::{Failure, code};

use crate::grant::{Grants, SqlAccess, SqlRule};
use crate::hostcall::HostCall;
use crate::ports::Caller;

/// Name of a transaction in the journal.
pub(crate) const TRANSACTION: &str = CallKind::SqlTransaction.name();
/// Key of a transaction's answer that says how it ended.
pub(crate) const TRANSACTION_END: &str = "end";
/// Value of [`TRANSACTION_END`] for a transaction that was undone.
pub(crate) const ROLLED_BACK: &str = "rollback";

/// One value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SqlValue {
    /// NULL.
    Null,
    /// A truth value.
    Boolean(bool),
    /// A 64-bit integer.
    Integer(i64),
    /// A 64-bit float.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(#[serde(with = "crate::hostcall::bytes")] Bytes),
    /// A JSON document.
    Json(Value),
    /// A type there is no case for, as text (dates, decimals and so on).
    Other(String),
}

/// One column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The database's name of its type, lower case; may be empty.
    pub type_name: String,
}

/// Rows of a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    /// Columns.
    pub columns: Vec<Column>,
    /// Values, row by row.
    pub rows: Vec<Vec<SqlValue>>,
    /// Whether rows were cut off at a limit.
    pub truncated: bool,
}

/// The effect of a statement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Executed {
    /// Rows changed.
    pub rows_affected: u64,
    /// Rows of a `RETURNING` clause.
    pub returned: Rows,
}

/// What may be done with a database, or why nothing.
///
/// # Errors
///
/// `denied` with the line to add.
pub fn rule<'g>(
    grants: &'g Grants,
    caller: &Caller,
    database: &str,
) -> Result<&'g SqlRule, Failure> {
    grants.sql.get(database).ok_or_else(|| {
        Failure::new(
            code::DENIED,
            format!(
                "plugin `{p}` may not use the database `{database}`; add \
                 `sql = [{{ database = \"{database}\", access = \"read-only\" }}]` under \
                 `[grants.{p}]` in wattle.toml",
                p = caller.plugin
            ),
        )
    })
}

/// Checks that a database may be written.
///
/// # Errors
///
/// `denied` with the line to change.
pub fn writable(grants: &Grants, caller: &Caller, database: &str) -> Result<(), Failure> {
    if rule(grants, caller, database)?.access == SqlAccess::ReadWrite {
        return Ok(());
    }
    Err(Failure::new(
        code::DENIED,
        format!(
            "plugin `{p}` may only read the database `{database}`; set \
             `access = \"read-write\"` for it under `[grants.{p}]` in wattle.toml",
            p = caller.plugin
        ),
    ))
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// The database.
    pub database: String,
    /// SQL text with `$1`, `$2` and so on.
    pub text: String,
    /// Values for them.
    pub parameters: Vec<SqlValue>,
}

impl Statement {
    pub(crate) fn headline(&self) -> String {
        let words: Vec<&str> = self.text.split_whitespace().take(8).collect();
        format!("{}: {}", self.database, words.join(" "))
    }
}

/// A statement that reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Query(pub Statement);

impl HostCall for Query {
    type Answer = Rows;
    const FUNCTION: &'static str = CallKind::QuerySql.name();

    fn summary(&self) -> String {
        self.0.headline()
    }

    fn allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        rule(grants, caller, &self.0.database).map(drop)
    }
}

/// Asks for the dialect of a database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dialect {
    /// The database.
    pub database: String,
}

impl HostCall for Dialect {
    type Answer = String;
    const FUNCTION: &'static str = "sql.dialect";

    fn summary(&self) -> String {
        self.database.clone()
    }

    fn allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        rule(grants, caller, &self.database).map(drop)
    }
}
