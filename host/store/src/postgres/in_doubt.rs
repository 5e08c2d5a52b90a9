//! Resolves commits in doubt: writes whose reply was lost.

use sqlx::Row as _;
use wattle_graph::id::Digest;
use wattle_run::ports::store::StoreError;

use crate::error::backend;
use crate::postgres::database::{Database, PgTransaction};
use crate::postgres::retry::{RetryState, TxError};
use crate::postgres::write_set::WriteSet;

const OPERATION: &str = "check whether its last write is durable";

const LOCK: &str = "SELECT 1 FROM threads WHERE id = $1 FOR UPDATE";

const PROBE: &str = "
    SELECT EXISTS (SELECT 1 FROM batches WHERE thread = $1 AND place = $2 AND seal = $3)";

/// Skips a position, so that no batch ever has this position.
const SKIP_POSITION: &str = "UPDATE threads SET last_place = last_place + 1 WHERE id = $1";

/// Commits. If the reply is lost, queries how the transaction ended.
///
/// # Errors
///
/// [`TxError::Database`] if nothing was written, otherwise the errors of [`has_committed`].
pub(super) async fn commit(
    database: &Database,
    mut transaction: PgTransaction,
) -> Result<(), TxError> {
    let id = sqlx::query_scalar("SELECT pg_current_xact_id()::text");
    let id: String = id.fetch_one(&mut *transaction).await?;
    match transaction.commit().await {
        Err(error) if !has_committed(database, &id).await? => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns true if a transaction has committed. Waits while it is in progress.
///
/// # Errors
///
/// [`StoreError::Backend`] if the outcome remains unknown.
pub(super) async fn has_committed(
    database: &Database,
    transaction: &str,
) -> Result<bool, StoreError> {
    let mut retry = RetryState::for_duration(database.retry_timeout);
    loop {
        let status = sqlx::query("SELECT pg_xact_status($1::text::xid8)").bind(transaction);
        let row = match status.fetch_optional(&database.read_pool).await {
            Ok(row) => row,
            Err(error) => {
                retry.wait_or_fail(OPERATION, error).await?;
                continue;
            }
        };
        let status: Option<String> = row.and_then(|row| row.try_get(0).ok()).flatten();
        match status.as_deref() {
            Some("committed") => return Ok(true),
            Some("aborted") => return Ok(false),
            // The server has not noticed yet that the connection is lost.
            Some("in progress") if retry.backoff().await => {}
            status => {
                let status = status.unwrap_or("unknown");
                return Err(backend(
                    OPERATION,
                    format!("the status of the transaction is `{status}`"),
                ));
            }
        }
    }
}

/// A row that shows whether a statement whose reply was lost took effect.
#[derive(Debug)]
pub(super) struct WriteProbe {
    /// Id of a thread of the write set.
    thread: Vec<u8>,
    /// Number, position and seal of a batch of this thread. A statement without batches only writes
    /// records, and may be executed again.
    batch: Option<(i64, i64, Digest)>,
}

impl WriteProbe {
    /// Returns the probe of a write set. A write set is written completely or not at all, so one
    /// row is enough.
    pub(super) fn of(write_set: &WriteSet) -> Self {
        let batch = write_set.batches.last();
        let number = batch.map(|batch| batch.thread);
        let mut threads = write_set.threads.iter();
        let thread =
            threads.find(|(_, thread)| number.is_none_or(|it| it == thread.expected.number));
        Self {
            thread: thread.map(|(thread, _)| thread.clone()).unwrap_or_default(),
            batch: batch.map(|batch| (batch.thread, batch.position, batch.seal)),
        }
    }
}

/// Returns true if a statement whose reply was lost took effect. If the statement did not take
/// effect, this call skips the next position of its thread, so that the statement cannot take
/// effect later.
///
/// # Errors
///
/// [`StoreError::Backend`] if the outcome remains unknown.
pub(super) async fn resolve_in_doubt(
    database: &Database,
    probe: &WriteProbe,
) -> Result<bool, StoreError> {
    // No ticket of the group resolves before the outcome is known.
    let mut retry = RetryState::for_duration(database.retry_timeout);
    loop {
        match probe_once(database, probe).await {
            Ok(was_written) => return Ok(was_written),
            Err(TxError::Database(error)) => retry.wait_or_fail(OPERATION, error).await?,
            Err(TxError::Store(error)) => return Err(error),
        }
    }
}

async fn probe_once(database: &Database, probe: &WriteProbe) -> Result<bool, TxError> {
    let mut transaction = database.begin_append().await?;
    sqlx::query(LOCK).bind(&probe.thread).execute(&mut *transaction).await?;
    if let Some((number, position, seal)) = &probe.batch {
        let exists = sqlx::query_scalar(PROBE).bind(number).bind(position);
        let exists = exists.bind(seal.as_bytes().as_slice());
        if exists.fetch_one(&mut *transaction).await? {
            return Ok(true);
        }
    }
    sqlx::query(SKIP_POSITION).bind(&probe.thread).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(false)
}
