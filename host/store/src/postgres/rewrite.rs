//! Rewrites a thread: without some of its checkpoints, or under another id.
//!
//! The kept batches are written under a new thread number, in order and with new seals, and the
//! rows of the old number are deleted. All of this is one transaction of many short statements:
//! however large the thread is, readers see either the old or the new thread, and other threads are
//! not locked. If a kept checkpoint refers to a value whose batch is deleted, the rewrite writes
//! the full value with the oldest kept checkpoint that refers to the value.
//!
//! A rewrite reads the log page by page: first for a plan of what is kept, which has a summary of
//! each batch, and then to write what is kept. So it has one page in memory, however large the log
//! is.

mod copy;
mod log_pages;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use sqlx::Row as _;
use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::event::{Event, RunStatus};
use wattle_graph::id::{CheckpointId, Digest, RunId, ThreadId};
use wattle_run::ports::store::{RunRecord, StoreError, ThreadRecord};

use crate::codec::{Packer, unpack};
use crate::error::{backend, corrupt};
use crate::json_scan::scan_json;
use crate::postgres::column::bytes;
use crate::postgres::database::{Database, PgTransaction, RELAXED_IDLE_TIMEOUT};
use crate::postgres::decode::decode_on_blocking_pool;
use crate::postgres::delete;
use crate::postgres::in_doubt::commit;
use crate::postgres::retry::{RetryState, TxError};
use crate::postgres::rewrite::log_pages::{LogBatch, LogPages};
use crate::postgres::stage::{
    BatchHeader, Body, BodyValue, RowLease, ThreadRow, push_batch, record_row,
};
use crate::postgres::thread_row;
use crate::postgres::value::{self, Version};
use crate::postgres::write_set::{ChainStats, ExpectedState, RecordRow, RunRow, WriteSet};
use crate::retention_plan::{BatchSummary, RetentionPlan};
pub(super) use copy::copy;

const OPERATION: &str = "rewrite a thread";

/// The rewrite writes its rows once they have this size in bytes, so that it sends few statements
/// and no statement takes long.
const MAX_PART_BYTES: usize = 4 * 1024 * 1024;

/// The rewrite also writes its rows once they contain this number of batches.
const MAX_PART_BATCHES: usize = 1024;

const SELECT_RECORD: &str = "
    SELECT record, nextval('thread_numbers') AS next FROM threads WHERE id = $1";

const RUNS: &str = "SELECT record FROM runs WHERE thread = $1 ORDER BY place";

const THREADS_OF: &str = "
    SELECT threads.id FROM threads WHERE record IS NOT NULL
    AND number IN (SELECT thread FROM runs WHERE runs.id = ANY($1)) ORDER BY threads.id";

const UPDATE_NUMBER: &str = "
    UPDATE threads SET number = $2, last_place = 0, pruned_seq = $3, pruned_seal = $4
    WHERE id = $1";

/// Moves runs to another thread number. Their rows keep their positions, which order pending runs
/// and searches of runs.
const MOVE_RUNS: &str = "UPDATE runs SET thread = $2 WHERE thread = $1 AND id = ANY($3)";

/// A thread with its record and runs.
pub(super) struct ThreadContents {
    pub(super) row: ThreadRow,
    pub(super) record: ThreadRecord,
    pub(super) runs: Vec<RunRecord>,
    /// The thread number under which the rewrite stores the kept frames.
    pub(super) next_number: i64,
}

/// Returns the threads to which some runs belong.
pub(super) async fn threads_of(
    database: &Database,
    runs: &[RunId],
) -> Result<Vec<ThreadId>, StoreError> {
    let ids: Vec<&[u8]> = runs.iter().map(|run| run.as_str().as_bytes()).collect();
    let rows = database.rows("find threads of runs", || sqlx::query(THREADS_OF).bind(&ids)).await?;
    let thread = |row| {
        let id = String::from_utf8_lossy(bytes(row, "id")?);
        ThreadId::new(id).map_err(|error| corrupt("thread", error))
    };
    rows.iter().map(thread).collect()
}

/// What a rewrite removes.
pub(super) enum RewriteKind<'a> {
    /// Events and checkpoints of some runs.
    DropRuns(&'a [RunId]),
    /// The events and checkpoints that [`RetentionPlan::keep_latest`] does not keep.
    KeepLatest,
}

