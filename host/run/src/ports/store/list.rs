//! Lists that a store reads page by page: their queries and their items.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, CheckpointId, GraphName, Namespace, RunId, ThreadId};
use wattle_graph::weight::weight;

use super::{RunRecord, ThreadFailure, ThreadRecord, ThreadStatus};
use crate::metadata::STATELESS_MARKER;
use crate::meter::model_usage::ModelUsage;

/// A page of a list. A page ends at the limit of its query, or before an item with which the page
/// would take too much memory. The first item may be of any size, so every reader makes progress.
#[derive(Clone, Debug, PartialEq)]
pub struct ListPage<T> {
    /// The items, in the order of the list.
    pub items: Vec<T>,
    /// True if no item follows. False if one may follow.
    pub is_last: bool,
}

impl<T> ListPage<T> {
    /// Returns the only page of a list without items.
    #[must_use]
    pub fn empty() -> Self {
        Self { items: Vec::new(), is_last: true }
    }
}

/// The order of a list of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadOrder {
    /// By the time of the last update, newest first.
    #[default]
    Update,
    /// By id. A reader of all threads continues after the last thread of a page, also while threads
    /// change.
    Id,
}

/// A query of threads.
#[derive(Clone, Debug, Default)]
pub struct ThreadQuery {
    /// Only threads of this app.
    pub app: Option<AppName>,
    /// Only threads with this status.
    pub status: Option<ThreadStatus>,
    /// True if [stopped](ThreadRecord::stopped) threads count as interrupted, and not as idle.
    pub stopped_as_interrupted: bool,
    /// Only threads of this tenant.
    pub tenant: Option<String>,
    /// Only threads that expire at or before this time.
    pub expires_by_ms: Option<i64>,
    /// Only threads that have not [expired](ThreadRecord::is_expired) at this time.
    pub unexpired_at_ms: Option<i64>,
    /// Only threads whose time to live has ended at this time.
    pub ttl_ended_by_ms: Option<i64>,
    /// Only threads with ids after this id.
    pub after: Option<ThreadId>,
    /// Order of the list.
    pub order: ThreadOrder,
    /// Maximum number of threads. Unlimited if `None`.
    pub limit: Option<usize>,
    /// Number of threads to skip.
    pub offset: usize,
}

/// A query of the checkpoints of a thread, newest first.
#[derive(Clone, Debug, Default)]
pub struct CheckpointQuery {
    /// Only checkpoints of the graph with this namespace. All graphs if `None`.
    pub namespace: Option<Namespace>,
    /// Only checkpoints before this checkpoint.
    pub before: Option<CheckpointId>,
    /// Conditions that must all hold: `source`, `step`, `run` or a metadata key with the given
    /// value.
    pub filter: BTreeMap<String, Value>,
    /// Maximum number of checkpoints. Unlimited if `None`.
    pub limit: Option<usize>,
    /// The parts that are read.
    pub parts: CheckpointParts,
}

/// A thread in a list: its record without the run context, which may be large.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadSummary {
    /// The thread.
    pub id: ThreadId,
    /// The app of the thread.
    pub app: AppName,
    /// The graph of the thread.
    pub graph: GraphName,
    /// Current status.
    pub status: ThreadStatus,
    /// True if the last run was cancelled before the end of the graph, see
    /// [`ThreadRecord::stopped`].
    #[serde(default)]
    pub stopped: bool,
    /// Failure of the newest run, see [`ThreadRecord::failure`].
    #[serde(default)]
    pub failure: Option<ThreadFailure>,
    /// The newest run.
    pub run: Option<RunId>,
    /// Time of creation, milliseconds since 1970.
    pub created_ms: i64,
    /// Time of the last update, milliseconds since 1970.
    pub updated_ms: i64,
    /// Time of expiry, milliseconds since 1970.
    pub expires_ms: Option<i64>,
    /// Tenant that owns the thread.
    pub tenant: Option<String>,
    /// Metadata of the client.
    #[serde(default)]
    pub metadata: BTreeMap<String, Value>,
}

impl ThreadSummary {
    /// Returns the approximate size in memory, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let metadata = self.metadata.iter().map(|(name, value)| name.len() as u64 + weight(value));
        let failure = self.failure.as_ref().map_or(0, |it| it.code.len() + it.message.len());
        size_of::<Self>() as u64 + failure as u64 + metadata.sum::<u64>()
    }
}

impl From<&ThreadRecord> for ThreadSummary {
    fn from(record: &ThreadRecord) -> Self {
        Self {
            id: record.id.clone(),
            app: record.app.clone(),
            graph: record.graph.clone(),
            status: record.status,
            stopped: record.stopped,
            failure: record.failure.clone(),
            run: record.run.clone(),
            created_ms: record.created_ms,
            updated_ms: record.updated_ms,
            expires_ms: record.expires_ms,
            tenant: record.tenant.clone(),
            metadata: record.metadata.clone(),
        }
    }
}

/// A thread in a list of all threads: the fields by which a reader sorts and selects threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadKey {
    /// The thread.
    pub id: ThreadId,
    /// Current status.
    pub status: ThreadStatus,
    /// True if the last run was cancelled before the end of the graph, see
    /// [`ThreadRecord::stopped`].
    pub stopped: bool,
    /// True if the metadata has the [marker of stateless runs](STATELESS_MARKER).
    pub is_stateless: bool,
    /// Time of creation, milliseconds since 1970.
    pub created_ms: i64,
    /// Time of the last update, milliseconds since 1970.
    pub updated_ms: i64,
}

