//! The store in a file: a redb database with one writer thread.
//!
#![doc = include_str!("../FORMAT.md")]

mod access;
pub(crate) mod backup;
mod byte_reader;
mod chain;
mod changed_keys;
mod commit_each;
mod commit_group;
mod config;
mod create;
pub mod decoded_frame;
mod delta;
mod encode;
mod field_cache;
mod field_set;
mod frame;
mod frame_builder;
mod head;
mod history;
mod leases;
mod list;
mod migrate;
mod offline;
mod open;
mod orphans;
mod owner;
mod pending;
mod rebuild;
mod reclaim;
mod rewrite_job;
mod rewriter;
mod run_search;
mod seal;
mod search;
mod snapshot;
mod stager;
mod survey;
mod swap;
mod table;
mod value;
mod verify;
mod write_set;
mod writer;
mod writer_handle;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;
use wattle_graph::event::Event;
use wattle_graph::id::{AppName, CheckpointId, Digest, GraphName, Namespace, RunId, ThreadId};
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    Batch, BatchPage, CheckpointOutline, CheckpointQuery, CheckpointTuple, CompactionReport,
    DamageReport, LeaseEpoch, LeaseHolder, ListPage, MentionPage, OrphanedThread, Owner,
    OwnerUsage, PendingQuery, PendingRun, PinnedVersions, PruneStrategy, RunCounts, RunRecord,
    RunSearch, RunSearchPage, RunSummary, SealReport, Store, StoreError, StoreUsage, ThreadCounts,
    ThreadHead, ThreadKey, ThreadQuery, ThreadSearch, ThreadSearchPage, ThreadSnapshot,
    ThreadSummary, Ticket,
};

use crate::commit_delay::{self, FlushRequests};
use crate::error::backend;
use crate::file::guarded;
use crate::file::handle::SharedFile;
pub use crate::file::open::CHECKED_AT_START_BYTES;
use crate::lease::{Leases, monotonic_clock};
use crate::lock::lock;
use crate::recent_write::RecentWrite;
use crate::sweep::Mentions;
use crate::watch::WatchRegistry;
use access::{Inner, wait_reclaimed};
use changed_keys::ChangedKeys;
pub use config::RedbConfig;
use field_cache::FieldCache;
pub use history::{PENDING_LIMIT_BYTES, PENDING_MEMORY_BYTES};
use leases::LeaseTable;
use open::OpenedFile;
use orphans::Orphans;
use rewrite_job::{CopySource, RewriteKind};
use snapshot::Snapshot;
use verify::verify;
use writer::{QUEUE_CAPACITY, Writer};
use writer_handle::WriterHandle;

/// How long a compaction waits for reads to end. A copy of a large thread ends within this time.
const COMPACT_TIMEOUT: Duration = Duration::from_mins(1);

/// Delay between two attempts to compact the file. Reads and batches proceed during the delay.
const COMPACT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// A store in a file. Clones share it. Dropping the last clone writes all queued batches and closes
/// the file.
///
/// Reads that may be long run on the blocking threads of tokio, so the methods must be called from
/// within a tokio runtime.
#[derive(Clone)]
pub struct RedbStore(Arc<Inner>);

impl fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbStore").finish_non_exhaustive()
    }
}

