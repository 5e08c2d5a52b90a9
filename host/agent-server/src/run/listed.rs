//! The runs of a thread, the newest first, read only as far as somebody wants to see them.
//!
//! Runs that were asked for here have documents, whose keys grow with the time at which that was;
//! runs of another API have only the records of the store. Both are read from their newest on and
//! put together by time, so a page of the newest costs the same however long the thread is.

use std::collections::VecDeque;

use wattle_graph::id::RunId;
use wattle_run::ports::memory::MemoryScope;
use wattle_run::ports::store::{RunRecord, ThreadRecord};

use crate::agents::Agents;
use crate::doc::Shelf;
use crate::doc::run::{RunDoc, shelf};
use crate::fault::Fault;
use crate::run::KnownRun;

/// Documents or records that are read at once: some more than a page has that says nothing else.
const READ: usize = 32;

/// Reads the runs of a thread.
pub(crate) struct Listed<'a> {
    agents: &'a Agents,
    thread: &'a ThreadRecord,
    docs: VecDeque<RunDoc>,
    /// The oldest document that was read.
    before: Option<String>,
    are_docs_over: bool,
    records: VecDeque<RunRecord>,
    /// How many records were read.
    read: usize,
    are_records_over: bool,
}

impl<'a> Listed<'a> {
    /// From the newest on.
    pub(crate) fn new(agents: &'a Agents, thread: &'a ThreadRecord) -> Self {
        Self {
            agents,
            thread,
            docs: VecDeque::new(),
            before: None,
            are_docs_over: false,
            records: VecDeque::new(),
            read: 0,
            are_records_over: false,
        }
    }

    /// The next run; `None` after the oldest.
    pub(crate) async fn next(&mut self) -> Result<Option<KnownRun>, Fault> {
        loop {
            self.fill().await?;
            let run = match (self.docs.front(), self.records.front()) {
                (None, None) => return Ok(None),
                (Some(doc), Some(record)) if doc.run == record.id => self.both(),
                (Some(doc), Some(record)) if age(doc) >= (record.started_ms, &record.id) => {
                    self.of_doc().await?
                }
                (Some(_), None) => self.of_doc().await?,
                (_, Some(_)) => self.of_record().await?,
            };
            if run.is_some() {
                return Ok(run);
            }
        }
    }

    fn both(&mut self) -> Option<KnownRun> {
        Some(KnownRun { doc: self.docs.pop_front()?, record: self.records.pop_front() })
    }

    /// A run that waits, could not begin, or began later than others that were asked for after it.
    async fn of_doc(&mut self) -> Result<Option<KnownRun>, Fault> {
        match self.docs.pop_front() {
            Some(doc) => KnownRun::look(self.agents, self.thread, &doc.run).await,
            None => Ok(None),
        }
    }

    /// A run of another API. One that has a document comes with that.
    async fn of_record(&mut self) -> Result<Option<KnownRun>, Fault> {
        let Some(record) = self.records.pop_front() else { return Ok(None) };
        let doc: Option<RunDoc> = self.shelf().get(record.id.as_str()).await?;
        Ok(doc.is_none().then(|| KnownRun::of_record(self.agents, self.thread, record)))
    }

    async fn fill(&mut self) -> Result<(), Fault> {
        if self.docs.is_empty() && !self.are_docs_over {
            let docs: Vec<RunDoc> = self.shelf().down(self.before.as_deref(), READ).await?;
            self.before = docs.last().map(|doc| doc.run.to_string());
            self.are_docs_over = docs.is_empty();
            self.docs = docs.into();
        }
        if self.records.is_empty() && !self.are_records_over {
            let store = &self.agents.ports().store;
            let records = store.newest_runs(&self.thread.id, self.read, READ).await?;
            self.read += records.len();
            self.are_records_over = records.len() < READ;
            self.records = records.into();
        }
        Ok(())
    }

    fn shelf(&self) -> Shelf<'a> {
        let scope = MemoryScope::Host(self.thread.tenant.clone());
        shelf(self.agents.ports(), scope, &self.thread.id)
    }
}

/// When a run was asked for; of several at that time the one of the larger id was later.
fn age(doc: &RunDoc) -> (i64, &RunId) {
    (doc.created_ms, &doc.run)
}
