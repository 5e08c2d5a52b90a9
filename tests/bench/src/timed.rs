//! A store that measures how long the engine spends in it, and how long tasks took.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use tokio::sync::{oneshot, watch};
use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::{CheckpointId, Namespace, RunId, ThreadId};
use wattle_run::ports::Store;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    Batch, CheckpointQuery, CheckpointTuple, RunRecord, StoreError, ThreadHead, ThreadQuery,
    ThreadRecord, Ticket,
};

/// Nanoseconds, counted by many threads.
#[derive(Default)]
struct Nanoseconds(AtomicU64);

impl Nanoseconds {
    fn add(&self, since: Instant) {
        self.0.fetch_add(since.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    fn seconds(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64 / 1e9
    }
}

/// A store with stopwatches.
pub(crate) struct TimedStore {
    inner: Arc<dyn Store>,
    times: Arc<Times>,
}

#[derive(Default)]
struct Times {
    append: Nanoseconds,
    wait: Nanoseconds,
    task: Nanoseconds,
}

impl TimedStore {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, times: Arc::default() }
    }

    pub(crate) fn reset(&self) {
        for time in [&self.times.append, &self.times.wait, &self.times.task] {
            time.0.store(0, Ordering::Relaxed);
        }
    }

    /// Time in `append`, which hands batches over.
    pub(crate) fn append_seconds(&self) -> f64 {
        self.times.append.seconds()
    }

    /// Time from a hand-over to its durability. Runs go on meanwhile except where they must not,
    /// so with several batches under way at once this can exceed the wall time.
    pub(crate) fn wait_seconds(&self) -> f64 {
        self.times.wait.seconds()
    }

    /// Time in tasks: instance, guest and its input and output.
    pub(crate) fn task_seconds(&self) -> f64 {
        self.times.task.seconds()
    }
}

#[async_trait]
impl Store for TimedStore {
    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        for event in &batch.events {
            if let EventKind::TaskFinished(finished) = &event.kind {
                self.times.task.0.fetch_add(finished.duration_us * 1_000, Ordering::Relaxed);
            }
        }
        let started = Instant::now();
        let ticket = self.inner.append(thread, batch).await;
        self.times.append.add(started);
        let (sender, receiver) = oneshot::channel();
        let times = self.times.clone();
        let handed = Instant::now();
        tokio::spawn(async move {
            let answer = ticket.await;
            times.wait.add(handed);
            let _ = sender.send(answer);
        });
        Ticket::waiting(receiver)
    }

    fn watch(&self, thread: &ThreadId) -> watch::Receiver<u64> {
        self.inner.watch(thread)
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, StoreError> {
        self.inner.thread(thread).await
    }

    async fn threads(&self, query: &ThreadQuery) -> Result<Vec<ThreadRecord>, StoreError> {
        self.inner.threads(query).await
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.inner.run(run).await
    }

    async fn runs(&self, thread: &ThreadId) -> Result<Vec<RunRecord>, StoreError> {
        self.inner.runs(thread).await
    }

    async fn checkpoint(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: Option<CheckpointId>,
    ) -> Result<Option<CheckpointTuple>, StoreError> {
        self.inner.checkpoint(thread, namespace, id).await
    }

    async fn checkpoints(
        &self,
        thread: &ThreadId,
        query: &CheckpointQuery,
    ) -> Result<Vec<CheckpointTuple>, StoreError> {
        self.inner.checkpoints(thread, query).await
    }

    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        self.inner.events(thread, after, limit).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.inner.delete_thread(thread).await
    }

    async fn mentions(&self, thread: &ThreadId, blob: BlobRef) -> Result<bool, StoreError> {
        self.inner.mentions(thread, blob).await
    }

    async fn stored_bytes(&self, thread: &ThreadId) -> Result<u64, StoreError> {
        self.inner.stored_bytes(thread).await
    }
}
