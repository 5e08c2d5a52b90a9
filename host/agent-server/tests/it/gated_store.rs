//! An in-memory store whose reads a test can block or fail.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use tokio::sync::watch;
use wattle_graph::id::ThreadId;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::ports::store::{Batch, Store, StoreError, Ticket};
use wattle_store::InMemoryStore;

/// A store layer that blocks and fails reads of checkpoints, fails reads of runs, and counts reads
/// of events. It notes what the first batch has.
pub(crate) struct GatedStore {
    below: Arc<dyn Store>,
    /// Whether checkpoints may be read.
    pub(crate) checkpoints: watch::Sender<bool>,
    /// Number of further reads of checkpoints of which the last one fails; 0 if none fails.
    pub(crate) failing_checkpoint: AtomicUsize,
    /// Number of further reads of runs that fail.
    pub(crate) failing_runs: AtomicUsize,
    /// Number of reads of events.
    pub(crate) event_reads: AtomicUsize,
    /// Whether the first batch has the record of a thread, and that of a run.
    pub(crate) first_batch: OnceLock<(bool, bool)>,
}

impl GatedStore {
    pub(crate) fn new() -> Arc<Layered<Self>> {
        Arc::new(Layered::over(Arc::new(InMemoryStore::new())))
    }
}

#[async_trait]
impl Layer for GatedStore {
    fn over(below: Arc<dyn Store>) -> Self {
        let checkpoints = watch::channel(true).0;
        Self {
            below,
            checkpoints,
            failing_checkpoint: AtomicUsize::new(0),
            failing_runs: AtomicUsize::new(0),
            event_reads: AtomicUsize::new(0),
            first_batch: OnceLock::new(),
        }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        // Only the first batch sets the value.
        let _ = self.first_batch.set((batch.record.is_some(), batch.run.is_some()));
        self.below.append(thread, batch).await
    }

    async fn reading(&self, read: &'static str) -> Result<(), StoreError> {
        let seq = Ordering::SeqCst;
        let less = |count: usize| count.checked_sub(1);
        match read {
            "checkpoint" | "checkpoint_outline" | "checkpoints" => {
                let _ = self.checkpoints.subscribe().wait_for(|may| *may).await;
                if self.failing_checkpoint.fetch_update(seq, seq, less) == Ok(1) {
                    return Err(StoreError::Closed);
                }
            }
            "run" if self.failing_runs.fetch_update(seq, seq, less).is_ok() => {
                return Err(StoreError::Closed);
            }
            "events" => drop(self.event_reads.fetch_add(1, seq)),
            _ => {}
        }
        Ok(())
    }
}
