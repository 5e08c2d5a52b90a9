//! Port: threads, checkpoints and event logs.
//!
//! A thread is an append-only log of [`Event`]s with checkpoints between them. Everything about
//! a thread is written by [`Store::append`], one batch after the other; a batch is all there or
//! not at all.

mod options;
mod ticket;
mod wish;
mod written;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{broadcast, watch};
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Event, RunStatus};
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, CheckpointId, Digest, GraphName, Namespace, RunId, ThreadId};

use crate::ports::blob::BlobRef;

pub use self::options::{Durability, RunOptions};
pub use self::ticket::Ticket;
pub use self::wish::Wish;
pub use self::written::{BatchPage, StoredBatch, StoredValue, Verified};

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
    /// An id that no other thread has, also none that had this thread's id before it was deleted;
    /// `None` if an older host made the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub born: Option<RunId>,
    /// The thread that this one was copied from, or that one's origin: ids of tasks and questions
    /// derive from it, so that what is pending in the copy still has its ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ThreadId>,
    /// How long it is kept; for ever without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<ThreadTtl>,
    /// When it was pruned last since its time to live was over, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruned_ms: Option<i64>,
}

/// How long a thread is kept after its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTtl {
    /// Milliseconds since its last update.
    pub after_ms: u64,
    /// What happens then.
    pub strategy: PruneStrategy,
}

/// What is taken away from a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PruneStrategy {
    /// Everything but the newest checkpoint of each namespace, with what happened since.
    KeepLatest,
    /// The whole thread.
    #[default]
    Delete,
}

/// Name of the app and graph of a [blank thread](ThreadRecord::is_blank). No app may have it.
pub const BLANK: &str = "blank";

impl ThreadRecord {
    /// A thread that was made before it is known which graph it runs.
    pub fn blank(id: ThreadId, now_ms: i64) -> Self {
        Self {
            id,
            app: AppName::new(BLANK).expect("it is a name"),
            graph: GraphName::new(BLANK).expect("it is a name"),
            version: Digest::from_bytes([0; 32]),
            status: ThreadStatus::Idle,
            run: None,
            created_ms: now_ms,
            updated_ms: now_ms,
            expires_ms: None,
            tenant: None,
            context: Value::Null,
            metadata: BTreeMap::new(),
            born: None,
            origin: None,
            ttl: None,
            pruned_ms: None,
        }
    }

    /// Whether its graph is not known yet: its first run, or its first edit, binds it to one.
    pub fn is_blank(&self) -> bool {
        self.app.as_str() == BLANK && self.version == Digest::from_bytes([0; 32])
    }

    /// The thread that ids of tasks derive from.
    pub fn origin(&self) -> &ThreadId {
        self.origin.as_ref().unwrap_or(&self.id)
    }

    /// When its time to live is over, milliseconds since 1970; `None` if it has none, or was pruned
    /// for that and nothing happened since.
    pub fn ttl_ends_ms(&self) -> Option<i64> {
        let is_done = self.pruned_ms.is_some_and(|pruned| pruned >= self.updated_ms);
        self.ttl
            .filter(|_| !is_done)
            .map(|ttl| self.updated_ms.saturating_add_unsigned(ttl.after_ms))
    }

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
    /// How it was to run: it holds also after a restart of the host.
    #[serde(default, skip_serializing_if = "RunOptions::is_default")]
    pub options: RunOptions,
    /// The superstep that it began with, from which its supersteps are counted; `None` if an older
    /// host began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_step: Option<u32>,
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
    /// The checkpoint the thread stands at; always one of the root namespace.
    pub current: Option<CheckpointId>,
    /// Sequence number before the oldest event that is still there: 0 unless the thread was pruned.
    pub pruned_seq: u64,
    /// Seal of everything up to the newest event; `None` for threads of stores without seals.
    pub seal: Option<Digest>,
    /// Seal that the oldest batch follows: `None` unless something was taken away from the thread.
    pub pruned_seal: Option<Digest>,
}

impl ThreadHead {
    /// A thread of which nothing is written yet.
    pub fn new(record: ThreadRecord) -> Self {
        Self {
            record,
            last_seq: 0,
            last_checkpoint: None,
            current: None,
            pruned_seq: 0,
            seal: None,
            pruned_seal: None,
        }
    }
}

/// Who writes to threads: one engine in one process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Holder(pub String);

/// How long a holder may be silent before others may take its leases, unless its store says
/// otherwise: several times the pause between two [`Store::beat`]s, so that a slow disk or network
/// loses nothing, and short enough that the runs of a host that died go on soon.
pub const LEASE_MS: u64 = 10_000;

