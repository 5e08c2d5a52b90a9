//! Metadata updates during a run.
//!
//! The run writes the thread record that it read at its start. Every write merges the pending
//! metadata update into that record, so neither change is lost.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::failure::Failure;

use super::{Commit, ThreadLog, wait_ticket};
use crate::metadata;
use crate::ports::store::{StoreError, ThreadRecord, ThreadTtl};

/// An update of a thread's metadata and time to live.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MetadataUpdate {
    /// Entries that are added or replace entries of the same name.
    pub(crate) metadata: BTreeMap<String, Value>,
    /// The new time to live; `None` keeps the current one.
    pub(crate) ttl: Option<ThreadTtl>,
}

/// Result of a metadata update.
#[derive(Debug)]
pub(crate) enum UpdateOutcome {
    /// The updated record.
    Applied(Box<ThreadRecord>),
    /// Not applied: the run has not written a record of the thread yet.
    NoRecordYet,
    /// Not applied: the caller rejects the record, or the metadata would be too large.
    Rejected(Failure),
}

impl MetadataUpdate {
    /// Applies the update to a record.
    pub(crate) fn apply(&self, record: &mut ThreadRecord) {
        record.metadata.extend(self.metadata.clone());
        record.ttl = self.ttl.or(record.ttl);
    }

    fn merge(&mut self, further: Self) {
        self.metadata.extend(further.metadata);
        self.ttl = further.ttl.or(self.ttl);
    }
}

impl ThreadLog {
    /// Updates the metadata of the thread, now and in all later writes of the run, if `check`
    /// accepts the record of the run. Returns when the update is durable.
    ///
    /// # Errors
    ///
    /// See [`Self::wait_durable`]; [`StoreError::Fenced`] if the run has ended meanwhile;
    /// [`StoreError::Conflict`] if earlier events, such as the start of the run, were not written.
    pub(crate) async fn update_metadata(
        &self,
        amendment: MetadataUpdate,
        check: impl FnOnce(&ThreadRecord) -> Result<(), Failure> + Send,
    ) -> Result<UpdateOutcome, StoreError> {
        let (record, last) = {
            let mut order = self.writer.queue.lock().await;
            order.wait_accepted().await;
            let Some(mut record) = order.record.clone() else {
                return Ok(UpdateOutcome::NoRecordYet);
            };
            let checked = check(&record)
                .and_then(|()| metadata::check_merged_size(&record.metadata, &amendment.metadata));
            if let Err(failure) = checked {
                return Ok(UpdateOutcome::Rejected(failure));
            }
            order.metadata_update.merge(amendment);
            record.updated_ms = self.writer.clock.now_ms();
            let commit = Commit { record: Some(record), ..Commit::default() };
            self.enqueue(&mut order, commit);
            order.wait_accepted().await;
            (order.record.clone(), order.last.clone())
        };
        wait_ticket(last).await?;
        Ok(record
            .map_or(UpdateOutcome::NoRecordYet, |record| UpdateOutcome::Applied(Box::new(record))))
    }
}
