//! Port: threads, checkpoints and event logs.
//!
//! A thread is an append-only log of [`Event`]s with checkpoints between them. Everything about
//! a thread is written by [`Store::append`], one batch after the other; a batch is all there or
//! not at all.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Event, RunStatus};
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, CheckpointId, Digest, GraphName, Namespace, RunId, ThreadId};

use crate::ports::blob::BlobRef;

/// What a thread does right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadStatus {
    /// Nothing.
    Idle,
    /// A run is active.
    Running,
    /// Waits for answers.
    Interrupted,
    /// Its last run failed.
    Error,
}

/// Facts about a thread beside its log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// The thread.
    pub id: ThreadId,
    /// The app it belongs to.
    pub app: AppName,
    /// The graph it runs.
    pub graph: GraphName,
    /// Digest of graph and components that it is pinned to since its first run.
    pub version: Digest,
    /// What it does.
    pub status: ThreadStatus,
    /// The newest run.
    pub run: Option<RunId>,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Milliseconds since 1970.
    pub updated_ms: i64,
    /// When it expires; computed from stored times, so a restart does not matter.
    pub expires_ms: Option<i64>,
    /// Tenant that owns it.
    pub tenant: Option<String>,
    /// The run context, handed to every node.
    #[serde(default)]
    pub context: Value,
    /// Free facts of the client.
    #[serde(default)]
    pub metadata: BTreeMap<String, Value>,
}

impl ThreadRecord {
    /// Whether an app may work with the thread on behalf of a tenant: one that belongs to no
    /// tenant is everybody's.
    pub fn is_of(&self, app: &AppName, tenant: Option<&str>) -> bool {
        self.app == *app && (self.tenant.is_none() || self.tenant.as_deref() == tenant)
    }
}

/// Facts about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run.
    pub id: RunId,
    /// Its thread.
    pub thread: ThreadId,
    /// Sequence number of its first event.
    #[serde(default)]
    pub first_seq: u64,
    /// How it stands.
    pub status: RunStatus,
    /// Why, if it failed.
    pub failure: Option<Failure>,
    /// Milliseconds since 1970.
    pub started_ms: i64,
    /// Milliseconds since 1970; `None` while it runs.
    pub ended_ms: Option<i64>,
    /// Where the thread goes back to if the run fails; `None` if it stays where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopen: Option<CheckpointId>,
}

/// A thread as the store knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadHead {
    /// Facts.
    pub record: ThreadRecord,
    /// Sequence number of the newest event; 0 without any.
    pub last_seq: u64,
    /// Highest checkpoint number given out; ids are never reused.
    pub last_checkpoint: Option<CheckpointId>,
    /// The checkpoint the thread stands at.
    pub current: Option<CheckpointId>,
}

/// One atomic write to a thread.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// New facts of the thread. The first batch of a thread must have them.
    pub record: Option<ThreadRecord>,
    /// New facts of a run.
    pub run: Option<RunRecord>,
    /// The checkpoint the thread stood at when `events` happened; `None` before the first.
    pub base: Option<CheckpointId>,
    /// Events with sequence numbers that go on from the thread's newest without a gap.
    pub events: Vec<Event>,
    /// A new checkpoint, which becomes the current one. Only channels whose version is its own id
    /// are written; the others stand where they were written last.
    pub checkpoint: Option<Checkpoint>,
    /// Goes back to an earlier checkpoint as the current one.
    pub current: Option<CheckpointId>,
}

/// Answers when a batch is durable. Dropping it does not undo the batch.
pub struct Ticket(Inner);

enum Inner {
    Ready(Option<Result<(), StoreError>>),
    Waiting(oneshot::Receiver<Result<(), StoreError>>),
}

impl Ticket {
    /// A ticket that is already answered.
    pub fn ready(result: Result<(), StoreError>) -> Self {
        Self(Inner::Ready(Some(result)))
    }

    /// A ticket that a writer answers later.
    pub fn waiting(receiver: oneshot::Receiver<Result<(), StoreError>>) -> Self {
        Self(Inner::Waiting(receiver))
    }
}

impl Future for Ticket {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Inner::Ready(result) => Poll::Ready(result.take().unwrap_or(Err(StoreError::Closed))),
            Inner::Waiting(receiver) => {
                Pin::new(receiver).poll(cx).map(|answer| answer.unwrap_or(Err(StoreError::Closed)))
            }
        }
    }
}

/// A checkpoint with what has happened since, on its lineage.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointTuple {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Events of all batches whose `base` is this checkpoint, oldest first: pending writes,
    /// questions, answers, journal.
    pub events: Vec<Event>,
}