impl From<&ThreadSummary> for ThreadKey {
    fn from(thread: &ThreadSummary) -> Self {
        Self {
            id: thread.id.clone(),
            status: thread.status,
            stopped: thread.stopped,
            is_stateless: thread.metadata.contains_key(STATELESS_MARKER),
            created_ms: thread.created_ms,
            updated_ms: thread.updated_ms,
        }
    }
}

impl From<&ListPage<ThreadSummary>> for ListPage<ThreadKey> {
    fn from(page: &ListPage<ThreadSummary>) -> Self {
        Self { items: page.items.iter().map(ThreadKey::from).collect(), is_last: page.is_last }
    }
}

/// A thread whose run is orphaned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrphanedThread {
    /// The thread.
    #[serde(rename = "id")]
    pub thread: ThreadId,
    /// The orphaned run.
    pub run: Option<RunId>,
    /// App of the thread.
    pub app: AppName,
    /// Time of the last update of the thread, milliseconds since 1970.
    pub updated_ms: i64,
}

impl From<&ThreadRecord> for OrphanedThread {
    fn from(record: &ThreadRecord) -> Self {
        Self {
            thread: record.id.clone(),
            run: record.run.clone(),
            app: record.app.clone(),
            updated_ms: record.updated_ms,
        }
    }
}

/// A run in a list: its record without the request, whose input may be large.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "StoredRun")]
pub struct RunSummary {
    /// The run.
    pub id: RunId,
    /// Thread of the run.
    pub thread: ThreadId,
    /// Sequence number of the first event; 0 without events.
    pub first_seq: u64,
    /// Status of the run.
    pub status: RunStatus,
    /// Failure, if the run failed.
    pub failure: Option<Failure>,
    /// Time of the request, milliseconds since 1970.
    pub created_ms: i64,
    /// The time before which the run does not start, milliseconds since 1970.
    pub due_ms: i64,
    /// Time of the start, milliseconds since 1970; `None` if the run has not started.
    pub started_ms: Option<i64>,
    /// Time of the end, milliseconds since 1970; `None` before the end.
    pub ended_ms: Option<i64>,
    /// The original of this run in the thread that was copied first, if this run is a copy.
    pub origin: Option<RunId>,
    /// Tokens that the model calls of the run used; empty before the end, and if an older host
    /// ended the run.
    pub usage: ModelUsage,
}

impl RunSummary {
    /// Returns the original of this run, or the run itself if it is not a copy.
    #[must_use]
    pub fn origin(&self) -> &RunId {
        self.origin.as_ref().unwrap_or(&self.id)
    }

    /// Returns the approximate size in memory, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let failed = |failure: &Failure| {
            failure.message.len() as u64 + failure.details.as_ref().map_or(0, weight)
        };
        let failed = self.failure.as_ref().map_or(0, failed);
        size_of::<Self>() as u64 + failed + self.usage.memory_bytes()
    }
}

/// The fields of the record of a run that a summary needs. A store decodes nothing else.
#[derive(Deserialize)]
struct StoredRun {
    id: RunId,
    thread: ThreadId,
    #[serde(default)]
    first_seq: u64,
    status: RunStatus,
    failure: Option<Failure>,
    created_ms: Option<i64>,
    started_ms: i64,
    ended_ms: Option<i64>,
    origin: Option<RunId>,
    #[serde(default)]
    usage: ModelUsage,
    spec: Option<StoredSpec>,
}

#[derive(Deserialize)]
struct StoredSpec {
    due_ms: i64,
}

impl From<StoredRun> for RunSummary {
    fn from(run: StoredRun) -> Self {
        Self {
            created_ms: run.created_ms.unwrap_or(run.started_ms),
            due_ms: run.spec.map_or(run.started_ms, |spec| spec.due_ms),
            started_ms: (run.first_seq > 0).then_some(run.started_ms),
            id: run.id,
            thread: run.thread,
            first_seq: run.first_seq,
            status: run.status,
            failure: run.failure,
            ended_ms: run.ended_ms,
            origin: run.origin,
            usage: run.usage,
        }
    }
}

impl From<&RunRecord> for RunSummary {
    fn from(record: &RunRecord) -> Self {
        Self {
            id: record.id.clone(),
            thread: record.thread.clone(),
            first_seq: record.first_seq,
            status: record.status,
            failure: record.failure.clone(),
            created_ms: record.created_ms(),
            due_ms: record.due_ms(),
            started_ms: record.has_started().then_some(record.started_ms),
            ended_ms: record.ended_ms,
            origin: record.origin.clone(),
            usage: record.usage.clone(),
        }
    }
}

/// The parts of a checkpoint that a store reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckpointParts {
    /// All parts.
    #[default]
    All,
    /// The metadata, and the events since the checkpoint. The checkpoint has no channel values.
    WithoutValues,
    /// The metadata. The checkpoint has no channel values, and no events are read.
    Meta,
}

impl CheckpointParts {
    /// Returns true if channel values are read.
    #[must_use]
    pub fn has_values(self) -> bool {
        self == Self::All
    }

    /// Returns true if the events since the checkpoint are read.
    #[must_use]
    pub fn has_events(self) -> bool {
        self != Self::Meta
    }
}
