//! The store in a file: a redb database with one writer thread.
//!
#![doc = include_str!("../FORMAT.md")]

mod chain;
mod delete;
mod frame;
mod head;
mod history;
mod intake;
mod open;
mod snapshot;
mod stage;
mod table;
mod writer;

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use async_trait::async_trait;
use redb::Database;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_blocking;
use wattle_graph::event::Event;
use wattle_graph::id::{CheckpointId, Digest, Namespace, RunId, ThreadId};
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    Batch, CheckpointQuery, CheckpointTuple, RunRecord, Store, StoreError, ThreadHead, ThreadQuery,
    ThreadRecord, Ticket,
};

use crate::error::backend;
use crate::sweep::Mentions;
use crate::watches::Watches;
use snapshot::Snapshot;
use writer::{Command, QUEUE_LIMIT, Writer};

/// A store in a file. Clones share it; when the last one is dropped, everything that waits is
/// written and the file is closed.
///
/// Reads that may be long go to tokio's blocking threads, so the methods must be called from
/// within a tokio runtime.
#[derive(Clone)]
pub struct RedbStore(Arc<Inner>);

struct Inner {
    database: Arc<Database>,
    watches: Arc<Watches>,
    /// `None` only while it is dropped.
    commands: Option<mpsc::Sender<Command>>,
    writer: Option<JoinHandle<()>>,
}

impl fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbStore").finish_non_exhaustive()
    }
}

impl RedbStore {
    /// Opens the file, or creates it; its folder must exist.
    ///
    /// # Errors
    ///
    /// [`StoreError::NewerFormat`] if a newer Wattle wrote it, [`StoreError::Corrupt`] if it is
    /// damaged or not a store, [`StoreError::Backend`] if it cannot be opened, for example since
    /// another process has it open.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let (database, intake) = open::open(path.as_ref())?;
        let database = Arc::new(database);
        let watches = Arc::new(Watches::default());
        let (commands, queue) = mpsc::channel(QUEUE_LIMIT);
        let writer = Writer {
            database: database.clone(),
            intake,
            watches: watches.clone(),
            commands: queue,
        };
        let writer = std::thread::Builder::new()
            .name("wattle-store".into())
            .spawn(move || writer.run())
            .map_err(|error| backend("start its writer thread", error))?;
        let (commands, writer) = (Some(commands), Some(writer));
        Ok(Self(Arc::new(Inner { database, watches, commands, writer })))
    }

    async fn send(&self, command: Command) -> Result<(), StoreError> {
        let commands = self.0.commands.as_ref().ok_or(StoreError::Closed)?;
        commands.send(command).await.map_err(|_| StoreError::Closed)
    }

    fn snapshot(&self) -> Result<Snapshot, StoreError> {
        Snapshot::take(&self.0.database)
    }

    /// Reads on a thread that may block.
    async fn read<T, R>(&self, read: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: FnOnce(&Snapshot) -> Result<T, StoreError> + Send + 'static,
    {
        let database = self.0.database.clone();
        spawn_blocking(move || read(&Snapshot::take(&database)?))
            .await
            .map_err(|error| backend("read", error))?
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The writer ends when the queue is closed and empty.
        self.commands = None;
        if self.writer.take().is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("writer of the checkpoint store panicked");
        }
    }
}

#[async_trait]
impl Store for RedbStore {
    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let (answer, ticket) = oneshot::channel();
        let (thread, batch) = (thread.clone(), Box::new(batch));
        match self.send(Command::Append { thread, batch, answer }).await {
            Ok(()) => Ticket::waiting(ticket),
            Err(error) => Ticket::ready(Err(error)),
        }
    }

    fn watch(&self, thread: &ThreadId) -> watch::Receiver<u64> {
        self.0.watches.subscribe(thread, || {
            let head = self.snapshot().and_then(|snapshot| snapshot.head(thread));
            head.map_or_else(
                |error| {
                    tracing::error!(%error, %thread, "newest event of a thread cannot be read");
                    0
                },
                |head| head.map_or(0, |head| head.last_seq),
            )
        })
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, StoreError> {
        self.snapshot()?.thread(thread)
    }

    async fn threads(&self, query: &ThreadQuery) -> Result<Vec<ThreadRecord>, StoreError> {
        let query = query.clone();
        self.read(move |snapshot| snapshot.threads(&query)).await
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.snapshot()?.run(run)
    }

    async fn runs(&self, thread: &ThreadId) -> Result<Vec<RunRecord>, StoreError> {
        let thread = thread.clone();
        self.read(move |snapshot| snapshot.runs(&thread)).await
    }

    async fn checkpoint(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: Option<CheckpointId>,
    ) -> Result<Option<CheckpointTuple>, StoreError> {
        let (thread, namespace) = (thread.clone(), namespace.clone());
        self.read(move |snapshot| history::checkpoint(snapshot, &thread, &namespace, id)).await
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
        let (answer, done) = oneshot::channel();
        self.send(Command::Delete { thread: thread.clone(), answer }).await?;
        done.await.unwrap_or(Err(StoreError::Closed))
    }

    async fn mentions(&self, thread: &ThreadId, blob: BlobRef) -> Result<bool, StoreError> {
        self.snapshot()?.mentions(thread, blob.0)
    }

    async fn stored_bytes(&self, thread: &ThreadId) -> Result<u64, StoreError> {
        self.snapshot()?.stored_bytes(thread)
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
