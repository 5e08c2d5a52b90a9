//! The runs of a thread, the newest first, read only as far as somebody wants to see them: a page of
//! the newest costs the same however long the thread is.

use std::collections::VecDeque;

use wattle_run::ports::store::{RunRecord, ThreadRecord};

use crate::agents::Agents;
use crate::fault::Fault;
use crate::run::KnownRun;

/// Records that are read at once: some more than a page has that says nothing else.
const READ: usize = 32;

/// Reads the runs of a thread.
pub(crate) struct Listed<'a> {
    agents: &'a Agents,
    thread: &'a ThreadRecord,
    records: VecDeque<RunRecord>,
    /// How many records were read.
    read: usize,
    is_over: bool,
}

impl<'a> Listed<'a> {
    /// From the newest on.
    pub(crate) fn new(agents: &'a Agents, thread: &'a ThreadRecord) -> Self {
        Self { agents, thread, records: VecDeque::new(), read: 0, is_over: false }
    }

    /// The next run; `None` after the oldest.
    pub(crate) async fn next(&mut self) -> Result<Option<KnownRun>, Fault> {
        if self.records.is_empty() && !self.is_over {
            let store = &self.agents.ports().store;
            let records = store.newest_runs(&self.thread.id, self.read, READ).await?;
            self.read += records.len();
            self.is_over = records.len() < READ;
            self.records = records.into();
        }
        match self.records.pop_front() {
            Some(record) => KnownRun::of(self.agents, self.thread, record).await.map(Some),
            None => Ok(None),
        }
    }
}
