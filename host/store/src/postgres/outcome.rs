//! Resolves commits in doubt: writes whose reply was lost.

use sqlx::Row as _;
use wattle_graph::id::Digest;
use wattle_run::ports::store::StoreError;

use crate::error::backend;
use crate::postgres::database::{Database, PgTransaction};
use crate::postgres::retry::{RetryState, TxError};
use crate::postgres::rows::Rows;

const OPERATION: &str = "check whether its last write is durable";

const LOCK: &str = "SELECT 1 FROM threads WHERE id = $1 FOR UPDATE";

const IS_THERE: &str = "
    SELECT EXISTS (SELECT 1 FROM batches WHERE thread = $1 AND place = $2 AND seal = $3)";

/// Skips a position, which stays empty.
const SKIP: &str = "UPDATE threads SET last_place = last_place + 1 WHERE id = $1";

/// Commits. If the reply is lost, asks the server how the transaction ended.
///
/// # Errors
///
/// [`TxError::Database`] if nothing was written, otherwise those of [`has_committed`].
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
                return Err(backend(OPERATION, format!("the server reports it as {status}")));
            }
        }
    }
}

/// A row by which a statement whose reply was lost is resolved.
#[derive(Debug)]
pub(super) struct Witness {
    /// Id of a thread of the write set.
    thread: Vec<u8>,
    /// Number, position and seal of a batch of this thread. A statement without batches only writes
    /// records, and may be executed again.
    batch: Option<(i64, i64, Digest)>,
}

impl Witness {
    /// Returns the witness of a write set. Its rows are written all or none, so one of them is
    /// enough.
    pub(super) fn of(rows: &Rows) -> Self {
        let batch = rows.batches.last();
        let number = batch.map(|batch| batch.thread);
        let mut heads = rows.heads.iter();
        let head = heads.find(|(_, head)| number.is_none_or(|it| it == head.before.number));
        Self {
            thread: head.map(|(thread, _)| thread.clone()).unwrap_or_default(),
            batch: batch.map(|batch| (batch.thread, batch.place, batch.seal)),
        }
    }
}

/// Resolves a statement whose reply was lost. If the statement did not take effect, this call skips
/// the next position of its thread, so that the statement cannot take effect later.
///
/// # Errors
///
/// [`StoreError::Backend`] if the outcome remains unknown.
pub(super) async fn was_written(
    database: &Database,
    witness: &Witness,
) -> Result<bool, StoreError> {
    // No ticket of the group resolves before the outcome is known.
    let mut retry = RetryState::for_duration(database.retry_timeout);
    loop {
        match look(database, witness).await {
            Ok(was_written) => return Ok(was_written),
            Err(TxError::Database(error)) => retry.wait_or_fail(OPERATION, error).await?,
            Err(TxError::Store(error)) => return Err(error),
        }
    }
}

async fn look(database: &Database, witness: &Witness) -> Result<bool, TxError> {
    let mut transaction = database.begin_append().await?;
    sqlx::query(LOCK).bind(&witness.thread).execute(&mut *transaction).await?;
    if let Some((number, place, seal)) = &witness.batch {
        let there = sqlx::query_scalar(IS_THERE).bind(number).bind(place);
        let there = there.bind(seal.as_bytes().as_slice());
        if there.fetch_one(&mut *transaction).await? {
            return Ok(true);
        }
    }
    sqlx::query(SKIP).bind(&witness.thread).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(false)
}
