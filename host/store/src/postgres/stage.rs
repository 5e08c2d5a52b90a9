//! Validates batches and converts them to rows. A batch is validated against the state of its
//! thread after the batches that are staged before it. A batch is staged completely or not at all.
//! No function of this module waits for the server.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use wattle_graph::checkpoint::{ChannelValue, Checkpoint, ListDelta};
use wattle_graph::id::{ChannelName, CheckpointId, Digest, RunId, ThreadId};
use wattle_graph::json_text;
use wattle_run::ports::store::{
    Batch, QueueCondition, StoreError, ThreadQuery, ThreadRecord, ThreadStatus,
};

use crate::codec::{Packer, compress};
use crate::delta_chain::needs_full_value;
use crate::error::invalid;
use crate::lease::fenced_error;
use crate::postgres::write_set::{
    BatchRow, ChainStats, ExpectedState, RecordRow, RunRow, ThreadUpdate, ValueRow, WriteSet,
};
use crate::validate::{self, LogPosition};

/// The row of a locked thread.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadRow {
    pub(super) number: i64,
    /// False if only the lease of the thread exists.
    pub(super) exists: bool,
    pub(super) lease: Option<RowLease>,
    pub(super) last_seq: u64,
    pub(super) last_checkpoint: Option<CheckpointId>,
    pub(super) current: Option<CheckpointId>,
    pub(super) seal: Option<Digest>,
    pub(super) last_position: i64,
    pub(super) bytes: i64,
    /// Number of pending runs.
    pub(super) pending: i64,
    /// Changes with every run that is enqueued or dequeued.
    pub(super) ledger: i64,
}

/// The lease in a thread's row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowLease {
    pub(super) epoch: u64,
    /// True if the host that holds the lease is live.
    pub(super) is_live: bool,
}

/// The cached part of a thread's history. It stays valid while the thread has the same number,
/// because rows of batches under a number never change. The ids of its runs are valid only while
/// the ledger number is the same, too.
#[derive(Clone, Debug, Default)]
pub(super) struct HistoryCache {
    /// Versions that channels may have: checkpoints that exist or existed.
    pub(super) versions: BTreeSet<CheckpointId>,
    /// Checkpoints that exist, and whether each checkpoint belongs to the root graph.
    pub(super) checkpoints: BTreeMap<CheckpointId, bool>,
    pub(super) lists: HashMap<(ChannelName, CheckpointId), ChainStats>,
    pub(super) runs: BTreeSet<RunId>,
    /// Due times of the pending runs, as of the ledger number of the row; `None` if they have not
    /// been read.
    pub(super) pending: Option<BTreeMap<RunId, i64>>,
}

/// Maximum number of entries that are cached for one thread between groups.
const MAX_CACHED_ENTRIES: usize = 1024;

impl HistoryCache {
    /// Returns true if the history is too large to stay in the cache. Parts that batches need are
    /// then read again.
    pub(super) fn is_large(&self) -> bool {
        self.versions.len().max(self.lists.len()).max(self.runs.len()) > MAX_CACHED_ENTRIES
    }
}

/// A thread with the staged batches of the open group.
#[derive(Clone, Debug, Default)]
pub(super) struct CachedThread {
    pub(super) row: ThreadRow,
    pub(super) history: HistoryCache,
}

/// The open commit group.
#[derive(Debug, Default)]
pub(super) struct CommitGroup {
    /// All threads of the group.
    pub(super) threads: HashMap<ThreadId, CachedThread>,
    /// Owners of the runs of the group that belong to threads outside of the group.
    pub(super) run_owners: HashMap<RunId, ThreadId>,
    pub(super) write_set: WriteSet,
}

/// A batch whose parts are encoded and compressed.
struct EncodedBatch {
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
    pub(super) delta: Option<ListDelta>,
    pub(super) json: Vec<u8>,
    pub(super) packed: Vec<u8>,
    pub(super) chain: ChainStats,
}

