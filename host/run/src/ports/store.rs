//! Port: threads, checkpoints and event logs.
//!
//! A thread is an append-only log of [`Event`]s with checkpoints between them. [`Store::append`] writes everything
//! about a thread, one batch after another. A batch is written completely or not at all.

mod batch;
mod cursor;
mod encoded_events;
mod error;
mod host;
mod list;
mod maintenance;
mod notification;
mod options;
mod outline;
mod owner;
mod run;
mod run_search;
mod search;
mod stored_batch;
mod thread_record;
mod ticket;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, watch};
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::Event;
use wattle_graph::id::{AppName, CheckpointId, Digest, GraphName, Namespace, RunId, ThreadId};

use crate::limit::WALK_THREADS;
use crate::ports::blob::BlobRef;

pub use self::batch::Batch;
pub use self::encoded_events::EncodedEvents;
pub(crate) use self::encoded_events::{EventEncoder, UnnumberedEvent};
pub use self::error::StoreError;
pub use self::host::{HostReport, LiveHost};
pub use self::list::{
    CheckpointParts, CheckpointQuery, ListPage, OrphanedThread, RunSummary, ThreadKey, ThreadOrder,
    ThreadQuery, ThreadSummary,
};
pub use self::maintenance::{CompactionReport, Damage, DamageReport, PinnedVersions};
pub use self::notification::Notification;
pub use self::options::{Durability, RunOptions};
pub use self::outline::CheckpointOutline;
pub use self::owner::{MentionPage, Owner, OwnerUsage, StoreUsage};
pub use self::run::{
    PendingQuery, PendingRun, QueueCondition, RecoveryCount, RunAnswers, RunKind, RunRecord,
    RunSpec, StaleAnswers,
};
pub use self::run_search::{FoundRun, RunCounts, RunCursor, RunSearch, RunSearchPage};
pub use self::search::{
    RemainingBudget, SearchBudget, TenantFilter, ThreadCounts, ThreadCursor, ThreadSearch,
    ThreadSearchPage,
};
pub use self::stored_batch::{BatchPage, SealReport, StoredBatch, StoredValue};
pub use self::thread_record::{
    PruneStrategy, ThreadFailure, ThreadRecord, ThreadStatus, ThreadTtl, UNBOUND,
};
pub use self::ticket::Ticket;

/// A thread in the store.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadHead {
    /// Record of the thread.
    pub record: ThreadRecord,
    /// Sequence number of the newest event; 0 without events.
    pub last_seq: u64,
    /// Highest checkpoint id that was assigned. Ids are never reused.
    pub last_checkpoint: Option<CheckpointId>,
    /// Current checkpoint, which is always a checkpoint of the root graph.
    pub current: Option<CheckpointId>,
    /// Sequence number before the oldest event; 0 unless the thread was pruned.
    pub pruned_seq: u64,
    /// Seal of the newest batch; `None` for threads of stores without seals.
    pub seal: Option<Digest>,
    /// Seal before the oldest batch; `None` unless earlier batches were deleted.
    pub pruned_seal: Option<Digest>,
    /// Bytes of the log in the store: events and checkpoints in their stored form.
    pub log_bytes: u64,
}

impl ThreadHead {
    /// Creates a thread without events.
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

/// A lease holder: one engine in one process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseHolder(pub String);

/// Default lease duration in milliseconds. A lease expires if its holder sends no heartbeat for
/// this long. The duration spans several heartbeat intervals, so one slow write does not lose a
/// lease, and is short enough that other hosts soon continue the runs of a crashed host.
pub const LEASE_MS: u64 = 10_000;

/// The epoch of a lease, issued by [`Store::acquire_lease`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseEpoch(pub u64);

/// A checkpoint with the events since then.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointTuple {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Events of all batches whose `base` is this checkpoint, oldest first: finished tasks, interrupts, answers,
    /// journal entries.
    pub events: Vec<Event>,
}

