//! The store in a PostgreSQL database, which many hosts may share.
//!
#![doc = include_str!("../POSTGRES.md")]

mod batch_scan;
mod blobs;
mod checkpoint_query;
mod column;
mod config;
mod database;
mod decode;
mod delete;
mod export;
mod fast_path;
mod history;
mod in_doubt;
mod lease;
mod maintenance;
mod memory;
mod notify;
mod pending;
mod pinned_connection;
mod prefetch;
mod retry;
mod rewrite;
mod run_search;
mod schema;
mod seal;
mod search;
mod size;
mod stage;
mod thread_cache;
mod thread_row;
mod value;
mod write_set;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Mutex, broadcast, oneshot, watch};
use wattle_graph::event::Event;
use wattle_graph::id::{AppName, CheckpointId, GraphName, Namespace, RunId, ThreadId};
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    Batch, BatchPage, CheckpointOutline, CheckpointQuery, CheckpointTuple, CompactionReport,
    HostReport, LeaseEpoch, LeaseHolder, ListPage, LiveHost, MentionPage, Notification,
    OrphanedThread, Owner, OwnerUsage, PendingQuery, PendingRun, PinnedVersions, PruneStrategy,
    RunCounts, RunRecord, RunSearch, RunSearchPage, RunSummary, SealReport, Store, StoreError,
    StoreUsage, ThreadCounts, ThreadHead, ThreadQuery, ThreadSearch, ThreadSearchPage,
    ThreadSnapshot, ThreadSummary, Ticket,
};

use crate::recent_write::RecentWrite;
use crate::sweep::Mentions;
pub use blobs::PostgresBlobs;
pub use config::{DEFAULT_SCHEMA, PostgresConfig};
use database::Database;
use delete::LeaseCheck;
pub use memory::PostgresMemory;
use notify::{ListenerTasks, Notifier};
use rewrite::RewriteKind;
use writer::{Command, WRITER_CONNECTIONS, WriterPool};

/// A store in a PostgreSQL database. Clones share it.
///
/// The writers of the store are tasks of the tokio runtime in which the store was opened. After the
/// last clone is dropped, these tasks write all queued batches and end.
#[derive(Clone)]
pub struct PostgresStore(Arc<PostgresStoreInner>);

struct PostgresStoreInner {
    database: Database,
    writers: WriterPool,
    notifier: Notifier,
    /// The newest successful write by `check_writable`.
    recent_write: Mutex<RecentWrite>,
    /// Stops receiving notifications when the store is dropped.
    _listener_tasks: ListenerTasks,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("schema", &self.0.database.schema)
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens the store, and creates its tables if they do not exist.
    ///
    /// # Errors
    ///
    /// [`StoreError::NewerFormat`] if a newer Wattle created the tables, [`StoreError::Backend`] if
    /// the address is invalid, or if the server cannot be reached or refuses the login.
    pub async fn open(config: &PostgresConfig) -> Result<Self, StoreError> {
        let database = Database::new(config, WRITER_CONNECTIONS)?;
        schema::migrate(&database).await?;
        lease::delete_expired_hosts(&database).await?;
        let (notifier, listener_tasks) = Notifier::open(&database);
        let writers = WriterPool::open(&database, &notifier);
        let recent_write = Mutex::default();
        Ok(Self(Arc::new(PostgresStoreInner {
            database,
            writers,
            notifier,
            recent_write,
            _listener_tasks: listener_tasks,
        })))
    }

    /// Returns the error if the database is temporarily not available: the server is down or
    /// starting, or accepts no further connection. Returns `None` if the server responds.
    ///
    /// # Errors
    ///
    /// [`StoreError::Backend`] if the address is invalid or the server refuses the login. A later
    /// attempt fails in the same way.
    pub async fn unavailable_error(
        config: &PostgresConfig,
    ) -> Result<Option<StoreError>, StoreError> {
        database::unavailable_error(config).await
    }

    /// Checks that the store can be opened, without changing anything. Returns true if its tables
    /// exist.
    ///
    /// # Errors
    ///
    /// The errors of [`PostgresStore::open`].
    pub async fn check(config: &PostgresConfig) -> Result<bool, StoreError> {
        schema::exists(&Database::new(config, WRITER_CONNECTIONS)?).await
    }

    /// Returns the blobs in the same database.
    pub fn blobs(&self) -> PostgresBlobs {
        PostgresBlobs::new(self.0.database.clone())
    }

    /// Returns the long-term memory in the same database.
    pub fn memory(&self) -> PostgresMemory {
        PostgresMemory::new(self.0.database.clone())
    }

