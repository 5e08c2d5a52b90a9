//! Validates batches and converts them to rows. Each batch is checked against its thread with the
//! batches before it, and is staged completely or not at all. Nothing here waits for the server.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use wattle_graph::checkpoint::{ChannelValue, Checkpoint, ListDelta};
use wattle_graph::id::{ChannelName, CheckpointId, Digest, RunId, ThreadId};
use wattle_run::ports::store::{
    Batch, QueueCondition, StoreError, ThreadQuery, ThreadRecord, ThreadStatus,
};

use crate::codec::{Packer, compress};
use crate::delta_chain::needs_full_value;
use crate::error::invalid;
use crate::lease::fenced_error;
use crate::postgres::rows::{
    BatchRow, Before, HeadRow, ListFacts, RecordRow, Rows, RunRow, ValueRow,
};
use crate::validate::{self, LogPosition};

/// The row of a locked thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    pub(super) number: i64,
    /// False if only the lease of the thread exists.
    pub(super) is_there: bool,
    pub(super) lease: Option<HeadLease>,
    pub(super) last_seq: u64,
    pub(super) last_checkpoint: Option<CheckpointId>,
    pub(super) current: Option<CheckpointId>,
    pub(super) seal: Option<Digest>,
    pub(super) last_place: i64,
    pub(super) bytes: i64,
    /// Number of pending runs.
    pub(super) pending: i64,
    /// Changes with every run that is enqueued or dequeued.
    pub(super) ledger: i64,
}

/// The lease in a thread's row.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadLease {
    pub(super) epoch: u64,
    /// True if its host is live.
    pub(super) lives: bool,
}

/// The cached part of a thread's history. It stays valid while the thread has the same number,
/// because rows under a number never change.
#[derive(Clone, Debug, Default)]
pub(super) struct Past {
    /// Versions that channels may have: checkpoints that exist or existed.
    pub(super) versions: BTreeSet<CheckpointId>,
    /// Checkpoints that exist, and whether each is one of the root graph.
    pub(super) checkpoints: BTreeMap<CheckpointId, bool>,
    pub(super) lists: HashMap<(ChannelName, CheckpointId), ListFacts>,
    pub(super) runs: BTreeSet<RunId>,
    /// Due times of the pending runs, as of the ledger number of the head; `None` if they have not
    /// been read.
    pub(super) pending: Option<BTreeMap<RunId, i64>>,
}

/// Maximum number of entries that are cached for one thread between groups.
const FACT_LIMIT: usize = 1024;

impl Past {
    /// Returns true if the history is too large to stay in the cache. It is read again when it is
    /// needed.
    pub(super) fn is_large(&self) -> bool {
        self.versions.len().max(self.lists.len()).max(self.runs.len()) > FACT_LIMIT
    }
}

/// A thread with the staged batches of the open group.
#[derive(Clone, Debug, Default)]
pub(super) struct Desk {
    pub(super) head: Head,
    pub(super) past: Past,
}

/// The open commit group.
#[derive(Debug, Default)]
pub(super) struct Stage {
    /// All threads of the group.
    pub(super) desks: HashMap<ThreadId, Desk>,
    /// Owners of those runs of the group that belong to other threads.
    pub(super) foreign_runs: HashMap<RunId, ThreadId>,
    pub(super) rows: Rows,
}

/// A batch with its parts packed.
struct Prepared {
    record: Option<RecordRow>,
    run: Option<Vec<u8>>,
    body: Body,
    mentions: BTreeSet<Digest>,
}

/// The part of a batch that goes into the log.
#[derive(Default)]
pub(super) struct Body {
    pub(super) events: Option<Vec<u8>>,
    pub(super) meta: Option<Vec<u8>>,
    pub(super) values: Vec<BodyValue>,
}

/// A value of a channel in a batch.
pub(super) struct BodyValue {
    pub(super) channel: ChannelName,
    pub(super) version: CheckpointId,
    pub(super) tail: Option<ListDelta>,
    pub(super) json: Vec<u8>,
    pub(super) packed: Vec<u8>,
    pub(super) list: ListFacts,
}

