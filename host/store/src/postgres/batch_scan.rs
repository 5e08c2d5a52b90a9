//! Reads batches in order, for exports, seal checks and rewrites.

use std::collections::BTreeMap;

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use wattle_graph::checkpoint::ListDelta;
use wattle_graph::id::{ChannelName, CheckpointId, Digest};
use wattle_run::ports::store::StoreError;

use crate::codec::unpack_json;
use crate::error::corrupt;
use crate::postgres::database::PgTransaction;
use crate::postgres::decode::decode_on_blocking_pool;
use crate::postgres::retry::sqlx_error;
use crate::postgres::size::{record_bytes, record_start};
use crate::postgres::stage::{Body, BodyValue};
use crate::postgres::thread_row::{checkpoint_id, digest, unsigned, utf8};
use crate::postgres::write_set::ChainStats;

/// Maximum number of batches that one statement reads.
const PAGE_BATCHES: i64 = 64;

/// Maximum number of bytes of JSON of the batches that one statement reads, unless a single batch
/// has more.
const PAGE_BYTES: i64 = 4 << 20;

/// Selects the first batch from a position on, and later batches as long as the total length of all
/// selected batches with their values is at most `$4` bytes of JSON.
const BATCHES: &str = concat!(
    "SELECT place, after_seq, last_seq, base, checkpoint, namespace, events, meta, seal FROM (
        SELECT batch.*, row_number() OVER log AS nth,
            (sum(records.bytes) OVER log)::bigint AS bytes
        FROM (
            SELECT place, after_seq, last_seq, base, checkpoint, namespace, events, meta, seal
            FROM batches WHERE thread = $1 AND place >= $2 ORDER BY place LIMIT $3) AS batch,
        LATERAL (
            SELECT coalesce(sum(",
    record_bytes!("packed"),
    "), 0) AS bytes
            FROM (
                SELECT packed, ",
    record_start!("packed"),
    " AS start
                FROM (
                    VALUES (batch.events), (batch.meta)
                    UNION ALL
                    SELECT value FROM channel_values
                    WHERE channel_values.thread = $1 AND channel_values.place = batch.place
                ) AS record (packed) OFFSET 0) AS record) AS records
        WINDOW log AS (ORDER BY place)) AS page
    WHERE bytes <= $4 OR nth = 1 ORDER BY place"
);

const VALUES: &str = "
    SELECT place, channel, version, value, base, keep, root, items, tails, tail_bytes, whole_bytes
    FROM channel_values WHERE thread = $1 AND place BETWEEN $2 AND $3 ORDER BY place, channel";

const OPERATION: &str = "read batches";

/// A stored batch whose events, `CheckpointMeta` and values are decompressed and not parsed.
pub(super) struct ScannedBatch {
    pub(super) position: i64,
    pub(super) after_seq: u64,
    pub(super) last_seq: u64,
    pub(super) base: Option<CheckpointId>,
    /// Id and namespace of the batch's checkpoint.
    pub(super) checkpoint: Option<(CheckpointId, Vec<u8>)>,
    pub(super) body: Body,
    pub(super) seal: Option<Digest>,
}

/// A page of batches, not decoded.
pub(super) struct BatchRows {
    batches: Vec<PgRow>,
    values: Vec<PgRow>,
    /// Position of the last batch; `None` if the page is empty.
    pub(super) last_position: Option<i64>,
}

/// Reads a page of batches from a position on, without their values. The page is empty if no batch
/// follows.
pub(super) async fn read_rows_without_values(
    transaction: &mut PgTransaction,
    number: i64,
    from: i64,
) -> Result<BatchRows, StoreError> {
    let batches = sqlx::query(BATCHES)
        .bind(number)
        .bind(from)
        .bind(PAGE_BATCHES)
        .bind(PAGE_BYTES)
        .fetch_all(&mut **transaction)
        .await
        .map_err(sqlx_error(OPERATION))?;
    let last_position = batches.last().map(position).transpose()?;
    Ok(BatchRows { batches, values: Vec::new(), last_position })
}

/// Reads a page of batches from a position on. The page is empty if no batch follows.
pub(super) async fn read_rows(
    transaction: &mut PgTransaction,
    number: i64,
    from: i64,
) -> Result<BatchRows, StoreError> {
    let mut rows = read_rows_without_values(transaction, number, from).await?;
    let first_position = rows.batches.first().map(position).transpose()?;
    let Some((first, last)) = first_position.zip(rows.last_position) else { return Ok(rows) };
    rows.values = sqlx::query(VALUES)
        .bind(number)
        .bind(first)
        .bind(last)
        .fetch_all(&mut **transaction)
        .await
        .map_err(sqlx_error(OPERATION))?;
    Ok(rows)
}

/// Returns a page of batches from a position on. The page is empty if no batch follows.
pub(super) async fn page(
    transaction: &mut PgTransaction,
    number: i64,
    from: i64,
) -> Result<Vec<ScannedBatch>, StoreError> {
    let rows = read_rows(transaction, number, from).await?;
    decode_on_blocking_pool(OPERATION, None, move || rows.decode()).await
}

impl BatchRows {
    /// Decompresses the batches with their values.
    pub(super) fn decode(&self) -> Result<Vec<ScannedBatch>, StoreError> {
        let mut batches = self.batches.iter().map(scanned_batch).collect::<Result<Vec<_>, _>>()?;
        let mut values: BTreeMap<i64, Vec<BodyValue>> = BTreeMap::new();
        for row in &self.values {
            values.entry(position(row)?).or_default().push(body_value(row)?);
        }
        for batch in &mut batches {
            batch.body.values = values.remove(&batch.position).unwrap_or_default();
        }
        Ok(batches)
    }
}

/// Returns the position of the batch to which a row belongs.
fn position(row: &PgRow) -> Result<i64, StoreError> {
    row.try_get("place").map_err(|error| corrupt("batch", error))
}

fn scanned_batch(row: &PgRow) -> Result<ScannedBatch, StoreError> {
    let json = |column: &'static str| {
        let packed: Option<&[u8]> = row.try_get(column).map_err(|error| corrupt(column, error))?;
        packed
            .map(|packed| unpack_json(column, packed).map(std::borrow::Cow::into_owned))
            .transpose()
    };
    let (events, meta) = (json("events")?, json("meta")?);
    let read = || {
        let namespace: Option<Vec<u8>> = row.try_get("namespace")?;
        Ok(ScannedBatch {
            position: row.try_get("place")?,
            after_seq: unsigned(row, "after_seq")?,
            last_seq: unsigned(row, "last_seq")?,
            base: checkpoint_id(row, "base")?,
            checkpoint: checkpoint_id(row, "checkpoint")?.zip(namespace),
            body: Body { events, meta, values: Vec::new() },
            seal: digest(row, "seal")?,
        })
    };
    read().map_err(|error: sqlx::Error| corrupt("batch", error))
}