    async fn delete(&self, thread: &ThreadId, lease_check: LeaseCheck) -> Result<(), StoreError> {
        self.flush(thread).await?;
        if delete::thread(&self.0.database, thread, lease_check).await? {
            self.0.notifier.thread_deleted(thread);
        }
        Ok(())
    }

    /// Waits until all batches that were appended to a thread are written or rejected.
    async fn flush(&self, thread: &ThreadId) -> Result<(), StoreError> {
        let (sender, done) = oneshot::channel();
        self.0.writers.send(Command::Flush(thread.clone(), sender)).await?;
        done.await.unwrap_or(Err(StoreError::Closed))
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        self.0.writers.append(thread, batch).await
    }

    async fn heartbeat(&self, holder: &LeaseHolder) -> Result<(), StoreError> {
        lease::heartbeat(&self.0.database, holder).await
    }

    async fn report(&self, holder: &LeaseHolder, report: &HostReport) -> Result<(), StoreError> {
        lease::report(&self.0.database, holder, report).await
    }

    async fn hosts(&self) -> Result<Vec<LiveHost>, StoreError> {
        lease::hosts(&self.0.database).await
    }

    fn lease_ms(&self) -> u64 {
        self.0.database.lease_ms.cast_unsigned()
    }

    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        holder: &LeaseHolder,
    ) -> Result<LeaseEpoch, StoreError> {
        let (epoch, row) = lease::acquire(&self.0.database, thread, holder).await?;
        self.0.writers.send(Command::LeaseTaken(thread.clone(), Box::new(row))).await?;
        Ok(epoch)
    }

    async fn is_lease_held(
        &self,
        thread: &ThreadId,
        epoch: LeaseEpoch,
    ) -> Result<bool, StoreError> {
        lease::is_held(&self.0.database, thread, epoch).await
    }

    async fn release_lease(&self, thread: &ThreadId, epoch: LeaseEpoch) -> Result<(), StoreError> {
        // Batches that were appended under the lease must be written before its release.
        self.flush(thread).await?;
        lease::release(&self.0.database, thread, epoch).await
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn send_notification(&self, notification: &Notification) -> Result<(), StoreError> {
        self.0.notifier.send(notification.clone());
        Ok(())
    }

    fn notifications(&self) -> Option<broadcast::Receiver<Notification>> {
        Some(self.0.notifier.subscribe())
    }

    async fn orphaned_threads(
        &self,
        holder: &LeaseHolder,
        after: Option<&ThreadId>,
    ) -> Result<Vec<OrphanedThread>, StoreError> {
        lease::orphaned_threads(&self.0.database, holder, after).await
    }

    async fn next_lease_expiry(
        &self,
        holder: &LeaseHolder,
    ) -> Result<Option<Duration>, StoreError> {
        lease::next_expiry(&self.0.database, holder).await
    }

    fn watch(&self, thread: &ThreadId) -> watch::Receiver<u64> {
        let newest = self.0.notifier.watch(&self.0.database, thread);
        // The writer may hold batches that were appended before the watch began.
        self.0.writers.request_flush(thread);
        newest
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, StoreError> {
        history::thread(&self.0.database, thread).await
    }

    async fn thread_snapshot(
        &self,
        thread: &ThreadId,
    ) -> Result<Option<ThreadSnapshot>, StoreError> {
        Box::pin(checkpoint_query::latest(&self.0.database, thread)).await
    }

    async fn threads(&self, query: &ThreadQuery) -> Result<ListPage<ThreadSummary>, StoreError> {
        history::threads(&self.0.database, query).await
    }

    async fn search_threads(&self, search: &ThreadSearch) -> Result<ThreadSearchPage, StoreError> {
        search::search(&self.0.database, search).await
    }

    async fn count_threads(&self, search: &ThreadSearch) -> Result<ThreadCounts, StoreError> {
        search::count(&self.0.database, search).await
    }

    async fn search_runs(&self, search: &RunSearch) -> Result<RunSearchPage, StoreError> {
        run_search::search(&self.0.database, search).await
    }

    async fn count_runs(&self, search: &RunSearch) -> Result<RunCounts, StoreError> {
        run_search::count(&self.0.database, search).await
    }

    async fn pinned_versions(&self) -> Result<PinnedVersions, StoreError> {
        maintenance::pinned(&self.0.database).await
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        history::run(&self.0.database, run).await
    }

    async fn enqueue(
        &self,
        run: &RunRecord,
        requested: Option<&(AppName, GraphName)>,
    ) -> Result<bool, StoreError> {
        pending::enqueue(&self.0.database, run, requested).await
    }

    async fn dequeue(&self, run: &RunId, ended: Option<&RunRecord>) -> Result<bool, StoreError> {
        pending::dequeue(&self.0.database, run, ended).await
    }

    async fn pending(&self, query: &PendingQuery) -> Result<Vec<PendingRun>, StoreError> {
        pending::list(&self.0.database, query).await
    }

    async fn runs(
        &self,
        thread: &ThreadId,
        skip: usize,
        limit: usize,
    ) -> Result<ListPage<RunSummary>, StoreError> {
        history::runs(&self.0.database, thread, skip, limit).await
    }

    async fn newest_runs(
        &self,
        thread: &ThreadId,
        skip: usize,
        limit: usize,
    ) -> Result<ListPage<RunRecord>, StoreError> {
        history::newest_runs(&self.0.database, thread, skip, limit).await
    }

    async fn checkpoint(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: Option<CheckpointId>,
    ) -> Result<Option<CheckpointTuple>, StoreError> {
        checkpoint_query::checkpoint(&self.0.database, thread, namespace, id).await
    }

    async fn checkpoint_outline(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: CheckpointId,
    ) -> Result<Option<CheckpointOutline>, StoreError> {
        checkpoint_query::outline(&self.0.database, thread, namespace, id).await
    }

    async fn checkpoints(
        &self,
        thread: &ThreadId,
        query: &CheckpointQuery,
    ) -> Result<ListPage<CheckpointTuple>, StoreError> {
        history::checkpoints(&self.0.database, thread, query).await
    }

    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        history::events(&self.0.database, thread, after, limit).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.delete(thread, LeaseCheck::Skip).await
    }

    async fn delete_runs(&self, runs: &[RunId]) -> Result<(), StoreError> {
        let threads = rewrite::threads_of(&self.0.database, runs).await?;
        lease::ensure_unleased(&self.0.database, &threads).await?;
        for thread in threads {
            self.flush(&thread).await?;
            if rewrite::apply(&self.0.database, &thread, &RewriteKind::DropRuns(runs)).await? {
                self.0.notifier.thread_deleted(&thread);
            }
        }
        Ok(())
    }

    async fn copy_thread(
        &self,
        from: &ThreadId,
        to: &ThreadId,
        incarnation: &RunId,
        run_id: &(dyn for<'r> Fn(&'r RunId) -> RunId + Send + Sync),
    ) -> Result<(), StoreError> {
        self.flush(from).await?;
        self.flush(to).await?;
        let copy = rewrite::copy(&self.0.database, from, to, incarnation, run_id);
        if let Some(last_seq) = Box::pin(copy).await? {
            self.0.notifier.thread_appended(to, last_seq);
        }
        Ok(())
    }

    async fn prune(&self, thread: &ThreadId, strategy: PruneStrategy) -> Result<(), StoreError> {
        if strategy == PruneStrategy::Delete {
            return self.delete(thread, LeaseCheck::Enforce).await;
        }
        self.flush(thread).await?;
        rewrite::apply(&self.0.database, thread, &RewriteKind::KeepLatest).await.map(drop)
    }

    async fn batches(
        &self,
        thread: &ThreadId,
        from: Option<u64>,
        bytes: usize,
    ) -> Result<BatchPage, StoreError> {
        export::batches(&self.0.database, thread, from, bytes).await
    }

    async fn verify(&self, thread: &ThreadId) -> Result<Option<SealReport>, StoreError> {
        seal::verify(&self.0.database, thread).await
    }

    async fn compact(&self) -> Result<CompactionReport, StoreError> {
        maintenance::compact(&self.0.database).await
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        // Concurrent callers share one write.
        let mut recent_write = self.0.recent_write.lock().await;
        if !recent_write.is_recent() {
            maintenance::check_writable(&self.0.database).await?;
            recent_write.record();
        }
        Ok(())
    }

    async fn mentions(&self, thread: &ThreadId, blob: BlobRef) -> Result<bool, StoreError> {
        maintenance::mentions(&self.0.database, thread, blob).await
    }

    async fn usage(&self, of: &Owner) -> Result<OwnerUsage, StoreError> {
        maintenance::usage(&self.0.database, of).await
    }

    async fn total_usage(&self) -> Result<StoreUsage, StoreError> {
        maintenance::total_usage(&self.0.database).await
    }

    async fn mentioned_blobs(
        &self,
        of: &Owner,
        from: Option<&str>,
    ) -> Result<MentionPage, StoreError> {
        maintenance::mentioned(&self.0.database, of, from).await
    }

    async fn stored_bytes(&self, thread: &ThreadId) -> Result<u64, StoreError> {
        maintenance::stored_bytes(&self.0.database, thread).await
    }
}

#[async_trait]
impl Mentions for PostgresStore {
    async fn unmentioned(&self, blobs: &[BlobRef]) -> Result<Vec<BlobRef>, StoreError> {
        maintenance::unmentioned(&self.0.database, blobs).await
    }
}
