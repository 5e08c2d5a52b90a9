//! Port: threads, checkpoints and event logs.
//!
//! A thread is an append-only log of [`Event`]s with checkpoints between them. Everything about
//! a thread is written by [`Store::append`], one batch after the other; a batch is all there or
//! not at all.

mod error;
mod host;
mod options;
mod owner;
mod run;
mod signal;
mod ticket;
mod upkeep;
mod written;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{broadcast, watch};
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::Event;
use wattle_graph::id::{AppName, CheckpointId, Digest, GraphName, Namespace, RunId, ThreadId};

use crate::ports::blob::BlobRef;

pub use self::error::StoreError;
pub use self::host::{HostReport, LiveHost};
pub use self::options::{Durability, RunOptions};
pub use self::owner::{MentionPage, Owner, Taken};
pub use self::run::{Answer, PendingQuery, PendingRun, RunKind, RunRecord, RunSpec, Turn};
pub use self::signal::Signal;
pub use self::ticket::Ticket;
pub use self::upkeep::{Compacted, Damage, Pinned, Survey};
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
    /// Bytes that its log takes in the store: events and checkpoints as they are packed there.
    pub log_bytes: u64,
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
            log_bytes: 0,
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
    /// What it asks of the pending runs of the thread; otherwise it is [`StoreError::OutOfTurn`].
    pub turn: Turn,
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

    /// Sends a signal to all hosts that share the store, this one included, which receive it by
    /// [`Store::signals`]. A signal may be lost, so its sender repeats it until it has had its effect.
    async fn send_signal(&self, signal: &Signal) -> Result<(), StoreError> {
        let _ = signal;
        Ok(())
    }

    /// The signals of all hosts from now on; `None` if no other process can open the store.
    fn signals(&self) -> Option<broadcast::Receiver<Signal>> {
        None
    }

    /// Threads that are running, as far as no other holder that lives has them: unless their runs
    /// are at work in the engine that asks, which beats under this name, they were cut. A store that
    /// only one process opens may answer with all that are running.
    ///
    /// In the order of their ids, at most [`ABANDONED_PAGE`](crate::limit::ABANDONED_PAGE) of those
    /// behind `after`: a record may be large.
    async fn abandoned(
        &self,
        holder: &Holder,
        after: Option<&ThreadId>,
    ) -> Result<Vec<ThreadRecord>, StoreError>;

    /// Time until leases of another holder are void, the first that comes, unless that is heard of
    /// again; `None` if no other one lives.
    async fn next_lapse(&self, holder: &Holder) -> Result<Option<Duration>, StoreError> {
        let _ = holder;
        Ok(None)
    }

    /// Notes what a holder tells of its host, for [`Store::hosts`]. Nothing of a holder that never beat.
    async fn report(&self, holder: &Holder, report: &HostReport) -> Result<(), StoreError> {
        let _ = (holder, report);
        Ok(())
    }

    /// Live hosts that have reported; none if no other process can open the store.
    async fn hosts(&self) -> Result<Vec<LiveHost>, StoreError> {
        Ok(Vec::new())
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

    /// Adds a pending run behind all others of its thread, which must be there. The caller needs no
    /// lease of the thread. Durable when this returns. `false` if a run of this id is there.
    async fn enqueue(&self, run: &RunRecord) -> Result<bool, StoreError>;

    /// Puts a record that says how a run ended in place of one that is pending, or takes that away.
    /// The caller needs no lease of the thread. Durable when this returns. `false` if the run is
    /// not pending any more: it has begun, or is not there.
    async fn dequeue(&self, run: &RunId, ended: Option<&RunRecord>) -> Result<bool, StoreError>;

    /// Pending runs, in the order in which they were asked for.
    async fn pending(&self, query: &PendingQuery) -> Result<Vec<PendingRun>, StoreError>;

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

    /// Shows that the store can be written now. Asked often: a store that wrote a moment ago has
    /// shown it.
    async fn prove(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Reads everything that is stored and names what is damaged. Takes as long as that takes.
    async fn survey(&self) -> Result<Survey, StoreError> {
        Err(StoreError::Unsupported {
            operation: "verify all threads at once",
            message: "only a store in a file does; `wattle trace --verify` checks one thread",
        })
    }

    /// Versions that threads are pinned to. Asked at a start, over all threads, so it must not keep
    /// their records.
    async fn pinned(&self) -> Result<Pinned, StoreError>;

    /// Threads that are set aside, since what is stored of them is damaged. As long as there are any,
    /// nothing is deleted that they may need once they are restored.
    async fn set_aside(&self) -> Result<Vec<ThreadId>, StoreError> {
        Ok(Vec::new())
    }

    /// Makes a new folder for a backup. Until the backup is finished, the next start deletes it.
    async fn begin_backup(&self) -> Result<PathBuf, StoreError> {
        Err(no_backup())
    }

    /// Writes what is stored, as it is at one moment, into a folder that is there.
    async fn backup(&self, folder: &Path) -> Result<(), StoreError> {
        let _ = folder;
        Err(no_backup())
    }

    /// Keeps a backup that is whole; answers with where it is from now on.
    async fn finish_backup(&self, folder: &Path) -> Result<PathBuf, StoreError> {
        let _ = folder;
        Err(no_backup())
    }

    /// Deletes what was written of a backup that is not finished.
    async fn drop_backup(&self, folder: &Path) -> Result<(), StoreError> {
        let _ = folder;
        Err(no_backup())
    }

    /// Whether anything that was ever written to a thread mentions a blob. Asked for every blob
    /// that a tenant reads, so it must not read the log.
    async fn mentions(&self, thread: &ThreadId, blob: BlobRef) -> Result<bool, StoreError>;

    /// What the threads of an owner take: reads the facts of all threads, so it is not asked often.
    async fn taken(&self, of: &Owner) -> Result<Taken, StoreError>;

    /// Blobs that threads of an owner mention, each once for each of these threads: about as many as
    /// a page has. The first page is had without `from`, each other from where the page before says.
    async fn mentioned(&self, of: &Owner, from: Option<&str>) -> Result<MentionPage, StoreError>;

    /// Bytes that a thread takes in the store, blobs not counted.
    async fn stored_bytes(&self, thread: &ThreadId) -> Result<u64, StoreError>;
}

fn no_backup() -> StoreError {
    StoreError::Unsupported {
        operation: "back itself up",
        message: "only a store in a file does; use `pg_dump` for a database",
    }
}
