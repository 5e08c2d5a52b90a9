//! From a batch to what it writes: checks it against its thread and stages it, whole or not at
//! all.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use wattle_graph::id::{ChannelName, CheckpointId, Digest, Namespace, RunId, ThreadId};
use wattle_run::ports::store::{Batch, StoreError};

use crate::disk::frame::{Body, Header, Places};
use crate::disk::head::Head;
use crate::disk::link::Extent;
use crate::disk::prepare::{Prepared, prepare};
use crate::disk::snapshot::Snapshot;
use crate::disk::stage::{Ahead, Stage, StagedRun};
use crate::file::handle::Handle;
use crate::rules;

/// Heads kept in memory; a few hundred bytes each. Above it all are read anew.
pub(crate) const HEAD_LIMIT: usize = 16 * 1024;

/// Entries of the log that are set aside for a thread: far more than any can have, and so few that
/// they can be set aside four thousand million times.
const RESERVED: u64 = 1 << 32;

/// What the writer remembers between commits.
#[derive(Debug)]
pub(crate) struct Intake {
    /// Threads as they stand with everything staged.
    known: HashMap<ThreadId, Known>,
    /// The next free entry of the log.
    next_entry: u64,
    /// Highest number given to a thread.
    threads: u64,
}

/// A thread as it stands with everything staged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) head: Head,
    /// Where the channels of the checkpoint written last stand, if it was written lately.
    pub(crate) places: Places,
    /// How its lists are stored.
    pub(crate) lists: BTreeMap<ChannelName, List>,
}

/// How a version of a list is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) version: CheckpointId,
    pub(crate) place: u64,
    pub(crate) extent: Extent,
}

/// One commit in the making.
pub(crate) struct Group {
    handle: Arc<Handle>,
    /// Taken when first needed: a thread that is known needs none.
    snapshot: Option<Snapshot>,
    pub(crate) stage: Stage,
}

impl Group {
    /// An empty one.
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { handle, snapshot: None, stage: Stage::default() }
    }

    /// Stages that a thread has no run of this id.
    pub(crate) fn forget_run(&mut self, number: u64, run: &RunId) -> Result<(), StoreError> {
        let staged = self.stage.thread_runs.iter().find(|(key, id)| key.0 == number && *id == run);
        let key = match staged.map(|(key, _)| *key) {
            Some(key) => Some(key),
            None => self.ahead()?.snapshot.place_of_run(number, run)?,
        };
        if let Some(key) = key {
            self.stage.thread_runs.remove(&key);
            self.stage.gone_runs.push(key);
        }
        self.stage.runs.remove(run);
        self.stage.gone.1.push(run.clone());
        Ok(())
    }

    /// The log with everything staged.
    pub(crate) fn ahead(&mut self) -> Result<Ahead<'_>, StoreError> {
        let snapshot = match self.snapshot.take() {
            Some(snapshot) => snapshot,
            None => Snapshot::take(self.handle.clone())?,
        };
        Ok(Ahead { stage: &self.stage, snapshot: self.snapshot.insert(snapshot) })
    }
}

impl Intake {
    /// Goes on from what the file has.
    pub(crate) fn new(next_entry: u64, threads: u64) -> Self {
        Self { known: HashMap::new(), next_entry, threads }
    }

    /// Notes how a thread stands with what was staged.
    pub(crate) fn remember(&mut self, thread: &ThreadId, known: Known) {
        self.known.insert(thread.clone(), known);
    }

    /// Forgets a thread.
    pub(crate) fn forget(&mut self, thread: &ThreadId) {
        self.known.remove(thread);
    }

    /// Sets entries of the log and a number aside, for a thread that is written anew while others
    /// go on: answers with the first entry and the number.
    pub(crate) fn reserve(&mut self) -> (u64, u64) {
        let first = self.next_entry;
        self.next_entry += RESERVED;
        self.threads += 1;
        (first, self.threads)
    }

    /// The highest number given to a thread.
    pub(crate) fn threads(&self) -> u64 {
        self.threads
    }

