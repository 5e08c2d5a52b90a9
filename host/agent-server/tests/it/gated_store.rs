//! An in-memory store whose reads a test can block or fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::sync::watch;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::ports::store::{Store, StoreError};
use wattle_store::InMemoryStore;

/// A store layer that blocks reads of checkpoints, fails reads of runs, and counts reads of events.
pub(crate) struct GatedStore {
    below: Arc<dyn Store>,
    /// Whether checkpoints may be read.
    pub(crate) checkpoints: watch::Sender<bool>,
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
        let (failing_runs, event_reads) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { below, checkpoints, failing_runs, event_reads }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn reading(&self, read: &'static str) -> Result<(), StoreError> {
        match read {
            "checkpoint" | "checkpoint_outline" | "checkpoints" => {
                let _ = self.checkpoints.subscribe().wait_for(|may| *may).await;
            }
            "run" => {
                let less = |failing: usize| failing.checked_sub(1);
                let seq = Ordering::SeqCst;
                if self.failing_runs.fetch_update(seq, seq, less).is_ok() {
                    return Err(StoreError::Closed);
                }
            }
            "events" => drop(self.event_reads.fetch_add(1, Ordering::SeqCst)),
            _ => {}
        }
        Ok(())
    }
}
