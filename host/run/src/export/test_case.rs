//! Exports as tests: what the code did, without the principals that requested it.

use super::ExportHeader;
use crate::ports::store::StoredBatch;

impl ExportHeader {
    /// Removes what a test does not need, see
    /// [`Engine::export_test`](crate::engine::Engine::export_test).
    #[must_use]
    pub(crate) fn into_test(mut self) -> Self {
        self.thread.metadata.clear();
        for run in &mut self.runs {
            run.spec = None;
        }
        self.code = None;
        (self.seal, self.pruned_seal) = (None, None);
        self
    }
}

/// Removes what a test does not need from a batch, see
/// [`Engine::export_test`](crate::engine::Engine::export_test).
pub(crate) fn make_test(batch: &mut StoredBatch) {
    batch.seal = None;
    for event in &mut batch.events {
        event.make_anonymous();
    }
    if let Some(checkpoint) = &mut batch.checkpoint {
        checkpoint.metadata.clear();
    }
}