/// A thread with its current checkpoint and its newest run.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadSnapshot {
    /// The thread.
    pub head: ThreadHead,
    /// The current checkpoint; `None` before the first checkpoint.
    pub tuple: Option<CheckpointTuple>,
    /// The newest run.
    pub run: Option<RunRecord>,
}

/// Threads, checkpoints and event logs.
#[async_trait]
pub trait Store: Send + Sync {
    /// Enqueues a batch and returns a ticket that resolves when the batch is durable. Batches of
    /// one thread become durable in call order, and reads observe a batch only after it is durable.
    /// Only a store with a single writer keeps the order across threads, so callers must not rely
    /// on that order. The engine calls this method a few times per superstep, with one writer per
    /// thread. A batch that does not continue from the newest event, by its events or by its
    /// [`after_seq`](Batch::after_seq), fails with [`StoreError::Conflict`]. The call waits if the
    /// queue is full. If the batch is long, the engine polls the call for the first time in a turn
    /// of the caller (see [`crate::meter`]), so a store encodes the batch before the call waits, or
    /// in few tasks of its own. A store may delay a commit while no caller polls the ticket or
    /// watches the thread.
    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket;

    /// Records a heartbeat of a holder. The engine calls this method several times per lease
    /// period. The leases of a holder expire one lease period after its last heartbeat. A store
    /// that only one process opens may drop all leases when it is closed.
    async fn heartbeat(&self, holder: &LeaseHolder) -> Result<(), StoreError>;

    /// Returns the lease duration of holders that send heartbeats through this handle, in milliseconds. Other holders
    /// may have another duration, which applies to their leases.
    fn lease_ms(&self) -> u64 {
        LEASE_MS
    }

