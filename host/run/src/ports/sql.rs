//! Port: databases by name.

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::Failure;

use crate::grant::SqlRule;
use crate::hostcall::sql::{Executed, Rows, SqlValue};
use crate::limit::SqlLimits;

/// A row that a transaction leaves in the database itself, so that after a crash right behind
/// the commit the host knows that it happened, and what its statements answered. One of each key
/// is committed at most.
#[derive(Clone, Debug, PartialEq)]
pub struct Marker {
    /// Names the transaction among all of all threads.
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
}

/// An open transaction; dropped without commit, it is rolled back.
#[async_trait]
pub trait SqlTransaction: Send {
    /// Takes the key of a marker for this transaction; called before anything else. Another
    /// transaction of that key which is under way is waited for, and later ones wait for this one,
    /// so the answer is what is true: those that the marker of a committed one keeps, if there is
    /// one. Then this transaction can only be rolled back.
    async fn claim(&mut self, key: &str) -> Result<Option<Value>, Failure>;

    /// Runs one statement that reads.
    async fn query(&mut self, statement: &str, parameters: &[SqlValue]) -> Result<Rows, Failure>;

    /// Runs one statement that writes.
    async fn execute(
        &mut self,
        statement: &str,
        parameters: &[SqlValue],
    ) -> Result<Executed, Failure>;

    /// Writes the marker, `conflict` if there is one of that key, and commits. If the answer is
    /// lost on the way, another transaction that claims the key learns whether it happened.
    async fn commit(self: Box<Self>, marker: Option<&Marker>) -> Result<(), Failure>;

    /// Rolls back.
    async fn rollback(self: Box<Self>) -> Result<(), Failure>;
}
