//! Long-term memory in a separate redb database, with one writer thread.
//!
//! # The file
//!
//! | table | key | value |
//! |---|---|---|
//! | `memory` | `format` | 2 |
//! | `items` | path, key | created, updated, expires, refresh, checksum, document as JSON |
//! | `expiries` | expires, path, key | |
//! | `lost` | name of a damaged file, number | what a rebuild lost, and the reason |
//!
//! A path is a scope and a namespace in the encoding of `path`. Keys are UTF-8. Times are
//! milliseconds since 1970, and `refresh` is a duration in milliseconds. A document with an expiry
//! has one entry in `expiries`, under the same time as in `items`. The checksum is the beginning of
//! a BLAKE3 digest of path, key and the rest of the row. Every acknowledged write is durable.
//!
//! A file of format 1 has the documents in the table `documents`, without checksums. Opening the
//! file migrates it to format 2.
//!
//! # Damage
//!
//! Opening a damaged file rebuilds it from all documents that can be read. A document that does not
//! match its checksum is never returned: reads of the document fail with `broken`, and a put
//! replaces the document.

mod failure;
mod open;
mod rebuild;
mod survey;
mod table;
mod usage;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, spawn_blocking};
use wattle_graph::failure::Failure;
use wattle_run::ports::Memory;
use wattle_run::ports::memory::{Item, ListNamespaces, MemoryScope, MemorySearch, PutItem};
use wattle_run::ports::store::Damage;

use crate::disk::backup;
use crate::error::redb_error;
use crate::file::guarded;
use crate::file::handle::SharedFile;
use crate::memory::disk::failure::{OP_READ, closed_failure, failure, redb_failure};
use crate::memory::disk::open::FILE;
pub use crate::memory::disk::rebuild::EssentialDocuments;
use crate::memory::disk::table::{DOCUMENTS, DocumentSnapshot, EXPIRIES};
use crate::memory::disk::usage::Usage;
use crate::memory::disk::writer::{Change, MAX_DELETES, QUEUE_CAPACITY, QueuedChange, Writer};
use crate::memory::document::{DocumentKey, StoredDocument};
use crate::memory::path;
use crate::memory::scan;

/// Long-term memory in a file. Clones share the file. Dropping the last clone writes all queued
/// changes and closes the file.
#[derive(Clone)]
pub struct RedbMemory(Arc<Inner>);

struct Inner {
    file: Arc<SharedFile>,
    usage: Arc<Usage>,
    /// `None` only during drop.
    commands: Option<mpsc::Sender<QueuedChange>>,
    writer: Option<JoinHandle<()>>,
}

impl fmt::Debug for RedbMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbMemory").finish_non_exhaustive()
    }
}

