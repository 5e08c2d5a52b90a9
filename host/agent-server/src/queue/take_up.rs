//! Runs that waited on a host which is there no more, and runs that another host has taken on.

use std::collections::HashSet;

use wattle_graph::failure::Failure;
use wattle_graph::id::RunId;
use wattle_run::ports::memory::MemoryScope;

use crate::agents::Agents;
use crate::doc::Kept;
use crate::doc::queued::{Queued, Stage, entry, leave, queued};
use crate::doc::run::{RunDoc, Waiting, shelf};
use crate::hosts::Present;
use crate::queue::take_out::finish_drop;
use crate::queue::work::wait_for_turn;

impl Agents {
    /// Takes up the runs that waited when the host stopped. Answers how many.
    pub async fn recover(&self) -> usize {
        let taken = async {
            let entries = listed(self).await?;
            take_up(self, &entries, &self.present().await?).await
        };
        taken.await.unwrap_or_else(|failure| {
            tracing::error!(%failure, "cannot look for runs that wait");
            0
        })
    }
}

/// The runs that are in a queue, on all hosts.
///
/// # Errors
///
/// Those of the memory.
pub(crate) async fn listed(agents: &Agents) -> Result<Vec<Kept<Queued>>, Failure> {
    queued(agents.ports()).under("").await
}

/// Takes up of those what nobody brings to its end, and lets go what does not wait here any more.
/// Answers how much it took up.
///
/// # Errors
///
/// Those of the memory.
pub(crate) async fn take_up(
    agents: &Agents,
    entries: &[Kept<Queued>],
    present: &Present,
) -> Result<usize, Failure> {
    let is_own = |entry: &&Kept<Queued>| entry.doc.host == agents.host();
    let own: HashSet<RunId> =
        entries.iter().filter(is_own).map(|entry| entry.doc.run.clone()).collect();
    let_go(agents, &own).await?;
    let mut docs = Vec::new();
    for entry in entries.iter().filter(|entry| is_left(agents, &entry.doc, present)) {
        match taken_up(agents, entry).await {
            Ok(doc) => docs.extend(doc),
            Err(failure) => {
                tracing::error!(run = %entry.doc.run, %failure, "cannot take it up");
            }
        }
    }
    docs.sort_by(|one, other| (one.created_ms, &one.run).cmp(&(other.created_ms, &other.run)));
    let count = docs.len();
    for doc in docs {
        wait_for_turn(agents, doc);
    }
    Ok(count)
}

/// Whether nobody may bring a run to the end of its waiting: its host is not present, whoever
/// dropped it may have failed halfway, or this host has written it down without hearing so.
fn is_left(agents: &Agents, entry: &Queued, present: &Present) -> bool {
    match entry.stage {
        Stage::Dropped { .. } => true,
        Stage::Waiting if entry.host == agents.host() => {
            agents.queue().left(&entry.thread, &entry.run).is_none()
        }
        Stage::Waiting | Stage::Taken => !present.has(&entry.host),
    }
}

/// The document of a run that from now on waits here. What its host was about to do with a run that
/// does not wait any more is done.
async fn taken_up(agents: &Agents, entry: &Kept<Queued>) -> Result<Option<RunDoc>, Failure> {
    let (ports, queued_run) = (agents.ports(), &entry.doc);
    if let Stage::Dropped { forget } = queued_run.stage {
        finish_drop(agents, queued_run, forget).await?;
        return Ok(None);
    }
    let scope = MemoryScope::Host(queued_run.tenant.clone());
    let doc: Option<RunDoc> =
        shelf(ports, scope, &queued_run.thread).get(queued_run.run.as_str()).await?;
    let known = ports.store.run(&queued_run.run).await;
    let has_begun = known.map_err(|error| Failure::internal(error.to_string()))?.is_some();
    let Some(doc) = doc.filter(|doc| doc.state == Waiting::Pending && !has_begun) else {
        leave(ports, &queued_run.thread, &queued_run.run).await?;
        return Ok(None);
    };
    let own = Queued::new(&doc, agents.host());
    Ok(queued(ports).change(entry, own).await?.map(|_| doc))
}

/// Takes runs out of the lanes that do not wait here any more, by the word of another host.
async fn let_go(agents: &Agents, listed: &HashSet<RunId>) -> Result<(), Failure> {
    for (thread, run) in agents.queue().waiting() {
        if listed.contains(&run) {
            continue;
        }
        // It may have come to the queue since the list was made.
        let entry = entry(agents.ports(), &thread, &run).await?;
        if entry.is_none_or(|entry| entry.doc.host != agents.host()) {
            agents.queue().leave(&thread, Some(&run));
        }
    }
    Ok(())
}
