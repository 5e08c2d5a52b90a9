//! SQL values, rows and statements. Transactions are in [`crate::gate::transaction`].

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::call::CallKind;
use wattle_graph::failure::Failure;

use crate::grant::{Grants, SqlAccess, SqlRule};
use crate::hostcall::HostCall;
use crate::ports::Caller;

/// Name of a transaction in the journal.
pub(crate) const TRANSACTION: &str = CallKind::SqlTransaction.name();
/// Key of the field in a transaction's result that contains how the transaction ended.
pub(crate) const TRANSACTION_END: &str = "end";
/// Value of [`TRANSACTION_END`] for a transaction that was rolled back.
pub(crate) const ROLLED_BACK: &str = "rollback";

/// A SQL value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SqlValue {
    /// NULL.
    Null,
    /// A Boolean.
    Boolean(bool),
    /// A 64-bit integer.
    Integer(i64),
    /// A 64-bit float.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(#[serde(with = "crate::hostcall::bytes_serde")] Bytes),
    /// A JSON document.
    Json(Value),
    /// A value of another type, as text: dates, decimals and so on.
    Other(String),
}

/// A column of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// The database's name of the type, in lower case; may be empty.
    pub type_name: String,
}

/// Rows of a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    /// Columns.
    pub columns: Vec<Column>,
    /// Values, row by row.
    pub rows: Vec<Vec<SqlValue>>,
    /// True if rows beyond a limit were dropped.
    pub truncated: bool,
}

/// The effect of a statement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Executed {
    /// Number of changed rows.
    pub rows_affected: u64,
    /// Rows of a `RETURNING` clause.
    pub returned: Rows,
}

/// Returns the grant for a database.
///
/// # Errors
///
/// `denied` without a grant, with the line to add and its place.
pub fn sql_rule<'g>(
    grants: &'g Grants,
    caller: &Caller,
    database: &str,
) -> Result<&'g SqlRule, Failure> {
    grants.sql.get(database).ok_or_else(|| {
        let what = format!("may not use the database `{database}`");
        let change =
            format!("add `sql = [{{ database = \"{database}\", access = \"read-only\" }}]`");
        grants.denial(caller, &what, &change, |grants| grants.sql.contains_key(database))
    })
}

/// Checks that the grant allows writing to a database.
///
/// # Errors
///
/// `denied` if the grant does not, with the entry to change and its place.
pub fn check_writable(grants: &Grants, caller: &Caller, database: &str) -> Result<(), Failure> {
    let may_write = |rule: &SqlRule| rule.access == SqlAccess::ReadWrite;
    if may_write(sql_rule(grants, caller, database)?) {
        return Ok(());
    }
    let what = format!("may only read the database `{database}`");
    let allows = |grants: &Grants| grants.sql.get(database).is_some_and(may_write);
    Err(grants.denial(caller, &what, "set `access = \"read-write\"` for it", allows))
}

/// A statement with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// The database.
    pub database: String,
    /// SQL text with `$1`, `$2` and so on.
    pub text: String,
    /// Values of the parameters, in order.
    pub parameters: Vec<SqlValue>,
}

impl Statement {
    pub(crate) fn summary_line(&self) -> String {
        let words: Vec<&str> = self.text.split_whitespace().take(8).collect();
        format!("{}: {}", self.database, words.join(" "))
    }
}

/// A statement that reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Query(pub Statement);

impl HostCall for Query {
    type Output = Rows;
    const FUNCTION: &'static str = CallKind::QuerySql.name();

    fn summary(&self) -> String {
        self.0.summary_line()
    }

    fn check_allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        sql_rule(grants, caller, &self.0.database).map(drop)
    }
}

/// Returns the SQL dialect of a database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dialect {
    /// The database.
    pub database: String,
}

impl HostCall for Dialect {
    type Output = String;
    const FUNCTION: &'static str = "sql.dialect";

    fn summary(&self) -> String {
        self.database.clone()
    }

    fn check_allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        sql_rule(grants, caller, &self.database).map(drop)
    }
}
