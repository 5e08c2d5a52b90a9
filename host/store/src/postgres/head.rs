//! Locks and reads the rows of threads.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use wattle_graph::id::{CheckpointId, Digest, ThreadId};
use wattle_run::ports::store::{StoreError, ThreadHead, ThreadRecord};

use crate::codec::unpack;
use crate::error::corrupt;
use crate::postgres::database::PgTransaction;
use crate::postgres::stage::{Head, HeadLease};

/// Locks the rows in the order of their ids, so that two transactions never deadlock.
const LOCK: &str = "
    SELECT id, number, record IS NOT NULL AS there, epoch, last_seq, last_checkpoint, current,
        seal, last_place, bytes, pending, ledger,
        EXISTS (SELECT 1 FROM living WHERE living.holder = threads.holder) AS lives
    FROM threads WHERE id = ANY($1) ORDER BY id FOR UPDATE OF threads";

const MAKE: &str = "
    INSERT INTO threads (id, number) SELECT id, nextval('thread_numbers') FROM unnest($1) AS id
    ON CONFLICT DO NOTHING";

/// Locks threads. Creates a row for each thread of `begun` that does not exist.
pub(super) async fn lock(
    transaction: &mut PgTransaction,
    threads: &BTreeSet<&ThreadId>,
    begun: &BTreeSet<&ThreadId>,
) -> Result<BTreeMap<ThreadId, Head>, sqlx::Error> {
    let mut heads = lock_there(transaction, threads.iter().copied()).await?;
    let missing: Vec<&ThreadId> =
        begun.iter().copied().filter(|thread| !heads.contains_key(*thread)).collect();
    if !missing.is_empty() {
        let ids: Vec<&[u8]> = missing.iter().map(|thread| thread.as_str().as_bytes()).collect();
        sqlx::query(MAKE).bind(ids).execute(&mut **transaction).await?;
        heads.extend(lock_there(transaction, missing.into_iter()).await?);
    }
    Ok(heads)
}

async fn lock_there(
    transaction: &mut PgTransaction,
    threads: impl Iterator<Item = &ThreadId> + Clone,
) -> Result<BTreeMap<ThreadId, Head>, sqlx::Error> {
    let ids: Vec<&[u8]> = threads.clone().map(|thread| thread.as_str().as_bytes()).collect();
    let locked = sqlx::query(LOCK).bind(ids).fetch_all(&mut **transaction).await?;
    let mut rows = BTreeMap::new();
    for row in &locked {
        rows.insert(row.try_get::<&[u8], _>("id")?, head(row)?);
    }
    let heads = threads.filter_map(|thread| {
        rows.remove(thread.as_str().as_bytes()).map(|head| (thread.clone(), head))
    });
    Ok(heads.collect())
}

/// Decodes the state of a thread from its row.
pub(super) fn head(row: &PgRow) -> Result<Head, sqlx::Error> {
    let epoch: Option<i64> = row.try_get("epoch")?;
    let lives = row.try_get("lives")?;
    Ok(Head {
        number: row.try_get("number")?,
        is_there: row.try_get("there")?,
        lease: epoch.map(|epoch| HeadLease { epoch: epoch.cast_unsigned(), lives }),
        last_seq: number(row, "last_seq")?,
        last_checkpoint: checkpoint_id(row, "last_checkpoint")?,
        current: checkpoint_id(row, "current")?,
        seal: digest(row, "seal")?,
        last_place: row.try_get("last_place")?,
        bytes: row.try_get("bytes")?,
        pending: row.try_get("pending")?,
        ledger: row.try_get("ledger")?,
    })
}

/// Selects the columns that [`thread_head`] reads.
pub(super) const HEAD: &str = "
    SELECT record, last_seq, last_checkpoint, current, pruned_seq, seal, pruned_seal, bytes
    FROM threads
    WHERE id = $1 AND record IS NOT NULL";

/// Decodes a thread in the type of the port.
pub(super) fn thread_head(row: &PgRow) -> Result<ThreadHead, StoreError> {
    let read = || {
        Ok((
            number(row, "last_seq")?,
            checkpoint_id(row, "last_checkpoint")?,
            checkpoint_id(row, "current")?,
            number(row, "pruned_seq")?,
            (digest(row, "seal")?, digest(row, "pruned_seal")?, number(row, "bytes")?),
        ))
    };
    let read = read().map_err(|error: sqlx::Error| corrupt("thread", error));
    let (last_seq, last_checkpoint, current, pruned_seq, (seal, pruned_seal, log_bytes)) = read?;
    let record: ThreadRecord = record(row)?;
    Ok(ThreadHead {
        record,
        last_seq,
        last_checkpoint,
        current,
        pruned_seq,
        seal,
        pruned_seal,
        log_bytes,
    })
}

/// Decodes the packed record of a row, or a part of it.
pub(super) fn record<T: DeserializeOwned>(row: &PgRow) -> Result<T, StoreError> {
    let packed: &[u8] = row.try_get("record").map_err(|error| corrupt("thread", error))?;
    unpack("thread", packed)
}

/// Decodes a number that is never negative.
pub(super) fn number(row: &PgRow, column: &str) -> Result<u64, sqlx::Error> {
    row.try_get::<i64, _>(column).map(i64::cast_unsigned)
}

/// Decodes a checkpoint id that may be null.
pub(super) fn checkpoint_id(
    row: &PgRow,
    column: &str,
) -> Result<Option<CheckpointId>, sqlx::Error> {
    let id: Option<i64> = row.try_get(column)?;
    Ok(id.map(|id| CheckpointId(id.cast_unsigned())))
}

/// Decodes a digest that may be null.
pub(super) fn digest(row: &PgRow, column: &str) -> Result<Option<Digest>, sqlx::Error> {
    let bytes: Option<&[u8]> = row.try_get(column)?;
    let digest = bytes.map(|bytes| {
        let bytes = <[u8; 32]>::try_from(bytes);
        bytes.map(Digest::from_bytes).map_err(|error| sqlx::Error::Decode(error.into()))
    });
    digest.transpose()
}