    /// Acquires the lease of a thread for a holder that sends heartbeats. The thread need not
    /// exist. The new lease replaces an expired lease and any lease of the same holder. The
    /// returned epoch is a fencing token: it is greater than every epoch that the store has issued.
    ///
    /// Fails with [`StoreError::Leased`] if another live holder has the lease.
    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        holder: &LeaseHolder,
    ) -> Result<LeaseEpoch, StoreError>;

    /// Returns true if the lease was neither released nor replaced. This method does not check for
    /// expiry, so the caller sends a heartbeat first.
    async fn is_lease_held(&self, thread: &ThreadId, epoch: LeaseEpoch)
    -> Result<bool, StoreError>;

    /// Releases a lease, after the batches of the thread that were appended before. It is not an error if the lease has
    /// ended.
    async fn release_lease(&self, thread: &ThreadId, epoch: LeaseEpoch) -> Result<(), StoreError>;

    /// Returns true if other processes may use the store at the same time.
    fn is_shared(&self) -> bool {
        false
    }

    /// Sends a notification to all hosts that share the store, including this one, which receive it by
    /// [`Store::notifications`]. Delivery is best effort; the sender repeats the notification until it has had its
    /// effect.
    async fn send_notification(&self, notification: &Notification) -> Result<(), StoreError> {
        let _ = notification;
        Ok(())
    }

    /// Returns the notifications of all hosts from now on, or `None` if no other process can open the store.
    fn notifications(&self) -> Option<broadcast::Receiver<Notification>> {
        None
    }

    /// Returns threads with status `running` whose lease no other live holder has. A run among them that the calling
    /// engine does not execute is orphaned. A store that only one process opens may return all running threads.
    ///
    /// The threads are ordered by id: at most [`ORPHANED_PAGE`](crate::limit::ORPHANED_PAGE) after `after`. An empty
    /// page is the end.
    async fn orphaned_threads(
        &self,
        holder: &LeaseHolder,
        after: Option<&ThreadId>,
    ) -> Result<Vec<OrphanedThread>, StoreError>;

    /// Returns the time until the next lease of another holder expires, if that holder sends no further heartbeat.
    /// Returns `None` if no other holder is live.
    async fn next_lease_expiry(
        &self,
        holder: &LeaseHolder,
    ) -> Result<Option<Duration>, StoreError> {
        let _ = holder;
        Ok(None)
    }

    /// Stores the report of a host for [`Store::hosts`]. A report of a holder that never sent a heartbeat is ignored.
    async fn report(&self, holder: &LeaseHolder, report: &HostReport) -> Result<(), StoreError> {
        let _ = (holder, report);
        Ok(())
    }

    /// Returns the live hosts that have reported; none if no other process can open the store.
    async fn hosts(&self) -> Result<Vec<LiveHost>, StoreError> {
        Ok(Vec::new())
    }

    /// Returns a channel with the newest durable sequence number of a thread. Cheap to call often; the channel may be
    /// shared.
    fn watch(&self, thread: &ThreadId) -> watch::Receiver<u64>;

    /// Returns a thread; `None` if the thread does not exist.
    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, StoreError>;

    /// Returns a thread with its current checkpoint and its newest run. A remote store reads all of
    /// them in one round trip.
    async fn thread_snapshot(
        &self,
        thread: &ThreadId,
    ) -> Result<Option<ThreadSnapshot>, StoreError> {
        let Some(head) = self.thread(thread).await? else { return Ok(None) };
        let tuple = match head.current {
            Some(id) => self.checkpoint(thread, &Namespace::root(), Some(id)).await?,
            None => None,
        };
        let run = match &head.record.run {
            Some(run) => self.run(run).await?,
            None => None,
        };
        Ok(Some(ThreadSnapshot { head, tuple, run }))
    }

    /// Returns threads that match a query, with at most [`LIST_BYTES`](crate::limit::LIST_BYTES)
    /// together. [`ThreadWalk`](crate::thread_walk::ThreadWalk) reads all pages.
    async fn threads(&self, query: &ThreadQuery) -> Result<ListPage<ThreadSummary>, StoreError>;

    /// Returns the keys of threads that match a query, in the order of their ids. The order and the
    /// offset of the query are ignored. A page may end before the limit of the query.
    async fn thread_keys(&self, query: &ThreadQuery) -> Result<ListPage<ThreadKey>, StoreError> {
        let limit = Some(query.limit.map_or(WALK_THREADS, |limit| limit.min(WALK_THREADS)));
        let query = ThreadQuery { order: ThreadOrder::Id, limit, offset: 0, ..query.clone() };
        self.threads(&query).await.map(|page| ListPage::from(&page))
    }

    /// Searches threads by all of their fields, newest update first. The page has at most
    /// [`LIST_BYTES`](crate::limit::LIST_BYTES). The search ends early when its [budget](ThreadSearch::budget) is
    /// exhausted.
    async fn search_threads(&self, search: &ThreadSearch) -> Result<ThreadSearchPage, StoreError>;

    /// Counts the threads that match a search. The counts are too low if the budget of the search is exhausted.
    async fn count_threads(&self, search: &ThreadSearch) -> Result<ThreadCounts, StoreError>;

    /// Searches the runs of all threads, newest request first. The page has at most
    /// [`LIST_BYTES`](crate::limit::LIST_BYTES). The search ends early when its
    /// [budget](RunSearch::budget) is exhausted.
    async fn search_runs(&self, search: &RunSearch) -> Result<RunSearchPage, StoreError>;

    /// Counts the runs of all threads that match a search. The counts are too low if the budget of
    /// the search is exhausted. A store that does not list runs by status examines each of them.
    async fn count_runs(&self, search: &RunSearch) -> Result<RunCounts, StoreError>;

    /// Returns the record of a run; `None` if the run does not exist.
    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError>;

    /// Adds a pending run to the end of the queue of its thread, which must exist. If the thread is
    /// [unbound](ThreadRecord::is_unbound), its record gets the app and the graph `requested` in
    /// the same commit. A later batch with a record that was read before replaces both. The caller
    /// needs no lease. The run is durable when this method returns. Returns false if a run with
    /// this id exists; nothing is changed then.
    async fn enqueue(
        &self,
        run: &RunRecord,
        requested: Option<&(AppName, GraphName)>,
    ) -> Result<bool, StoreError>;

    /// Replaces the record of a pending run by `ended`, which shows how the run ended, or deletes
    /// the record. The caller needs no lease. The change is durable when this method returns.
    /// Returns false if the run is not pending: it has started, or does not exist.
    async fn dequeue(&self, run: &RunId, ended: Option<&RunRecord>) -> Result<bool, StoreError>;

    /// Returns pending runs in the order of their requests.
    async fn pending(&self, query: &PendingQuery) -> Result<Vec<PendingRun>, StoreError>;

    /// Returns runs of a thread, oldest first: at most `limit` after the first `skip`, with at most
    /// [`LIST_BYTES`](crate::limit::LIST_BYTES) together. [`RunWalk`](crate::run_walk::RunWalk)
    /// reads all pages.
    async fn runs(
        &self,
        thread: &ThreadId,
        skip: usize,
        limit: usize,
    ) -> Result<ListPage<RunSummary>, StoreError>;

    /// Returns runs of a thread with their requests, newest first: at most `limit` after the first
    /// `skip`, with at most [`LIST_BYTES`](crate::limit::LIST_BYTES) of JSON. Reads no other runs.
    /// [`RunWalk`](crate::run_walk::RunWalk) reads all pages.
    async fn newest_runs(
        &self,
        thread: &ThreadId,
        skip: usize,
        limit: usize,
    ) -> Result<ListPage<RunRecord>, StoreError>;

    /// Returns a checkpoint with the events since then. Without an id, returns the newest
    /// checkpoint of the namespace.
    async fn checkpoint(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: Option<CheckpointId>,
    ) -> Result<Option<CheckpointTuple>, StoreError>;

    /// Returns a checkpoint with its thread, without the channel values. Reads no values and no
    /// list deltas.
    async fn checkpoint_outline(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: CheckpointId,
    ) -> Result<Option<CheckpointOutline>, StoreError>;

    /// Returns checkpoints of a thread, newest first, with about
    /// [`HISTORY_BYTES`](crate::limit::HISTORY_BYTES) at most. A checkpoint counts with all
    /// of its values, including values that it shares with other checkpoints. The next page begins
    /// [before](CheckpointQuery::before) the last checkpoint of this page.
    async fn checkpoints(
        &self,
        thread: &ThreadId,
        query: &CheckpointQuery,
    ) -> Result<ListPage<CheckpointTuple>, StoreError>;

    /// Returns events after a sequence number, oldest first: at most `limit`, with at most
    /// [`PAGE_EVENT_BYTES`](crate::limit::PAGE_EVENT_BYTES). The first event may be larger,
    /// and is then returned alone, so every reader makes progress. Another page may follow a page
    /// that is shorter than `limit`: the log ends at [`ThreadHead::last_seq`], and in any case at
    /// an empty page.
    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError>;

    /// Deletes a thread with its runs, checkpoints and events. A missing thread is not an error. Blobs that only this
    /// thread mentioned can then be swept.
    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError>;

    /// Deletes the records of some runs, the checkpoints that these runs made and the events since
    /// these checkpoints. The remaining checkpoints keep their values. If the current checkpoint of
    /// a thread is deleted, the newest remaining checkpoint becomes the current one; a thread
    /// without a remaining checkpoint is deleted. Unknown runs are ignored.
    async fn delete_runs(&self, runs: &[RunId]) -> Result<(), StoreError>;

    /// Copies a thread to another id: checkpoints, events, runs (with ids from `run_id`) and pending answers. The
    /// record of the copy has `origin` and the `incarnation`, which is a new id. A missing source is not an error, and
    /// nothing is created. An existing target fails with [`StoreError::InvalidBatch`].
    async fn copy_thread(
        &self,
        from: &ThreadId,
        to: &ThreadId,
        incarnation: &RunId,
        run_id: &(dyn for<'r> Fn(&'r RunId) -> RunId + Send + Sync),
    ) -> Result<(), StoreError>;

    /// Deletes the data that a strategy does not keep. A missing thread is not an error.
    ///
    /// This method, [`Store::delete_runs`] and [`Store::copy_thread`] rewrite history, so they fail with
    /// [`StoreError::Leased`] while any holder has a lease of the thread.
    async fn prune(&self, thread: &ThreadId, strategy: PruneStrategy) -> Result<(), StoreError>;

    /// Returns batches as they were written, oldest first: about `bytes` bytes of JSON or of memory,
    /// whichever is more, and at least one batch if there is one. `from` is `None` for the first
    /// page, and [`BatchPage::next`] of the previous page for every other page.
    async fn batches(
        &self,
        thread: &ThreadId,
        from: Option<u64>,
        bytes: usize,
    ) -> Result<BatchPage, StoreError>;

    /// Verifies the seals of a thread.
    ///
    /// Fails with [`StoreError::Broken`] at the first seal that does not match. Returns `None` for
    /// a missing thread.
    async fn verify(&self, thread: &ThreadId) -> Result<Option<SealReport>, StoreError>;

    /// Returns the space of deleted data to the file system, if this kind of store can.
    async fn compact(&self) -> Result<CompactionReport, StoreError>;

    /// Checks that the store accepts writes. Called often, so a recent write is sufficient proof.
    async fn check_writable(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Reads all stored data and returns what is damaged. This may take long.
    async fn find_damage(&self) -> Result<DamageReport, StoreError> {
        Err(StoreError::Unsupported {
            operation: "verify all threads at once",
            message: "only a store in a file can; `wattle trace --verify` checks one thread",
        })
    }

    /// Returns the versions that threads are pinned to. Called at startup for all threads, so a
    /// store must not hold the records of all threads in memory.
    async fn pinned_versions(&self) -> Result<PinnedVersions, StoreError>;

    /// Returns the threads that are set aside because their stored data is damaged. While such
    /// threads exist, the store deletes nothing that they may need after they are restored.
    async fn damaged_threads(&self) -> Result<Vec<ThreadId>, StoreError> {
        Ok(Vec::new())
    }

    /// Creates a folder for a new backup. The store deletes the folder when it is opened again, unless
    /// [`Store::finish_backup`] was called.
    async fn begin_backup(&self) -> Result<PathBuf, StoreError> {
        Err(no_backup())
    }

    /// Writes a consistent snapshot of the store to an existing folder.
    async fn backup(&self, folder: &Path) -> Result<(), StoreError> {
        let _ = folder;
        Err(no_backup())
    }

    /// Marks a backup as complete, and returns its final path.
    async fn finish_backup(&self, folder: &Path) -> Result<PathBuf, StoreError> {
        let _ = folder;
        Err(no_backup())
    }

    /// Deletes an unfinished backup.
    async fn drop_backup(&self, folder: &Path) -> Result<(), StoreError> {
        let _ = folder;
        Err(no_backup())
    }

    /// Returns true if any data that was ever written to a thread mentions a blob. Called for every
    /// blob that a tenant reads, so a store must not read the log.
    async fn mentions(&self, thread: &ThreadId, blob: BlobRef) -> Result<bool, StoreError>;

    /// Returns the usage of the threads of an owner. Reads the records of all threads, and is
    /// therefore called rarely.
    async fn usage(&self, of: &Owner) -> Result<OwnerUsage, StoreError>;

    /// Returns the usage of all threads by app and tenant. Reads the records of all threads like
    /// [`Store::usage`], once for all owners.
    async fn total_usage(&self) -> Result<StoreUsage, StoreError>;

    /// Returns the blobs that threads of an owner mention, once for each of these threads, about
    /// one page at a time. `from` is `None` for the first page, and [`MentionPage::next`] of the
    /// previous page for every other page.
    async fn mentioned_blobs(
        &self,
        of: &Owner,
        from: Option<&str>,
    ) -> Result<MentionPage, StoreError>;

    /// Returns the bytes of a thread in the store, without blobs.
    async fn stored_bytes(&self, thread: &ThreadId) -> Result<u64, StoreError>;
}

fn no_backup() -> StoreError {
    StoreError::Unsupported {
        operation: "back itself up",
        message: "only a store in a file can; use `pg_dump` for a database",
    }
}
