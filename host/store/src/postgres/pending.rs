//! Pending runs in the database. A transaction that enqueues or dequeues a run locks the row of its
//! thread and changes the ledger number, so that the writer of the thread, on any host, detects the
//! change.

use sqlx::Row as _;
use wattle_graph::event::RunStatus;
use wattle_graph::id::{AppName, Digest, GraphName, RunId, ThreadId};
use wattle_run::caller_id::CallerId;
use wattle_run::ports::store::{PendingQuery, PendingRun, RunRecord, StoreError, ThreadRecord};

use crate::codec::Packer;
use crate::error::{backend, corrupt, invalid};
use crate::pending::check_pending;
use crate::postgres::database::{Database, PgTransaction};
use crate::postgres::in_doubt::commit;
use crate::postgres::retry::{RetryState, TxError};
use crate::postgres::thread_row;
use crate::validate;

const ENQUEUE: &str = "add a pending run";

const DEQUEUE: &str = "remove a pending run";

const LOCK: &str = "
    SELECT number FROM threads WHERE id = $1 AND record IS NOT NULL FOR UPDATE";

const THREAD_OF: &str = "
    SELECT threads.id FROM runs JOIN threads ON threads.number = runs.thread
    WHERE runs.id = $1 AND due_ms IS NOT NULL";

const ADD: &str = "
    INSERT INTO runs (id, thread, record, due_ms, caller) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING";

const RECORD: &str = "SELECT record FROM threads WHERE number = $1";

const SET_RECORD: &str = "UPDATE threads SET record = $2, app = $3 WHERE number = $1";

const MENTION: &str = "
    INSERT INTO mentions (thread, blob) SELECT $1, blob FROM unnest($2::bytea[]) AS blob
    ON CONFLICT DO NOTHING";

const END: &str = "
    UPDATE runs SET record = $2, due_ms = NULL WHERE id = $1 AND due_ms IS NOT NULL";

const REMOVE: &str = "DELETE FROM runs WHERE id = $1 AND due_ms IS NOT NULL";

const COUNT: &str = "
    UPDATE threads SET pending = pending + $2, ledger = ledger + 1 WHERE number = $1";

const LIST: &str = "
    SELECT runs.place, runs.id, threads.id AS thread, runs.due_ms, runs.caller
    FROM runs JOIN threads ON threads.number = runs.thread
    WHERE runs.due_ms IS NOT NULL AND runs.place > $1 AND runs.due_ms <= $2
    ORDER BY runs.place LIMIT $3";

const LIST_OF: &str = "
    SELECT runs.place, runs.id, threads.id AS thread, runs.due_ms, runs.caller
    FROM threads JOIN runs ON runs.thread = threads.number
    WHERE threads.id = $4 AND runs.due_ms IS NOT NULL AND runs.place > $1 AND runs.due_ms <= $2
    ORDER BY runs.place LIMIT $3";

/// See [`Store::enqueue`](wattle_run::ports::Store::enqueue).
pub(super) async fn enqueue(
    database: &Database,
    run: &RunRecord,
    requested: Option<&(AppName, GraphName)>,
) -> Result<bool, StoreError> {
    check_pending(run)?;
    let mut packer = Packer::default();
    let packed = packer.pack(run).map_err(|message| invalid(&run.thread, message))?;
    let mentions: Vec<Digest> = packer.mentions.into_iter().collect();
    let mut retry = RetryState::default();
    loop {
        match enqueue_once(database, run, requested, &packed, &mentions).await {
            Ok(is_new) => return Ok(is_new),
            Err(TxError::Database(error)) => retry.wait_or_fail(ENQUEUE, error).await?,
            Err(TxError::Store(error)) => return Err(error),
        }
    }
}

async fn enqueue_once(
    database: &Database,
    run: &RunRecord,
    requested: Option<&(AppName, GraphName)>,
    packed: &[u8],
    mentions: &[Digest],
) -> Result<bool, TxError> {
    let mut transaction = database.transaction(ENQUEUE).await?;
    let number =
        lock(&mut transaction, &run.thread).await?.ok_or_else(|| validate::no_thread_error(run))?;
    let add = sqlx::query(ADD).bind(run.id.as_str().as_bytes()).bind(number);
    let caller = run.caller();
    let add = add.bind(packed).bind(run.due_ms()).bind(caller.as_bytes());
    let added = add.execute(&mut *transaction).await?;
    if added.rows_affected() == 0 {
        return Ok(false);
    }
    if let Some(requested) = requested {
        set_requested_graph(&mut transaction, number, &run.thread, requested).await?;
    }
    add_mentions(&mut transaction, number, mentions).await?;
    count(&mut transaction, number, 1).await?;
    commit(database, transaction).await?;
    Ok(true)
}

/// See [`Store::dequeue`](wattle_run::ports::Store::dequeue).
pub(super) async fn dequeue(
    database: &Database,
    run: &RunId,
    ended: Option<&RunRecord>,
) -> Result<bool, StoreError> {
    let mut packer = Packer::default();
    let pack =
        |ended: &RunRecord| packer.pack(ended).map_err(|message| invalid(&ended.thread, message));
    let packed = ended.map(pack).transpose()?;
    let mentions: Vec<Digest> = packer.mentions.into_iter().collect();
    if ended.is_some_and(|ended| ended.status == RunStatus::Pending) {
        return Err(backend(DEQUEUE, "the run's new record still has the status `pending`"));
    }
    let mut retry = RetryState::default();
    loop {
        match dequeue_once(database, run, packed.as_deref(), &mentions).await {
            Ok(was_pending) => return Ok(was_pending),
            Err(TxError::Database(error)) => retry.wait_or_fail(DEQUEUE, error).await?,
            Err(TxError::Store(error)) => return Err(error),
        }
    }
}