impl CommitGroup {
    /// Stages a batch. Returns the newest sequence number of the thread. After an error, nothing of
    /// the batch is staged.
    pub(super) fn stage_batch(
        &mut self,
        thread: &ThreadId,
        batch: &Batch,
    ) -> Result<u64, StoreError> {
        let missing = CachedThread::default();
        let cached = self.threads.get(thread).unwrap_or(&missing);
        let ends_lease = check_lease(thread, &cached.row, batch)?;
        validate::batch(thread, cached.row.log_position(), batch)?;
        check_column_ranges(thread, batch)?;
        self.check_run(thread, batch)?;
        check_queue_condition(thread, cached, batch)?;
        check_references(thread, cached, batch)?;
        let encoded =
            encode_batch(&cached.history, batch).map_err(|message| invalid(thread, message))?;
        // No statement after this point fails.
        let cached = self.threads.entry(thread.clone()).or_default();
        let (number, expected) = (cached.row.number, cached.row.expected());
        self.write_set.mentions.extend(encoded.mentions.iter().map(|digest| (number, *digest)));
        if let (Some(run), Some(packed)) = (&batch.run, encoded.run) {
            let is_new = cached.history.runs.insert(run.id.clone());
            // The fast path has not read whether the run exists.
            if is_new && batch.queue_condition == QueueCondition::Free {
                self.write_set.new_runs.insert(run.id.clone());
            }
            let pending = cached.history.pending.as_mut();
            if pending.is_some_and(|pending| pending.remove(&run.id).is_some()) {
                cached.row.pending -= 1;
            }
            let (id, thread) = (run.id.clone(), number);
            self.write_set.upsert_run(RunRow { id, thread, packed, due_ms: None, caller: None });
        }
        cached.row.exists = true;
        if ends_lease {
            cached.row.lease = None;
        }
        add_batch(&mut self.write_set, cached, batch, encoded.body);
        cached.row.current = batch.current.or(cached.row.current);
        self.write_set.upsert_thread(thread, expected, &cached.row, ends_lease, encoded.record);
        Ok(cached.row.last_seq)
    }

    /// Checks that the run of a batch does not belong to another thread.
    fn check_run(&self, thread: &ThreadId, batch: &Batch) -> Result<(), StoreError> {
        let Some(run) = &batch.run else { return Ok(()) };
        let staged = || {
            let mut threads = self.threads.iter().filter(|(other, _)| *other != thread);
            threads
                .find(|(_, cached)| cached.history.runs.contains(&run.id))
                .map(|(owner, _)| owner)
        };
        match self.run_owners.get(&run.id).or_else(staged) {
            Some(owner) if owner != thread => {
                Err(validate::foreign_run_error(thread, run.id.as_str(), owner))
            }
            _ => Ok(()),
        }
    }
}

impl ThreadRow {
    /// Returns the state that the next write expects.
    pub(super) fn expected(&self) -> ExpectedState {
        let epoch = self.lease.map(|lease| lease.epoch.cast_signed());
        ExpectedState {
            number: self.number,
            position: self.last_position,
            epoch,
            ledger: self.ledger,
        }
    }

    fn log_position(&self) -> Option<LogPosition> {
        let (last_seq, last_checkpoint) = (self.last_seq, self.last_checkpoint);
        self.exists.then_some(LogPosition { last_seq, last_checkpoint })
    }
}

impl WriteSet {
    /// Records the state of a thread. `expected` is used only with the first batch of the thread in
    /// the group.
    pub(super) fn upsert_thread(
        &mut self,
        thread: &ThreadId,
        expected: ExpectedState,
        row: &ThreadRow,
        ends_lease: bool,
        record: Option<RecordRow>,
    ) {
        let update = self.threads.entry(thread.as_str().as_bytes().to_vec());
        let update = update.or_insert_with(|| ThreadUpdate { expected, ..ThreadUpdate::default() });
        update.ends_lease |= ends_lease;
        *update = ThreadUpdate {
            expected: update.expected,
            last_seq: row.last_seq.cast_signed(),
            last_checkpoint: row.last_checkpoint.map(|id| id.0.cast_signed()),
            current: row.current.map(|id| id.0.cast_signed()),
            seal: row.seal,
            last_position: row.last_position,
            bytes: row.bytes,
            pending: row.pending,
            ends_lease: update.ends_lease,
            record: record.or_else(|| update.record.take()),
        };
    }
}

