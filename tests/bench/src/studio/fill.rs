//! Fills a store with the threads of a plan.

use std::path::Path;

use anyhow::Result;
use wattle_run::ports::Store as _;
use wattle_run::ports::store::Ticket;
use wattle_store::RedbStore;

use super::plan::{Fields, Plan};
use super::thread_log::ThreadLog;

/// Bytes of the result of a host call in a short run.
const SHORT_RESULT_BYTES: usize = 400;

/// Bytes of the result of a host call in the long run.
const LONG_RESULT_BYTES: usize = 3_000;

/// Number of batches that wait for the disk together.
const BATCHES_IN_FLIGHT: usize = 1_000;

/// Writes all threads into a new file.
pub(super) async fn fill(file: &Path, plan: Plan) -> Result<()> {
    let store = RedbStore::open(file)?;
    let mut tickets = Vec::new();
    for fields in plan.fields() {
        let log = log_of(fields, plan)?;
        let thread = log.thread().clone();
        for batch in log.into_batches()? {
            tickets.push(store.append(&thread, batch).await);
        }
        if tickets.len() >= BATCHES_IN_FLIGHT {
            durable(&mut tickets).await?;
        }
    }
    durable(&mut tickets).await
}

fn log_of(fields: Fields, plan: Plan) -> Result<ThreadLog> {
    if fields.number == plan.long_thread() {
        return ThreadLog::new(fields, plan.calls, LONG_RESULT_BYTES);
    }
    ThreadLog::new(fields, 1, SHORT_RESULT_BYTES)
}

/// Waits until all batches are durable.
async fn durable(tickets: &mut Vec<Ticket>) -> Result<()> {
    for ticket in tickets.drain(..) {
        ticket.await?;
    }
    Ok(())
}