impl Stage {
    /// Stages a batch. Returns the newest sequence number of the thread. After an error, nothing of
    /// the batch is staged.
    pub(super) fn take(&mut self, thread: &ThreadId, batch: &Batch) -> Result<u64, StoreError> {
        let missing = Desk::default();
        let desk = self.desks.get(thread).unwrap_or(&missing);
        let frees = admit_lease(thread, &desk.head, batch)?;
        validate::batch(thread, desk.head.log_position(), batch)?;
        fits_columns(thread, batch)?;
        self.check_run(thread, batch)?;
        check_turn(thread, desk, batch)?;
        check_past(thread, desk, batch)?;
        let prepared = prepare(&desk.past, batch).map_err(|message| invalid(thread, message))?;
        // From here on nothing fails.
        let desk = self.desks.entry(thread.clone()).or_default();
        let (number, before) = (desk.head.number, desk.head.before());
        self.rows.mentions.extend(prepared.mentions.iter().map(|digest| (number, *digest)));
        if let (Some(run), Some(packed)) = (&batch.run, prepared.run) {
            desk.past.runs.insert(run.id.clone());
            if desk.past.pending.as_mut().is_some_and(|pending| pending.remove(&run.id).is_some()) {
                desk.head.pending -= 1;
            }
            let id = run.id.clone();
            self.rows.put_run(RunRow { id, thread: number, packed, due_ms: None, caller: None });
        }
        desk.head.is_there = true;
        if frees {
            desk.head.lease = None;
        }
        add_batch(&mut self.rows, desk, batch, prepared.body);
        desk.head.current = batch.current.or(desk.head.current);
        self.rows.put_head(thread, before, &desk.head, frees, prepared.record);
        Ok(desk.head.last_seq)
    }

    fn check_run(&self, thread: &ThreadId, batch: &Batch) -> Result<(), StoreError> {
        let Some(run) = &batch.run else { return Ok(()) };
        let staged = || {
            let mut desks = self.desks.iter().filter(|(other, _)| *other != thread);
            desks.find(|(_, desk)| desk.past.runs.contains(&run.id)).map(|(owner, _)| owner)
        };
        match self.foreign_runs.get(&run.id).or_else(staged) {
            Some(owner) if owner != thread => {
                Err(validate::foreign_run_error(thread, run.id.as_str(), owner))
            }
            _ => Ok(()),
        }
    }
}

impl Head {
    /// Returns the state that a write after this one expects.
    pub(super) fn before(&self) -> Before {
        let epoch = self.lease.map(|lease| lease.epoch.cast_signed());
        Before { number: self.number, place: self.last_place, epoch, ledger: self.ledger }
    }

    fn log_position(&self) -> Option<LogPosition> {
        let (last_seq, last_checkpoint) = (self.last_seq, self.last_checkpoint);
        self.is_there.then_some(LogPosition { last_seq, last_checkpoint })
    }
}

impl Rows {
    /// Records the state of a thread. `before` counts only for the first batch of the thread in the
    /// group.
    pub(super) fn put_head(
        &mut self,
        thread: &ThreadId,
        before: Before,
        head: &Head,
        frees: bool,
        record: Option<RecordRow>,
    ) {
        let row = self.heads.entry(thread.as_str().as_bytes().to_vec());
        let row = row.or_insert_with(|| HeadRow { before, ..HeadRow::default() });
        row.frees |= frees;
        *row = HeadRow {
            before: row.before,
            last_seq: head.last_seq.cast_signed(),
            last_checkpoint: head.last_checkpoint.map(|id| id.0.cast_signed()),
            current: head.current.map(|id| id.0.cast_signed()),
            seal: head.seal,
            last_place: head.last_place,
            bytes: head.bytes,
            pending: head.pending,
            frees: row.frees,
            record: record.or_else(|| row.record.take()),
        };
    }
}

/// Checks the lease of a batch. Returns true if the batch ends the lease: it releases its own, or
/// it comes without one and the host of the lease is not live.
fn admit_lease(thread: &ThreadId, head: &Head, batch: &Batch) -> Result<bool, StoreError> {
    match (batch.epoch, head.lease) {
        // An expired lease stays valid until another host takes it over.
        (Some(epoch), Some(lease)) if epoch.0 == lease.epoch => Ok(batch.releases_lease),
        (None, Some(lease)) if !lease.lives => Ok(true),
        (None, None) => Ok(false),
        (epoch, _) => Err(fenced_error(thread, epoch)),
    }
}

/// Checks whether the pending runs allow the batch to begin its run now.
fn check_turn(thread: &ThreadId, desk: &Desk, batch: &Batch) -> Result<(), StoreError> {
    let Some(run) = &batch.run else {
        return validate::check_without_run(thread, batch.queue_condition);
    };
    let Past { runs, pending, .. } = &desk.past;
    let are_due = || match pending {
        Some(pending) => pending.values().any(|due_ms| *due_ms <= run.started_ms),
        // Without pending runs there is nothing to read; otherwise they are read before this
        // counts.
        None => desk.head.pending > 0,
    };
    let is_pending = || pending.as_ref().is_some_and(|pending| pending.contains_key(&run.id));
    match batch.queue_condition {
        QueueCondition::Pending if !is_pending() => {
            Err(validate::out_of_turn_error(thread, &run.id))
        }
        QueueCondition::Free if runs.contains(&run.id) || are_due() => {
            Err(validate::out_of_turn_error(thread, &run.id))
        }
        _ => Ok(()),
    }
}

