//! Rewrites a thread: without some of its checkpoints, or under another id.
//!
//! The kept batches are written under a new thread number, in order and with new seals, and the
//! rows of the old number are deleted. All of this is one transaction of many short statements:
//! however large the thread is, readers see either the old or the new one, and other threads are
//! not locked. A value is carried if a kept checkpoint refers to it and its batch is deleted: it is
//! written in full with the oldest of these checkpoints.

mod copy;

use std::collections::{BTreeMap, BTreeSet};

use sqlx::Row as _;
use tokio::task::spawn_blocking;
use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::event::{Event, RunStatus};
use wattle_graph::id::{CheckpointId, Digest, RunId, ThreadId};
use wattle_run::ports::store::{RunRecord, StoreError, ThreadRecord};

use crate::codec::{Packer, unpack};
use crate::error::{backend, corrupt};
use crate::json_scan::scan_json;
use crate::postgres::database::{Database, PgTransaction, RELAXED_IDLE_TIMEOUT};
use crate::postgres::delete;
use crate::postgres::head;
use crate::postgres::history::bytes;
use crate::postgres::outcome::commit;
use crate::postgres::raw::{self, Raw};
use crate::postgres::retry::{RetryState, TxError};
use crate::postgres::rows::{Before, ListFacts, RecordRow, Rows, RunRow};
use crate::postgres::stage::{Body, BodyValue, Frame, Head, HeadLease, put_batch, record_row};
use crate::postgres::value::{self, Version};
use crate::retention_plan::{BatchSummary, RetentionPlan, checkpoints_made_by};
pub(super) use copy::copy;

const OPERATION: &str = "rewrite a thread";

/// Rows are written once they have this size, so that statements are few and none is long.
const PART_BYTES: usize = 4 * 1024 * 1024;

/// Rows are also written once they have this number of batches.
const PART_BATCHES: usize = 1024;

const FACTS: &str = "
    SELECT record, nextval('thread_numbers') AS next FROM threads WHERE id = $1";

const RUNS: &str = "SELECT record FROM runs WHERE thread = $1 ORDER BY place";

const THREADS_OF: &str = "
    SELECT threads.id FROM threads WHERE record IS NOT NULL
    AND number IN (SELECT thread FROM runs WHERE runs.id = ANY($1)) ORDER BY threads.id";

const MOVE: &str = "
    UPDATE threads SET number = $2, last_place = 0, pruned_seq = $3, pruned_seal = $4
    WHERE id = $1";

/// A thread with its record, runs and batches.
pub(super) struct Whole {
    pub(super) head: Head,
    pub(super) record: ThreadRecord,
    pub(super) runs: Vec<RunRecord>,
    pub(super) log: Vec<Entry>,
    /// A new thread number for the rewrite.
    pub(super) next: i64,
}

