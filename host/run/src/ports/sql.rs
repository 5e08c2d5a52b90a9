//! Port: databases by name.

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::Failure;

use crate::caller_id::CallerId;
use crate::grant::SqlRule;
use crate::hostcall::sql::{Executed, Rows, SqlValue};
use crate::limit::SqlLimits;

/// A commit marker: a row that a transaction writes to its own database. If the host crashes
/// directly after the commit, the row shows that the transaction was committed, and the results of
/// its statements. At most one marker of each key is committed.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitMarker {
    /// Identifies the transaction among the transactions of all threads.
    pub key: String,
    /// Results of the statements, for the journal.
    pub results: Value,
}

/// Databases by name. A call with a name that is not configured fails with `not-found`.
#[async_trait]
pub trait Sql: Send + Sync {
    /// Returns `sqlite` or `postgres`.
    async fn dialect(&self, database: &str) -> Result<&'static str, Failure>;

    /// Executes one statement that reads. With `SqlAccess::ReadOnly`, the parser rejects a
    /// statement with `denied` if the statement could write or reads what the rule excludes. The
    /// database rejects writes as well. The connection counts for `owner`.
    async fn query(
        &self,
        owner: CallerId,
        database: &str,
        rule: &SqlRule,
        limits: &SqlLimits,
        statement: &str,
        parameters: &[SqlValue],
    ) -> Result<Rows, Failure>;

    /// Starts a transaction, whose connection counts for `owner`. Called only with
    /// `SqlAccess::ReadWrite`.
    async fn begin(
        &self,
        owner: CallerId,
        database: &str,
        limits: &SqlLimits,
    ) -> Result<Box<dyn SqlTransaction>, Failure>;
}

/// An open transaction. A transaction that is dropped without a commit is rolled back.
#[async_trait]
pub trait SqlTransaction: Send {
    /// Locks the key of the commit marker; must be the first call of a transaction. Waits for a
    /// concurrent transaction with the same key. Later transactions with this key wait for this
    /// transaction. Returns the recorded results if another transaction with this key has
    /// committed; this transaction can then only be rolled back.
    async fn claim_marker(&mut self, key: &str) -> Result<Option<Value>, Failure>;

    /// Executes one statement that reads.
    async fn query(&mut self, statement: &str, parameters: &[SqlValue]) -> Result<Rows, Failure>;

    /// Executes one statement that writes.
    async fn execute(
        &mut self,
        statement: &str,
        parameters: &[SqlValue],
    ) -> Result<Executed, Failure>;

    /// Writes the marker and commits. Fails with `conflict` if a marker with the same key exists.
    /// If the response is lost, a later transaction that claims the key learns whether this
    /// transaction was committed.
    async fn commit(self: Box<Self>, marker: Option<&CommitMarker>) -> Result<(), Failure>;

    /// Rolls the transaction back.
    async fn rollback(self: Box<Self>) -> Result<(), Failure>;
}
