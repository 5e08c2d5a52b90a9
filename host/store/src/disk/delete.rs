//! Takes everything of a thread out of the file.

use std::ops::Range;
use std::sync::Arc;

use redb::{Database, Error, WriteTransaction};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::StoreError;

use crate::disk::chain::walk;
use crate::disk::head::Head;
use crate::disk::snapshot::Snapshot;
use crate::disk::table::{HEADS, LOG, MARKS, MENTIONS, RECORDS, RUNS, THREAD_RUNS};
use crate::error::while_trying;

const DELETE: &str = "delete a thread";

/// Deletes a thread in a commit of its own; a missing one is not an error.
pub(crate) fn delete_thread(database: &Arc<Database>, thread: &ThreadId) -> Result<(), StoreError> {
    let Some(content) = Content::find(&Snapshot::take(database.clone())?, thread)? else {
        return Ok(());
    };
    let transaction = database.begin_write().map_err(while_trying(DELETE))?;
    content.remove(&transaction).map_err(while_trying(DELETE))?;
    transaction.commit().map_err(while_trying(DELETE))
}

/// What the file has of a thread.
#[derive(Debug)]
pub(crate) struct Content {
    thread: ThreadId,
    pub(crate) head: Head,
    /// Entries of the log, newest first.
    entries: Vec<Range<u64>>,
    runs: Vec<RunId>,
}

impl Content {
    /// Finds it; `None` for a missing thread.
    pub(crate) fn find(snapshot: &Snapshot, thread: &ThreadId) -> Result<Option<Self>, StoreError> {
        let Some(head) = snapshot.head(thread)? else { return Ok(None) };
        let mut entries = Vec::new();
        for step in walk(snapshot, head.frame) {
            let (number, header) = step?;
            entries.push(number..number + u64::from(header.chunks));
        }
        let runs = snapshot.runs(thread)?.into_iter().map(|run| run.id).collect();
        Ok(Some(Self { thread: thread.clone(), head, entries, runs }))
    }

    /// Removes all of it.
    pub(crate) fn remove(self, transaction: &WriteTransaction) -> Result<(), Error> {
        let thread = self.thread.as_str().as_bytes();
        transaction.open_table(HEADS)?.remove(thread)?;
        transaction.open_table(RECORDS)?.remove(thread)?;
        let pairs = (self.head.number, 0)..=(self.head.number, u64::MAX);
        transaction.open_table(THREAD_RUNS)?.retain_in(pairs.clone(), |_, _| false)?;
        transaction.open_table(MARKS)?.retain_in(pairs, |_, _| false)?;
        let digests = (self.head.number, [0; 32])..=(self.head.number, [u8::MAX; 32]);
        transaction.open_table(MENTIONS)?.retain_in(digests, |_, ()| false)?;
        let mut runs = transaction.open_table(RUNS)?;
        for run in &self.runs {
            runs.remove(run.as_str().as_bytes())?;
        }
        let mut log = transaction.open_table(LOG)?;
        for number in self.entries.into_iter().rev().flatten() {
            log.remove(number)?;
        }
        Ok(())
    }
}
