//! A store that can be told to lose sight of what has happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tokio::sync::watch;
use wattle_graph::event::Event;
use wattle_graph::id::{CheckpointId, Namespace, RunId, ThreadId};
use wattle_run::ports::Store;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    Batch, CheckpointQuery, CheckpointTuple, RunRecord, StoreError, ThreadHead, ThreadQuery,
    ThreadRecord, Ticket,
};

/// A store whose logs can become unreadable; all else is the work of another.
pub struct ForgetfulStore {
    inner: Arc<dyn Store>,
    forgets: AtomicBool,
}

impl ForgetfulStore {
    /// One that does not forget yet.
    pub fn over(inner: Arc<dyn Store>) -> Self {
        Self { inner, forgets: AtomicBool::new(false) }
    }

    /// From now on no log can be read, or all can again.
    pub fn forget(&self, forgets: bool) {
        self.forgets.store(forgets, Ordering::SeqCst);
    }
}

#[async_trait]
impl Store for ForgetfulStore {
    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        self.inner.append(thread, batch).await
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
        if self.forgets.load(Ordering::SeqCst) {
            let message = "the log is away".to_owned();
            return Err(StoreError::Backend { operation: "read", message });
        }
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
