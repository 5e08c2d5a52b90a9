//! Facts of a thread that a client changes while a run is at work.
//!
//! The run has the facts as they were when it began and writes them with its own. What was changed
//! meanwhile is put over them each time, so that neither is lost.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::failure::Failure;

use super::{Commit, ThreadLog, durable};
use crate::facts;
use crate::ports::store::{StoreError, ThreadRecord, ThreadTtl};

/// What is changed of the facts of a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Amendment {
    /// Facts that are added, or take the place of those of the same name.
    pub(crate) metadata: BTreeMap<String, Value>,
    /// How long it is kept; as it is set already without it.
    pub(crate) ttl: Option<ThreadTtl>,
}

/// What came of an amendment.
#[derive(Debug)]
pub(crate) enum Amended {
    /// The facts as they are now.
    Done(ThreadRecord),
    /// Nothing: nothing of the thread was written yet.
    TooEarly,
    /// Nothing: they would be too large.
    TooLarge(Failure),
}

impl Amendment {
    /// Changes the facts.
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
    /// Changes facts of the thread, now and in all that is written later. Answers once they are
    /// durable.
    ///
    /// # Errors
    ///
    /// As [`Self::barrier`]; [`StoreError::Fenced`] if the run has ended meanwhile.
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
