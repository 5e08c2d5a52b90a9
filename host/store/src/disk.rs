//! The store in a file: a redb database with one writer thread.
//!
#![doc = include_str!("../FORMAT.md")]

mod chain;
mod delete;
mod desk;
mod draft;
mod frame;
mod head;
mod history;
mod intake;
mod link;
mod migrate;
mod open;
mod prepare;
mod remains;
mod retain;
mod rewrite;
mod snapshot;
mod source;
mod stage;
mod table;
mod value;
mod verify;
mod writer;

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_blocking;
use wattle_graph::event::Event;
use wattle_graph::id::{CheckpointId, Digest, Namespace, RunId, ThreadId};
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    Batch, BatchPage, CheckpointQuery, CheckpointTuple, Compacted, Epoch, Holder, Latest,
    PruneStrategy, RunRecord, Store, StoreError, ThreadHead, ThreadQuery, ThreadRecord, Ticket,
    Verified,
};

use crate::error::backend;
use crate::lease::{Leases, elapsed};
use crate::sweep::Mentions;
use crate::urgency::{self, COMMIT_DELAY, Urgency};
use crate::watches::Watches;
use desk::Desk;
use open::Opened;
use remains::{Cleared, Remains};
use retain::{Cut, Hand, Original};
use snapshot::Snapshot;
use source::Source;
use verify::verify;
use writer::{QUEUE_LIMIT, Writer};

/// How long reads may keep the file from shrinking: a copy of a large thread ends within it.
const COMPACT_PATIENCE: Duration = Duration::from_mins(1);

/// Pause between two attempts to shrink it, in which everything goes on.
const COMPACT_PAUSE: Duration = Duration::from_millis(100);

/// A store in a file. Clones share it; when the last one is dropped, everything that waits is
/// written and the file is closed.
///
/// Reads that may be long go to tokio's blocking threads, so the methods must be called from
/// within a tokio runtime.
#[derive(Clone)]
pub struct RedbStore(Arc<Inner>);

struct Inner {
    source: Arc<Source>,
    watches: Arc<Watches>,
    /// Whether it is dropped: what goes bit by bit ends then.
    closing: Arc<AtomicBool>,
    /// `None` only while it is dropped.
    desk: Option<Desk>,
    writer: Option<JoinHandle<()>>,
}

impl fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbStore").finish_non_exhaustive()
    }
}

impl RedbStore {
    /// Checks that the file could be opened, without changing it; one that is not there could.
    ///
    /// # Errors
    ///
    /// As [`RedbStore::open`].
    pub fn check(path: impl AsRef<Path>) -> Result<(), StoreError> {
        open::check(path.as_ref())
    }

