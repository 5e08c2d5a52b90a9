//! Fast path: appends a group of batches with one statement, in one round trip.
//!
//! The host that holds the lease is the only writer of a thread, so the writer task caches the
//! state of the thread. The statement compares the cached state with the row, and writes nothing if
//! they differ. The group then takes the slow path, which locks and reads the rows first. A stale
//! cache costs time, but never causes a wrong write.

use sqlx::postgres::{PgDatabaseError, PgSeverity};
use tokio::task::spawn_blocking;

use crate::error::backend;
use crate::postgres::database::{RESPONSE_TIMEOUT, with_timeout};
use crate::postgres::in_doubt::{WriteProbe, resolve_in_doubt};
use crate::postgres::stage::CommitGroup;
use crate::postgres::writer::{AppendError, AppendResult, Batches, OPERATION, Writer, stage_all};

impl Writer {
    /// Appends a group with one statement. Returns `None`, and writes nothing, if the group needs
    /// the slow path.
    pub(super) async fn write_fast_path(
        &mut self,
        batches: &Batches,
    ) -> Result<Option<(CommitGroup, Vec<AppendResult>)>, AppendError> {
        let Some(group) = self.cache.take_group(batches) else { return Ok(None) };
        let staged = batches.clone();
        let staged = spawn_blocking(move || stage_all(group, &staged)).await;
        let (group, results) = staged.map_err(|error| backend(OPERATION, error))?;
        // The cache may be stale, so only the slow path refuses a batch.
        if results.iter().any(Result::is_err) {
            return Ok(None);
        }
        let Ok(mut connection) = self.connection.acquire(&self.database.append_pool).await else {
            return Ok(None);
        };
        let write = group.write_set.statement();
        match with_timeout(RESPONSE_TIMEOUT, write.fetch_optional(&mut *connection)).await {
            Ok(written) => {
                self.connection.release(connection);
                Ok(written.map(|_| (group, results)))
            }
            Err(error) if is_rejected_statement(&error) => {
                self.connection.release(connection);
                Ok(None)
            }
            Err(error) => {
                connection.close_on_drop();
                drop(connection);
                tracing::debug!(%error, "reply lost, checking whether the batches were committed");
                let probe = WriteProbe::of(&group.write_set);
                let written = resolve_in_doubt(&self.database, &probe)
                    .await
                    .map_err(AppendError::Unavailable)?;
                Ok(written.then_some((group, results)))
            }
        }
    }
}

/// Returns true if the server rejected a statement and keeps the connection open. A server that
/// closes the connection may have executed the statement.
fn is_rejected_statement(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    let error = error.and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    error.is_some_and(|error| error.severity() == PgSeverity::Error)
}
