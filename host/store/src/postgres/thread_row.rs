//! Locks and reads the rows of threads, and decodes columns of these rows and of other tables.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use wattle_graph::id::{CheckpointId, Digest, ThreadId};
use wattle_run::ports::store::{StoreError, ThreadHead, ThreadRecord};

use crate::codec::unpack;
use crate::error::corrupt;
use crate::postgres::database::PgTransaction;
use crate::postgres::stage::{RowLease, ThreadRow};

/// Locks the rows in the order of their ids, so that two transactions never deadlock.
const LOCK: &str = "
    SELECT id, number, record IS NOT NULL AS there, epoch, last_seq, last_checkpoint, current,
        seal, last_place, bytes, pending, ledger,
        EXISTS (SELECT 1 FROM living WHERE living.holder = threads.holder) AS lives
    FROM threads WHERE id = ANY($1) ORDER BY id FOR UPDATE OF threads";

const INSERT: &str = "
    INSERT INTO threads (id, number) SELECT id, nextval('thread_numbers') FROM unnest($1) AS id
    ON CONFLICT DO NOTHING";

/// Locks threads. Creates a row for each thread of `created` that does not exist.
pub(super) async fn lock(
    transaction: &mut PgTransaction,
    threads: &BTreeSet<&ThreadId>,
    created: &BTreeSet<&ThreadId>,
) -> Result<BTreeMap<ThreadId, ThreadRow>, sqlx::Error> {
    let mut rows = lock_existing(transaction, threads.iter().copied()).await?;
    let missing: Vec<&ThreadId> =
        created.iter().copied().filter(|thread| !rows.contains_key(*thread)).collect();
    if !missing.is_empty() {
        let ids: Vec<&[u8]> = missing.iter().map(|thread| thread.as_str().as_bytes()).collect();
        sqlx::query(INSERT).bind(ids).execute(&mut **transaction).await?;
        rows.extend(lock_existing(transaction, missing.into_iter()).await?);
    }
    Ok(rows)
}

async fn lock_existing(
    transaction: &mut PgTransaction,
    threads: impl Iterator<Item = &ThreadId> + Clone,
) -> Result<BTreeMap<ThreadId, ThreadRow>, sqlx::Error> {
    let ids: Vec<&[u8]> = threads.clone().map(|thread| thread.as_str().as_bytes()).collect();
    let locked = sqlx::query(LOCK).bind(ids).fetch_all(&mut **transaction).await?;
    let mut rows = BTreeMap::new();
    for row in &locked {
        rows.insert(row.try_get::<&[u8], _>("id")?, thread_row(row)?);
    }
    let by_thread = threads.filter_map(|thread| {
        rows.remove(thread.as_str().as_bytes()).map(|row| (thread.clone(), row))
    });
    Ok(by_thread.collect())
}

/// Decodes a PostgreSQL row as a [`ThreadRow`].
pub(super) fn thread_row(row: &PgRow) -> Result<ThreadRow, sqlx::Error> {
    let epoch: Option<i64> = row.try_get("epoch")?;
    let is_live = row.try_get("lives")?;
    Ok(ThreadRow {
        number: row.try_get("number")?,
        exists: row.try_get("there")?,
        lease: epoch.map(|epoch| RowLease { epoch: epoch.cast_unsigned(), is_live }),
        last_seq: unsigned(row, "last_seq")?,
        last_checkpoint: checkpoint_id(row, "last_checkpoint")?,
        current: checkpoint_id(row, "current")?,
        seal: digest(row, "seal")?,
        last_position: row.try_get("last_place")?,
        bytes: row.try_get("bytes")?,
        pending: row.try_get("pending")?,
        ledger: row.try_get("ledger")?,
    })
}

/// Selects the columns that [`thread_head`] reads.
pub(super) const SELECT_HEAD: &str = "
    SELECT record, last_seq, last_checkpoint, current, pruned_seq, seal, pruned_seal, bytes
    FROM threads
    WHERE id = $1 AND record IS NOT NULL";

/// Decodes a row of [`SELECT_HEAD`] as a [`ThreadHead`].
pub(super) fn thread_head(row: &PgRow) -> Result<ThreadHead, StoreError> {
    let read = || {
        Ok((
            unsigned(row, "last_seq")?,
            checkpoint_id(row, "last_checkpoint")?,
            checkpoint_id(row, "current")?,
            unsigned(row, "pruned_seq")?,
            (digest(row, "seal")?, digest(row, "pruned_seal")?, unsigned(row, "bytes")?),
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

/// Decodes the packed record of a row, or a part of the record.
pub(super) fn record<T: DeserializeOwned>(row: &PgRow) -> Result<T, StoreError> {
    let packed: &[u8] = row.try_get("record").map_err(|error| corrupt("thread", error))?;
    unpack("thread", packed)
}

/// Decodes a number that is never negative.
pub(super) fn unsigned(row: &PgRow, column: &str) -> Result<u64, sqlx::Error> {
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

/// Decodes a name from a column of bytes.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, sqlx::Error> {
    std::str::from_utf8(bytes).map_err(decode_error)
}

/// Builds the error for a column that cannot be decoded.
pub(super) fn decode_error(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(error))
}
