//! Start times of hosts: the time until a host responds to requests.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use wattle_graph::id::ThreadId;
use wattle_run::ports::Store as _;
use wattle_run::ports::store::{Batch, ThreadRecord};
use wattle_store::RedbStore;
use wattle_suite::attack::host::{Host, Prepared};
use wattle_suite::attack::killed::{Killed, amid_tasks};
use wattle_suite::attack::poison;

/// Number of runs that cannot be recovered.
pub(super) const THREADS: usize = 50;

/// Number of threads of the host with many threads.
pub(super) const MANY: usize = 25_000;

/// Measures a host with an empty store.
pub(super) async fn empty(binary: &Path) -> Result<Duration> {
    // The first start fills the cache of compiled code.
    Host::start(binary).await?.terminate().await?;
    listens(Prepared::new().await?, binary).await
}

/// Measures a host whose store has runs that cannot be recovered.
pub(super) async fn poisoned(binary: &Path) -> Result<Duration> {
    let (prepared, _gate) = poison::poisoned(binary, THREADS).await?;
    listens(prepared, binary).await
}

/// Measures a host whose store has many threads and one run that cannot be recovered.
pub(super) async fn many(binary: &Path) -> Result<Duration> {
    let (prepared, _gate) = poison::poisoned(binary, 1).await?;
    add_threads(&prepared.workspace.store_file()).await?;
    listens(prepared, binary).await
}

/// Measures a host whose store has a run that was cut in the middle of thousands of tasks.
pub(super) async fn killed(binary: &Path) -> Result<Duration> {
    let Killed { prepared, gate: _gate, .. } = amid_tasks(binary).await?;
    listens(prepared, binary).await
}

/// Adds threads without runs to a store.
async fn add_threads(file: &Path) -> Result<()> {
    let store = RedbStore::open(file)?;
    let mut tickets = Vec::with_capacity(MANY);
    for number in 0..MANY {
        let id = ThreadId::new(format!("idle-{number}"))?;
        let record = Some(ThreadRecord::unbound(id.clone(), 0));
        tickets.push(store.append(&id, Batch { record, ..Batch::default() }).await);
    }
    for ticket in tickets {
        ticket.await?;
    }
    Ok(())
}

async fn listens(prepared: Prepared, binary: &Path) -> Result<Duration> {
    let begin = Instant::now();
    let host = prepared.start(binary).await?;
    let taken = begin.elapsed();
    host.honest.run().await?;
    host.terminate().await?;
    Ok(taken)
}