/// The right to write to a thread, given out by [`Store::lease`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

/// One atomic write to a thread.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The lease under which it is written. Without one it is taken only if nobody holds a lease
    /// of the thread.
    pub epoch: Option<Epoch>,
    /// New facts of the thread. The first batch of a thread must have them.
    pub record: Option<ThreadRecord>,
    /// New facts of a run.
    pub run: Option<RunRecord>,
    /// The checkpoint the thread stood at when `events` happened: an earlier one, or that of this
    /// batch for what is to stand with it from its beginning; `None` before the first.
    pub base: Option<CheckpointId>,
    /// Events with sequence numbers that go on from the thread's newest without a gap.
    pub events: Vec<Event>,
    /// A new checkpoint, which becomes the current one if it is of the root namespace. Only channels
    /// whose version is its own id are written, and of those with a
    /// [`Tail`](wattle_graph::checkpoint::Tail) only what is new; the others stand where they were
    /// written last.
    pub checkpoint: Option<Checkpoint>,
    /// Goes back to an earlier checkpoint as the current one.
    pub current: Option<CheckpointId>,
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

/// A thread as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Latest {
    /// The thread.
    pub head: ThreadHead,
    /// The checkpoint it stands at; `None` before the first.
    pub tuple: Option<CheckpointTuple>,
    /// Its newest run.
    pub run: Option<RunRecord>,
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
    /// Only those whose time to live is over at this time.
    pub ttl_over_ms: Option<i64>,
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

