//! Deletes a thread with all its data except its lease.

use std::collections::BTreeSet;

use wattle_graph::id::ThreadId;
use wattle_run::ports::store::{LeaseHolder, StoreError};

use crate::lease::leased_error;
use crate::postgres::database::{Database, PgTransaction};
use crate::postgres::head;
use crate::postgres::outcome::commit;
use crate::postgres::retry::{RetryState, TxError};
use crate::postgres::stage::Head;

const OPERATION: &str = "delete a thread";

const HOLDER: &str = "SELECT holder FROM threads WHERE id = $1";

const CLEAR_PART: &str = "
    WITH batch AS (DELETE FROM batches WHERE thread = $1 AND place > $2 AND place <= $3)
    DELETE FROM channel_values WHERE thread = $1 AND place > $2 AND place <= $3";

const CLEAR_FACTS: &str = "
    WITH run AS (DELETE FROM runs WHERE thread = $1)
    DELETE FROM mentions WHERE thread = $1";

/// Batches that one statement deletes. It bounds the duration of the statement.
const PART: i64 = 4096;

const REMOVE: &str = "DELETE FROM threads WHERE id = $1 AND epoch IS NULL";

/// Resets the row, so that the lease holder keeps the lease. The thread gets a new number, because
/// a writer may have cached the old one.
const EMPTY: &str = "
    UPDATE threads SET number = nextval('thread_numbers'), record = NULL, app = NULL,
        status = NULL, tenant = NULL, updated_ms = NULL, expires_ms = NULL, ttl_ends_ms = NULL,
        last_seq = 0, last_checkpoint = NULL, current = NULL, pruned_seq = 0, seal = NULL,
        pruned_seal = NULL, last_place = 0, bytes = 0, pending = 0, ledger = ledger + 1
    WHERE id = $1";

/// Whether the lease of a live host prevents the deletion of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Leases {
    Heed,
    Ignore,
}

/// Deletes a thread. Returns true if it existed.
pub(super) async fn thread(
    database: &Database,
    thread: &ThreadId,
    leases: Leases,
) -> Result<bool, StoreError> {
    let mut retry = RetryState::default();
    loop {
        match delete_once(database, thread, leases).await {
            Ok(was_there) => return Ok(was_there),
            Err(TxError::Database(error)) => retry.wait_or_fail(OPERATION, error).await?,
            Err(TxError::Store(error)) => return Err(error),
        }
    }
}

async fn delete_once(
    database: &Database,
    thread: &ThreadId,
    leases: Leases,
) -> Result<bool, TxError> {
    let mut transaction = database.transaction(OPERATION).await?;
    let heads = head::lock(&mut transaction, &BTreeSet::from([thread]), &BTreeSet::new()).await?;
    let Some(head) = heads.into_values().next().filter(|head| head.is_there) else {
        return Ok(false);
    };
    if leases == Leases::Heed {
        refuse_held(&mut transaction, thread, &head).await?;
    }
    clear(&mut transaction, head.number, head.last_place).await?;
    remove(&mut transaction, thread).await?;
    commit(database, transaction).await?;
    Ok(true)
}

/// Refuses to delete data of a locked thread that a live host has leased.
pub(super) async fn refuse_held(
    transaction: &mut PgTransaction,
    thread: &ThreadId,
    head: &Head,
) -> Result<(), TxError> {
    if !head.lease.is_some_and(|lease| lease.lives) {
        return Ok(());
    }
    let holder = sqlx::query_scalar(HOLDER).bind(thread.as_str().as_bytes());
    let holder: Vec<u8> = holder.fetch_one(&mut **transaction).await?;
    Err(leased_error(thread, &LeaseHolder(String::from_utf8_lossy(&holder).into_owned())).into())
}

/// Deletes the data of a thread number, whose newest batch is at `last_place`.
pub(super) async fn clear(
    transaction: &mut PgTransaction,
    number: i64,
    last_place: i64,
) -> Result<(), sqlx::Error> {
    let mut after = 0;
    while after < last_place {
        let part = sqlx::query(CLEAR_PART).bind(number).bind(after).bind(after + PART);
        part.execute(&mut **transaction).await?;
        after += PART;
    }
    sqlx::query(CLEAR_FACTS).bind(number).execute(&mut **transaction).await.map(drop)
}

/// Deletes the row of a thread, or resets it if the thread is leased.
pub(super) async fn remove(
    transaction: &mut PgTransaction,
    thread: &ThreadId,
) -> Result<(), sqlx::Error> {
    let id = thread.as_str().as_bytes();
    let removed = sqlx::query(REMOVE).bind(id).execute(&mut **transaction).await?;
    if removed.rows_affected() == 0 {
        sqlx::query(EMPTY).bind(id).execute(&mut **transaction).await?;
    }
    Ok(())
}