impl RedbMemory {
    /// Opens the file, or creates it in an existing folder. Rebuilds a damaged file from the
    /// documents that can be read, and keeps the damaged file in the same folder.
    ///
    /// # Errors
    ///
    /// `broken` if nothing in the file can be read or if the file is not a long-term memory,
    /// `unavailable` if the file cannot be opened or was written by a newer Wattle. The message
    /// names the cause and the remedy.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Failure> {
        Self::open_as(path.as_ref(), None, Duration::ZERO)
    }

    /// Opens the file as [`RedbMemory::open`] does, but refuses a damaged file of which all
    /// essential documents may be lost: only an operator decides whether a host runs without them.
    /// Waits at most `lock_wait` for another process that has the file open.
    ///
    /// # Errors
    ///
    /// The errors of [`RedbMemory::open`], and `broken` for a file that is refused.
    pub fn open_with(
        path: impl AsRef<Path>,
        essential: &EssentialDocuments,
        lock_wait: Duration,
    ) -> Result<Self, Failure> {
        Self::open_as(path.as_ref(), Some(essential), lock_wait)
    }

    fn open_as(
        path: &Path,
        essential: Option<&EssentialDocuments>,
        lock_wait: Duration,
    ) -> Result<Self, Failure> {
        let database = open::open(path, essential, lock_wait).map_err(failure)?;
        let file = SharedFile::new(path.to_owned(), FILE, database);
        let (file, usage) = (Arc::new(file), Arc::<Usage>::default());
        let (commands, queue) = mpsc::channel(QUEUE_CAPACITY);
        let writer =
            Writer { file: file.clone(), reopen_at: None, commands: queue, usage: usage.clone() };
        let writer = std::thread::Builder::new()
            .name("wattle-memory".into())
            .spawn(move || writer.run())
            .map_err(|error| redb_failure("start its writer thread")(error))?;
        let (commands, writer) = (Some(commands), Some(writer));
        Ok(Self(Arc::new(Inner { file, usage, commands, writer })))
    }

    /// Checks a file that no process has open, without changing it: compares all pages and all
    /// documents with their checksums. A file that was never created has no damage.
    ///
    /// # Errors
    ///
    /// `broken` if the file was created before and is missing, or if its documents cannot be
    /// listed; `unavailable` if a process has the file open. The message names the remedy.
    pub fn survey_file(path: impl AsRef<Path>) -> Result<Vec<Damage>, Failure> {
        open::survey(path.as_ref()).map_err(failure)
    }

    /// Rebuilds a damaged file from its readable parts, and keeps the damaged file under another
    /// name. No process may have the file open. Returns the damage and the new path of the damaged
    /// file, or `None` if nothing is damaged.
    ///
    /// # Errors
    ///
    /// The errors of [`RedbMemory::survey_file`], and `broken` if nothing can be read.
    pub fn repair_file(path: impl AsRef<Path>) -> Result<Option<(Vec<Damage>, PathBuf)>, Failure> {
        open::repair(path.as_ref()).map_err(failure)
    }

    /// Sends a change to the writer and waits until it is durable.
    async fn write(&self, change: Change) -> Result<usize, Failure> {
        let (reply, reply_rx) = oneshot::channel();
        let commands = self.0.commands.as_ref().ok_or_else(closed_failure)?;
        commands.send(QueuedChange { change, reply }).await.map_err(|_| closed_failure())?;
        reply_rx.await.unwrap_or_else(|_| Err(closed_failure()))
    }

    /// Repeats a change that deletes a bounded number of documents until none are left.
    async fn remove(&self, change: impl Fn() -> Change) -> Result<usize, Failure> {
        let mut removed = 0;
        loop {
            let part = self.write(change()).await?;
            removed += part;
            if part < MAX_DELETES {
                return Ok(removed);
            }
        }
    }

    /// Returns a document unless it has expired.
    async fn get_live(
        &self,
        doc_key: &DocumentKey,
        now_ms: i64,
    ) -> Result<Option<StoredDocument>, Failure> {
        let doc_key = doc_key.clone();
        let stored = self.read(move |documents| documents.get(&doc_key)).await?;
        Ok(stored.filter(|stored: &StoredDocument| stored.is_alive(now_ms)))
    }

    /// Extends the sliding expiry of documents that a read returns. The read waits for the
    /// extension, so that no later read finds the documents expired.
    async fn refresh_expiry(&self, doc_keys: Vec<DocumentKey>, now_ms: i64) -> Result<(), Failure> {
        if !doc_keys.is_empty() {
            self.write(Change::RefreshExpiry { doc_keys, now_ms }).await?;
        }
        Ok(())
    }

    /// Returns the result of a read unchanged. If the read shows that the file has failed, the
    /// writer reopens it before the next change.
    fn note_failure<T>(&self, read: Result<T, Failure>) -> Result<T, Failure> {
        read.inspect_err(|failure| {
            self.0.file.note_failure(failure);
        })
    }

    /// Runs a read on the blocking pool.
    async fn read<T, R>(&self, read: R) -> Result<T, Failure>
    where
        T: Send + 'static,
        R: FnOnce(&DocumentSnapshot) -> Result<T, Failure> + Send + 'static,
    {
        let handle = self.0.file.handle();
        let work = move || {
            let mut result = Err(closed_failure());
            let done = guarded("read", || {
                let transaction = handle.begin_read().map_err(redb_error(OP_READ))?;
                result =
                    DocumentSnapshot::open(&transaction).and_then(|documents| read(&documents));
                Ok(())
            });
            done.map_err(failure)?;
            result
        };
        self.note_failure(spawn_blocking(work).await.map_err(aborted_failure)?)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The writer ends when the queue is closed and empty.
        self.commands = None;
        if self.writer.take().is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("writer of the long-term memory panicked");
        }
    }
}