/// Checks the lease of a batch. Returns true if the batch ends the lease: the batch releases its
/// lease, or the batch has no lease and the host of the existing lease is not live.
fn check_lease(thread: &ThreadId, row: &ThreadRow, batch: &Batch) -> Result<bool, StoreError> {
    match (batch.epoch, row.lease) {
        // An expired lease stays valid until another host takes it over.
        (Some(epoch), Some(lease)) if epoch.0 == lease.epoch => Ok(batch.releases_lease),
        (None, Some(lease)) if !lease.is_live => Ok(true),
        (None, None) => Ok(false),
        (epoch, _) => Err(fenced_error(thread, epoch)),
    }
}

/// Checks whether the pending runs allow the batch to begin its run now.
fn check_queue_condition(
    thread: &ThreadId,
    cached: &CachedThread,
    batch: &Batch,
) -> Result<(), StoreError> {
    let Some(run) = &batch.run else {
        return validate::check_without_run(thread, batch.queue_condition);
    };
    let HistoryCache { runs, pending, .. } = &cached.history;
    let are_due = || match pending {
        Some(pending) => pending.values().any(|due_ms| *due_ms <= run.started_ms),
        // Pending runs are read before this check, unless the thread has no pending run.
        None => cached.row.pending > 0,
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

/// Fails if a number does not fit a `bigint`, because PostgreSQL has no unsigned integers.
fn check_column_ranges(thread: &ThreadId, batch: &Batch) -> Result<(), StoreError> {
    let event = batch.events.last().map(|event| event.seq);
    let checkpoint = batch.checkpoint.as_ref().map(|checkpoint| checkpoint.meta.id.0);
    match event.into_iter().chain(checkpoint).find(|number| i64::try_from(*number).is_err()) {
        Some(number) => Err(invalid(thread, format!("{number} does not fit a `bigint`"))),
        None => Ok(()),
    }
}

/// Checks that the checkpoints and channel versions to which a batch refers exist.
fn check_references(
    thread: &ThreadId,
    cached: &CachedThread,
    batch: &Batch,
) -> Result<(), StoreError> {
    let CachedThread { row, history } = cached;
    if let Some(current) = batch.current.filter(|current| row.current != Some(*current)) {
        match history.checkpoints.get(&current) {
            Some(true) => {}
            Some(false) => return Err(validate::not_root_error(thread, current)),
            None => return Err(validate::no_checkpoint_error(thread, current)),
        }
    }
    let Some(Checkpoint { meta, .. }) = &batch.checkpoint else { return Ok(()) };
    let exists = |version: &CheckpointId| *version == meta.id || history.versions.contains(version);
    match meta.versions.values().find(|version| !exists(version)) {
        Some(version) => Err(validate::no_checkpoint_error(thread, *version)),
        None => Ok(()),
    }
}

/// Encodes a batch.
fn encode_batch(history: &HistoryCache, batch: &Batch) -> Result<EncodedBatch, String> {
    let mut packer = Packer::default();
    let body = encode_body(history, batch, &mut packer)?;
    let record = batch.record.as_ref().map(|record| record_row(record, &mut packer)).transpose()?;
    let run = batch.run.as_ref().map(|run| packer.pack(run)).transpose()?;
    Ok(EncodedBatch { record, run, body, mentions: packer.mentions })
}

/// Returns the row of a new thread record.
pub(super) fn record_row(record: &ThreadRecord, packer: &mut Packer) -> Result<RecordRow, String> {
    Ok(RecordRow {
        packed: packer.pack(record)?,
        app: record.app.to_string(),
        status: if record.stopped { STOPPED } else { status_name(record.status) },
        tenant: record.tenant.as_ref().map(|tenant| tenant.as_bytes().to_vec()),
        updated_ms: record.updated_ms,
        expires_ms: record.expires_ms,
        ttl_ends_ms: record.ttl_ends_ms(),
    })
}

/// The value of the status column of a thread that is stopped. Other threads with the status `idle`
/// have the value `idle`.
const STOPPED: &str = "stopped";

/// Returns the values of the status column that match a query; `None` if all values match.
pub(super) fn status_names(query: &ThreadQuery) -> Option<Vec<&'static str>> {
    let status = query.status?;
    let mut names = vec![status_name(status)];
    let of_stopped =
        if query.stopped_as_interrupted { ThreadStatus::Interrupted } else { ThreadStatus::Idle };
    if status == of_stopped {
        names.push(STOPPED);
    }
    Some(names)
}

/// Returns the status for a value of the status column; `None` for an unknown value.
pub(super) fn status_of(name: &str) -> Option<ThreadStatus> {
    match name {
        "idle" | STOPPED => Some(ThreadStatus::Idle),
        "running" => Some(ThreadStatus::Running),
        "interrupted" => Some(ThreadStatus::Interrupted),
        "error" => Some(ThreadStatus::Error),
        _ => None,
    }
}

/// Returns the value of a status in the status column.
fn status_name(status: ThreadStatus) -> &'static str {
    match status {
        ThreadStatus::Idle => "idle",
        ThreadStatus::Running => "running",
        ThreadStatus::Interrupted => "interrupted",
        ThreadStatus::Error => "error",
    }
}