impl RedbStore {
    /// Opens the file with the default settings, and creates the file if it does not exist. The
    /// folder must exist.
    ///
    /// # Errors
    ///
    /// [`StoreError::NewerFormat`] if a newer Wattle wrote the file, [`StoreError::Corrupt`] if the
    /// file is damaged or not a store, [`StoreError::Backend`] if the file cannot be opened, for
    /// example because another process has it open.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, RedbConfig::default())
    }

    /// Opens the file with the given settings.
    ///
    /// # Errors
    ///
    /// The errors of [`RedbStore::open`], and [`StoreError::Backend`] for a too long commit delay.
    pub fn open_with(path: impl AsRef<Path>, config: RedbConfig) -> Result<Self, StoreError> {
        commit_delay::validate(config.commit_delay)
            .map_err(|reason| backend("open its file", reason))?;
        let path = path.as_ref();
        let opened = open::open(path, &config.file_kind(), config.lock_wait)?;
        backup::delete_unfinished(&backup::backups_folder(path));
        Self::over(path, opened, config)
    }

    /// Creates a store over an open file.
    fn over(path: &Path, opened: OpenedFile, config: RedbConfig) -> Result<Self, StoreError> {
        let OpenedFile { database, stager, opening } = opened;
        let file = Arc::new(SharedFile::new(path.to_owned(), config.file_kind(), database));
        let watches = Arc::new(WatchRegistry::default());
        let (commands, queue) = mpsc::channel(QUEUE_CAPACITY);
        let flush_requests = Arc::<FlushRequests>::default();
        let (pending, orphans) = guarded("read", || {
            Ok((Snapshot::newest(&file)?.pending_runs()?, Orphans::read(&file)?))
        })?;
        let pending = Arc::new(Mutex::new(pending));
        let changed_keys = Arc::<ChangedKeys>::default();
        let field_cache = FieldCache::new(changed_keys.clone(), config.fields_bytes);
        let leases = Arc::new(LeaseTable::new(Leases::new(opening, monotonic_clock())));
        let writer = Writer {
            file: file.clone(),
            stager,
            leases: leases.clone(),
            watches: watches.clone(),
            pending: pending.clone(),
            orphans,
            changed_keys,
            commands: queue,
            flush_requests: flush_requests.clone(),
            commit_delay: config.commit_delay,
            file_failure: None,
            failed_threads: HashMap::new(),
            recent_write: RecentWrite::default(),
        };
        let writer_thread = std::thread::Builder::new()
            .name("wattle-store".into())
            .spawn(move || writer.run())
            .map_err(|error| backend("start its writer thread", error))?;
        let writer = WriterHandle {
            commands,
            flush_requests,
            thread: writer_thread.thread().clone(),
            watches: watches.clone(),
            leases: leases.clone(),
        };
        let (writer, writer_thread) = (Some(writer), Some(writer_thread));
        let (is_closing, cursors) = (Arc::default(), Arc::default());
        Ok(Self(Arc::new(Inner {
            file,
            watches,
            pending,
            leases,
            cursors,
            field_cache: Arc::new(field_cache),
            is_closing,
            writer,
            writer_thread,
        })))
    }
}

