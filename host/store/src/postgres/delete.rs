//! Deletes a thread with all its data except its lease.

use std::collections::BTreeSet;

use wattle_graph::id::ThreadId;
use wattle_run::ports::store::{LeaseHolder, StoreError};

use crate::lease::leased_error;
use crate::postgres::database::{Database, PgTransaction};
use crate::postgres::in_doubt::commit;
use crate::postgres::retry::{RetryState, TxError};
use crate::postgres::stage::ThreadRow;
use crate::postgres::thread_row;

const OPERATION: &str = "delete a thread";

const HOLDER: &str = "SELECT holder FROM threads WHERE id = $1";

const DELETE_PART: &str = "
    WITH batch AS (DELETE FROM batches WHERE thread = $1 AND place > $2 AND place <= $3)
    DELETE FROM channel_values WHERE thread = $1 AND place > $2 AND place <= $3";

const DELETE_RECORDS: &str = "
    WITH run AS (DELETE FROM runs WHERE thread = $1)
    DELETE FROM mentions WHERE thread = $1";

/// Maximum number of batches that one statement deletes. The limit bounds the duration of the
/// statement.
const MAX_BATCHES: i64 = 4096;

const DELETE_UNLEASED: &str = "DELETE FROM threads WHERE id = $1 AND epoch IS NULL";

/// Resets the row, so that the lease holder keeps the lease. The thread gets a new number, because
/// a writer may have cached the old number.
const RESET: &str = "
    UPDATE threads SET number = nextval('thread_numbers'), record = NULL, app = NULL,
        status = NULL, tenant = NULL, updated_ms = NULL, expires_ms = NULL, ttl_ends_ms = NULL,
        last_seq = 0, last_checkpoint = NULL, current = NULL, pruned_seq = 0, seal = NULL,
        pruned_seal = NULL, last_place = 0, bytes = 0, pending = 0, ledger = ledger + 1
    WHERE id = $1";

/// Whether the lease of a live host prevents the deletion of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseCheck {
    /// The lease prevents the deletion.
    Enforce,
    /// The deletion ignores the lease.
    Skip,
}

/// Deletes a thread. Returns true if it existed.
pub(super) async fn thread(
    database: &Database,
    thread: &ThreadId,
    lease_check: LeaseCheck,
) -> Result<bool, StoreError> {
    let mut retry = RetryState::default();
    loop {
        match delete_once(database, thread, lease_check).await {
            Ok(existed) => return Ok(existed),
            Err(TxError::Database(error)) => retry.wait_or_fail(OPERATION, error).await?,
            Err(TxError::Store(error)) => return Err(error),
        }
    }
}

async fn delete_once(
    database: &Database,
    thread: &ThreadId,
    lease_check: LeaseCheck,
) -> Result<bool, TxError> {
    let mut transaction = database.transaction(OPERATION).await?;
    let rows =
        thread_row::lock(&mut transaction, &BTreeSet::from([thread]), &BTreeSet::new()).await?;
    let Some(row) = rows.into_values().next().filter(|row| row.exists) else {
        return Ok(false);
    };
    if lease_check == LeaseCheck::Enforce {
        ensure_unleased(&mut transaction, thread, &row).await?;
    }
    delete_rows(&mut transaction, row.number, row.last_position).await?;
    delete_or_reset(&mut transaction, thread).await?;
    commit(database, transaction).await?;
    Ok(true)
}

/// Checks that no live host has the lease of a thread. The transaction must have locked the row of
/// the thread.
///
/// # Errors
///
/// [`StoreError::Leased`] if a live host has the lease.
pub(super) async fn ensure_unleased(
    transaction: &mut PgTransaction,
    thread: &ThreadId,
    row: &ThreadRow,
) -> Result<(), TxError> {
    if !row.lease.is_some_and(|lease| lease.is_live) {
        return Ok(());
    }
    let holder = sqlx::query_scalar(HOLDER).bind(thread.as_str().as_bytes());
    let holder: Vec<u8> = holder.fetch_one(&mut **transaction).await?;
    Err(leased_error(thread, &LeaseHolder(String::from_utf8_lossy(&holder).into_owned())).into())
}

/// Deletes the data of a thread number, whose newest batch is at `last_position`.
pub(super) async fn delete_rows(
    transaction: &mut PgTransaction,
    number: i64,
    last_position: i64,
) -> Result<(), sqlx::Error> {
    let mut after = 0;
    while after < last_position {
        let part = sqlx::query(DELETE_PART).bind(number).bind(after).bind(after + MAX_BATCHES);
        part.execute(&mut **transaction).await?;
        after += MAX_BATCHES;
    }
    sqlx::query(DELETE_RECORDS).bind(number).execute(&mut **transaction).await.map(drop)
}

/// Deletes the row of a thread, or resets it if the thread is leased.
pub(super) async fn delete_or_reset(
    transaction: &mut PgTransaction,
    thread: &ThreadId,
) -> Result<(), sqlx::Error> {
    let id = thread.as_str().as_bytes();
    let removed = sqlx::query(DELETE_UNLEASED).bind(id).execute(&mut **transaction).await?;
    if removed.rows_affected() == 0 {
        sqlx::query(RESET).bind(id).execute(&mut **transaction).await?;
    }
    Ok(())
}