    /// Opens the file, or creates it; its folder must exist. The commit delay is [`COMMIT_DELAY`].
    ///
    /// # Errors
    ///
    /// [`StoreError::NewerFormat`] if a newer Wattle wrote it, [`StoreError::Corrupt`] if it is
    /// damaged or not a store, [`StoreError::Backend`] if it cannot be opened, for example since
    /// another process has it open.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, COMMIT_DELAY)
    }

    /// The same, with a commit delay of its own: how long batches for which nobody waits may wait
    /// for others to share their commit, at most [`COMMIT_DELAY_LIMIT`](urgency::COMMIT_DELAY_LIMIT).
    ///
    /// # Errors
    ///
    /// As [`RedbStore::open`], and [`StoreError::Backend`] if the delay is too long.
    pub fn open_with(path: impl AsRef<Path>, commit_delay: Duration) -> Result<Self, StoreError> {
        urgency::check(commit_delay).map_err(|reason| backend("open its file", reason))?;
        let Opened { database, intake, opening } = open::open(path.as_ref())?;
        let source = Arc::new(Source::new(path.as_ref().to_owned(), database));
        let watches = Arc::new(Watches::default());
        let (commands, queue) = mpsc::channel(QUEUE_LIMIT);
        let urgency = Arc::<Urgency>::default();
        let writer = Writer {
            source: source.clone(),
            intake,
            leases: Leases::new(opening, elapsed()),
            watches: watches.clone(),
            remains: Remains::read(&source)?,
            commands: queue,
            urgency: urgency.clone(),
            commit_delay,
        };
        let writer = std::thread::Builder::new()
            .name("wattle-store".into())
            .spawn(move || writer.run())
            .map_err(|error| backend("start its writer thread", error))?;
        let thread = writer.thread().clone();
        let desk = Some(Desk { commands, urgency, writer: thread, watches: watches.clone() });
        let (writer, closing) = (Some(writer), Arc::default());
        Ok(Self(Arc::new(Inner { source, watches, closing, desk, writer })))
    }

    fn desk(&self) -> Result<&Desk, StoreError> {
        self.0.desk.as_ref().ok_or(StoreError::Closed)
    }

    /// Has the writer do something, after all that was handed over before.
    async fn write<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&mut Writer) -> Result<T, StoreError> + Send + 'static,
    {
        let (answer, done) = oneshot::channel();
        let work = move |writer: &mut Writer| {
            // Whoever asked may be gone.
            let _ = answer.send(work(writer));
        };
        self.desk()?.ask(Box::new(work)).await?;
        done.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Has the writer do something bit by bit.
    async fn by_hand<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&Hand) -> Result<T, StoreError> + Send + 'static,
    {
        let hand = Hand { desk: self.desk()?.clone(), closing: self.0.closing.clone() };
        spawn_blocking(move || work(&hand)).await.map_err(|error| backend("write", error))?
    }

    async fn cut(&self, thread: ThreadId, cut: Cut) -> Result<(), StoreError> {
        cleared(self.by_hand(move |hand| hand.cut(&thread, &cut)).await?).await
    }

    /// Reads a little at once; on a thread that may block only while the file shrinks.
    async fn glance<T, R>(&self, read: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: FnOnce(&Snapshot) -> Result<T, StoreError> + Send + 'static,
    {
        match self.0.source.snapshot_now() {
            Some(snapshot) => read(&snapshot?),
            None => self.read(read).await,
        }
    }

    /// Reads what is mostly a little: at once, or else on a thread that may block.
    async fn look<T, R>(&self, read: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: Fn(&Snapshot) -> Result<T, StoreError> + Send + 'static,
    {
        if let Some(snapshot) = self.0.source.snapshot_now() {
            let snapshot = snapshot?.for_a_glance();
            let seen = read(&snapshot);
            if !snapshot.was_too_much() {
                return seen;
            }
        }
        self.read(read).await
    }

    /// Reads on a thread that may block.
    async fn read<T, R>(&self, read: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: FnOnce(&Snapshot) -> Result<T, StoreError> + Send + 'static,
    {
        let source = self.0.source.clone();
        spawn_blocking(move || read(&source.snapshot()?))
            .await
            .map_err(|error| backend("read", error))?
    }
}

/// Waits until nothing is left of what was deleted.
async fn cleared(left: Option<Cleared>) -> Result<(), StoreError> {
    match left {
        Some(left) => left.await.unwrap_or(Err(StoreError::Closed)),
        None => Ok(()),
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The writer ends when the queue is closed and empty. A hand holds it open.
        self.closing.store(true, Ordering::Release);
        if let Some(desk) = self.desk.take() {
            desk.hurry();
        }
        let Some(writer) = self.writer.take() else { return };
        writer.thread().unpark();
        if writer.join().is_err() {
            tracing::error!("writer of the checkpoint store panicked");
        }
    }
}

#[async_trait]
impl Store for RedbStore {
    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        match self.desk() {
            Ok(desk) => desk.append(thread.clone(), batch).await,
            Err(error) => Ticket::ready(Err(error)),
        }
    }

    async fn beat(&self, holder: &Holder) -> Result<(), StoreError> {
        let holder = holder.clone();
        self.write(move |writer| {
            writer.leases.beat(&holder);
            Ok(())
        })
        .await
    }

    async fn lease(&self, thread: &ThreadId, holder: &Holder) -> Result<Epoch, StoreError> {
        let (thread, holder) = (thread.clone(), holder.clone());
        self.write(move |writer| writer.leases.lease(&thread, &holder)).await
    }

    async fn holds(&self, thread: &ThreadId, epoch: Epoch) -> Result<bool, StoreError> {
        let thread = thread.clone();
        self.write(move |writer| Ok(writer.leases.admit(&thread, Some(epoch)).is_ok())).await
    }

    async fn release(&self, thread: &ThreadId, epoch: Epoch) -> Result<(), StoreError> {
        let thread = thread.clone();
        self.write(move |writer| {
            writer.leases.release(&thread, epoch);
            Ok(())
        })
        .await
    }

    fn watch(&self, thread: &ThreadId) -> watch::Receiver<u64> {
        let newest = self.0.watches.subscribe(thread, || {
            // Waits while the file shrinks, which is better than a number that is too small.
            let head = self.0.source.snapshot().and_then(|snapshot| snapshot.head(thread));
            head.map_or_else(
                |error| {
                    tracing::error!(%error, %thread, "newest event of a thread cannot be read");
                    0
                },
                |head| head.map_or(0, |head| head.last_seq),
            )
        });
        // What rests was taken before anybody watched.
        if let Ok(desk) = self.desk() {
            desk.hurry();
        }
        newest
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, StoreError> {
        let thread = thread.clone();
        self.glance(move |snapshot| snapshot.thread(&thread)).await
    }

    async fn latest(&self, thread: &ThreadId) -> Result<Option<Latest>, StoreError> {
        let thread = thread.clone();
        self.look(move |snapshot| history::latest(snapshot, &thread)).await
    }

    async fn threads(&self, query: &ThreadQuery) -> Result<Vec<ThreadRecord>, StoreError> {
        let query = query.clone();
        self.read(move |snapshot| snapshot.threads(&query)).await
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let run = run.clone();
        self.glance(move |snapshot| snapshot.run(&run)).await
    }

    async fn runs(&self, thread: &ThreadId) -> Result<Vec<RunRecord>, StoreError> {
        let thread = thread.clone();
        self.read(move |snapshot| snapshot.runs(&thread)).await
    }

    async fn newest_runs(
        &self,
        thread: &ThreadId,
        skip: usize,
        limit: usize,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let thread = thread.clone();
        self.read(move |snapshot| snapshot.newest_runs(&thread, skip, limit)).await
    }

    async fn checkpoint(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: Option<CheckpointId>,
    ) -> Result<Option<CheckpointTuple>, StoreError> {
        let (thread, namespace) = (thread.clone(), namespace.clone());
        self.look(move |snapshot| history::checkpoint(snapshot, &thread, &namespace, id)).await
    }

    async fn checkpoints(
        &self,
        thread: &ThreadId,
        query: &CheckpointQuery,
    ) -> Result<Vec<CheckpointTuple>, StoreError> {
        let (thread, query) = (thread.clone(), query.clone());
        self.read(move |snapshot| history::checkpoints(snapshot, &thread, &query)).await
    }

    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let thread = thread.clone();
        self.read(move |snapshot| history::events(snapshot, &thread, after, limit)).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        let thread = thread.clone();
        cleared(self.write(move |writer| writer.delete(&thread)).await?).await
    }

    async fn delete_runs(&self, runs: &[RunId]) -> Result<(), StoreError> {
        let runs = runs.to_vec();
        let threads = self.write(move |writer| writer.threads_of(&runs)).await?;
        for (thread, runs) in threads {
            self.cut(thread, Cut::Runs(runs)).await?;
        }
        Ok(())
    }

    async fn copy_thread(
        &self,
        from: &ThreadId,
        to: &ThreadId,
        run_id: &(dyn for<'r> Fn(&'r RunId) -> RunId + Send + Sync),
    ) -> Result<(), StoreError> {
        let (source, thread) = (self.0.source.clone(), from.clone());
        let original = spawn_blocking(move || Original::read(source.snapshot()?, &thread))
            .await
            .map_err(|error| backend("copy a thread", error))?;
        let Some(original) = original? else { return Ok(()) };
        let names = original.runs.iter().map(|run| (run.clone(), run_id(run))).collect();
        let (from, to) = (from.clone(), to.clone());
        self.by_hand(move |hand| hand.copy(original, &from, &to, names)).await
    }

    async fn prune(&self, thread: &ThreadId, strategy: PruneStrategy) -> Result<(), StoreError> {
        let thread = thread.clone();
        if strategy == PruneStrategy::KeepLatest {
            return self.cut(thread, Cut::Past).await;
        }
        let deleted = self.write(move |writer| {
            writer.leases.free(&thread)?;
            writer.delete(&thread)
        });
        cleared(deleted.await?).await
    }

    async fn batches(
        &self,
        thread: &ThreadId,
        from: Option<u64>,
        bytes: usize,
    ) -> Result<BatchPage, StoreError> {
        let thread = thread.clone();
        self.read(move |snapshot| history::batches(snapshot, &thread, from, bytes)).await
    }

    async fn verify(&self, thread: &ThreadId) -> Result<Option<Verified>, StoreError> {
        let thread = thread.clone();
        self.read(move |snapshot| verify(snapshot, &thread)).await
    }

    async fn compact(&self) -> Result<Compacted, StoreError> {
        let started = Instant::now();
        while started.elapsed() < COMPACT_PATIENCE {
            if let Some(compacted) = self.write(Writer::compact).await? {
                return Ok(compacted);
            }
            tokio::time::sleep(COMPACT_PAUSE).await;
        }
        Err(Source::is_being_read())
    }

    async fn mentions(&self, thread: &ThreadId, blob: BlobRef) -> Result<bool, StoreError> {
        let thread = thread.clone();
        self.glance(move |snapshot| snapshot.mentions(&thread, blob.0)).await
    }

    async fn stored_bytes(&self, thread: &ThreadId) -> Result<u64, StoreError> {
        let thread = thread.clone();
        self.glance(move |snapshot| snapshot.stored_bytes(&thread)).await
    }
}

#[async_trait]
impl Mentions for RedbStore {
    async fn unmentioned(&self, blobs: &[BlobRef]) -> Result<Vec<BlobRef>, StoreError> {
        let mut digests: HashSet<Digest> = blobs.iter().map(|blob| blob.0).collect();
        let free = self.read(move |snapshot| {
            snapshot.remove_mentioned(&mut digests)?;
            Ok(digests)
        });
        let free = free.await?;
        Ok(blobs.iter().filter(|blob| free.contains(&blob.0)).copied().collect())
    }
}
