//! Reads batches for exports.

use std::collections::BTreeMap;

use wattle_graph::id::ThreadId;
use wattle_run::ports::store::{BatchPage, StoreError, StoredBatch, StoredValue};
use wattle_run::reads::begin_large_read;

use crate::error::corrupt;
use crate::page::batch_memory_bytes;
use crate::postgres::batch_scan::{self, BatchRows, ScannedBatch};
use crate::postgres::database::Database;
use crate::postgres::decode::decode_on_blocking_pool;
use crate::postgres::history;

const OPERATION: &str = "read batches";

/// See [`Store::batches`](wattle_run::ports::Store::batches).
pub(super) async fn batches(
    database: &Database,
    thread: &ThreadId,
    from: Option<u64>,
    bytes: usize,
) -> Result<BatchPage, StoreError> {
    let large = begin_large_read().await;
    let mut snapshot = database.snapshot(OPERATION).await?;
    let mut export = ExportPage { found: BatchPage::default(), bytes: 0, max_bytes: bytes as u64 };
    let Some(number) = history::thread_number(&mut snapshot, thread).await? else {
        return Ok(export.found);
    };
    let mut from = from.map_or(0, u64::cast_signed);
    while export.found.next.is_none() {
        let rows = batch_scan::read_rows(&mut snapshot, number, from).await?;
        let Some(last) = rows.last_position else { break };
        from = last + 1;
        let add = move || export.add(&rows);
        export = decode_on_blocking_pool(OPERATION, Some(large.clone()), add).await?;
    }
    Ok(export.found)
}

/// A page of an export that is being read.
struct ExportPage {
    found: BatchPage,
    /// Bytes of the batches: of JSON or in memory, whichever is larger.
    bytes: u64,
    max_bytes: u64,
}

impl ExportPage {
    /// Decodes batches and adds them, until the page is full.
    fn add(mut self, rows: &BatchRows) -> Result<Self, StoreError> {
        for batch in rows.decode()? {
            if self.bytes >= self.max_bytes && !self.found.batches.is_empty() {
                self.found.next = Some(batch.position.cast_unsigned());
                break;
            }
            let json_bytes = batch.json_bytes();
            let batch = stored(batch)?;
            self.bytes += json_bytes.max(batch_memory_bytes(&batch));
            self.found.batches.push(batch);
        }
        Ok(self)
    }
}

fn stored(batch: ScannedBatch) -> Result<StoredBatch, StoreError> {
    let body = batch.body;
    let mut values = BTreeMap::new();
    for value in body.values {
        let stored = match value.delta {
            None => StoredValue::Whole(parse("value", &value.json)?),
            Some(delta) => StoredValue::ListDelta {
                base: delta.base,
                keep: delta.prefix_len,
                items: parse("value", &value.json)?,
            },
        };
        values.insert(value.channel, stored);
    }
    Ok(StoredBatch {
        base: batch.base,
        events: body.events.map(|json| parse("events", &json)).transpose()?.unwrap_or_default(),
        checkpoint: body.meta.map(|json| parse("checkpoint", &json)).transpose()?,
        values,
        seal: batch.seal,
    })
}

impl ScannedBatch {
    /// Returns the size of the batch as JSON, in bytes.
    fn json_bytes(&self) -> u64 {
        let body = &self.body;
        let parts = [body.events.as_ref(), body.meta.as_ref()];
        let values = body.values.iter().map(|value| value.json.len());
        parts.into_iter().flatten().map(Vec::len).chain(values).sum::<usize>() as u64
    }
}

fn parse<T: serde::de::DeserializeOwned>(what: &str, json: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(json).map_err(|error| corrupt(what, error))
}