/// A batch with the `CheckpointMeta` of its checkpoint.
pub(super) struct Entry {
    pub(super) raw: Raw,
    pub(super) meta: Option<CheckpointMeta>,
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
pub(super) enum Cut<'a> {
    /// Events and checkpoints of some runs.
    Runs(&'a [RunId]),
    /// All but the newest checkpoints.
    Past,
}

/// Prunes a thread or deletes runs of it. Returns true if the thread itself is deleted.
pub(super) async fn cut(
    database: &Database,
    thread: &ThreadId,
    cut: &Cut<'_>,
) -> Result<bool, StoreError> {
    let mut retry = RetryState::default();
    loop {
        match cut_once(database, thread, cut).await {
            Ok(is_gone) => return Ok(is_gone),
            Err(TxError::Database(error)) => retry.wait_or_fail(OPERATION, error).await?,
            Err(TxError::Store(error)) => return Err(error),
        }
    }
}

async fn cut_once(database: &Database, thread: &ThreadId, cut: &Cut<'_>) -> Result<bool, TxError> {
    let mut transaction = database.transaction(OPERATION).await?;
    let Some(whole) = read(&mut transaction, thread).await? else { return Ok(false) };
    let (whole, summaries) = spawn_blocking(move || {
        let summaries: Result<Vec<BatchSummary>, _> =
            whole.log.iter().map(Entry::summary).collect();
        (whole, summaries)
    })
    .await
    .map_err(|error| backend(OPERATION, error))?;
    let summaries = summaries?;
    let current = whole.head.current;
    let plan = match cut {
        Cut::Runs(runs) => {
            let own = whole.runs.iter().map(|run| &run.id).filter(|run| runs.contains(run));
            RetentionPlan::drop_runs(&summaries, current, own.cloned().collect())
        }
        Cut::Past => RetentionPlan::keep_latest(&summaries, current, &whole.runs),
    };
    if plan.is_noop(&summaries) {
        return Ok(false);
    }
    if plan.drops_thread() {
        delete::clear(&mut transaction, whole.head.number, whole.head.last_place).await?;
        delete::remove(&mut transaction, thread).await?;
        commit(database, transaction).await?;
        return Ok(true);
    }
    write_anew(&mut transaction, thread, whole, &plan).await?;
    commit(database, transaction).await?;
    Ok(false)
}

/// Replaces a thread by its kept part.
async fn write_anew(
    transaction: &mut PgTransaction,
    thread: &ThreadId,
    whole: Whole,
    plan: &RetentionPlan,
) -> Result<(), TxError> {
    let mut anew = Anew::new(thread, &whole, whole.head.seal, whole.head.lease, whole.head.ledger);
    anew.load_values(transaction, &whole, plan).await?;
    anew.begin(transaction, first_seq(&whole.log, plan)?).await?;
    let Whole { head, record, runs, log, .. } = whole;
    let runs = plan.runs(runs);
    let record = plan.record(record, &runs);
    anew.head.current = plan.current;
    for entry in log {
        anew.add(entry, plan)?;
        anew.write_if_due(transaction).await?;
    }
    delete::clear(transaction, head.number, head.last_place).await?;
    anew.finish(transaction, &record, &runs).await?;
    Ok(())
}

/// Returns the sequence number of the oldest event that is kept.
fn first_seq(log: &[Entry], plan: &RetentionPlan) -> Result<Option<u64>, StoreError> {
    for entry in log {
        if let Some(event) = plan.events(entry.raw.base, entry.events()?).first() {
            return Ok(Some(event.seq));
        }
    }
    Ok(None)
}

impl Entry {
    /// Parses the events of the batch.
    pub(super) fn events(&self) -> Result<Vec<Event>, StoreError> {
        let events = self.raw.body.events.as_deref().map(serde_json::from_slice);
        Ok(events.transpose().map_err(|error| corrupt("events", error))?.unwrap_or_default())
    }

