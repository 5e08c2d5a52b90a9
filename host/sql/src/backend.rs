//! What each dialect implements.

use async_trait::async_trait;
use serde_json::Value;
use wattle_run::grant::SqlRule;
use wattle_run::hostcall::sql::{Executed, Rows};
use wattle_run::limit::SqlLimits;
use wattle_run::ports::sql::Marker;

use crate::failure::Fault;
use crate::migrate::{Applied, Migration};
use crate::statement::{Dialect, Statement};

/// Days that markers of committed transactions are kept. A run that was interrupted by a crash
/// is taken up again when the host starts; nobody asks for a marker weeks later.
pub(crate) const MARKER_DAYS: u32 = 30;

/// Looks at a marker.
pub(crate) const MARKER: &str = "SELECT answers FROM _wattle_journal WHERE key = $1";

/// Writes a marker whose key was claimed.
pub(crate) const FILL_MARKER: &str = "UPDATE _wattle_journal SET answers = $2 WHERE key = $1";

/// Connections of one database that are used at once. Runs wait for their turn beyond that.
pub(crate) const CONNECTIONS: u32 = 8;

/// One database.
#[async_trait]
pub(crate) trait Backend: Send + Sync {
    fn dialect(&self) -> Dialect;

    /// Runs one statement where the database itself refuses to write.
    async fn query(
        &self,
        statement: &Statement<'_>,
        rule: &SqlRule,
        limits: &SqlLimits,
    ) -> Result<Rows, Fault>;

    /// Starts a transaction that may write.
    async fn begin(&self, limits: &SqlLimits) -> Result<Box<dyn Session>, Fault>;

    /// The app's migrations that were applied, by version.
    async fn applied(&self, app: &str) -> Result<Vec<Applied>, sqlx::Error>;

    /// Applies and records a migration, both or neither; does nothing if it was recorded since.
    async fn apply(&self, app: &str, migration: &Migration) -> Result<(), sqlx::Error>;

    /// Closes all connections.
    async fn close(&self);
}

/// Writes a marker whose key was not claimed; `now_ms` is the time in the words of the dialect.
pub(crate) fn insert_marker(now_ms: &str) -> String {
    format!("INSERT INTO _wattle_journal (key, answers, at_ms) VALUES ($1, $2, {now_ms})")
}

/// The answers that a marker keeps. One that cannot be read is not taken for one that is missing:
/// what it stands for would happen twice.
pub(crate) fn answers(text: &str) -> Result<Value, Fault> {
    serde_json::from_str(text).map_err(|error| sqlx::Error::Decode(error.into()).into())
}

/// An open transaction of one dialect; dropped, it is rolled back.
#[async_trait]
pub(crate) trait Session: Send {
    async fn run(
        &mut self,
        statement: &Statement<'_>,
        limits: &SqlLimits,
    ) -> Result<Executed, Fault>;

    /// See [`SqlTransaction::claim`](wattle_run::ports::sql::SqlTransaction::claim).
    async fn claim(&mut self, key: &str) -> Result<Option<Value>, Fault>;

    /// Writes the marker, whether its key was claimed or not.
    async fn mark(&mut self, marker: &Marker) -> Result<(), Fault>;

    async fn commit(self: Box<Self>) -> Result<(), Fault>;

    async fn rollback(self: Box<Self>) -> Result<(), Fault>;
}
