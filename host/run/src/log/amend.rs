//! Metadata updates during a run.
//!
//! The run writes the thread record that it read at its start. Every write merges the pending
//! metadata update into that record, so neither change is lost.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::failure::Failure;

use super::{Commit, ThreadLog, durable};
use crate::facts;
use crate::ports::store::{StoreError, ThreadRecord, ThreadTtl};

/// An update of a thread's metadata and time to live.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Amendment {
    /// Entries that are added or replace entries of the same name.
    pub(crate) metadata: BTreeMap<String, Value>,
    /// The new time to live; `None` keeps the current one.
    pub(crate) ttl: Option<ThreadTtl>,
}

/// Result of a metadata update.
#[derive(Debug)]
pub(crate) enum Amended {
    /// The updated record.
    Done(ThreadRecord),
    /// Not applied: the run has not written a record of the thread yet.
    TooEarly,
    /// Not applied: the metadata would be too large.
    TooLarge(Failure),
}

impl Amendment {
    /// Applies the update to a record.
    pub(crate) fn apply(&self, record: &mut ThreadRecord) {
        record.metadata.extend(self.metadata.clone());
        record.ttl = self.ttl.or(record.ttl);
    }

    fn add(&mut self, further: Self) {
        self.metadata.extend(further.metadata);
        self.ttl = further.ttl.or(self.ttl);
    }
}

impl ThreadLog {
    /// Updates the metadata of the thread, now and in all later writes of the run. Returns when the
    /// update is durable.
    ///
    /// # Errors
    ///
    /// See [`Self::barrier`]; [`StoreError::Fenced`] if the run has ended meanwhile.
    pub(crate) async fn amend(&self, amendment: Amendment) -> Result<Amended, StoreError> {
        let (record, last) = {
            let mut order = self.writer.order.lock().await;
            order.settle().await;
            let Some(mut record) = order.record.clone() else { return Ok(Amended::TooEarly) };
            if let Err(failure) = facts::check_added(&record.metadata, &amendment.metadata) {
                return Ok(Amended::TooLarge(failure));
            }
            order.amended.add(amendment);
            record.updated_ms = self.writer.clock.now_ms();
            let commit = Commit { record: Some(record), ..Commit::default() };
            self.hand_over(&mut order, commit);
            order.settle().await;
            (order.record.clone(), order.last.clone())
        };
        durable(last).await?;
        Ok(record.map_or(Amended::TooEarly, Amended::Done))
    }
}