    fn summary(&self) -> Result<BatchSummary, StoreError> {
        Ok(BatchSummary {
            base: self.raw.base,
            after_seq: self.raw.after_seq,
            last_seq: self.raw.last_seq,
            checkpoints_made: checkpoints_made_by(&self.events()?),
            checkpoint: self.meta.as_ref().map(Into::into),
        })
    }
}

/// Locks and reads a thread. Refuses a thread that a live host has leased.
pub(super) async fn read(
    transaction: &mut PgTransaction,
    thread: &ThreadId,
) -> Result<Option<Whole>, TxError> {
    let locked = head::lock(transaction, &BTreeSet::from([thread]), &BTreeSet::new()).await?;
    let Some(head) = locked.into_values().next().filter(|head| head.is_there) else {
        return Ok(None);
    };
    delete::refuse_held(transaction, thread, &head).await?;
    read_all(transaction, thread, head).await.map(Some)
}

/// Reads a locked thread that no live host has leased.
async fn read_all(
    transaction: &mut PgTransaction,
    thread: &ThreadId,
    head: Head,
) -> Result<Whole, TxError> {
    sqlx::query(RELAXED_IDLE_TIMEOUT).execute(&mut **transaction).await?;
    let facts = sqlx::query(FACTS).bind(thread.as_str().as_bytes());
    let facts = facts.fetch_one(&mut **transaction).await?;
    let runs = sqlx::query(RUNS).bind(head.number).fetch_all(&mut **transaction).await?;
    let run = |row| unpack("run", bytes(row, "record")?);
    Ok(Whole {
        record: head::record(&facts)?,
        runs: runs.iter().map(run).collect::<Result<_, _>>()?,
        log: read_log(transaction, head.number).await?,
        next: facts.try_get("next")?,
        head,
    })
}

async fn read_log(transaction: &mut PgTransaction, number: i64) -> Result<Vec<Entry>, TxError> {
    let mut log = Vec::new();
    let mut next = 0;
    loop {
        let page = raw::page(transaction, number, next).await?;
        let Some(last) = page.last() else { return Ok(log) };
        next = last.place + 1;
        for raw in page {
            let meta = raw.body.meta.as_deref().map(serde_json::from_slice).transpose();
            let meta = meta.map_err(|error| corrupt("checkpoint", error))?;
            log.push(Entry { raw, meta });
        }
    }
}

/// A thread that is being rewritten.
pub(super) struct Anew {
    thread: ThreadId,
    pub(super) head: Head,
    /// The state of the thread's row that the next write expects.
    before: Before,
    rows: Rows,
    packer: Packer,
    /// The seal before the oldest batch of the thread.
    seal_before: Option<Digest>,
    /// The sequence number before the oldest event of the thread.
    pruned_seq: u64,
    /// The newest sequence number of the thread, even if that event is not kept.
    last_seq: u64,
    /// Carried values, by channel and version.
    homeless: value::Loaded,
    /// Chain sizes of the values that have been written.
    written: BTreeMap<Version, ListFacts>,
}

impl Anew {
    /// Creates an empty thread with a base seal, a lease and a ledger number.
    pub(super) fn new(
        thread: &ThreadId,
        whole: &Whole,
        seal_before: Option<Digest>,
        lease: Option<HeadLease>,
        ledger: i64,
    ) -> Self {
        let head = Head {
            number: whole.next,
            is_there: true,
            lease,
            last_checkpoint: whole.head.last_checkpoint,
            current: whole.head.current,
            seal: seal_before,
            ledger,
            ..Head::default()
        };
        Self {
            thread: thread.clone(),
            before: head.before(),
            head,
            rows: Rows::default(),
            packer: Packer::default(),
            seal_before,
            pruned_seq: 0,
            last_seq: whole.head.last_seq,
            homeless: value::Loaded::new(),
            written: BTreeMap::new(),
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
        self.head.last_seq = self.pruned_seq;
        sqlx::query(MOVE)
            .bind(self.thread.as_str().as_bytes())
            .bind(self.head.number)
            .bind(self.pruned_seq.cast_signed())
            .bind(self.seal_before.as_ref().map(|seal| seal.as_bytes().as_slice()))
            .execute(&mut **transaction)
            .await?;
        Ok(())
    }

    /// Returns the position of the next batch.
    pub(super) fn frame(
        &self,
        base: Option<CheckpointId>,
        events: &[Event],
        checkpoint: Option<(CheckpointId, Vec<u8>)>,
    ) -> Frame {
        let newest = self.head.last_seq;
        let after_seq = events.first().map_or(newest, |event| event.seq - 1);
        let last_seq = events.last().map_or(newest, |event| event.seq);
        Frame { base, after_seq, last_seq, checkpoint }
    }

    /// Reads the values that must be carried, and those whose base version is deleted.
    async fn load_values(
        &mut self,
        transaction: &mut PgTransaction,
        whole: &Whole,
        plan: &RetentionPlan,
    ) -> Result<(), StoreError> {
        let stays = |entry: &&Entry| entry.meta.as_ref().is_some_and(|meta| plan.keeps(meta.id));
        let mut wanted = BTreeSet::new();
        let mut held = BTreeSet::new();
        for entry in whole.log.iter().filter(stays) {
            for value in &entry.raw.body.values {
                held.insert((value.channel.clone(), value.version));
                if let Some(tail) = value.tail
                    && !held.contains(&(value.channel.clone(), tail.base))
                {
                    wanted.insert((value.channel.clone(), value.version));
                }
            }
            let versions = entry.meta.iter().flat_map(|meta| &meta.versions);
            let versions = versions.map(|(channel, version)| (channel.clone(), *version));
            wanted.extend(versions.filter(|version| !held.contains(version)));
        }
        self.homeless = value::load(transaction, whole.head.number, &wanted).await?;
        Ok(())
    }

    /// Adds the kept part of a batch.
    fn add(&mut self, entry: Entry, plan: &RetentionPlan) -> Result<(), StoreError> {
        let all = entry.events()?;
        let had = all.len();
        let events = plan.events(entry.raw.base, all);
        let Entry { raw, meta } = entry;
        let checkpoint = raw.checkpoint.filter(|(id, _)| plan.keeps(*id));
        let frame = self.frame(raw.base, &events, checkpoint);
        let mut body = Body::default();
        if events.len() == had {
            body.events = raw.body.events;
        } else if !events.is_empty() {
            body.events = Some(self.json(&events)?);
        }
        if let Some(meta) = meta.filter(|meta| plan.keeps(meta.id)) {
            body.meta = raw.body.meta;
            body.values = self.values(raw.body.values, &meta)?;
        }
        self.put(frame, body);
        Ok(())
    }

    /// Adds a batch unless it is empty.
    pub(super) fn put(&mut self, frame: Frame, body: Body) {
        if body.events.is_none() && body.meta.is_none() {
            return;
        }
        for value in &body.values {
            self.written.insert((value.channel.clone(), value.version), value.list);
        }
        let json = body.events.iter().chain(&body.meta);
        for json in json.chain(body.values.iter().map(|value| &value.json)) {
            let blobs = scan_json(json).blobs;
            self.rows.mentions.extend(blobs.into_iter().map(|blob| (self.head.number, blob.0)));
        }
        put_batch(&mut self.rows, &mut self.head, frame, body);
    }

    /// Returns the values of a kept batch, with the carried values that no batch before it has.
    fn values(
        &mut self,
        own: Vec<BodyValue>,
        meta: &CheckpointMeta,
    ) -> Result<Vec<BodyValue>, StoreError> {
        let mut values = BTreeMap::new();
        for mut value in own {
            let version = (value.channel.clone(), value.version);
            let base = value.tail.map(|tail| (value.channel.clone(), tail.base));
            match base.and_then(|base| self.written.get(&base).copied()) {
                Some(base) => value = value.after(base),
                None if value.tail.is_some() => value = self.whole(&version)?,
                None => {}
            }
            values.insert(value.channel.clone(), value);
        }
        for (channel, version) in &meta.versions {
            let version = (channel.clone(), *version);
            let is_there = values.contains_key(channel) || self.written.contains_key(&version);
            if !is_there && self.homeless.contains_key(&version) {
                values.insert(channel.clone(), self.whole(&version)?);
            }
        }
        Ok(values.into_values().collect())
    }

    fn whole(&mut self, version: &Version) -> Result<BodyValue, StoreError> {
        let (channel, number) = version;
        let value = self.homeless.get(version);
        let value = value.ok_or_else(|| {
            corrupt(format!("value of channel `{channel}`"), format!("{number} is missing"))
        })?;
        BodyValue::whole(channel, *number, value, &mut self.packer)
            .map_err(|message| backend(OPERATION, message))
    }

    /// Serializes a record as JSON.
    pub(super) fn json<T: serde::Serialize>(&mut self, record: &T) -> Result<Vec<u8>, StoreError> {
        self.packer.json(record).map_err(|message| backend(OPERATION, message))
    }

    /// Writes the rows if they are large enough for a statement.
    pub(super) async fn write_if_due(
        &mut self,
        transaction: &mut PgTransaction,
    ) -> Result<(), TxError> {
        let is_due =
            self.rows.batches.len() >= PART_BATCHES || self.rows.bytes_after(0, 0) >= PART_BYTES;
        if is_due { self.write(transaction, None).await } else { Ok(()) }
    }

    async fn write(
        &mut self,
        transaction: &mut PgTransaction,
        record: Option<RecordRow>,
    ) -> Result<(), TxError> {
        self.rows.put_head(&self.thread, self.before, &self.head, false, record);
        self.rows.write().fetch_one(&mut **transaction).await?;
        self.rows = Rows::default();
        self.before = self.head.before();
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
        let refusal = |message| backend(OPERATION, message);
        let row = record_row(record, &mut packer).map_err(refusal)?;
        for run in runs {
            let packed = packer.pack(run).map_err(refusal)?;
            let (id, thread) = (run.id.clone(), self.head.number);
            let is_pending = run.status == RunStatus::Pending;
            let due_ms = run.spec.as_ref().filter(|_| is_pending).map(|spec| spec.due_ms);
            self.head.pending += i64::from(due_ms.is_some());
            let caller = due_ms.map(|_| run.caller());
            self.rows.runs.push(RunRow { id, thread, packed, due_ms, caller });
        }
        let number = self.head.number;
        self.head.last_seq = self.last_seq;
        self.rows.mentions.extend(packer.mentions.into_iter().map(|digest| (number, digest)));
        self.write(transaction, Some(row)).await?;
        Ok(self.head.last_seq)
    }
}
