//! From a batch to what it writes: checks it against its thread and stages it, whole or not at
//! all.

use std::collections::{BTreeSet, HashMap};

use redb::Database;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::id::{CheckpointId, Digest, ThreadId};
use wattle_run::ports::store::{Batch, RunRecord, StoreError};

use crate::codec::Packer;
use crate::disk::chain::find;
use crate::disk::frame::{self, Body, Header, Places};
use crate::disk::head::Head;
use crate::disk::snapshot::Snapshot;
use crate::disk::stage::{Ahead, Stage, StagedRun};
use crate::disk::table::MARK_EVERY;
use crate::error::invalid;
use crate::rules;

/// Heads kept in memory; a few hundred bytes each. Above it all are read anew.
const HEAD_LIMIT: usize = 16 * 1024;

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

#[derive(Clone, Debug, Default)]
struct Known {
    head: Head,
    /// Where the channels of the checkpoint written last stand, if it was written lately.
    places: Places,
}

/// One commit in the making.
pub(crate) struct Group<'a> {
    database: &'a Database,
    /// Taken when first needed: a thread that is known needs none.
    snapshot: Option<Snapshot>,
    pub(crate) stage: Stage,
}

impl<'a> Group<'a> {
    /// An empty one.
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database, snapshot: None, stage: Stage::default() }
    }

    fn ahead(&mut self) -> Result<Ahead<'_>, StoreError> {
        let snapshot = match self.snapshot.take() {
            Some(snapshot) => snapshot,
            None => Snapshot::take(self.database)?,
        };
        Ok(Ahead { stage: &self.stage, snapshot: self.snapshot.insert(snapshot) })
    }
}

/// A batch that was checked, with its parts packed.
struct Prepared {
    record: Option<Vec<u8>>,
    run: Option<Vec<u8>>,
    is_new_run: bool,
    body: Body,
    mentions: BTreeSet<Digest>,
}

impl Intake {
    /// Goes on from what the file has.
    pub(crate) fn new(next_entry: u64, threads: u64) -> Self {
        Self { known: HashMap::new(), next_entry, threads }
    }

    /// Forgets a thread.
    pub(crate) fn forget(&mut self, thread: &ThreadId) {
        self.known.remove(thread);
    }

    /// Forgets all threads.
    pub(crate) fn forget_all(&mut self) {
        self.known.clear();
    }

    /// Stages a batch; answers with the thread's newest sequence number. After an error nothing
    /// of the batch is staged.
    pub(crate) fn take(
        &mut self,
        group: &mut Group<'_>,
        thread: &ThreadId,
        batch: &Batch,
    ) -> Result<u64, StoreError> {
        let known = self.known(group, thread)?;
        rules::admit(thread, known.as_ref().map(|known| known.head.standing()), batch)?;
        let is_new = known.is_none();
        let mut known = known.unwrap_or_default();
        let prepared = prepare(group, thread, &known, batch)?;
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
        self.add_frame(stage, known, batch, prepared.body);
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
        known.head.current = batch.current.or(known.head.current);
        stage.heads.insert(thread.clone(), known.head.clone());
    }

    fn known(
        &mut self,
        group: &mut Group<'_>,
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
        Ok(head.map(|head| Known { head, places: Places::new() }))
    }

    /// A batch with neither events nor a checkpoint changes facts only and needs no frame.
    fn add_frame(&mut self, stage: &mut Stage, known: &mut Known, batch: &Batch, body: Body) {
        let head = &mut known.head;
        let meta = batch.checkpoint.as_ref().map(|checkpoint| &checkpoint.meta);
        let last_seq = batch.events.last().map_or(head.last_seq, |event| event.seq);
        if batch.events.is_empty() && meta.is_none() {
            return;
        }
        let header = Header {
            previous: head.frame,
            base: batch.base,
            checkpoint: meta.map(|meta| meta.id),
            after_seq: head.last_seq,
            last_seq,
            namespace: meta.map(|meta| meta.namespace.as_str().to_owned()).unwrap_or_default(),
            ..Header::default()
        };
        head.frame = self.next_entry;
        head.frames += 1;
        head.last_seq = last_seq;
        for chunk in frame::write(header, &body) {
            head.bytes += chunk.len() as u64;
            stage.log_bytes += chunk.len();
            stage.log.insert(self.next_entry, chunk);
            self.next_entry += 1;
        }
        if head.frames.is_multiple_of(MARK_EVERY) {
            stage.marks.insert((head.number, head.last_seq), head.frame);
        }
        if let Some(meta) = meta {
            head.last_checkpoint = Some(meta.id);
            head.current = Some(meta.id);
            known.places = body.places;
            known.places.insert(meta.id, head.frame);
        }
    }
}

