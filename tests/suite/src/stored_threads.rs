//! Threads that are written into a store before its host starts, for stores with more threads than
//! runs can make in the time of a test.

mod thread;
mod thread_log;

use std::path::Path;

use anyhow::Result;
use wattle_run::ports::Store as _;
use wattle_run::ports::store::Ticket;
use wattle_store::RedbStore;

pub use self::thread::StoredThread;
use self::thread_log::ThreadLog;
pub use self::thread_log::{events_of_run, seq_of_result, text};

/// Number of batches that wait for the disk together.
const BATCHES_IN_FLIGHT: usize = 1_000;

/// Writes threads into a file, which is created if it does not exist. No host may use the file
/// meanwhile.
///
/// # Errors
///
/// The first error of the threads, or the error of the store.
pub async fn fill(
    file: &Path,
    threads: impl IntoIterator<Item = Result<StoredThread>>,
) -> Result<()> {
    let store = RedbStore::open(file)?;
    let mut tickets = Vec::new();
    for thread in threads {
        let log = ThreadLog::new(thread?)?;
        let thread = log.thread().clone();
        for batch in log.into_batches() {
            tickets.push(store.append(&thread, batch).await);
        }
        if tickets.len() >= BATCHES_IN_FLIGHT {
            durable(&mut tickets).await?;
        }
    }
    durable(&mut tickets).await
}

/// Waits until all batches are durable.
async fn durable(tickets: &mut Vec<Ticket>) -> Result<()> {
    for ticket in tickets.drain(..) {
        ticket.await?;
    }
    Ok(())
}
