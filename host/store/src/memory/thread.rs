//! One thread in memory.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, Values};
use wattle_graph::event::Event;
use wattle_graph::id::{CheckpointId, Digest, Namespace, RunId, ThreadId};
use wattle_run::ports::store::{
    Batch, CheckpointQuery, CheckpointTuple, StoreError, ThreadHead, ThreadRecord,
};

use crate::codec::Packer;
use crate::error::invalid;
use crate::query::checkpoint_matches;
use crate::rules::{self, Standing};

/// A thread with all that was ever written to it.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) head: ThreadHead,
    /// Oldest first.
    pub(super) runs: Vec<RunId>,
    /// Blobs that its batches mention.
    pub(super) mentions: BTreeSet<Digest>,
    /// The event of sequence number `n` at `n - 1`.
    events: Vec<Event>,
    /// Positions in `events` by the base of their batch.
    pending: BTreeMap<CheckpointId, Vec<usize>>,
    checkpoints: BTreeMap<CheckpointId, Stored>,
    batch_bytes: u64,
}

#[derive(Debug)]
struct Stored {
    meta: CheckpointMeta,
    /// Values of the channels that it changed.
    changed: Values,
}

/// What was found out about a batch before anything of it is applied.
#[derive(Debug)]
pub(super) struct Checked {
    mentions: BTreeSet<Digest>,
    bytes: u64,
}

/// Checks what needs the thread's history, and that the batch can be stored at all.
pub(super) fn check(
    id: &ThreadId,
    thread: Option<&Thread>,
    batch: &Batch,
) -> Result<Checked, StoreError> {
    let there = |checkpoint: CheckpointId| {
        thread.is_some_and(|thread| thread.checkpoints.contains_key(&checkpoint))
    };
    if let Some(current) = batch.current.filter(|current| !there(*current)) {
        return Err(rules::no_checkpoint(id, current));
    }
    let mut measure = Measure { packer: Packer::default(), thread: id };
    let mut bytes = measure.bytes(&batch.events)?;
    measure.bytes(&batch.record)?;
    measure.bytes(&batch.run)?;
    if let Some(checkpoint) = &batch.checkpoint {
        let meta = &checkpoint.meta;
        let older =
            meta.versions.values().find(|version| **version != meta.id && !there(**version));
        if let Some(version) = older {
            return Err(rules::no_checkpoint(id, *version));
        }
        bytes += measure.bytes(meta)?;
        for channel in meta.changed() {
            if let Some(value) = checkpoint.values.get(channel) {
                bytes += measure.bytes(value)?;
            }
        }
    }
    Ok(Checked { mentions: measure.packer.mentions, bytes })
}

struct Measure<'a> {
    packer: Packer,
    thread: &'a ThreadId,
}

impl Measure<'_> {
    fn bytes<T: Serialize>(&mut self, record: &T) -> Result<u64, StoreError> {
        self.packer.measure(record).map_err(|message| invalid(self.thread, message))
    }
}

impl Thread {
    pub(super) fn new(record: ThreadRecord) -> Self {
        Self {
            head: ThreadHead { record, last_seq: 0, last_checkpoint: None, current: None },
            runs: Vec::new(),
            mentions: BTreeSet::new(),
            events: Vec::new(),
            pending: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            batch_bytes: 0,
        }
    }

    pub(super) fn standing(&self) -> Standing {
        Standing { last_seq: self.head.last_seq, last_checkpoint: self.head.last_checkpoint }
    }

    /// Applies a batch that passed all checks; answers with the newest sequence number.
    pub(super) fn apply(&mut self, batch: Batch, checked: Checked) -> u64 {
        self.mentions.extend(checked.mentions);
        self.batch_bytes += checked.bytes;
        if let Some(record) = batch.record {
            self.head.record = record;
        }
        if let Some(run) = batch.run
            && !self.runs.contains(&run.id)
        {
            self.runs.push(run.id);
        }
        if let Some(base) = batch.base {
            let positions = self.events.len()..self.events.len() + batch.events.len();
            self.pending.entry(base).or_default().extend(positions);
        }
        self.events.extend(batch.events);
        self.head.last_seq = self.events.len() as u64;
        if let Some(Checkpoint { meta, mut values }) = batch.checkpoint {
            let id = meta.id;
            values.retain(|name, _| meta.versions.get(name) == Some(&id));
            self.checkpoints.insert(id, Stored { meta, changed: values });
            self.head.last_checkpoint = Some(id);
            self.head.current = Some(id);
        }
        if batch.current.is_some() {
            self.head.current = batch.current;
        }
        self.head.last_seq
    }

    pub(super) fn events(&self, after: u64, limit: usize) -> Vec<Event> {
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        self.events.iter().skip(after).take(limit).cloned().collect()
    }

    pub(super) fn checkpoint(
        &self,
        namespace: &Namespace,
        id: Option<CheckpointId>,
    ) -> Option<CheckpointTuple> {
        let stored = match id {
            Some(id) => {
                self.checkpoints.get(&id).filter(|found| found.meta.namespace == *namespace)
            }
            None => {
                self.checkpoints.values().rev().find(|stored| stored.meta.namespace == *namespace)
            }
        };
        stored.map(|stored| self.tuple(stored))
    }

    pub(super) fn checkpoints(&self, query: &CheckpointQuery) -> Vec<CheckpointTuple> {
        let matching = self
            .checkpoints
            .values()
            .rev()
            .filter(|stored| checkpoint_matches(query, &stored.meta));
        let limit = query.limit.unwrap_or(usize::MAX);
        matching.take(limit).map(|stored| self.tuple(stored)).collect()
    }

    pub(super) fn stored_bytes(&self) -> u64 {
        let record = serde_json::to_vec(&self.head.record).map_or(0, |json| json.len());
        self.batch_bytes + record as u64
    }

    fn tuple(&self, stored: &Stored) -> CheckpointTuple {
        let value = |(name, version)| {
            let value = self.checkpoints.get(version)?.changed.get(name)?;
            Some((Clone::clone(name), value.clone()))
        };
        let values = stored.meta.versions.iter().filter_map(value).collect();
        let pending = self.pending.get(&stored.meta.id).into_iter().flatten();
        CheckpointTuple {
            checkpoint: Checkpoint { meta: stored.meta.clone(), values },
            events: pending.filter_map(|at| self.events.get(*at)).cloned().collect(),
        }
    }
}