async fn dequeue_once(
    database: &Database,
    run: &RunId,
    packed: Option<&[u8]>,
    mentions: &[Digest],
) -> Result<bool, TxError> {
    let key = run.as_str().as_bytes();
    let mut transaction = database.transaction(DEQUEUE).await?;
    let found = sqlx::query(THREAD_OF).bind(key).fetch_optional(&mut *transaction).await?;
    let Some(found) = found else { return Ok(false) };
    let thread = thread_id(found.try_get("id")?)?;
    let Some(number) = lock(&mut transaction, &thread).await? else { return Ok(false) };
    let change = match packed {
        Some(packed) => sqlx::query(END).bind(key).bind(packed),
        None => sqlx::query(REMOVE).bind(key),
    };
    if change.execute(&mut *transaction).await?.rows_affected() == 0 {
        return Ok(false);
    }
    add_mentions(&mut transaction, number, mentions).await?;
    count(&mut transaction, number, -1).await?;
    commit(database, transaction).await?;
    Ok(true)
}

async fn lock(
    transaction: &mut PgTransaction,
    thread: &ThreadId,
) -> Result<Option<i64>, sqlx::Error> {
    let lock = sqlx::query(LOCK).bind(thread.as_str().as_bytes());
    let row = lock.fetch_optional(&mut **transaction).await?;
    row.map(|row| row.try_get("number")).transpose()
}

/// Writes the app and the graph that a run requests into the record of its thread, whose row is
/// locked, if the thread is unbound.
async fn set_requested_graph(
    transaction: &mut PgTransaction,
    number: i64,
    thread: &ThreadId,
    requested: &(AppName, GraphName),
) -> Result<(), TxError> {
    let row = sqlx::query(RECORD).bind(number).fetch_one(&mut **transaction).await?;
    let record: ThreadRecord = thread_row::record(&row)?;
    let Some(record) = record.with_requested_graph(requested) else { return Ok(()) };
    let packed = Packer::default().pack(&record).map_err(|message| invalid(thread, message))?;
    let set = sqlx::query(SET_RECORD).bind(number).bind(packed).bind(record.app.as_str());
    set.execute(&mut **transaction).await?;
    Ok(())
}

async fn add_mentions(
    transaction: &mut PgTransaction,
    number: i64,
    mentions: &[Digest],
) -> Result<(), sqlx::Error> {
    if mentions.is_empty() {
        return Ok(());
    }
    let blobs: Vec<&[u8]> = mentions.iter().map(|blob| blob.as_bytes().as_slice()).collect();
    let add = sqlx::query(MENTION).bind(number).bind(blobs);
    add.execute(&mut **transaction).await.map(drop)
}

async fn count(
    transaction: &mut PgTransaction,
    number: i64,
    change: i64,
) -> Result<(), sqlx::Error> {
    let count = sqlx::query(COUNT).bind(number).bind(change);
    count.execute(&mut **transaction).await.map(drop)
}

/// See [`Store::pending`](wattle_run::ports::Store::pending).
pub(super) async fn list(
    database: &Database,
    query: &PendingQuery,
) -> Result<Vec<PendingRun>, StoreError> {
    let after = query.after.map_or(-1, u64::cast_signed);
    let due_by_ms = query.due_by_ms.unwrap_or(i64::MAX);
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let list = || {
        let text = if query.thread.is_some() { LIST_OF } else { LIST };
        let list = sqlx::query(text).bind(after).bind(due_by_ms).bind(limit);
        match &query.thread {
            Some(thread) => list.bind(thread.as_str().as_bytes()),
            None => list,
        }
    };
    let rows = database.rows("list pending runs", list).await?;
    let read = |error: sqlx::Error| corrupt("pending run", error);
    let pending = rows.iter().map(|row| {
        let run = RunId::new(text(row.try_get("id").map_err(read)?)?);
        Ok(PendingRun {
            position: row.try_get::<i64, _>("place").map_err(read)?.cast_unsigned(),
            run: run.map_err(|error| corrupt("pending run", error))?,
            thread: thread_id(row.try_get("thread").map_err(read)?)?,
            due_ms: row.try_get("due_ms").map_err(read)?,
            caller: caller(row.try_get("caller").map_err(read)?)?,
        })
    });
    pending.collect()
}

fn thread_id(bytes: &[u8]) -> Result<ThreadId, StoreError> {
    ThreadId::new(text(bytes)?).map_err(|error| corrupt("thread", error))
}

/// Reads a caller. Hosts of earlier versions store no caller.
fn caller(bytes: Option<&[u8]>) -> Result<CallerId, StoreError> {
    let Some(bytes) = bytes else { return Ok(CallerId::default()) };
    CallerId::from_bytes(bytes)
        .ok_or_else(|| corrupt("pending run", "the caller does not have 32 bytes"))
}

fn text(bytes: &[u8]) -> Result<&str, StoreError> {
    std::str::from_utf8(bytes).map_err(|error| corrupt("id", error))
}