/// Refuses numbers that do not fit a `bigint`, because PostgreSQL has no unsigned integers.
fn fits_columns(thread: &ThreadId, batch: &Batch) -> Result<(), StoreError> {
    let event = batch.events.last().map(|event| event.seq);
    let checkpoint = batch.checkpoint.as_ref().map(|checkpoint| checkpoint.meta.id.0);
    match event.into_iter().chain(checkpoint).find(|number| i64::try_from(*number).is_err()) {
        Some(number) => Err(invalid(thread, format!("{number} does not fit a `bigint`"))),
        None => Ok(()),
    }
}

fn check_past(thread: &ThreadId, desk: &Desk, batch: &Batch) -> Result<(), StoreError> {
    let Desk { head, past } = desk;
    if let Some(current) = batch.current.filter(|current| head.current != Some(*current)) {
        match past.checkpoints.get(&current) {
            Some(true) => {}
            Some(false) => return Err(validate::not_root_error(thread, current)),
            None => return Err(validate::no_checkpoint_error(thread, current)),
        }
    }
    let Some(Checkpoint { meta, .. }) = &batch.checkpoint else { return Ok(()) };
    let is_there = |version: &CheckpointId| *version == meta.id || past.versions.contains(version);
    match meta.versions.values().find(|version| !is_there(version)) {
        Some(version) => Err(validate::no_checkpoint_error(thread, *version)),
        None => Ok(()),
    }
}

/// Encodes a batch.
fn prepare(past: &Past, batch: &Batch) -> Result<Prepared, String> {
    let mut packer = Packer::default();
    let body = body(past, batch, &mut packer)?;
    let record = batch.record.as_ref().map(|record| record_row(record, &mut packer)).transpose()?;
    let run = batch.run.as_ref().map(|run| packer.pack(run)).transpose()?;
    Ok(Prepared { record, run, body, mentions: packer.mentions })
}

/// Returns the row of a new thread record.
pub(super) fn record_row(record: &ThreadRecord, packer: &mut Packer) -> Result<RecordRow, String> {
    Ok(RecordRow {
        packed: packer.pack(record)?,
        app: record.app.to_string(),
        status: if record.stopped { STOPPED } else { status_word(record.status) },
        tenant: record.tenant.as_ref().map(|tenant| tenant.as_bytes().to_vec()),
        updated_ms: record.updated_ms,
        expires_ms: record.expires_ms,
        ttl_ends_ms: record.ttl_ends_ms(),
    })
}

/// The name of the status of a stopped thread in its column. Other such threads are idle.
const STOPPED: &str = "stopped";

/// Returns the names in the column of the status that a query matches; `None` for all.
pub(super) fn status_words(query: &ThreadQuery) -> Option<Vec<&'static str>> {
    let status = query.status?;
    let mut words = vec![status_word(status)];
    let of_stopped =
        if query.stopped_as_interrupted { ThreadStatus::Interrupted } else { ThreadStatus::Idle };
    if status == of_stopped {
        words.push(STOPPED);
    }
    Some(words)
}

/// Returns the name of a status in its column.
fn status_word(status: ThreadStatus) -> &'static str {
    match status {
        ThreadStatus::Idle => "idle",
        ThreadStatus::Running => "running",
        ThreadStatus::Interrupted => "interrupted",
        ThreadStatus::Error => "error",
    }
}

fn body(past: &Past, batch: &Batch, packer: &mut Packer) -> Result<Body, String> {
    let mut body = Body::default();
    if !batch.events.is_empty() {
        let json = batch.events.json()?;
        packer.check_json(json)?;
        body.events = Some(json.to_vec());
    }
    let Some(checkpoint) = &batch.checkpoint else { return Ok(body) };
    body.meta = Some(packer.json(&checkpoint.meta)?);
    for channel in checkpoint.meta.written_channels() {
        let Some(value) = checkpoint.values.get(channel) else { continue };
        let version = checkpoint.meta.id;
        let end = checkpoint.list_deltas.get(channel).and_then(|tail| {
            let base = past.lists.get(&(channel.clone(), tail.base))?;
            end_of(*tail, *base, value)
        });
        body.values.push(match end {
            Some(end) => BodyValue::end(channel, version, &end, packer)?,
            None => BodyValue::whole(channel, version, value, packer)?,
        });
    }
    Ok(body)
}

/// A list delta.
struct End<'a> {
    tail: ListDelta,
    base: ListFacts,
    items: Vec<&'a Value>,
}

/// Returns the list delta of a value, if it can be stored as one and a full value is not due.
fn end_of(tail: ListDelta, base: ListFacts, value: &ChannelValue) -> Option<End<'_>> {
    let items = value.list()?.tail(tail.prefix_len as usize)?;
    let keeps = tail.prefix_len > 0 && u64::from(tail.prefix_len) <= base.items?;
    let is_due = needs_full_value(base.tails, base.tail_bytes, base.whole_bytes);
    (keeps && !is_due).then_some(End { tail, base, items })
}

