//! Access to the file: reads, mostly on blocking threads, and commands to the writer thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use wattle_graph::id::ThreadId;
use wattle_run::ports::store::StoreError;
use wattle_run::reads::begin_large_read;

use crate::disk::field_cache::FieldCache;
use crate::disk::history::Cursors;
use crate::disk::leases::LeaseTable;
use crate::disk::orphans::Reclaimed;
use crate::disk::rewrite_job::{RewriteJob, RewriteKind};
use crate::disk::snapshot::Snapshot;
use crate::disk::writer::Writer;
use crate::disk::writer_handle::WriterHandle;
use crate::error::backend;
use crate::file::guarded;
use crate::file::handle::SharedFile;
use crate::pending::PendingRuns;
use crate::watch::WatchRegistry;

/// The state that all clones of a store share.
pub(super) struct Inner {
    pub(super) file: Arc<SharedFile>,
    pub(super) watches: Arc<WatchRegistry>,
    pub(super) pending: Arc<Mutex<PendingRuns>>,
    pub(super) leases: Arc<LeaseTable>,
    pub(super) cursors: Arc<Cursors>,
    pub(super) field_cache: Arc<FieldCache>,
    /// Whether the store is being dropped, which ends rewrites.
    pub(super) is_closing: Arc<AtomicBool>,
    /// `None` only while the store is being dropped.
    pub(super) writer: Option<WriterHandle>,
    pub(super) writer_thread: Option<JoinHandle<()>>,
}

impl Inner {
    /// Returns the handle to the writer thread.
    pub(super) fn writer(&self) -> Result<&WriterHandle, StoreError> {
        self.writer.as_ref().ok_or(StoreError::Closed)
    }