fn body_value(row: &PgRow) -> Result<BodyValue, StoreError> {
    let packed: &[u8] = row.try_get("value").map_err(|error| corrupt("value", error))?;
    let json = unpack_json("value", packed)?.into_owned();
    let read = || {
        let channel = ChannelName::new(utf8(row.try_get("channel")?)?);
        let keep: Option<i64> = row.try_get("keep")?;
        let keep = keep.map(u32::try_from).transpose();
        let keep = keep.map_err(|error| sqlx::Error::Decode(error.into()))?;
        Ok(BodyValue {
            channel: channel.map_err(|error| sqlx::Error::Decode(error.into()))?,
            version: CheckpointId(unsigned(row, "version")?),
            delta: checkpoint_id(row, "base")?
                .zip(keep)
                .map(|(base, keep)| ListDelta { base, prefix_len: keep }),
            json,
            packed: packed.to_vec(),
            chain: chain_stats(row)?,
        })
    };
    read().map_err(|error: sqlx::Error| corrupt("value", error))
}

/// Decodes the columns with the chain sizes of a value.
pub(super) fn chain_stats(row: &PgRow) -> Result<ChainStats, sqlx::Error> {
    Ok(ChainStats {
        root: CheckpointId(unsigned(row, "root")?),
        items: row.try_get::<Option<i64>, _>("items")?.map(i64::cast_unsigned),
        deltas: unsigned(row, "tails")?,
        delta_bytes: unsigned(row, "tail_bytes")?,
        full_bytes: unsigned(row, "whole_bytes")?,
    })
}