/// Prunes a thread or deletes runs of it. Returns true if this deletes the thread.
pub(super) async fn apply(
    database: &Database,
    thread: &ThreadId,
    kind: &RewriteKind<'_>,
) -> Result<bool, StoreError> {
    let mut retry = RetryState::default();
    loop {
        match apply_once(database, thread, kind).await {
            Ok(is_deleted) => return Ok(is_deleted),
            Err(TxError::Database(error)) => retry.wait_or_fail(OPERATION, error).await?,
            Err(TxError::Store(error)) => return Err(error),
        }
    }
}

async fn apply_once(
    database: &Database,
    thread: &ThreadId,
    kind: &RewriteKind<'_>,
) -> Result<bool, TxError> {
    let mut transaction = database.transaction(OPERATION).await?;
    let Some(contents) = read(&mut transaction, thread).await? else { return Ok(false) };
    let number = contents.row.number;
    let pages = LogPages::new(number).without_values();
    let log = pages.fold(&mut transaction, LogSummary::default(), LogSummary::add).await?;
    let summaries = &log.batches;
    let current = contents.row.current;
    let plan = match kind {
        RewriteKind::DropRuns(runs) => {
            let own = contents.runs.iter().map(|run| &run.id).filter(|run| runs.contains(run));
            RetentionPlan::drop_runs(summaries, current, own.cloned().collect())
        }
        RewriteKind::KeepLatest => RetentionPlan::keep_latest(summaries, current, &contents.runs),
    };
    if plan.is_noop(summaries) {
        return Ok(false);
    }
    if plan.drops_thread() {
        delete::delete_rows(&mut transaction, number, contents.row.last_position).await?;
        delete::delete_or_reset(&mut transaction, thread).await?;
        commit(database, transaction).await?;
        return Ok(true);
    }
    let first = log.first_kept(&plan);
    Box::pin(rewrite_thread(&mut transaction, thread, contents, plan, first)).await?;
    commit(database, transaction).await?;
    Ok(false)
}

/// What a plan reads of a log.
#[derive(Default)]
struct LogSummary {
    batches: Vec<BatchSummary>,
    /// Positions of the batches.
    positions: Vec<i64>,
}