    /// Runs a closure on the writer thread, after all commands that were queued before.
    pub(super) async fn run_on_writer<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&mut Writer) -> Result<T, StoreError> + Send + 'static,
    {
        let (reply_tx, reply_rx) = oneshot::channel();
        let work = move |writer: &mut Writer| {
            // The caller may have been dropped.
            let _ = reply_tx.send(guarded("write", || work(writer)));
        };
        self.writer()?.run(Box::new(work)).await?;
        reply_rx.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Runs a closure on a blocking thread. The closure makes its changes in several commands to
    /// the writer.
    pub(super) async fn run_rewrite_job<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&RewriteJob) -> Result<T, StoreError> + Send + 'static,
    {
        let job =
            RewriteJob { writer: self.writer()?.clone(), is_closing: self.is_closing.clone() };
        spawn_blocking(move || guarded("write", || work(&job)))
            .await
            .map_err(|error| backend("write", error))?
    }

    /// Rewrites a thread, and waits until the old frames are reclaimed.
    pub(super) async fn rewrite(
        &self,
        thread: ThreadId,
        kind: RewriteKind,
    ) -> Result<(), StoreError> {
        let thread = self.leases.begin_write(thread);
        wait_reclaimed(self.run_rewrite_job(move |job| job.run(thread.thread(), &kind)).await?)
            .await
    }

    /// Returns the result of a read unchanged. If the read shows that the file has failed, requests
    /// that the writer reopen the file, even if no batch follows.
    pub(super) fn note_failure<T>(&self, read: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error @ (StoreError::Backend { .. } | StoreError::Corrupt { .. })) = &read
            && self.file.note_failure(error)
            && let Ok(writer) = self.writer()
        {
            writer.request_reopen();
        }
        read
    }

    /// Runs a short read on the calling task. Moves it to the blocking threads only while the file
    /// is compacted.
    pub(super) async fn read_inline<T, R>(&self, read: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: FnOnce(&Snapshot) -> Result<T, StoreError> + Send + 'static,
    {
        match Snapshot::try_newest(&self.file) {
            Some(snapshot) => self.note_failure(guarded("read", || read(&snapshot?))),
            None => self.read_blocking(read).await,
        }
    }

    /// Runs a read that is mostly short on the calling task. Moves it to the blocking threads if it
    /// exceeds the budget of an inline read, or while the file is compacted.
    pub(super) async fn read_inline_or_blocking<T, R>(&self, read: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: Fn(&Snapshot) -> Result<T, StoreError> + Send + 'static,
    {
        if let Some(snapshot) = Snapshot::try_newest(&self.file) {
            let snapshot = self.note_failure(snapshot)?.with_inline_budget();
            let result = guarded("read", || read(&snapshot));
            if !snapshot.budget_exceeded() {
                return self.note_failure(result);
            }
        }
        self.read_large(read).await
    }

    /// Runs a read that may decode a large state on a blocking thread, in a turn of the request
    /// that needs it.
    pub(super) async fn read_large<T, R>(&self, read: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: FnOnce(&Snapshot) -> Result<T, StoreError> + Send + 'static,
    {
        let large = begin_large_read().await;
        let in_turn = move |snapshot: &Snapshot| {
            let done = read(snapshot);
            // The turn is held until the read ends, even if the request is given up.
            drop(large);
            done
        };
        self.read_blocking(in_turn).await
    }

    /// Runs a read on a blocking thread.
    pub(super) async fn read_blocking<T, R>(&self, read: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: FnOnce(&Snapshot) -> Result<T, StoreError> + Send + 'static,
    {
        self.read_file(move |file| read(&Snapshot::newest(file)?)).await
    }

    /// Runs a read of the selecting fields of many records on a blocking thread. The read opens its
    /// snapshot itself.
    pub(super) async fn read_fields<T, R>(&self, read: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: FnOnce(&SharedFile, &FieldCache) -> Result<T, StoreError> + Send + 'static,
    {
        let field_cache = self.field_cache.clone();
        self.read_file(move |file| read(file, &field_cache)).await
    }

    async fn read_file<T, R>(&self, read: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: FnOnce(&SharedFile) -> Result<T, StoreError> + Send + 'static,
    {
        let file = self.file.clone();
        let read = move || guarded("read", || read(&file));
        self.note_failure(spawn_blocking(read).await.map_err(|error| backend("read", error))?)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The writer ends when the queue is closed and empty. A rewrite keeps the queue open until
        // the rewrite ends.
        self.is_closing.store(true, Ordering::Release);
        if let Some(writer) = self.writer.take() {
            writer.request_flush();
        }
        let Some(writer_thread) = self.writer_thread.take() else {
            return;
        };
        writer_thread.thread().unpark();
        if writer_thread.join().is_err() {
            tracing::error!("writer of the checkpoint store panicked");
        }
    }
}

/// Waits until the frames of a deleted thread are reclaimed.
pub(super) async fn wait_reclaimed(left: Option<Reclaimed>) -> Result<(), StoreError> {
    match left {
        Some(left) => left.await.unwrap_or(Err(StoreError::Closed)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io;
    use std::ops::Bound;
    use std::time::Duration;

    use redb::backends::FileBackend;
    use redb::{BackendError, Builder, StorageBackend};
    use tempfile::TempDir;
    use wattle_run::ports::Store as _;
    use wattle_run::ports::store::{Batch, ThreadRecord};

    use super::*;
    use crate::disk::create::FILE;
    use crate::disk::open::{self, OpenedFile};
    use crate::{RedbConfig, RedbStore};

    /// A file whose next read fails once `fails` is set.
    #[derive(Debug)]
    struct Flaky {
        file: FileBackend,
        fails: Arc<AtomicBool>,
    }

    impl StorageBackend for Flaky {
        fn len(&self) -> io::Result<u64> {
            self.file.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            if self.fails.swap(false, Ordering::AcqRel) {
                return Err(io::Error::other("the disk reports a read error"));
            }
            self.file.read(offset, out)
        }

        fn set_len(&self, bytes: u64) -> io::Result<()> {
            self.file.set_len(bytes)
        }

        fn sync_data(&self) -> io::Result<()> {
            self.file.sync_data()
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.file.write(offset, data)
        }

        fn close(&self) -> io::Result<()> {
            self.file.close()
        }

        fn try_lock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<bool, BackendError> {
            self.file.try_lock_range(from, to)
        }

        fn try_lock_shared_range(
            &self,
            from: Bound<u64>,
            to: Bound<u64>,
        ) -> Result<bool, BackendError> {
            self.file.try_lock_shared_range(from, to)
        }

        fn unlock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<(), BackendError> {
            self.file.unlock_range(from, to)
        }

        fn query_lock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<bool, BackendError> {
            self.file.query_lock_range(from, to)
        }
    }

    fn batch(thread: &ThreadId, at_ms: i64) -> Batch {
        let record = Some(ThreadRecord::unbound(thread.clone(), at_ms));
        Batch { record, ..Batch::default() }
    }

    /// Opens a store with one thread and cold caches. Returns the store and the flag that makes the
    /// next read of its file fail.
    async fn flaky() -> (RedbStore, ThreadId, Arc<AtomicBool>, TempDir) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("wattle.redb");
        let thread = ThreadId::new("t").unwrap();
        let store = RedbStore::open(&path).unwrap();
        store.append(&thread, batch(&thread, 1)).await.await.unwrap();
        drop(store);
        let OpenedFile { database, stager, opening } =
            open::open(&path, &FILE, Duration::ZERO).unwrap();
        drop(database);
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let fails = Arc::new(AtomicBool::new(false));
        let backend = Flaky { file: FileBackend::new(file).unwrap(), fails: fails.clone() };
        let database = Builder::new().create_with_backend(backend).unwrap();
        let opened = OpenedFile { database, stager, opening };
        let store = RedbStore::over(&path, opened, RedbConfig::default()).unwrap();
        (store, thread, fails, dir)
    }

    #[tokio::test]
    async fn failed_read_loses_no_batch() {
        let (store, thread, fails, _dir) = flaky().await;
        fails.store(true, Ordering::Release);
        let error = store.thread(&thread).await.unwrap_err();
        assert!(matches!(error, StoreError::Backend { .. }), "{error}");
        store.append(&thread, batch(&thread, 2)).await.await.unwrap();
        assert_eq!(store.thread(&thread).await.unwrap().unwrap().record.updated_ms, 2);
    }

    #[tokio::test]
    async fn failed_file_is_reopened_without_a_write() {
        let (store, thread, fails, _dir) = flaky().await;
        fails.store(true, Ordering::Release);
        store.thread(&thread).await.unwrap_err();
        // The closure runs after the command that opens the file again.
        store.0.run_on_writer(|_writer| Ok(())).await.unwrap();
        assert!(store.thread(&thread).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn failed_read_of_the_writer_loses_no_batch() {
        let (store, thread, fails, _dir) = flaky().await;
        fails.store(true, Ordering::Release);
        store.append(&thread, batch(&thread, 2)).await.await.unwrap();
        assert!(!fails.load(Ordering::Acquire), "nothing was read");
    }
}