/// How large a store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// Bytes on disk before.
    pub before_bytes: u64,
    /// Bytes on disk now.
    pub after_bytes: u64,
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
    /// Somebody else holds the lease of the thread.
    #[error("thread `{thread}` is at work on host `{holder}`")]
    Leased {
        /// The thread.
        thread: ThreadId,
        /// Who has it.
        holder: String,
    },
    /// The lease under which a batch was written is over: somebody else has the thread now.
    #[error("thread `{thread}` was taken over by another host: lease {epoch} is over")]
    Fenced {
        /// The thread.
        thread: ThreadId,
        /// The lease of the batch; 0 if it had none.
        epoch: u64,
    },
    /// What is stored of a thread does not fit its seal: it was changed.
    #[error("thread `{thread}` was changed behind the host's back at event {seq}: {message}")]
    Broken {
        /// The thread.
        thread: ThreadId,
        /// First event that the broken seal covers.
        seq: u64,
        /// What does not fit.
        message: String,
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
    /// Batches of a thread become durable in the order of these calls, and reads see a batch only
    /// from then on; only a store with a single writer keeps the order over all threads, so nothing
    /// may depend on that. The engine calls it a few times per superstep, with one writer per
    /// thread. A batch whose events do not go on from the newest one is a `Conflict`. May wait for
    /// room in a bounded queue, hence async. A store may put a batch off for a moment while nobody
    /// waits for its ticket or watches its thread.
    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket;

    /// Says that a holder lives. Called several times within [`Store::lease_ms`]; its leases are void
    /// so long after the last time. A store that only one process opens may forget all of them when
    /// it is closed.
    async fn beat(&self, holder: &Holder) -> Result<(), StoreError>;

    /// How long holders that beat through this handle may be silent. Others may have another time:
    /// each is judged by its own.
    fn lease_ms(&self) -> u64 {
        LEASE_MS
    }

    /// Takes the right to write to a thread, there or not, for a holder that beats. Leases of the
    /// holder itself and of holders that are silent end by it. Epochs grow and are never given out
    /// twice by a store.
    ///
    /// [`StoreError::Leased`] if another holder that lives has it.
    async fn lease(&self, thread: &ThreadId, holder: &Holder) -> Result<Epoch, StoreError>;

    /// Whether a lease is not over: it was not given back, and nobody took the thread since. Its
    /// holder may be silent for too long all the same, so who wants to rely on it beats before.
    async fn holds(&self, thread: &ThreadId, epoch: Epoch) -> Result<bool, StoreError>;

    /// Gives a lease back; not an error if it is over.
    async fn release(&self, thread: &ThreadId, epoch: Epoch) -> Result<(), StoreError>;

    /// Whether other processes may work on its threads at the same time.
    fn is_shared(&self) -> bool {
        false
    }

    /// Tells all hosts that share the store what is to become of a run: the one that has it hears of
    /// it by [`Store::wishes`]. It may be lost, so it is said again until it has come true.
    async fn wish(&self, wish: &Wish) -> Result<(), StoreError> {
        let _ = wish;
        Ok(())
    }

    /// What is to become of runs, as other hosts say; `None` if there are no others.
    fn wishes(&self) -> Option<broadcast::Receiver<Wish>> {
        None
    }

    /// Threads that are running, as far as no other holder that lives has them: unless their runs
    /// are at work in the engine that asks, which beats under this name, they were cut. A store that
    /// only one process opens may answer with all that are running.
    async fn abandoned(&self, holder: &Holder) -> Result<Vec<ThreadRecord>, StoreError> {
        let _ = holder;
        let running = Some(ThreadStatus::Running);
        self.threads(&ThreadQuery { status: running, ..ThreadQuery::default() }).await
    }

    /// Time until leases of another holder are void, the first that comes, unless that is heard of
    /// again; `None` if no other one lives.
    async fn next_lapse(&self, holder: &Holder) -> Result<Option<Duration>, StoreError> {
        let _ = holder;
        Ok(None)
    }

    /// The newest durable sequence number of a thread, to wait for more. Cheap to call often;
    /// the channel may be shared.
    fn watch(&self, thread: &ThreadId) -> watch::Receiver<u64>;

    /// A thread.
    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, StoreError>;

    /// A thread with the checkpoint it stands at and its newest run. A store that is far away
    /// answers at once, where each of its other methods would take a way there and back.
    async fn latest(&self, thread: &ThreadId) -> Result<Option<Latest>, StoreError> {
        let Some(head) = self.thread(thread).await? else { return Ok(None) };
        let tuple = match head.current {
            Some(id) => self.checkpoint(thread, &Namespace::root(), Some(id)).await?,
            None => None,
        };
        let run = match &head.record.run {
            Some(run) => self.run(run).await?,
            None => None,
        };
        Ok(Some(Latest { head, tuple, run }))
    }

    /// Threads, newest update first.
    async fn threads(&self, query: &ThreadQuery) -> Result<Vec<ThreadRecord>, StoreError>;

    /// A run.
    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError>;

    /// Runs of a thread, oldest first.
    async fn runs(&self, thread: &ThreadId) -> Result<Vec<RunRecord>, StoreError>;

    /// Runs of a thread, newest first: at most `limit` of those behind the first `skip`. No others
    /// are read.
    async fn newest_runs(
        &self,
        thread: &ThreadId,
        skip: usize,
        limit: usize,
    ) -> Result<Vec<RunRecord>, StoreError>;

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

    /// Deletes the checkpoints that some runs made, with what happened on them and the records of
    /// these runs. What remains keeps its values. A thread that stands at such a checkpoint goes
    /// back to the newest that is left; one without any is deleted. Unknown runs are ignored.
    async fn delete_runs(&self, runs: &[RunId]) -> Result<(), StoreError>;

    /// Copies a thread under another id: checkpoints, events, runs (under ids made by `run_id`),
    /// pending answers. The copy's record has `origin`. A missing source is not an error and makes
    /// nothing; a target that is there is [`StoreError::InvalidBatch`].
    async fn copy_thread(
        &self,
        from: &ThreadId,
        to: &ThreadId,
        run_id: &(dyn for<'r> Fn(&'r RunId) -> RunId + Send + Sync),
    ) -> Result<(), StoreError>;

    /// Takes away what a strategy does not keep. A missing thread is not an error.
    ///
    /// This, [`Store::delete_runs`] and [`Store::copy_thread`] write the past anew, so they are
    /// [`StoreError::Leased`] while anybody has a lease of the thread.
    async fn prune(&self, thread: &ThreadId, strategy: PruneStrategy) -> Result<(), StoreError>;

    /// Batches as they were written, oldest first: as many as fit into about `bytes`, one at least
    /// if there is one. The first page is had without `from`, each other from where the page before
    /// says.
    async fn batches(
        &self,
        thread: &ThreadId,
        from: Option<u64>,
        bytes: usize,
    ) -> Result<BatchPage, StoreError>;

    /// Checks the seals of a thread.
    ///
    /// [`StoreError::Broken`] where the first does not fit; `None` for a missing thread.
    async fn verify(&self, thread: &ThreadId) -> Result<Option<Verified>, StoreError>;

    /// Gives space that deleted things took back to the file system, as far as the store can.
    async fn compact(&self) -> Result<Compacted, StoreError>;

    /// Whether anything that was ever written to a thread mentions a blob. Asked for every blob
    /// that a tenant reads, so it must not read the log.
    async fn mentions(&self, thread: &ThreadId, blob: BlobRef) -> Result<bool, StoreError>;

    /// Bytes that a thread takes in the store, blobs not counted.
    async fn stored_bytes(&self, thread: &ThreadId) -> Result<u64, StoreError>;
}
