//! The interface that each dialect implements.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use wattle_run::caller_id::CallerId;
use wattle_run::grant::SqlRule;
use wattle_run::hostcall::sql::{Executed, Rows};
use wattle_run::json::bounded::{JsonBudget, JsonError};
use wattle_run::limit::SqlLimits;
use wattle_run::places::{Place, Places};
use wattle_run::ports::sql::CommitMarker;

use crate::failure::StatementError;
use crate::limit::MARKER_VALUES_BYTES;
use crate::migration::{AppliedMigration, Migration, MigrationError};
use crate::statement::{Dialect, Statement};

/// Days that commit markers are kept. An orphaned run is recovered when a host starts, so no marker
/// is needed weeks later.
pub(crate) const MARKER_DAYS: u32 = 30;

/// Statement that reads a commit marker.
pub(crate) const SELECT_MARKER: &str = "SELECT answers FROM _wattle_journal WHERE key = $1";

/// Statement that writes the results into a marker that the transaction inserted when it claimed
/// the key.
pub(crate) const UPDATE_MARKER: &str = "UPDATE _wattle_journal SET answers = $2 WHERE key = $1";

/// Maximum connections of the pool of one database. Callers share the connections, and further
/// calls wait.
pub(crate) const MAX_POOL_CONNECTIONS: u32 = 8;

/// A database of one dialect.
#[async_trait]
pub(crate) trait Backend: Send + Sync {
    fn dialect(&self) -> Dialect;

    /// Runs one statement on a connection on which the database refuses to write. The connection
    /// counts for `owner`.
    async fn query(
        &self,
        owner: CallerId,
        statement: &Statement<'_>,
        rule: &SqlRule,
        limits: &SqlLimits,
    ) -> Result<Rows, StatementError>;

    /// Starts a transaction that can write. Its connection counts for `owner`.
    async fn begin(
        &self,
        owner: CallerId,
        limits: &SqlLimits,
    ) -> Result<Box<dyn Session>, StatementError>;

    /// Returns the applied migrations of an app, by version.
    async fn applied_migrations(&self, app: &str) -> Result<Vec<AppliedMigration>, sqlx::Error>;

    /// Applies and records a migration atomically. Does nothing if another host has recorded the
    /// migration in the meantime. A migration that does not end within `timeout` is stopped and
    /// rolled back.
    async fn apply_migration(
        &self,
        app: &str,
        migration: &Migration,
        timeout: Duration,
    ) -> Result<(), MigrationError>;

    /// Closes all connections.
    async fn close(&self);
}

/// Waits for a place for one of the connections that callers share.
///
/// # Errors
///
/// [`sqlx::Error::PoolTimedOut`] if there is none within `limit`, like the wait for a connection.
pub(crate) async fn take_place(
    places: &Places,
    owner: CallerId,
    limit: Duration,
) -> Result<Place, sqlx::Error> {
    tokio::time::timeout(limit, places.take(owner)).await.map_err(|_| sqlx::Error::PoolTimedOut)
}

/// Returns the statement that inserts a marker. `now_ms` is an SQL expression of the dialect for
/// the current time.
pub(crate) fn insert_marker(now_ms: &str) -> String {
    format!("INSERT INTO _wattle_journal (key, answers, at_ms) VALUES ($1, $2, {now_ms})")
}

/// Parses the recorded results in a marker. An invalid marker is an error: if it counted as
/// missing, the host would commit its transaction again.
pub(crate) fn parse_marker(text: &str) -> Result<Value, StatementError> {
    JsonBudget::new(MARKER_VALUES_BYTES).parse(text).map_err(|error| match error {
        JsonError::Syntax(error) => sqlx::Error::Decode(error.into()).into(),
        JsonError::Limit(exceeded) => exceeded.into(),
    })
}

/// An open transaction of one dialect. Dropping the session rolls the transaction back.
#[async_trait]
pub(crate) trait Session: Send {
    async fn run(
        &mut self,
        statement: &Statement<'_>,
        limits: &SqlLimits,
    ) -> Result<Executed, StatementError>;

    /// See [`SqlTransaction::claim_marker`](wattle_run::ports::sql::SqlTransaction::claim_marker).
    async fn claim(&mut self, key: &str) -> Result<Option<Value>, StatementError>;

    /// Records the results in the marker. Inserts the marker if [`claim`](Self::claim) did not
    /// insert it.
    async fn write_marker(&mut self, marker: &CommitMarker) -> Result<(), StatementError>;

    async fn commit(self: Box<Self>) -> Result<(), StatementError>;

    async fn rollback(self: Box<Self>) -> Result<(), StatementError>;
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_run::json::bounded::JsonLimit;
    use wattle_run::limit::JSON_MESSAGE_DEPTH;

    use super::*;

    #[test]
    fn markers_are_parsed_within_limits() {
        let results = json!({ "statements": [], "end": "commit" });
        assert_eq!(parse_marker(&results.to_string()).unwrap(), results);
        let levels = JSON_MESSAGE_DEPTH + 1;
        let deep = parse_marker(&format!("{}{}", "[".repeat(levels), "]".repeat(levels)));
        assert!(matches!(deep, Err(StatementError::JsonLimit(JsonLimit::Depth))), "{deep:?}");
        let cut = parse_marker("{");
        assert!(matches!(cut, Err(StatementError::Database(sqlx::Error::Decode(_)))), "{cut:?}");
    }
}
