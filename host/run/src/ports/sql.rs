//! Port: databases by name.

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::Failure;

use crate::call::sql::{Executed, Rows, SqlValue};
use crate::grant::SqlRule;
use crate::limit::SqlLimits;

/// A row that a transaction leaves in the database itself, so that after a crash right behind
/// the commit the host knows that it happened, and what its statements answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Marker {
    /// Names the transaction: task id and call number.
    pub key: String,
    /// What the statements answered, for the journal.
    pub answers: Value,
}

/// Databases by name. A name that is not configured is `not-found`.
#[async_trait]
pub trait Sql: Send + Sync {
    /// `sqlite` or `postgres`.
    async fn dialect(&self, database: &str) -> Result<&'static str, Failure>;

    /// Runs one statement that reads. With `SqlAccess::ReadOnly` a statement that could write, or
    /// that reads what the rule leaves out, is `denied` by the parser, and the database would
    /// refuse to write as well.
    async fn query(
        &self,
        database: &str,
        rule: &SqlRule,
        limits: &SqlLimits,
        statement: &str,
        parameters: &[SqlValue],
    ) -> Result<Rows, Failure>;

    /// Starts a transaction. Called only with `SqlAccess::ReadWrite`.
    async fn begin(
        &self,
        database: &str,
        limits: &SqlLimits,
    ) -> Result<Box<dyn SqlTransaction>, Failure>;

    /// The answers kept by the marker of a committed transaction, if it was committed.
    async fn committed(&self, database: &str, key: &str) -> Result<Option<Value>, Failure>;
}

/// An open transaction; dropped without commit, it is rolled back.
#[async_trait]
pub trait SqlTransaction: Send {
    /// Runs one statement that reads.
    async fn query(&mut self, statement: &str, parameters: &[SqlValue]) -> Result<Rows, Failure>;

    /// Runs one statement that writes.
    async fn execute(
        &mut self,
        statement: &str,
        parameters: &[SqlValue],
    ) -> Result<Executed, Failure>;

    /// Writes the marker and commits. If the answer is lost on the way, `committed` tells.
    async fn commit(self: Box<Self>, marker: Option<&Marker>) -> Result<(), Failure>;

    /// Rolls back.
    async fn rollback(self: Box<Self>) -> Result<(), Failure>;
}