fn encode_body(history: &HistoryCache, batch: &Batch, packer: &mut Packer) -> Result<Body, String> {
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
        let appended = checkpoint.list_deltas.get(channel).and_then(|delta| {
            let base = history.lists.get(&(channel.clone(), delta.base))?;
            list_delta(*delta, *base, value)
        });
        body.values.push(match appended {
            Some(appended) => BodyValue::delta(channel, version, &appended, packer)?,
            None => BodyValue::full(channel, version, value, packer)?,
        });
    }
    Ok(body)
}

/// A list delta with the items that it appends.
struct DeltaItems<'a> {
    delta: ListDelta,
    base: ChainStats,
    items: Vec<&'a Value>,
}

/// Returns the list delta of a value, if the value can be stored as a list delta and no full value
/// is due.
fn list_delta(delta: ListDelta, base: ChainStats, value: &ChannelValue) -> Option<DeltaItems<'_>> {
    let items = value.list()?.tail(delta.prefix_len as usize)?;
    let keeps_items = delta.prefix_len > 0 && u64::from(delta.prefix_len) <= base.items?;
    let is_due = needs_full_value(base.deltas, base.delta_bytes, base.full_bytes);
    (keeps_items && !is_due).then_some(DeltaItems { delta, base, items })
}

impl BodyValue {
    /// Encodes a full value.
    pub(super) fn full(
        channel: &ChannelName,
        version: CheckpointId,
        value: &ChannelValue,
        packer: &mut Packer,
    ) -> Result<Self, String> {
        let json = packer.json_with(|json| value.append_text(json))?;
        let packed = compress(&json);
        let chain = ChainStats {
            root: version,
            items: value.list().map(|list| list.len() as u64),
            deltas: 0,
            delta_bytes: 0,
            full_bytes: packed.len() as u64,
        };
        Ok(Self { channel: channel.clone(), version, delta: None, json, packed, chain })
    }

    /// Returns the same list delta with the chain sizes that follow from the sizes of `base`.
    pub(super) fn with_base(mut self, base: ChainStats) -> Self {
        let delta_bytes = base.delta_bytes + self.packed.len() as u64;
        self.chain =
            ChainStats { items: self.chain.items, deltas: base.deltas + 1, delta_bytes, ..base };
        self
    }