impl BodyValue {
    /// Encodes a full value.
    pub(super) fn whole(
        channel: &ChannelName,
        version: CheckpointId,
        value: &ChannelValue,
        packer: &mut Packer,
    ) -> Result<Self, String> {
        let json = packer.json(value)?;
        let packed = compress(&json);
        let list = ListFacts {
            root: version,
            items: value.list().map(|list| list.len() as u64),
            tails: 0,
            tail_bytes: 0,
            whole_bytes: packed.len() as u64,
        };
        Ok(Self { channel: channel.clone(), version, tail: None, json, packed, list })
    }

    /// Returns the same list delta after a base with other chain sizes.
    pub(super) fn after(mut self, base: ListFacts) -> Self {
        let tail_bytes = base.tail_bytes + self.packed.len() as u64;
        self.list = ListFacts { items: self.list.items, tails: base.tails + 1, tail_bytes, ..base };
        self
    }

    fn end(
        channel: &ChannelName,
        version: CheckpointId,
        end: &End<'_>,
        packer: &mut Packer,
    ) -> Result<Self, String> {
        let json = packer.json(&end.items)?;
        let packed = compress(&json);
        let list = ListFacts {
            items: Some(u64::from(end.tail.prefix_len) + end.items.len() as u64),
            tails: end.base.tails + 1,
            tail_bytes: end.base.tail_bytes + packed.len() as u64,
            ..end.base
        };
        let tail = Some(end.tail);
        Ok(Self { channel: channel.clone(), version, tail, json, packed, list })
    }
}

/// Adds the rows of a batch. A batch with neither events nor a checkpoint only changes records and
/// has no row.
fn add_batch(rows: &mut Rows, desk: &mut Desk, batch: &Batch, body: Body) {
    let meta = batch.checkpoint.as_ref().map(|checkpoint| &checkpoint.meta);
    if batch.events.is_empty() && meta.is_none() {
        return;
    }
    let frame = Frame {
        base: batch.base,
        after_seq: desk.head.last_seq,
        last_seq: batch.events.last().map_or(desk.head.last_seq, |event| event.seq),
        checkpoint: meta.map(|meta| (meta.id, meta.namespace.as_str().as_bytes().to_vec())),
    };
    for value in &body.values {
        desk.past.lists.insert((value.channel.clone(), value.version), value.list);
    }
    put_batch(rows, &mut desk.head, frame, body);
    if let Some(meta) = meta {
        desk.head.last_checkpoint = Some(meta.id);
        let is_root = meta.namespace.as_str().is_empty();
        if is_root {
            desk.head.current = Some(meta.id);
        }
        desk.past.checkpoints.insert(meta.id, is_root);
        desk.past.versions.insert(meta.id);
        for (channel, tail) in
            batch.checkpoint.iter().flat_map(|checkpoint| &checkpoint.list_deltas)
        {
            desk.past.lists.remove(&(channel.clone(), tail.base));
        }
    }
}

/// The position of a batch in its thread.
pub(super) struct Frame {
    pub(super) base: Option<CheckpointId>,
    pub(super) after_seq: u64,
    pub(super) last_seq: u64,
    pub(super) checkpoint: Option<(CheckpointId, Vec<u8>)>,
}

/// Seals a batch, and adds its rows after the newest batch of the thread.
pub(super) fn put_batch(rows: &mut Rows, head: &mut Head, frame: Frame, body: Body) {
    let seal = body.seal(head.seal, frame.base);
    head.last_place += 1;
    let (thread, place) = (head.number, head.last_place);
    let mut bytes = 0;
    let mut pack = |json: Vec<u8>| {
        let packed = compress(&json);
        bytes += packed.len();
        packed
    };
    let (events, meta) = (body.events.map(&mut pack), body.meta.map(&mut pack));
    for value in body.values {
        bytes += value.packed.len();
        rows.values.push(ValueRow {
            thread,
            channel: value.channel.as_str().as_bytes().to_vec(),
            version: value.version.0.cast_signed(),
            place,
            packed: value.packed,
            tail: value.tail.map(|tail| (tail.base.0.cast_signed(), i64::from(tail.prefix_len))),
            list: value.list,
        });
    }
    rows.batches.push(BatchRow {
        thread,
        place,
        after_seq: frame.after_seq.cast_signed(),
        last_seq: frame.last_seq.cast_signed(),
        base: frame.base.map(|base| base.0.cast_signed()),
        checkpoint: frame.checkpoint.map(|(id, namespace)| (id.0.cast_signed(), namespace)),
        events,
        meta,
        seal,
    });
    head.last_seq = frame.last_seq;
    head.seal = Some(seal);
    head.bytes = head.bytes.saturating_add_unsigned(bytes as u64);
}
