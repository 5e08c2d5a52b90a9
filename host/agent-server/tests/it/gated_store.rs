//! An in-memory store whose reads a test can block or fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::sync::watch;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::ports::store::{Store, StoreError};
use wattle_store::InMemoryStore;

/// A store layer that blocks and fails reads of checkpoints, fails reads of runs, and counts reads
/// of events.
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
        }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
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
