//! Exports as tests: what the code did, without the principals that requested it.

use super::{Export, ExportHeader, ExportLine};
use crate::ports::store::StoredBatch;

impl ExportHeader {
    /// Removes what a test does not need, see [`Export::into_test`].
    #[must_use]
    pub(crate) fn into_test(mut self) -> Self {
        self.thread.metadata.clear();
        for run in &mut self.runs {
            run.spec = None;
        }
        self.code = None;
        self.parts.code = false;
        (self.seal, self.pruned_seal) = (None, None);
        self
    }
}

/// Removes what a test does not need from a batch, see [`Export::into_test`].
pub(crate) fn make_test(batch: &mut StoredBatch) {
    batch.seal = None;
    for event in &mut batch.events {
        event.make_anonymous();
    }
    if let Some(checkpoint) = &mut batch.checkpoint {
        checkpoint.metadata.clear();
    }
}

impl Export {
    /// Removes what another version of the code does not need to execute the thread again: the
    /// code, metadata of clients, and the principals of requests. Seals cover the principals, so
    /// the export has no seals, and a later change of the file is not detected.
    ///
    /// What nodes read stays: inputs, context, tenant, answers and results of calls.
    #[must_use]
    pub fn into_test(mut self) -> Self {
        self.header = self.header.into_test();
        self.code.clear();
        self.policy = None;
        self.batches.iter_mut().for_each(make_test);
        self
    }

    /// Returns the lines of the file, without line breaks.
    ///
    /// # Errors
    ///
    /// The error of a value that cannot be serialized. An export that was read has no such value.
    pub fn into_lines(self) -> Result<Vec<String>, serde_json::Error> {
        let Self { header, batches, code, policy, blobs } = self;
        let batches = batches.into_iter().map(|batch| ExportLine::Batch(Box::new(batch)));
        let rules = policy.into_iter().map(|rules| ExportLine::Rules(Box::new(rules)));
        let code = code.into_iter().map(ExportLine::Code).chain(rules);
        let blobs = blobs.into_iter().map(ExportLine::Blob);
        let first = serde_json::to_string(&header);
        let rest = code.chain(batches).chain(blobs).map(|line| serde_json::to_string(&line));
        std::iter::once(first).chain(rest).collect()
    }
}