    fn delta(
        channel: &ChannelName,
        version: CheckpointId,
        appended: &DeltaItems<'_>,
        packer: &mut Packer,
    ) -> Result<Self, String> {
        let items = appended.items.iter().copied();
        let json = packer.json_with(|json| json_text::append_list(json, items))?;
        let packed = compress(&json);
        let chain = ChainStats {
            items: Some(u64::from(appended.delta.prefix_len) + appended.items.len() as u64),
            deltas: appended.base.deltas + 1,
            delta_bytes: appended.base.delta_bytes + packed.len() as u64,
            ..appended.base
        };
        let delta = Some(appended.delta);
        Ok(Self { channel: channel.clone(), version, delta, json, packed, chain })
    }
}

/// Adds the rows of a batch. A batch with neither events nor a checkpoint only changes records and
/// has no row.
fn add_batch(write_set: &mut WriteSet, cached: &mut CachedThread, batch: &Batch, body: Body) {
    let meta = batch.checkpoint.as_ref().map(|checkpoint| &checkpoint.meta);
    if batch.events.is_empty() && meta.is_none() {
        return;
    }
    let header = BatchHeader {
        base: batch.base,
        after_seq: cached.row.last_seq,
        last_seq: batch.events.last().map_or(cached.row.last_seq, |event| event.seq),
        checkpoint: meta.map(|meta| (meta.id, meta.namespace.as_str().as_bytes().to_vec())),
    };
    for value in &body.values {
        cached.history.lists.insert((value.channel.clone(), value.version), value.chain);
    }
    push_batch(write_set, &mut cached.row, header, body);
    if let Some(meta) = meta {
        cached.row.last_checkpoint = Some(meta.id);
        let is_root = meta.namespace.as_str().is_empty();
        if is_root {
            cached.row.current = Some(meta.id);
        }
        cached.history.checkpoints.insert(meta.id, is_root);
        cached.history.versions.insert(meta.id);
        for (channel, delta) in
            batch.checkpoint.iter().flat_map(|checkpoint| &checkpoint.list_deltas)
        {
            cached.history.lists.remove(&(channel.clone(), delta.base));
        }
    }
}

/// The ids and sequence numbers of a batch.
pub(super) struct BatchHeader {
    pub(super) base: Option<CheckpointId>,
    pub(super) after_seq: u64,
    pub(super) last_seq: u64,
    pub(super) checkpoint: Option<(CheckpointId, Vec<u8>)>,
}

/// Seals a batch, and adds its rows after the newest batch of the thread.
pub(super) fn push_batch(
    write_set: &mut WriteSet,
    row: &mut ThreadRow,
    header: BatchHeader,
    body: Body,
) {
    let seal = body.seal(row.seal, header.base);
    row.last_position += 1;
    let (thread, position) = (row.number, row.last_position);
    let mut bytes = 0;
    let mut pack = |json: Vec<u8>| {
        let packed = compress(&json);
        bytes += packed.len();
        packed
    };
    let (events, meta) = (body.events.map(&mut pack), body.meta.map(&mut pack));
    for value in body.values {
        bytes += value.packed.len();
        write_set.values.push(ValueRow {
            thread,
            channel: value.channel.as_str().as_bytes().to_vec(),
            version: value.version.0.cast_signed(),
            position,
            packed: value.packed,
            delta: value
                .delta
                .map(|delta| (delta.base.0.cast_signed(), i64::from(delta.prefix_len))),
            chain: value.chain,
        });
    }
    write_set.batches.push(BatchRow {
        thread,
        position,
        after_seq: header.after_seq.cast_signed(),
        last_seq: header.last_seq.cast_signed(),
        base: header.base.map(|base| base.0.cast_signed()),
        checkpoint: header.checkpoint.map(|(id, namespace)| (id.0.cast_signed(), namespace)),
        events,
        meta,
        seal,
    });
    row.last_seq = header.last_seq;
    row.seal = Some(seal);
    row.bytes = row.bytes.saturating_add_unsigned(bytes as u64);
}
