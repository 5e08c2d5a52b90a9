//! Runs that wait for their turn, as all hosts see them that share the documents: which host has
//! each in hand, and how far it is.
//!
//! A run leaves the queue by two steps. Somebody says in the entry what becomes of it, which only
//! one can, and when that is done the entry goes: whoever finds one of a host that died knows what
//! was meant.

use serde::{Deserialize, Serialize};
use wattle_graph::failure::Failure;
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::Ports;
use wattle_run::ports::memory::MemoryScope;

use crate::doc::run::RunDoc;
use crate::doc::{Kept, Shelf};

/// Between thread and run in the keys of entries. Ids of runs that wait are UUIDs, so those of
/// threads may hold it.
const BETWEEN: char = '/';

/// A run in a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Queued {
    pub(crate) run: RunId,
    pub(crate) thread: ThreadId,
    pub(crate) tenant: Option<String>,
    /// The host that begins it when its turn comes.
    pub(crate) host: String,
    pub(crate) stage: Stage,
}

/// How far a run in a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Stage {
    /// It waits.
    Waiting,
    /// Its host is about to begin it.
    Taken,
    /// Somebody takes it out.
    Dropped {
        /// Whether it is forgotten, and not told as cancelled.
        forget: bool,
    },
}

impl Queued {
    /// A run that waits on a host.
    pub(crate) fn new(doc: &RunDoc, host: &str) -> Self {
        Self {
            run: doc.run.clone(),
            thread: doc.thread.clone(),
            tenant: doc.tenant.clone(),
            host: host.to_owned(),
            stage: Stage::Waiting,
        }
    }

    /// The same in another stage.
    pub(crate) fn with(&self, stage: Stage) -> Self {
        Self { stage, ..self.clone() }
    }

    /// Writes it down, durable when this returns. `false` if another entry of the run is there.
    pub(crate) async fn make(self, ports: &Ports) -> Result<bool, Failure> {
        let key = key(&self.thread, &self.run);
        Ok(queued(ports).make(&key, self).await?.is_some())
    }
}

/// The entry of a run that is in a queue, on any host.
pub(crate) async fn entry(
    ports: &Ports,
    thread: &ThreadId,
    run: &RunId,
) -> Result<Option<Kept<Queued>>, Failure> {
    queued(ports).get_to_change(&key(thread, run)).await
}

/// Forgets the entry of a run.
pub(crate) async fn leave(ports: &Ports, thread: &ThreadId, run: &RunId) -> Result<(), Failure> {
    queued(ports).delete(&key(thread, run)).await
}

/// The entries of a thread, of all hosts.
pub(crate) async fn of_thread(
    ports: &Ports,
    thread: &ThreadId,
) -> Result<Vec<Kept<Queued>>, Failure> {
    let mut found: Vec<Kept<Queued>> = queued(ports).under(&format!("{thread}{BETWEEN}")).await?;
    found.retain(|entry| entry.doc.thread == *thread);
    Ok(found)
}

/// Whether a run is in a queue, on this host or on another that shares the documents. Whoever
/// begins it makes that durable first, so look here before the store is asked for the run.
pub(crate) async fn is_queued(
    ports: &Ports,
    thread: &ThreadId,
    run: &RunId,
) -> Result<bool, Failure> {
    let entry = entry(ports, thread, run).await?;
    Ok(entry.is_some_and(|entry| entry.doc.stage != Stage::Dropped { forget: true }))
}

/// The runs of all tenants and hosts that are in a queue.
pub(crate) fn queued(ports: &Ports) -> Shelf<'_> {
    Shelf::new(ports, MemoryScope::Host(None), &["waiting"])
}

fn key(thread: &ThreadId, run: &RunId) -> String {
    format!("{thread}{BETWEEN}{run}")
}