    /// Goes on after a commit that failed, with nothing known but what the file has. What was set
    /// aside stays so.
    pub(crate) fn start_over(&mut self, next_entry: u64, threads: u64) {
        self.known.clear();
        self.next_entry = self.next_entry.max(next_entry);
        self.threads = self.threads.max(threads);
    }

    /// Forgets all threads.
    pub(crate) fn forget_all(&mut self) {
        self.known.clear();
    }

    /// Stages a batch; answers with the thread's newest sequence number. After an error nothing
    /// of the batch is staged.
    pub(crate) fn take(
        &mut self,
        group: &mut Group,
        thread: &ThreadId,
        batch: &Batch,
    ) -> Result<u64, StoreError> {
        let known = self.known(group, thread)?;
        rules::admit(thread, known.as_ref().map(|known| known.head.standing()), batch)?;
        let is_new = known.is_none();
        let mut known = known.unwrap_or_default();
        let prepared = prepare(group, thread, &known, batch, self.next_entry)?;
        // From here on nothing fails.
        if is_new {
            self.threads += 1;
            known.head.number = self.threads;
            group.stage.threads = Some(self.threads);
        }
        self.stage(&mut group.stage, thread, &mut known, batch, prepared);
        let last_seq = known.head.last_seq;
        self.known.insert(thread.clone(), known);
        Ok(last_seq)
    }

    fn stage(
        &mut self,
        stage: &mut Stage,
        thread: &ThreadId,
        known: &mut Known,
        batch: &Batch,
        prepared: Prepared,
    ) {
        let number = known.head.number;
        stage.mentions.extend(prepared.mentions.into_iter().map(|digest| (number, digest)));
        if let Some(record) = prepared.record {
            stage.records.insert(thread.clone(), record);
        }
        if let (Some(run), Some(packed)) = (&batch.run, prepared.run) {
            if prepared.is_new_run {
                stage.thread_runs.insert((number, known.head.runs), run.id.clone());
                known.head.runs += 1;
            }
            stage.runs.insert(run.id.clone(), StagedRun { thread: thread.clone(), packed });
        }
        self.add_frame(stage, known, batch, (prepared.body, prepared.seal));
        if batch.checkpoint.is_some() {
            known.lists = prepared.lists;
        }
        known.head.current = batch.current.or(known.head.current);
        stage.heads.insert(thread.clone(), known.head.clone());
    }

    /// A thread as it stands with everything staged.
    pub(crate) fn known(
        &mut self,
        group: &mut Group,
        thread: &ThreadId,
    ) -> Result<Option<Known>, StoreError> {
        if let Some(known) = self.known.get(thread) {
            return Ok(Some(known.clone()));
        }
        if self.known.len() >= HEAD_LIMIT {
            let staged = &group.stage.heads;
            self.known.retain(|thread, _| staged.contains_key(thread));
        }
        let head = group.ahead()?.snapshot.head(thread)?;
        Ok(head.map(|head| Known { head, ..Known::default() }))
    }

    /// A batch with neither events nor a checkpoint changes facts only and needs no frame.
    fn add_frame(
        &mut self,
        stage: &mut Stage,
        known: &mut Known,
        batch: &Batch,
        (body, seal): (Body, Digest),
    ) {
        let head = &mut known.head;
        let meta = batch.checkpoint.as_ref().map(|checkpoint| &checkpoint.meta);
        if batch.events.is_empty() && meta.is_none() {
            return;
        }
        let header = Header {
            base: batch.base,
            checkpoint: meta.map(|meta| meta.id),
            after_seq: head.last_seq,
            last_seq: batch.events.last().map_or(head.last_seq, |event| event.seq),
            namespace: meta.map(|meta| meta.namespace.as_str().to_owned()).unwrap_or_default(),
            seal: Some(seal),
            ..Header::default()
        };
        stage.add_frame(head, &mut self.next_entry, header, &body);
        if let Some(meta) = meta {
            head.last_checkpoint = Some(meta.id);
            if meta.namespace == Namespace::root() {
                head.current = Some(meta.id);
            }
            known.places = body.places;
            known.places.insert(meta.id, head.frame);
        }
    }
}