/// Everything about a batch that may fail.
fn prepare(
    group: &mut Group<'_>,
    thread: &ThreadId,
    known: &Known,
    batch: &Batch,
) -> Result<Prepared, StoreError> {
    let is_new_run = match &batch.run {
        Some(run) => is_new_run(group, thread, run)?,
        None => false,
    };
    if let Some(current) = batch.current {
        exists(group, thread, &known.head, current)?;
    }
    let mut packer = Packer::default();
    let mut body = pack(batch, &mut packer).map_err(|message| invalid(thread, message))?;
    if let Some(checkpoint) = &batch.checkpoint {
        body.places = places(group, thread, known, checkpoint)?;
    }
    let record = batch.record.as_ref().map(|record| packer.pack(record)).transpose();
    let run = batch.run.as_ref().map(|run| packer.pack(run)).transpose();
    Ok(Prepared {
        record: record.map_err(|message| invalid(thread, message))?,
        run: run.map_err(|message| invalid(thread, message))?,
        is_new_run,
        body,
        mentions: packer.mentions,
    })
}

fn pack(batch: &Batch, packer: &mut Packer) -> Result<Body, String> {
    let mut body = Body::default();
    if !batch.events.is_empty() {
        body.events = packer.pack(&batch.events)?;
    }
    if let Some(Checkpoint { meta, values }) = &batch.checkpoint {
        body.meta = packer.pack(meta)?;
        for channel in meta.changed() {
            if let Some(value) = values.get(channel) {
                body.values.push((channel.clone(), packer.pack(value)?));
            }
        }
    }
    Ok(body)
}

fn is_new_run(
    group: &mut Group<'_>,
    thread: &ThreadId,
    run: &RunRecord,
) -> Result<bool, StoreError> {
    let owner = match group.stage.runs.get(&run.id) {
        Some(staged) => Some(staged.thread.clone()),
        None => group.ahead()?.snapshot.run(&run.id)?.map(|run| run.thread),
    };
    match owner {
        Some(owner) if owner != *thread => Err(rules::foreign_run(thread, run.id.as_str(), &owner)),
        owner => Ok(owner.is_none()),
    }
}

fn exists(
    group: &mut Group<'_>,
    thread: &ThreadId,
    head: &Head,
    id: CheckpointId,
) -> Result<(), StoreError> {
    if head.current == Some(id) || head.last_checkpoint == Some(id) {
        return Ok(());
    }
    let found = find(&group.ahead()?, head.frame, None, BTreeSet::from([id]))?;
    if found.is_empty() { Err(rules::no_checkpoint(thread, id)) } else { Ok(()) }
}

/// Where the channels stand that a checkpoint did not change.
fn places(
    group: &mut Group<'_>,
    thread: &ThreadId,
    known: &Known,
    checkpoint: &Checkpoint,
) -> Result<Places, StoreError> {
    let meta = &checkpoint.meta;
    let mut places = Places::new();
    let mut wanted = BTreeSet::new();
    for version in meta.versions.values().filter(|version| **version != meta.id) {
        if let Some(place) = known.places.get(version) {
            places.insert(*version, *place);
        } else {
            wanted.insert(*version);
        }
    }
    if wanted.is_empty() {
        return Ok(places);
    }
    places.extend(find(&group.ahead()?, known.head.frame, meta.parent, wanted.clone())?);
    match wanted.iter().find(|version| !places.contains_key(*version)) {
        Some(version) => Err(rules::no_checkpoint(thread, *version)),
        None => Ok(places),
    }
}