impl LogSummary {
    fn add(&mut self, batch: &LogBatch) -> Result<ControlFlow<()>, StoreError> {
        self.batches.push(batch.summary()?);
        self.positions.push(batch.scanned.position);
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the position of the first batch of which a plan may keep events.
    fn first_kept(&self, plan: &RetentionPlan) -> Option<i64> {
        let mut batches = self.batches.iter().zip(&self.positions);
        batches.find(|(batch, _)| plan.may_keep_events(batch)).map(|(_, position)| *position)
    }
}

/// Replaces a thread by its kept part. `first` is the position of the first batch of which events
/// may be kept.
async fn rewrite_thread(
    transaction: &mut PgTransaction,
    thread: &ThreadId,
    contents: ThreadContents,
    plan: RetentionPlan,
    first: Option<i64>,
) -> Result<(), TxError> {
    let mut rewriter = ThreadRewriter::new(
        thread,
        &contents,
        contents.row.seal,
        contents.row.lease,
        contents.row.ledger,
    );
    let ThreadContents { row, record, runs, .. } = contents;
    let plan = Arc::new(plan);
    let first_seq = match first {
        Some(position) => {
            let pages = LogPages::new(row.number).without_values().starting_at(position);
            let first = FirstKept { plan: plan.clone(), seq: None };
            pages.fold(transaction, first, FirstKept::find).await?.seq
        }
        None => None,
    };
    rewriter.begin(transaction, first_seq).await?;
    rewriter.row.current = plan.current;
    let mut pages = LogPages::new(row.number);
    while let Some(rows) = pages.read_next(transaction).await? {
        let decode = move || LogBatch::decode(&rows);
        let page = decode_on_blocking_pool(OPERATION, None, decode).await?;
        rewriter.load_values(transaction, row.number, &page, &plan).await?;
        let plan = plan.clone();
        let add = move || {
            for batch in page {
                rewriter.add(batch, &plan)?;
            }
            Ok(rewriter)
        };
        rewriter = decode_on_blocking_pool(OPERATION, None, add).await?;
        rewriter.flush_if_full(transaction).await?;
    }
    let runs = plan.runs(runs);
    let record = plan.record(record, &runs);
    let kept: Vec<&[u8]> = runs.iter().map(|run| run.id.as_str().as_bytes()).collect();
    let move_runs = sqlx::query(MOVE_RUNS).bind(row.number).bind(rewriter.row.number).bind(kept);
    move_runs.execute(&mut **transaction).await?;
    delete::delete_rows(transaction, row.number, row.last_position).await?;
    rewriter.finish(transaction, &record, &runs).await?;
    Ok(())
}

/// The search for the oldest event that is kept.
struct FirstKept {
    plan: Arc<RetentionPlan>,
    /// Sequence number of the event; `None` until it is found.
    seq: Option<u64>,
}

impl FirstKept {
    fn find(&mut self, batch: &LogBatch) -> Result<ControlFlow<()>, StoreError> {
        let kept = self.plan.events(batch.scanned.base, batch.events()?);
        self.seq = kept.first().map(|event| event.seq);
        Ok(if self.seq.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

/// Locks and reads a thread. Fails if a live host has leased the thread.
pub(super) async fn read(
    transaction: &mut PgTransaction,
    thread: &ThreadId,
) -> Result<Option<ThreadContents>, TxError> {
    let locked = thread_row::lock(transaction, &BTreeSet::from([thread]), &BTreeSet::new()).await?;
    let Some(row) = locked.into_values().next().filter(|row| row.exists) else {
        return Ok(None);
    };
    delete::ensure_unleased(transaction, thread, &row).await?;
    read_all(transaction, thread, row).await.map(Some)
}

/// Reads a locked thread that no live host has leased.
async fn read_all(
    transaction: &mut PgTransaction,
    thread: &ThreadId,
    row: ThreadRow,
) -> Result<ThreadContents, TxError> {
    sqlx::query(RELAXED_IDLE_TIMEOUT).execute(&mut **transaction).await?;
    let selected = sqlx::query(SELECT_RECORD).bind(thread.as_str().as_bytes());
    let selected = selected.fetch_one(&mut **transaction).await?;
    let runs = sqlx::query(RUNS).bind(row.number).fetch_all(&mut **transaction).await?;
    let run = |row| unpack("run", bytes(row, "record")?);
    Ok(ThreadContents {
        record: thread_row::record(&selected)?,
        runs: runs.iter().map(run).collect::<Result<_, _>>()?,
        next_number: selected.try_get("next")?,
        row,
    })
}

/// A thread that is being rewritten.
pub(super) struct ThreadRewriter {
    thread: ThreadId,
    pub(super) row: ThreadRow,
    /// The state of the thread's row that the next write expects.
    expected: ExpectedState,
    write_set: WriteSet,
    packer: Packer,
    /// The seal before the oldest batch of the thread.
    base_seal: Option<Digest>,
    /// The sequence number before the oldest event of the thread.
    pruned_seq: u64,
    /// The newest sequence number of the thread, even if that event is not kept.
    last_seq: u64,
    /// Values of deleted batches that kept checkpoints of the current page use, by channel and
    /// version.
    carried: value::ValueMap,
    /// Chain sizes of the values that have been written.
    chain_stats: BTreeMap<Version, ChainStats>,
}

impl ThreadRewriter {
    /// Creates an empty thread with a base seal, a lease and a ledger number.
    pub(super) fn new(
        thread: &ThreadId,
        contents: &ThreadContents,
        base_seal: Option<Digest>,
        lease: Option<RowLease>,
        ledger: i64,
    ) -> Self {
        let row = ThreadRow {
            number: contents.next_number,
            exists: true,
            lease,
            last_checkpoint: contents.row.last_checkpoint,
            current: contents.row.current,
            seal: base_seal,
            ledger,
            ..ThreadRow::default()
        };
        Self {
            thread: thread.clone(),
            expected: row.expected(),
            row,
            write_set: WriteSet::default(),
            packer: Packer::default(),
            base_seal,
            pruned_seq: 0,
            last_seq: contents.row.last_seq,
            carried: value::ValueMap::new(),
            chain_stats: BTreeMap::new(),
        }
    }

    /// Gives the thread its new number. `first` is the sequence number of its oldest event; `None`
    /// if it will have no events.
    pub(super) async fn begin(
        &mut self,
        transaction: &mut PgTransaction,
        first: Option<u64>,
    ) -> Result<(), TxError> {
        self.pruned_seq = first.map_or(self.last_seq, |first| first - 1);
        self.row.last_seq = self.pruned_seq;
        sqlx::query(UPDATE_NUMBER)
            .bind(self.thread.as_str().as_bytes())
            .bind(self.row.number)
            .bind(self.pruned_seq.cast_signed())
            .bind(self.base_seal.as_ref().map(|seal| seal.as_bytes().as_slice()))
            .execute(&mut **transaction)
            .await?;
        Ok(())
    }

    /// Returns the header of the next batch.
    pub(super) fn batch_header(
        &self,
        base: Option<CheckpointId>,
        events: &[Event],
        checkpoint: Option<(CheckpointId, Vec<u8>)>,
    ) -> BatchHeader {
        let newest = self.row.last_seq;
        let after_seq = events.first().map_or(newest, |event| event.seq - 1);
        let last_seq = events.last().map_or(newest, |event| event.seq);
        BatchHeader { base, after_seq, last_seq, checkpoint }
    }

    /// Reads the values of deleted batches that kept checkpoints of a page use, except those that
    /// have been written. Also reads, as full values, the list deltas whose base version is deleted.
    async fn load_values(
        &mut self,
        transaction: &mut PgTransaction,
        number: i64,
        page: &[LogBatch],
        plan: &RetentionPlan,
    ) -> Result<(), StoreError> {
        let is_kept =
            |batch: &&LogBatch| batch.meta.as_ref().is_some_and(|meta| plan.keeps(meta.id));
        let mut to_load = BTreeSet::new();
        let mut kept = BTreeSet::new();
        for batch in page.iter().filter(is_kept) {
            for value in &batch.scanned.body.values {
                kept.insert((value.channel.clone(), value.version));
                let base = value.delta.map(|delta| (value.channel.clone(), delta.base));
                if base.is_some_and(|base| !self.has_value(&kept, &base)) {
                    to_load.insert((value.channel.clone(), value.version));
                }
            }
            let versions = batch.meta.iter().flat_map(|meta| &meta.versions);
            let versions = versions.map(|(channel, version)| (channel.clone(), *version));
            to_load.extend(versions.filter(|version| !self.has_value(&kept, version)));
        }
        self.carried = value::load(transaction, number, &to_load).await?;
        Ok(())
    }

    /// Returns true if a value has been written, or is one of the values of the current page that
    /// are `kept`.
    fn has_value(&self, kept: &BTreeSet<Version>, version: &Version) -> bool {
        kept.contains(version) || self.chain_stats.contains_key(version)
    }

    /// Adds the kept part of a batch.
    fn add(&mut self, batch: LogBatch, plan: &RetentionPlan) -> Result<(), StoreError> {
        let all = batch.events()?;
        let event_count = all.len();
        let events = plan.events(batch.scanned.base, all);
        let LogBatch { scanned, meta } = batch;
        let checkpoint = scanned.checkpoint.filter(|(id, _)| plan.keeps(*id));
        let header = self.batch_header(scanned.base, &events, checkpoint);
        let mut body = Body::default();
        if events.len() == event_count {
            body.events = scanned.body.events;
        } else if !events.is_empty() {
            body.events = Some(self.json(&events)?);
        }
        if let Some(meta) = meta.filter(|meta| plan.keeps(meta.id)) {
            body.meta = scanned.body.meta;
            body.values = self.values(scanned.body.values, &meta)?;
        }
        self.push_batch(header, body);
        Ok(())
    }

    /// Adds a batch unless it is empty.
    pub(super) fn push_batch(&mut self, header: BatchHeader, body: Body) {
        if body.events.is_none() && body.meta.is_none() {
            return;
        }
        for value in &body.values {
            self.chain_stats.insert((value.channel.clone(), value.version), value.chain);
        }
        let json = body.events.iter().chain(&body.meta);
        for json in json.chain(body.values.iter().map(|value| &value.json)) {
            let blobs = scan_json(json).blobs;
            self.write_set.mentions.extend(blobs.into_iter().map(|blob| (self.row.number, blob.0)));
        }
        push_batch(&mut self.write_set, &mut self.row, header, body);
    }

    /// Returns the values of a kept batch: its own values, and the values that its checkpoint uses
    /// from deleted batches (`carried`), unless an earlier kept batch already contains them.
    fn values(
        &mut self,
        own: Vec<BodyValue>,
        meta: &CheckpointMeta,
    ) -> Result<Vec<BodyValue>, StoreError> {
        let mut values = BTreeMap::new();
        for mut value in own {
            let version = (value.channel.clone(), value.version);
            let base = value.delta.map(|delta| (value.channel.clone(), delta.base));
            match base.and_then(|base| self.chain_stats.get(&base).copied()) {
                Some(base) => value = value.with_base(base),
                None if value.delta.is_some() => value = self.full_value(&version)?,
                None => {}
            }
            values.insert(value.channel.clone(), value);
        }
        for (channel, version) in &meta.versions {
            let version = (channel.clone(), *version);
            let exists = values.contains_key(channel) || self.chain_stats.contains_key(&version);
            if !exists && self.carried.contains_key(&version) {
                values.insert(channel.clone(), self.full_value(&version)?);
            }
        }
        Ok(values.into_values().collect())
    }

    /// Encodes a value of `carried` in full.
    fn full_value(&mut self, version: &Version) -> Result<BodyValue, StoreError> {
        let (channel, number) = version;
        let value = self.carried.get(version);
        let value = value.ok_or_else(|| {
            corrupt(
                format!("value of channel `{channel}`"),
                format!("the value of checkpoint {number} is missing"),
            )
        })?;
        BodyValue::full(channel, *number, value, &mut self.packer)
            .map_err(|message| backend(OPERATION, message))
    }

    /// Serializes a record as JSON.
    pub(super) fn json<T: serde::Serialize>(&mut self, record: &T) -> Result<Vec<u8>, StoreError> {
        self.packer.json(record).map_err(|message| backend(OPERATION, message))
    }

    /// Writes the rows if they are large enough for a statement.
    pub(super) async fn flush_if_full(
        &mut self,
        transaction: &mut PgTransaction,
    ) -> Result<(), TxError> {
        let is_full = self.write_set.batches.len() >= MAX_PART_BATCHES
            || self.write_set.bytes_after(0, 0) >= MAX_PART_BYTES;
        if is_full { self.write(transaction, None).await } else { Ok(()) }
    }

    async fn write(
        &mut self,
        transaction: &mut PgTransaction,
        record: Option<RecordRow>,
    ) -> Result<(), TxError> {
        self.write_set.upsert_thread(&self.thread, self.expected, &self.row, false, record);
        self.write_set.statement().fetch_one(&mut **transaction).await?;
        self.write_set = WriteSet::default();
        self.expected = self.row.expected();
        Ok(())
    }

    /// Writes the remaining rows, the record and the runs. Returns the newest sequence number.
    pub(super) async fn finish(
        mut self,
        transaction: &mut PgTransaction,
        record: &ThreadRecord,
        runs: &[RunRecord],
    ) -> Result<u64, TxError> {
        let mut packer = Packer::default();
        let to_error = |message| backend(OPERATION, message);
        let record = record_row(record, &mut packer).map_err(to_error)?;
        for run in runs {
            let packed = packer.pack(run).map_err(to_error)?;
            let (id, thread) = (run.id.clone(), self.row.number);
            let is_pending = run.status == RunStatus::Pending;
            let due_ms = run.spec.as_ref().filter(|_| is_pending).map(|spec| spec.due_ms);
            self.row.pending += i64::from(due_ms.is_some());
            let caller = due_ms.map(|_| run.caller());
            self.write_set.runs.push(RunRow { id, thread, packed, due_ms, caller });
        }
        let number = self.row.number;
        self.row.last_seq = self.last_seq;
        self.write_set.mentions.extend(packer.mentions.into_iter().map(|digest| (number, digest)));
        self.write(transaction, Some(record)).await?;
        Ok(self.row.last_seq)
    }
}