#[async_trait]
impl Memory for RedbMemory {
    async fn get(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure> {
        let doc_key = (path::encode(scope, namespace), key.to_owned());
        let Some(stored) = self.get_live(&doc_key, now_ms).await? else {
            return Ok(None);
        };
        if stored.refreshed_expiry(now_ms).is_some() {
            self.refresh_expiry(vec![doc_key.clone()], now_ms).await?;
        }
        stored.item(&doc_key.0, key).map(Some)
    }

    async fn peek(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure> {
        let doc_key = (path::encode(scope, namespace), key.to_owned());
        let stored = self.get_live(&doc_key, now_ms).await?;
        stored.map(|stored| stored.item(&doc_key.0, key)).transpose()
    }

    async fn put(&self, scope: &MemoryScope, item: PutItem, now_ms: i64) -> Result<(), Failure> {
        let path = path::encode(scope, &item.namespace);
        self.write(Change::Put { path, item, now_ms }).await.map(drop)
    }

    async fn compare_and_set(
        &self,
        scope: &MemoryScope,
        known: Option<&Value>,
        item: PutItem,
        now_ms: i64,
    ) -> Result<bool, Failure> {
        let path = path::encode(scope, &item.namespace);
        let known = known.cloned();
        let held = self.write(Change::PutIf { path, known, item, now_ms }).await?;
        Ok(held > 0)
    }

    async fn delete(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
    ) -> Result<(), Failure> {
        let doc_key = (path::encode(scope, namespace), key.to_owned());
        self.write(Change::Delete { doc_key }).await.map(drop)
    }

    async fn compare_and_delete(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        known: &Value,
        now_ms: i64,
    ) -> Result<bool, Failure> {
        let doc_key = (path::encode(scope, namespace), key.to_owned());
        let gone = self.write(Change::DeleteIf { doc_key, known: known.clone(), now_ms }).await?;
        Ok(gone > 0)
    }

    async fn search(
        &self,
        scope: &MemoryScope,
        search: &MemorySearch,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure> {
        let (scope, search) = (scope.clone(), search.clone());
        let found =
            self.read(move |documents| scan::search(documents, &scope, &search, now_ms)).await?;
        self.refresh_expiry(found.refreshed, now_ms).await?;
        Ok(found.items)
    }

    async fn list(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        after: &str,
        limit: usize,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure> {
        let after = (path::encode(scope, namespace), after.to_owned());
        self.read(move |documents| scan::list(documents, &after, limit, now_ms)).await
    }

    async fn namespaces(
        &self,
        scope: &MemoryScope,
        list: &ListNamespaces,
        now_ms: i64,
    ) -> Result<Vec<Vec<String>>, Failure> {
        let (scope, list) = (scope.clone(), list.clone());
        self.read(move |documents| scan::namespaces(documents, &scope, &list, now_ms)).await
    }

    async fn usage(&self, scope: &MemoryScope, prefix: &[String]) -> Result<u64, Failure> {
        let prefix = path::encode(scope, prefix);
        if let Some(bytes) = self.0.usage.cached(&prefix) {
            return Ok(bytes);
        }
        let (file, usage) = (self.0.file.clone(), self.0.usage.clone());
        let count = move || {
            let handle = file.handle();
            let mut counted = Err(closed_failure());
            let done = guarded("read", || {
                let begin_read = || handle.begin_read().map_err(redb_error(OP_READ));
                let (id, transaction) = usage.begin(&prefix, begin_read)?;
                let documents = DocumentSnapshot::open(&transaction);
                counted = documents
                    .and_then(|documents| documents.bytes_in(&path::prefix_range(&prefix)))
                    .map(|bytes| usage.finish(&prefix, id, bytes));
                Ok(())
            });
            done.map_err(failure)?;
            counted
        };
        self.note_failure(spawn_blocking(count).await.map_err(aborted_failure)?)
    }

    async fn clear(&self, scope: &MemoryScope, prefix: &[String]) -> Result<usize, Failure> {
        let paths = path::prefix_range(&path::encode(scope, prefix));
        self.remove(|| Change::Clear { paths: paths.clone() }).await
    }

    async fn sweep(&self, now_ms: i64) -> Result<usize, Failure> {
        self.remove(|| Change::Sweep { now_ms }).await
    }

    async fn backup(&self, folder: &Path) -> Result<(), Failure> {
        let to = folder.join(self.0.file.path().file_name().unwrap_or_default());
        let handle = self.0.file.handle();
        let copy = move || {
            guarded(OP_BACK_UP, || {
                let from = handle.begin_read().map_err(redb_error(OP_BACK_UP))?;
                let database = redb::Database::create(to).map_err(redb_error(OP_BACK_UP))?;
                table::create(&database).map_err(redb_error(OP_BACK_UP))?;
                backup::copy_table(&from, &database, DOCUMENTS)?;
                backup::copy_table(&from, &database, EXPIRIES)?;
                backup::make_durable(&database)?;
                database.close().map_err(redb_error(OP_BACK_UP))
            })
        };
        self.note_failure(spawn_blocking(copy).await.map_err(aborted_failure)?.map_err(failure))
    }

    async fn find_damage(&self) -> Result<Vec<Damage>, Failure> {
        let file = self.0.file.clone();
        let look = move || {
            let handle = file.handle();
            let begun = guarded("read", || handle.begin_read().map_err(redb_error(OP_READ)));
            survey::survey(file.path(), &begun?)
        };
        self.note_failure(spawn_blocking(look).await.map_err(aborted_failure)?.map_err(failure))
    }
}

const OP_BACK_UP: &str = "back its file up";

/// Returns the failure of a read that panicked or was aborted.
fn aborted_failure(error: JoinError) -> Failure {
    Failure::internal(format!("a read of the long-term memory was aborted: {error}"))
}
