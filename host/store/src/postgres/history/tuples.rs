//! Checkpoints of a page of a history, from their rows to their values and events.
//!
//! The JSON of a page is bounded before it is read. A decoded value can take many times the memory
//! of its JSON, so a page is decoded in groups that fit whatever their values are.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, Values};
use wattle_graph::event::Event;
use wattle_graph::id::CheckpointId;
use wattle_graph::weight::{SHARED_ITEM_BYTES, most_weight};
use wattle_run::ports::store::{CheckpointTuple, StoreError};

use crate::codec::{unpack, unpacked_bytes};
use crate::error::corrupt;
use crate::page::{PageBuilder, checkpoint_memory_bytes, events_memory_bytes};
use crate::postgres::column::{bytes, size};
use crate::postgres::database::PgTransaction;
use crate::postgres::retry::sqlx_error;
use crate::postgres::size::{record_bytes, record_start};
use crate::postgres::thread_row::checkpoint_id;
use crate::postgres::value::{ChainDecoder, Chains, Version};

/// Selects the events since checkpoints. Sends the events of the checkpoint `$4`, and the events of
/// earlier checkpoints as long as the total length of all sent events is at most `$3` bytes of
/// JSON.
const PENDING: &str = concat!(
    "SELECT base, CASE WHEN bytes <= $3 OR base = $4 THEN events END AS events FROM (
        SELECT base, place, events, (sum(",
    record_bytes!("events"),
    ") OVER (ORDER BY base DESC))::bigint AS bytes
        FROM (
            SELECT base, place, events, ",
    record_start!("events"),
    " AS start FROM batches
            WHERE thread = $1 AND base = ANY($2) AND events IS NOT NULL OFFSET 0) AS page) AS page
    ORDER BY place"
);

/// A `CheckpointMeta` with its length in bytes of JSON.
pub(super) type Meta = (CheckpointMeta, u64);

/// Checkpoints with their values and pending events, not decoded.
pub(super) struct UndecodedTuples {
    /// Newest first, each with the length of its metadata and values in bytes of JSON.
    metas: Vec<Meta>,
    chains: Chains,
    pending: PendingEvents,
}

impl UndecodedTuples {
    /// Selects the checkpoints whose JSON fits on a page.
    pub(super) fn select(
        metas: Vec<Meta>,
        chains: Chains,
        pending: PendingEvents,
        page: &PageBuilder<CheckpointTuple>,
    ) -> Self {
        let (mut selected, mut bytes_left) = (Vec::with_capacity(metas.len()), page.bytes_left());
        for (meta, own_bytes) in metas {
            let values = versions(&meta).map(|version| chains.bytes(&version));
            let own_bytes = own_bytes.saturating_add(values.fold(0, u64::saturating_add));
            let bytes = own_bytes.saturating_add(pending.bytes(meta.id));
            // The first checkpoint of a page fits whatever its size.
            let is_first = page.is_empty() && selected.is_empty();
            if bytes > bytes_left && !is_first {
                break;
            }
            bytes_left = bytes_left.saturating_sub(bytes);
            selected.push((meta, own_bytes));
        }
        Self { metas: selected, chains, pending }
    }

    /// Returns the number of checkpoints.
    pub(super) fn len(&self) -> usize {
        self.metas.len()
    }

    /// Decodes the checkpoints and adds them to a page, as many as fit. At most one checkpoint that
    /// does not fit is decoded.
    pub(super) fn decode_into(
        self,
        mut page: PageBuilder<CheckpointTuple>,
    ) -> Result<PageBuilder<CheckpointTuple>, StoreError> {
        let Self { mut metas, chains, pending } = self;
        let mut decoder = chains.decoder()?;
        while !metas.is_empty() && !page.is_full() {
            let json = metas.iter().map(|(meta, bytes)| bytes + pending.bytes(meta.id));
            let len = group_len(json, page.bytes_left());
            let later = metas.split_off(len);
            decoder.decode(&versions_of(&metas))?;
            for (meta, json_bytes) in std::mem::replace(&mut metas, later) {
                let events = pending.decode(meta.id)?;
                let tuple = tuple(meta, events, &decoder);
                // One checkpoint fits whatever its size, so it need not be weighed.
                let is_alone = page.is_empty() && page.left() == 1;
                let bytes = if is_alone { 0 } else { tuple_bytes(&tuple, json_bytes, &pending) };
                if !page.fits(bytes) {
                    break;
                }
                page.push(tuple, bytes);
            }
        }
        Ok(page)
    }
}

/// Returns how many checkpoints are decoded together: as many as fit in `bytes_left` bytes of
/// memory whatever their values are, but at least one. `json_bytes` are the lengths of their JSON.
fn group_len(json_bytes: impl Iterator<Item = u64>, bytes_left: u64) -> usize {
    let sums = json_bytes.scan(0_u64, |sum, bytes| {
        *sum = sum.saturating_add(bytes);
        Some(*sum)
    });
    sums.take_while(|sum| most_memory(*sum) <= bytes_left).count().max(1)
}

/// Returns the maximum memory of checkpoints whose JSON has `bytes` bytes. An item of a list has at
/// least one digit and a comma.
fn most_memory(bytes: u64) -> u64 {
    let items = bytes / 2 + 1;
    most_weight(bytes).saturating_add(items.saturating_mul(SHARED_ITEM_BYTES))
}

/// Returns the size of a checkpoint with its events, in bytes: of JSON or of memory, whichever is
/// larger.
fn tuple_bytes(tuple: &CheckpointTuple, json_bytes: u64, pending: &PendingEvents) -> u64 {
    let CheckpointTuple { checkpoint: Checkpoint { meta, values, .. }, events } = tuple;
    let events_bytes = pending.bytes(meta.id).max(events_memory_bytes(events));
    json_bytes.max(checkpoint_memory_bytes(meta, values)).saturating_add(events_bytes)
}

fn tuple(meta: CheckpointMeta, events: Vec<Event>, decoder: &ChainDecoder<'_>) -> CheckpointTuple {
    let value = |version: Version| {
        let value = decoder.value(&version)?.clone();
        Some((version.0, value))
    };
    let values: Values = versions(&meta).filter_map(value).collect();
    let checkpoint = Checkpoint::new(meta, values);
    CheckpointTuple { checkpoint, events }
}

/// Returns the versions of the channels of a checkpoint.
fn versions(meta: &CheckpointMeta) -> impl Iterator<Item = Version> {
    meta.versions.iter().map(|(channel, version)| (channel.clone(), *version))
}

/// Returns the versions of the channels of checkpoints.
pub(super) fn versions_of(metas: &[Meta]) -> BTreeSet<Version> {
    metas.iter().flat_map(|(meta, _)| versions(meta)).collect()
}

/// The events that follow each checkpoint of a page, not yet decoded.
#[derive(Default)]
pub(super) struct PendingEvents {
    /// For each base checkpoint, the rows of the batches that follow it, oldest first, and the
    /// total length of their events in bytes of JSON.
    batches: BTreeMap<CheckpointId, (Vec<PgRow>, u64)>,
    /// Checkpoints whose events the server did not send, because the total length exceeds
    /// `max_bytes`.
    omitted: BTreeSet<CheckpointId>,
}

impl PendingEvents {
    /// Reads the events since checkpoints, from the newest checkpoint on, as long as the total
    /// length of the events is at most `max_bytes` bytes of JSON. The events of `first` may exceed
    /// the limit.
    pub(super) async fn read(
        snapshot: &mut PgTransaction,
        number: i64,
        metas: &[Meta],
        first: Option<CheckpointId>,
        max_bytes: u64,
    ) -> Result<Self, StoreError> {
        let bases: Vec<i64> = metas.iter().map(|(meta, _)| meta.id.0.cast_signed()).collect();
        let rows = sqlx::query(PENDING)
            .bind(number)
            .bind(bases)
            .bind(size(max_bytes))
            .bind(first.map(|first| first.0.cast_signed()))
            .fetch_all(&mut **snapshot)
            .await
            .map_err(sqlx_error("read pending events"))?;
        let mut pending = Self::default();
        for row in rows {
            let base = checkpoint_id(&row, "base").map_err(|error| corrupt("batch", error))?;
            let base = base.unwrap_or_default();
            let packed: Option<&[u8]> =
                row.try_get("events").map_err(|error| corrupt("events", error))?;
            let Some(bytes) = packed.map(unpacked_bytes) else {
                pending.omitted.insert(base);
                continue;
            };
            let (batches, sum) = pending.batches.entry(base).or_default();
            *sum = sum.saturating_add(bytes);
            batches.push(row);
        }
        Ok(pending)
    }

    /// Returns how many checkpoints at the beginning of `metas` have events that the server sent in
    /// full.
    pub(super) fn complete(&self, metas: &[Meta]) -> usize {
        let omitted = metas.iter().position(|(meta, _)| self.omitted.contains(&meta.id));
        omitted.unwrap_or(metas.len())
    }

    /// Returns the length of the events since a checkpoint in bytes of JSON.
    fn bytes(&self, base: CheckpointId) -> u64 {
        self.batches.get(&base).map_or(0, |(_, bytes)| *bytes)
    }

    fn decode(&self, base: CheckpointId) -> Result<Vec<Event>, StoreError> {
        let mut events = Vec::new();
        for row in self.batches.get(&base).into_iter().flat_map(|(batches, _)| batches) {
            events.extend(unpack::<Vec<Event>>("events", bytes(row, "events")?)?);
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_decoded_together_if_they_fit_whatever_their_values_are() {
        let each = 1_000;
        let len = |bytes_left| group_len([each; 10].into_iter(), bytes_left);
        assert_eq!(len(u64::MAX), 10);
        assert_eq!(len(most_memory(3 * each)), 3);
        assert_eq!(len(most_memory(3 * each) - 1), 2);
        assert_eq!(len(0), 1, "the first one is decoded to learn its size");
    }
}
