//! The workers of lanes: each begins what waits for its thread, one run after the other.

use std::time::Duration;

use wattle_graph::event::RunStatus;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ThreadId;
use wattle_run::call::runs::{RunRef, Runs as _};
use wattle_run::ports::memory::MemoryScope;

use crate::agents::Agents;
use crate::begin::begin;
use crate::doc::run::{Queued, RunDoc, Waiting, is_queued, queued, shelf};
use crate::queue::{Next, Turn};

/// Pause before looking again at a thread that somebody else has, or whose facts cannot be read.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Puts a run at the end of its lane.
pub(super) fn wait_for_turn(agents: &Agents, doc: RunDoc) {
    let thread = doc.thread.clone();
    let turn = Turn::new(doc, agents.now_ms());
    if agents.queue().push(turn) {
        let agents = agents.clone();
        tokio::spawn(async move {
            let mut stopping = agents.api().stopping.clone();
            tokio::select! {
                () = work(&agents, &thread) => {}
                // What waits then goes on after the next start.
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        });
    }
}

async fn work(agents: &Agents, thread: &ThreadId) {
    while let Some(next) = agents.queue().next(thread) {
        match next {
            Next::At(due, changed) => {
                let _ = tokio::time::timeout_at(due, changed.notified()).await;
            }
            Next::Turn(turn) => {
                if let Err(failure) = take_turn(agents, thread, &turn).await {
                    tracing::debug!(%thread, %failure, "a run waits on");
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
            }
        }
    }
}

/// Begins a run when the thread is free.
///
/// # Errors
///
/// Why it is to be tried again.
async fn take_turn(agents: &Agents, thread: &ThreadId, turn: &Turn) -> Result<(), Failure> {
    wait_until_free(agents, thread).await?;
    let _turnstile = agents.queue().enter(thread).await;
    // It may have been cancelled meanwhile.
    if agents.queue().left(thread, &turn.doc.run).is_none() {
        return Ok(());
    }
    // Another host may have begun it, or somebody taken it away there.
    if !is_queued(agents.ports(), &turn.doc.run).await? {
        agents.queue().take(thread, Some(&turn.doc.run));
        turn.left.send_replace(true);
        return Ok(());
    }
    match begin(agents, &turn.doc).await {
        Ok(_) => turn.doc.lighten(agents.ports()).await?,
        Err(failure) if failure.code == code::BUSY => return Err(failure),
        Err(failure) => {
            tracing::info!(%thread, run = %turn.doc.run, %failure, "a run cannot begin");
            let mut doc = RunDoc::clone(&turn.doc);
            doc.state = Waiting::Failed { failure };
            doc.save(agents.ports()).await?;
        }
    }
    queued(agents.ports()).delete(turn.doc.run.as_str()).await?;
    agents.queue().take(thread, Some(&turn.doc.run));
    turn.left.send_replace(true);
    Ok(())
}

async fn wait_until_free(agents: &Agents, thread: &ThreadId) -> Result<(), Failure> {
    let store = &agents.ports().store;
    let unreadable =
        |error: wattle_run::ports::store::StoreError| Failure::internal(error.to_string());
    loop {
        let head = store.thread(thread).await.map_err(unreadable)?;
        let Some(run) = head.and_then(|head| head.record.run) else { return Ok(()) };
        let record = store.run(&run).await.map_err(unreadable)?;
        if record.is_none_or(|record| record.status != RunStatus::Running) {
            return Ok(());
        }
        agents.engine().wait(&RunRef { thread: thread.clone(), run }).await?;
    }
}

impl Agents {
    /// Takes up the runs that waited when the host stopped. Answers how many.
    pub async fn recover(&self) -> usize {
        let entries: Vec<Queued> = match queued(self.ports()).every().await {
            Ok(entries) => entries,
            Err(failure) => {
                tracing::error!(%failure, "cannot look for runs that wait");
                return 0;
            }
        };
        let mut docs = Vec::with_capacity(entries.len());
        for entry in entries {
            match self.waiting(&entry).await {
                Ok(Some(doc)) => docs.push(doc),
                Ok(None) => {}
                Err(failure) => tracing::error!(run = %entry.run, %failure, "cannot take it up"),
            }
        }
        docs.sort_by(|one, other| (one.created_ms, &one.run).cmp(&(other.created_ms, &other.run)));
        let count = docs.len();
        for doc in docs {
            wait_for_turn(self, doc);
        }
        count
    }

    /// The document of a run that still waits; an entry whose run does not is removed.
    async fn waiting(&self, entry: &Queued) -> Result<Option<RunDoc>, Failure> {
        let ports = self.ports();
        let scope = MemoryScope::Host(entry.tenant.clone());
        let doc: Option<RunDoc> =
            shelf(ports, scope, &entry.thread).get(entry.run.as_str()).await?;
        let known = ports.store.run(&entry.run).await;
        let has_begun = known.map_err(|error| Failure::internal(error.to_string()))?.is_some();
        let doc = doc.filter(|doc| doc.state == Waiting::Pending && !has_begun);
        if doc.is_none() {
            queued(ports).delete(entry.run.as_str()).await?;
        }
        Ok(doc)
    }
}
