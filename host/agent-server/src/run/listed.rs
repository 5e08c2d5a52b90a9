//! Reads the runs of a thread page by page, newest first. The cost of the newest runs does not
//! depend on the length of the thread.

use std::collections::VecDeque;

use wattle_run::ports::store::{RunRecord, ThreadRecord};

use crate::agents::Agents;
use crate::fault::Fault;
use crate::run::KnownRun;

/// Number of records in one read: a few more than a page contains by default.
const READ: usize = 32;

/// A reader of the runs of a thread.
pub(crate) struct Listed<'a> {
    agents: &'a Agents,
    thread: &'a ThreadRecord,
    records: VecDeque<RunRecord>,
    /// The number of records that were read.
    read: usize,
    is_over: bool,
}

impl<'a> Listed<'a> {
    /// Creates a reader that begins with the newest run.
    pub(crate) fn new(agents: &'a Agents, thread: &'a ThreadRecord) -> Self {
        Self { agents, thread, records: VecDeque::new(), read: 0, is_over: false }
    }

    /// Returns the next run; `None` after the oldest.
    pub(crate) async fn next(&mut self) -> Result<Option<KnownRun>, Fault> {
        if self.records.is_empty() && !self.is_over {
            let store = &self.agents.ports().store;
            let page = store.newest_runs(&self.thread.id, self.read, READ).await?;
            self.read += page.items.len();
            self.is_over = page.is_last || page.items.is_empty();
            self.records = page.items.into();
        }
        match self.records.pop_front() {
            Some(record) => KnownRun::of(self.agents, self.thread, record).await.map(Some),
            None => Ok(None),
        }
    }
}
