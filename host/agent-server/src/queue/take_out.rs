//! Runs that are taken out of the queue before their turn, on whichever host they wait.

use std::time::Duration;

use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::memory::MemoryScope;

use crate::agents::Agents;
use crate::doc::queued::{Queued, Stage, entry, leave, of_thread, queued};
use crate::doc::run::{RunDoc, Waiting, shelf};
use crate::fault::Fault;

/// Attempts at a run that changes hands meanwhile or is just beginning: ten seconds, far more than
/// either takes.
const ATTEMPTS: usize = 100;

/// Pause between them.
const PAUSE: Duration = Duration::from_millis(100);

/// Takes runs that wait out of the queue: the one that is named, or all of the thread. They are
/// told as cancelled, or are forgotten. Answers how many.
///
/// # Errors
///
/// 503 if a run is about to begin for long; those of the memory and the store.
pub(crate) async fn drop_waiting(
    agents: &Agents,
    thread: &ThreadId,
    run: Option<&RunId>,
    forget: bool,
) -> Result<usize, Fault> {
    let runs = match run {
        Some(run) => vec![run.clone()],
        None => {
            let all = of_thread(agents.ports(), thread).await?;
            all.into_iter().map(|entry| entry.doc.run).collect()
        }
    };
    let mut dropped = 0;
    for run in runs {
        dropped += usize::from(drop_one(agents, thread, &run, forget).await?);
    }
    // Those that another host has taken out before.
    agents.queue().leave(thread, run);
    Ok(dropped)
}

/// Answers whether the run was waiting.
async fn drop_one(
    agents: &Agents,
    thread: &ThreadId,
    run: &RunId,
    forget: bool,
) -> Result<bool, Fault> {
    let ports = agents.ports();
    for _ in 0..ATTEMPTS {
        let Some(entry) = entry(ports, thread, run).await? else { return Ok(false) };
        if ports.store.run(run).await?.is_some() {
            return Ok(false);
        }
        // Its host begins it right now, or has died over that.
        if entry.doc.stage == Stage::Taken && agents.is_present(&entry.doc.host).await? {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let dropped = entry.doc.with(Stage::Dropped { forget });
        if let Some(dropped) = queued(ports).change(&entry, dropped).await? {
            finish_drop(agents, &dropped.doc, forget).await?;
            return Ok(true);
        }
    }
    let text = format!("run `{run}` is about to begin on another host; try again");
    Err(Failure::new(code::UNAVAILABLE, text).into())
}

/// Does with a run what its entry says since it is dropped.
pub(super) async fn finish_drop(
    agents: &Agents,
    entry: &Queued,
    forget: bool,
) -> Result<(), Failure> {
    let (ports, thread, run) = (agents.ports(), &entry.thread, &entry.run);
    let documents = shelf(ports, MemoryScope::Host(entry.tenant.clone()), thread);
    if forget {
        documents.delete(run.as_str()).await?;
    } else {
        let doc: Option<RunDoc> = documents.get(run.as_str()).await?;
        if let Some(doc) = doc.filter(|doc| doc.state == Waiting::Pending) {
            RunDoc { state: Waiting::Cancelled, ..doc }.save(ports).await?;
        }
    }
    leave(ports, thread, run).await?;
    agents.queue().leave(thread, Some(run));
    Ok(())
}
