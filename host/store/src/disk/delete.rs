//! Deletes a thread with everything that was ever written to it.

use redb::{Database, Error, WriteTransaction};
use wattle_graph::id::ThreadId;
use wattle_run::ports::store::StoreError;

use crate::disk::chain::walk;
use crate::disk::head::Head;
use crate::disk::snapshot::Snapshot;
use crate::disk::table::{HEADS, LOG, MARKS, MENTIONS, RECORDS, RUNS, THREAD_RUNS};
use crate::error::while_trying;

const DELETE: &str = "delete a thread";

/// Deletes a thread in a commit of its own; a missing one is not an error.
pub(crate) fn delete_thread(database: &Database, thread: &ThreadId) -> Result<(), StoreError> {
    let snapshot = Snapshot::take(database)?;
    let Some(head) = snapshot.head(thread)? else { return Ok(()) };
    let mut entries = Vec::new();
    for step in walk(&snapshot, head.frame) {
        let (number, header) = step?;
        entries.push(number..number + u64::from(header.chunks));
    }
    let runs = snapshot.runs(thread)?;
    let transaction = database.begin_write().map_err(while_trying(DELETE))?;
    let remove = || -> Result<(), Error> {
        remove_facts(&transaction, thread, &head)?;
        let mut table = transaction.open_table(RUNS)?;
        for run in &runs {
            table.remove(run.id.as_str().as_bytes())?;
        }
        let mut log = transaction.open_table(LOG)?;
        for number in entries.into_iter().rev().flatten() {
            log.remove(number)?;
        }
        Ok(())
    };
    remove().map_err(while_trying(DELETE))?;
    transaction.commit().map_err(while_trying(DELETE))
}

fn remove_facts(
    transaction: &WriteTransaction,
    thread: &ThreadId,
    head: &Head,
) -> Result<(), Error> {
    transaction.open_table(HEADS)?.remove(thread.as_str().as_bytes())?;
    transaction.open_table(RECORDS)?.remove(thread.as_str().as_bytes())?;
    let pairs = (head.number, 0)..=(head.number, u64::MAX);
    transaction.open_table(THREAD_RUNS)?.retain_in(pairs.clone(), |_, _| false)?;
    transaction.open_table(MARKS)?.retain_in(pairs, |_, _| false)?;
    let digests = (head.number, [0; 32])..=(head.number, [u8::MAX; 32]);
    transaction.open_table(MENTIONS)?.retain_in(digests, |_, ()| false)?;
    Ok(())
}