/// Converts success into `true`, and [`StoreError::OutOfTurn`] into `false`.
fn in_turn(written: Result<(), StoreError>) -> Result<bool, StoreError> {
    match written {
        Ok(()) => Ok(true),
        Err(StoreError::OutOfTurn { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

#[async_trait]
impl Store for RedbStore {
    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        match self.0.writer() {
            Ok(writer) => writer.append(thread.clone(), batch).await,
            Err(error) => Ticket::ready(Err(error)),
        }
    }

    async fn heartbeat(&self, holder: &LeaseHolder) -> Result<(), StoreError> {
        let holder = holder.clone();
        self.0
            .run_on_writer(move |writer| {
                writer.leases.with(|leases| leases.heartbeat(&holder));
                Ok(())
            })
            .await
    }

    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        holder: &LeaseHolder,
    ) -> Result<LeaseEpoch, StoreError> {
        if !self.0.file.has_failed()
            && let Some(acquired) = self.0.leases.acquire_now(thread, holder)
        {
            return acquired;
        }
        let (thread, holder) = (thread.clone(), holder.clone());
        self.0
            .run_on_writer(move |writer| {
                // The lease is refused while the file cannot be written, since a run could not
                // write its events.
                writer.reopen_if_failed()?;
                writer.leases.with(|leases| leases.acquire(&thread, &holder))
            })
            .await
    }

    async fn is_lease_held(
        &self,
        thread: &ThreadId,
        epoch: LeaseEpoch,
    ) -> Result<bool, StoreError> {
        let thread = thread.clone();
        self.0
            .run_on_writer(move |writer| {
                Ok(writer.leases.with(|leases| leases.check_epoch(&thread, Some(epoch))).is_ok())
            })
            .await
    }

    async fn release_lease(&self, thread: &ThreadId, epoch: LeaseEpoch) -> Result<(), StoreError> {
        if self.0.leases.release_now(thread, epoch) {
            return Ok(());
        }
        let thread = thread.clone();
        self.0
            .run_on_writer(move |writer| {
                writer.leases.with(|leases| leases.release(&thread, epoch));
                Ok(())
            })
            .await
    }

    fn watch(&self, thread: &ThreadId) -> watch::Receiver<u64> {
        let newest = self.0.watches.subscribe(thread, || {
            // This read blocks while the file is compacted. Without the read, the watch would begin
            // with a number that is too small.
            let head = guarded("read", || Snapshot::newest(&self.0.file)?.head(thread));
            self.0.note_failure(head).map_or_else(
                |error| {
                    tracing::error!(%error, %thread, "newest event of a thread cannot be read");
                    0
                },
                |head| head.map_or(0, |head| head.last_seq),
            )
        });
        // The writer may hold batches that were queued before the watch began.
        if let Ok(writer) = self.0.writer() {
            writer.request_flush();
        }
        newest
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, StoreError> {
        let thread = thread.clone();
        self.0.read_inline(move |snapshot| snapshot.thread(&thread)).await
    }

    async fn thread_snapshot(
        &self,
        thread: &ThreadId,
    ) -> Result<Option<ThreadSnapshot>, StoreError> {
        let thread = thread.clone();
        self.0.read_inline_or_blocking(move |snapshot| history::latest(snapshot, &thread)).await
    }

    async fn orphaned_threads(
        &self,
        _holder: &LeaseHolder,
        after: Option<&ThreadId>,
    ) -> Result<Vec<OrphanedThread>, StoreError> {
        let after = after.cloned();
        self.0.read_blocking(move |snapshot| snapshot.running(after.as_ref())).await
    }

    async fn threads(&self, query: &ThreadQuery) -> Result<ListPage<ThreadSummary>, StoreError> {
        let query = query.clone();
        self.0.read_fields(move |file, cache| list::list_threads(file, cache, &query)).await
    }

    async fn thread_keys(&self, query: &ThreadQuery) -> Result<ListPage<ThreadKey>, StoreError> {
        let query = query.clone();
        self.0.read_fields(move |file, cache| list::thread_keys(file, cache, &query)).await
    }

    async fn search_threads(&self, search: &ThreadSearch) -> Result<ThreadSearchPage, StoreError> {
        let search = search.clone();
        self.0.read_fields(move |file, cache| search::search_threads(file, cache, &search)).await
    }

    async fn count_threads(&self, search: &ThreadSearch) -> Result<ThreadCounts, StoreError> {
        let search = search.clone();
        self.0.read_fields(move |file, cache| search::count_threads(file, cache, &search)).await
    }

    async fn search_runs(&self, search: &RunSearch) -> Result<RunSearchPage, StoreError> {
        let search = search.clone();
        self.0.read_fields(move |file, cache| run_search::search_runs(file, cache, &search)).await
    }

    async fn count_runs(&self, search: &RunSearch) -> Result<RunCounts, StoreError> {
        let search = search.clone();
        self.0.read_fields(move |file, cache| run_search::count_runs(file, cache, &search)).await
    }

    async fn pinned_versions(&self) -> Result<PinnedVersions, StoreError> {
        self.0.read_blocking(Snapshot::pinned).await
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let run = run.clone();
        self.0.read_inline(move |snapshot| snapshot.run(&run)).await
    }

    async fn enqueue(
        &self,
        run: &RunRecord,
        requested: Option<&(AppName, GraphName)>,
    ) -> Result<bool, StoreError> {
        in_turn(self.0.writer()?.enqueue(run, requested).await.await)
    }

    async fn dequeue(&self, run: &RunId, ended: Option<&RunRecord>) -> Result<bool, StoreError> {
        let Some(thread) = lock(&self.0.pending).thread_of(run).cloned() else {
            return Ok(false);
        };
        in_turn(self.0.writer()?.dequeue(thread, run, ended).await.await)
    }

    async fn pending(&self, query: &PendingQuery) -> Result<Vec<PendingRun>, StoreError> {
        Ok(lock(&self.0.pending).list(query))
    }

    async fn runs(
        &self,
        thread: &ThreadId,
        skip: usize,
        limit: usize,
    ) -> Result<ListPage<RunSummary>, StoreError> {
        let thread = thread.clone();
        self.0.read_blocking(move |snapshot| snapshot.oldest_runs(&thread, skip, limit)).await
    }

    async fn newest_runs(
        &self,
        thread: &ThreadId,
        skip: usize,
        limit: usize,
    ) -> Result<ListPage<RunRecord>, StoreError> {
        let thread = thread.clone();
        self.0.read_blocking(move |snapshot| snapshot.newest_runs(&thread, skip, limit)).await
    }

    async fn checkpoint(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: Option<CheckpointId>,
    ) -> Result<Option<CheckpointTuple>, StoreError> {
        let (thread, namespace) = (thread.clone(), namespace.clone());
        self.0
            .read_inline_or_blocking(move |snapshot| {
                history::checkpoint(snapshot, &thread, &namespace, id)
            })
            .await
    }

    async fn checkpoint_outline(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: CheckpointId,
    ) -> Result<Option<CheckpointOutline>, StoreError> {
        let (thread, namespace) = (thread.clone(), namespace.clone());
        self.0
            .read_inline_or_blocking(move |snapshot| {
                history::outline(snapshot, &thread, &namespace, id)
            })
            .await
    }

    async fn checkpoints(
        &self,
        thread: &ThreadId,
        query: &CheckpointQuery,
    ) -> Result<ListPage<CheckpointTuple>, StoreError> {
        let (thread, query, cursors) = (thread.clone(), query.clone(), self.0.cursors.clone());
        let read =
            move |snapshot: &Snapshot| history::checkpoints(snapshot, &thread, &query, &cursors);
        self.0.read_large(read).await
    }

    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let thread = thread.clone();
        self.0.read_blocking(move |snapshot| history::events(snapshot, &thread, after, limit)).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        let thread = self.0.leases.begin_write(thread.clone());
        wait_reclaimed(self.0.run_on_writer(move |writer| writer.delete(thread.thread())).await?)
            .await
    }

    async fn delete_runs(&self, runs: &[RunId]) -> Result<(), StoreError> {
        let runs = runs.to_vec();
        let threads = self.0.run_on_writer(move |writer| writer.threads_of(&runs)).await?;
        for (thread, runs) in threads {
            self.0.rewrite(thread, RewriteKind::DropRuns(runs)).await?;
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
        let (file, thread) = (self.0.file.clone(), from.clone());
        let read = move || {
            guarded("copy a thread", || CopySource::read(Snapshot::newest(&file)?, &thread))
        };
        let source = spawn_blocking(read).await.map_err(|error| backend("copy a thread", error))?;
        let Some(source) = self.0.note_failure(source)? else {
            return Ok(());
        };
        let names = source.runs.iter().map(|run| (run.clone(), run_id(run))).collect();
        let from = self.0.leases.begin_write(from.clone());
        let (to, incarnation) = (to.clone(), incarnation.clone());
        self.0
            .run_rewrite_job(move |job| job.copy(source, from.thread(), &to, &incarnation, names))
            .await
    }

    async fn prune(&self, thread: &ThreadId, strategy: PruneStrategy) -> Result<(), StoreError> {
        if strategy == PruneStrategy::KeepLatest {
            return self.0.rewrite(thread.clone(), RewriteKind::KeepLatest).await;
        }
        let thread = self.0.leases.begin_write(thread.clone());
        let deleted = self.0.run_on_writer(move |writer| {
            let thread = thread.thread();
            writer.leases.with(|leases| leases.ensure_unleased(thread))?;
            writer.delete(thread)
        });
        wait_reclaimed(deleted.await?).await
    }

    async fn batches(
        &self,
        thread: &ThreadId,
        from: Option<u64>,
        bytes: usize,
    ) -> Result<BatchPage, StoreError> {
        let thread = thread.clone();
        self.0.read_large(move |snapshot| history::batches(snapshot, &thread, from, bytes)).await
    }

    async fn verify(&self, thread: &ThreadId) -> Result<Option<SealReport>, StoreError> {
        let thread = thread.clone();
        self.0.read_blocking(move |snapshot| verify(snapshot, &thread)).await
    }

    async fn compact(&self) -> Result<CompactionReport, StoreError> {
        let started = Instant::now();
        while started.elapsed() < COMPACT_TIMEOUT {
            if let Some(compacted) = self.0.run_on_writer(Writer::compact).await? {
                return Ok(compacted);
            }
            tokio::time::sleep(COMPACT_RETRY_DELAY).await;
        }
        Err(SharedFile::busy_error())
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.0.run_on_writer(Writer::check_writable).await
    }

    async fn find_damage(&self) -> Result<DamageReport, StoreError> {
        self.0.read_blocking(survey::name_damage).await
    }

    async fn damaged_threads(&self) -> Result<Vec<ThreadId>, StoreError> {
        let aside = self.0.read_blocking(Snapshot::all_aside).await?;
        Ok(aside.into_iter().map(|(thread, _)| thread).collect())
    }

    async fn begin_backup(&self) -> Result<PathBuf, StoreError> {
        backup::new_folder(&backup::backups_folder(self.0.file.path()))
    }

    async fn backup(&self, folder: &Path) -> Result<(), StoreError> {
        let path = self.0.file.path();
        let name = path.file_name().unwrap_or_default();
        let to = folder.join(name);
        self.0.read_blocking(move |snapshot| backup::copy(snapshot, &to)).await
    }

    async fn finish_backup(&self, folder: &Path) -> Result<PathBuf, StoreError> {
        backup::finish(folder)
    }

    async fn drop_backup(&self, folder: &Path) -> Result<(), StoreError> {
        let folder = folder.to_owned();
        let gone = spawn_blocking(move || backup::remove(&folder)).await;
        gone.map_err(|error| backend("delete a backup", error))?
    }

    async fn mentions(&self, thread: &ThreadId, blob: BlobRef) -> Result<bool, StoreError> {
        let thread = thread.clone();
        self.0.read_inline(move |snapshot| snapshot.mentions(&thread, blob.0)).await
    }

    async fn usage(&self, of: &Owner) -> Result<OwnerUsage, StoreError> {
        let of = of.clone();
        self.0.read_blocking(move |snapshot| snapshot.usage(&of)).await
    }

    async fn total_usage(&self) -> Result<StoreUsage, StoreError> {
        self.0.read_blocking(Snapshot::total_usage).await
    }

    async fn mentioned_blobs(
        &self,
        of: &Owner,
        from: Option<&str>,
    ) -> Result<MentionPage, StoreError> {
        let (of, from) = (of.clone(), from.map(str::to_owned));
        self.0.read_blocking(move |snapshot| snapshot.mentioned(&of, from.as_deref())).await
    }

    async fn stored_bytes(&self, thread: &ThreadId) -> Result<u64, StoreError> {
        let thread = thread.clone();
        self.0.read_inline(move |snapshot| snapshot.stored_bytes(&thread)).await
    }
}

#[async_trait]
impl Mentions for RedbStore {
    async fn unmentioned(&self, blobs: &[BlobRef]) -> Result<Vec<BlobRef>, StoreError> {
        let mut digests: HashSet<Digest> = blobs.iter().map(|blob| blob.0).collect();
        let free = self.0.read_blocking(move |snapshot| {
            let aside = snapshot.all_aside()?.len();
            if aside > 0 {
                tracing::warn!(
                    threads = aside,
                    "no blob is deleted while damaged threads are set aside: restore or delete them"
                );
                return Ok(HashSet::new());
            }
            snapshot.remove_mentioned(&mut digests)?;
            Ok(digests)
        });
        let free = free.await?;
        Ok(blobs.iter().filter(|blob| free.contains(&blob.0)).copied().collect())
    }
}
