//! The store that forgets: everything in memory, for tests and for `wattle.toml` with
//! `kind = "memory"`.
//!
//! A batch is taken at once, so its ticket is answered when [`Store::append`] returns.

mod thread;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::sync::watch;
use wattle_graph::event::Event;
use wattle_graph::id::{CheckpointId, Digest, Namespace, RunId, ThreadId};
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    Batch, CheckpointQuery, CheckpointTuple, RunRecord, Store, StoreError, ThreadHead, ThreadQuery,
    ThreadRecord, Ticket,
};

use crate::lock::lock;
use crate::query::{Summary, page};
use crate::rules;
use crate::sweep::Mentions;
use crate::watches::Watches;
use thread::Thread;

/// A store in memory. Clones share their content.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    watches: Arc<Watches>,
}

#[derive(Debug, Default)]
struct State {
    threads: HashMap<ThreadId, Thread>,
    runs: HashMap<RunId, RunRecord>,
}

impl State {
    fn append(&mut self, id: &ThreadId, batch: Batch) -> Result<u64, StoreError> {
        let known = self.threads.get(id);
        rules::admit(id, known.map(Thread::standing), &batch)?;
        if let Some(run) = &batch.run
            && let Some(owner) = self.runs.get(&run.id).map(|run| &run.thread)
            && owner != id
        {
            return Err(rules::foreign_run(id, run.id.as_str(), owner));
        }
        let checked = thread::check(id, known, &batch)?;
        if let Some(run) = &batch.run {
            self.runs.insert(run.id.clone(), run.clone());
        }
        match (self.threads.get_mut(id), batch.record.clone()) {
            (Some(thread), _) => Ok(thread.apply(batch, checked)),
            (None, Some(record)) => {
                let mut thread = Thread::new(record);
                let last_seq = thread.apply(batch, checked);
                self.threads.insert(id.clone(), thread);
                Ok(last_seq)
            }
            (None, None) => Ok(0),
        }
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn read<T>(&self, id: &ThreadId, read: impl FnOnce(&Thread) -> T) -> Option<T> {
        lock(&self.state).threads.get(id).map(read)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let result = lock(&self.state).append(thread, batch);
        if let Ok(last_seq) = result {
            self.watches.advance(thread, last_seq);
        }
        Ticket::ready(result.map(|_| ()))
    }

    fn watch(&self, thread: &ThreadId) -> watch::Receiver<u64> {
        self.watches.subscribe(thread, || {
            self.read(thread, |thread| thread.standing().last_seq).unwrap_or(0)
        })
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, StoreError> {
        Ok(self.read(thread, |thread| thread.head.clone()))
    }

    async fn threads(&self, query: &ThreadQuery) -> Result<Vec<ThreadRecord>, StoreError> {
        let state = lock(&self.state);
        let summaries =
            state.threads.values().map(|thread| Summary::from(&thread.head.record)).collect();
        let ids = page(query, summaries);
        let records = ids.iter().filter_map(|id| state.threads.get(id));
        Ok(records.map(|thread| thread.head.record.clone()).collect())
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        Ok(lock(&self.state).runs.get(run).cloned())
    }

    async fn runs(&self, thread: &ThreadId) -> Result<Vec<RunRecord>, StoreError> {
        let state = lock(&self.state);
        let Some(thread) = state.threads.get(thread) else { return Ok(Vec::new()) };
        Ok(thread.runs.iter().filter_map(|run| state.runs.get(run)).cloned().collect())
    }

    async fn checkpoint(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: Option<CheckpointId>,
    ) -> Result<Option<CheckpointTuple>, StoreError> {
        Ok(self.read(thread, |thread| thread.checkpoint(namespace, id)).flatten())
    }

    async fn checkpoints(
        &self,
        thread: &ThreadId,
        query: &CheckpointQuery,
    ) -> Result<Vec<CheckpointTuple>, StoreError> {
        Ok(self.read(thread, |thread| thread.checkpoints(query)).unwrap_or_default())
    }

    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        Ok(self.read(thread, |thread| thread.events(after, limit)).unwrap_or_default())
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        let mut state = lock(&self.state);
        if let Some(thread) = state.threads.remove(thread) {
            for run in &thread.runs {
                state.runs.remove(run);
            }
        }
        drop(state);
        self.watches.remove(thread);
        Ok(())
    }

    async fn mentions(&self, thread: &ThreadId, blob: BlobRef) -> Result<bool, StoreError> {
        Ok(self.read(thread, |thread| thread.mentions.contains(&blob.0)).unwrap_or(false))
    }

    async fn stored_bytes(&self, thread: &ThreadId) -> Result<u64, StoreError> {
        Ok(self.read(thread, Thread::stored_bytes).unwrap_or(0))
    }
}

#[async_trait]
impl Mentions for MemoryStore {
    async fn unmentioned(&self, blobs: &[BlobRef]) -> Result<Vec<BlobRef>, StoreError> {
        let state = lock(&self.state);
        let mut mentioned: BTreeSet<Digest> = BTreeSet::new();
        for thread in state.threads.values() {
            mentioned.extend(&thread.mentions);
        }
        Ok(blobs.iter().filter(|blob| !mentioned.contains(&blob.0)).copied().collect())
    }
}