/// Which threads to list; newest update first.
#[derive(Clone, Debug, Default)]
pub struct ThreadQuery {
    /// Only of this app.
    pub app: Option<AppName>,
    /// Only in this status.
    pub status: Option<ThreadStatus>,
    /// Only of this tenant.
    pub tenant: Option<String>,
    /// Only those that expire at or before this time.
    pub expires_by_ms: Option<i64>,
    /// At most so many; all without it.
    pub limit: Option<usize>,
    /// Skip so many.
    pub offset: usize,
}

/// Which checkpoints of a thread to list; newest first.
#[derive(Clone, Debug, Default)]
pub struct CheckpointQuery {
    /// Only of this nested graph; all without it.
    pub namespace: Option<Namespace>,
    /// Only older than this one.
    pub before: Option<CheckpointId>,
    /// All of these must be equal: `source`, `step`, `run`, or keys of the metadata.
    pub filter: BTreeMap<String, Value>,
    /// At most so many; all without it.
    pub limit: Option<usize>,
}

/// What a store can answer in place of what was asked for.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The batch does not go on from the thread's newest event: somebody else wrote.
    #[error("thread `{thread}` was written by somebody else: event {found} follows {newest}")]
    Conflict {
        /// The thread.
        thread: ThreadId,
        /// Newest event in the store.
        newest: u64,
        /// First event of the batch.
        found: u64,
    },
    /// The batch itself makes no sense.
    #[error("batch for thread `{thread}` is not valid: {message}")]
    InvalidBatch {
        /// The thread.
        thread: ThreadId,
        /// What is wrong.
        message: String,
    },
    /// The file or server failed.
    #[error("checkpoint store cannot {operation}: {message}")]
    Backend {
        /// What was tried.
        operation: &'static str,
        /// What went wrong.
        message: String,
    },
    /// The stored data are of a newer format.
    #[error(
        "checkpoint store `{path}` has format {found}, newer than {known}, the newest this \
         version of wattle reads; use a newer wattle"
    )]
    NewerFormat {
        /// Where.
        path: String,
        /// Format in the store.
        found: u32,
        /// Newest format known.
        known: u32,
    },
    /// Stored bytes cannot be read.
    #[error("stored {what} cannot be read: {message}")]
    Corrupt {
        /// What was read.
        what: String,
        /// What is wrong with it.
        message: String,
    },
    /// The store was closed.
    #[error("checkpoint store is closed")]
    Closed,
}

/// Threads, checkpoints and event logs.
#[async_trait]
pub trait Store: Send + Sync {
    /// Takes a batch for a thread and returns at once; the ticket answers when it is durable.
    /// Batches become durable in the order of these calls, all threads together, and reads see a
    /// batch only from then on. The engine calls it a few times per superstep, with one writer
    /// per thread. A batch whose events do not go on from the newest one is a `Conflict`.
    /// May wait for room in a bounded queue, hence async.
    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket;

    /// The newest durable sequence number of a thread, to wait for more. Cheap to call often;
    /// the channel may be shared.
    fn watch(&self, thread: &ThreadId) -> watch::Receiver<u64>;

    /// A thread.
    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, StoreError>;

    /// Threads, newest update first.
    async fn threads(&self, query: &ThreadQuery) -> Result<Vec<ThreadRecord>, StoreError>;

    /// A run.
    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError>;

    /// Runs of a thread, oldest first.
    async fn runs(&self, thread: &ThreadId) -> Result<Vec<RunRecord>, StoreError>;

    /// A checkpoint with its pending events; the newest of the namespace without an id.
    async fn checkpoint(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: Option<CheckpointId>,
    ) -> Result<Option<CheckpointTuple>, StoreError>;

    /// Checkpoints of a thread, newest first.
    async fn checkpoints(
        &self,
        thread: &ThreadId,
        query: &CheckpointQuery,
    ) -> Result<Vec<CheckpointTuple>, StoreError>;

    /// Events after a sequence number, oldest first, at most `limit`.
    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError>;

    /// Deletes a thread with its runs, checkpoints and events. A missing one is not an error.
    /// Blobs that only it mentioned become free to be swept.
    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError>;

    /// Whether anything that was ever written to a thread mentions a blob. Asked for every blob
    /// that a tenant reads, so it must not read the log.
    async fn mentions(&self, thread: &ThreadId, blob: BlobRef) -> Result<bool, StoreError>;

    /// Bytes that a thread takes in the store, blobs not counted.
    async fn stored_bytes(&self, thread: &ThreadId) -> Result<u64, StoreError>;
}
