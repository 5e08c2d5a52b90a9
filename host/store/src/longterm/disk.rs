//! Long-term memory in a redb database of its own, with one writer thread.
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
//! match its checksum is never returned: reads of it fail with `broken`, and a put replaces it.

mod fault;
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
use crate::longterm::disk::fault::{READ, cannot, closed, failure};
use crate::longterm::disk::open::FILE;
pub use crate::longterm::disk::rebuild::EssentialDocuments;
use crate::longterm::disk::table::{DOCUMENTS, Documents, EXPIRIES};
use crate::longterm::disk::usage::Usage;
use crate::longterm::disk::writer::{Change, Command, QUEUE_LIMIT, REMOVED_AT_ONCE, Writer};
use crate::longterm::path;
use crate::longterm::record::{Place, Record};
use crate::longterm::shelf;

/// Long-term memory in a file. Clones share the file. Dropping the last clone writes all queued
/// changes and closes the file.
#[derive(Clone)]
pub struct RedbMemory(Arc<Inner>);

struct Inner {
    file: Arc<SharedFile>,
    usage: Arc<Usage>,
    /// `None` only during drop.
    commands: Option<mpsc::Sender<Command>>,
    writer: Option<JoinHandle<()>>,
}

impl fmt::Debug for RedbMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbMemory").finish_non_exhaustive()
    }
}

impl RedbMemory {
    /// Opens the file, or creates it in an existing folder. Rebuilds a damaged file from what can
    /// be read of it, and keeps the damaged file in the same folder.
    ///
    /// # Errors
    ///
    /// `broken` if nothing in the file can be read or if it is not a long-term memory,
    /// `unavailable` if it cannot be opened or was written by a newer Wattle. The message names the
    /// cause and the remedy.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Failure> {
        Self::open_as(path.as_ref(), None)
    }

    /// Opens the file as [`RedbMemory::open`] does, but refuses a damaged file of which all
    /// essential documents may be lost: only an operator decides whether a host runs without them.
    ///
    /// # Errors
    ///
    /// As [`RedbMemory::open`], and `broken` for a file that is refused.
    pub fn open_with(
        path: impl AsRef<Path>,
        essential: &EssentialDocuments,
    ) -> Result<Self, Failure> {
        Self::open_as(path.as_ref(), Some(essential))
    }

    fn open_as(path: &Path, essential: Option<&EssentialDocuments>) -> Result<Self, Failure> {
        let database = open::open(path, essential).map_err(failure)?;
        let file = SharedFile::new(path.to_owned(), &FILE, database);
        let (file, usage) = (Arc::new(file), Arc::<Usage>::default());
        let (commands, queue) = mpsc::channel(QUEUE_LIMIT);
        let writer =
            Writer { file: file.clone(), reopen_at: None, commands: queue, usage: usage.clone() };
        let writer = std::thread::Builder::new()
            .name("wattle-memory".into())
            .spawn(move || writer.run())
            .map_err(|error| cannot("start its writer thread")(error))?;
        let (commands, writer) = (Some(commands), Some(writer));
        Ok(Self(Arc::new(Inner { file, usage, commands, writer })))
    }

    /// Checks a file that no process has open, without changing it: compares all pages and all
    /// documents with their checksums. A file that was never created has no damage.
    ///
    /// # Errors
    ///
    /// `broken` if the file was created before and is missing, or if its documents cannot be
    /// listed; `unavailable` if a process has it open. The message names the remedy.
    pub fn survey_file(path: impl AsRef<Path>) -> Result<Vec<Damage>, Failure> {
        open::survey(path.as_ref()).map_err(failure)
    }

    /// Rebuilds a damaged file that no process has open from what can be read of it, and keeps the
    /// damaged file. Returns the damage and the new path of the damaged file, or `None` if nothing
    /// is damaged.
    ///
    /// # Errors
    ///
    /// As [`RedbMemory::survey_file`], and `broken` if nothing can be read.
    pub fn repair_file(path: impl AsRef<Path>) -> Result<Option<(Vec<Damage>, PathBuf)>, Failure> {
        open::repair(path.as_ref()).map_err(failure)
    }

    /// Sends a change to the writer and waits until it is durable.
    async fn write(&self, change: Change) -> Result<usize, Failure> {
        let (answer, done) = oneshot::channel();
        let commands = self.0.commands.as_ref().ok_or_else(closed)?;
        commands.send(Command { change, answer }).await.map_err(|_| closed())?;
        done.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Repeats a change that deletes a bounded number of documents until none are left.
    async fn remove(&self, change: impl Fn() -> Change) -> Result<usize, Failure> {
        let mut removed = 0;
        loop {
            let part = self.write(change()).await?;
            removed += part;
            if part < REMOVED_AT_ONCE {
                return Ok(removed);
            }
        }
    }

    /// Returns a document unless it has expired.
    async fn alive(&self, place: &Place, now_ms: i64) -> Result<Option<Record>, Failure> {
        let place = place.clone();
        let record = self.read(move |documents| documents.get(&place)).await?;
        Ok(record.filter(|record: &Record| record.is_alive(now_ms)))
    }

    /// Extends the sliding expiry of documents that a read returns. The read waits for it, so that
    /// no later read finds the documents expired.
    async fn touch(&self, places: Vec<Place>, now_ms: i64) -> Result<(), Failure> {
        if !places.is_empty() {
            self.write(Change::Touch { places, now_ms }).await?;
        }
        Ok(())
    }

    /// Passes a result through. An error of the file makes the writer open the file again before
    /// the next change.
    fn noted<T>(&self, read: Result<T, Failure>) -> Result<T, Failure> {
        read.inspect_err(|failure| {
            self.0.file.note_failure(failure);
        })
    }

    /// Runs a read on the blocking pool.
    async fn read<T, R>(&self, read: R) -> Result<T, Failure>
    where
        T: Send + 'static,
        R: FnOnce(&Documents) -> Result<T, Failure> + Send + 'static,
    {
        let handle = self.0.file.handle();
        let work = move || {
            let mut answer = Err(closed());
            let done = guarded("read", || {
                let transaction = handle.begin_read().map_err(redb_error(READ))?;
                answer = Documents::open(&transaction).and_then(|documents| read(&documents));
                Ok(())
            });
            done.map_err(failure)?;
            answer
        };
        self.noted(spawn_blocking(work).await.map_err(broken_off)?)
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
        let place = (path::encode(scope, namespace), key.to_owned());
        let Some(record) = self.alive(&place, now_ms).await? else {
            return Ok(None);
        };
        if record.refreshed(now_ms).is_some() {
            self.touch(vec![place.clone()], now_ms).await?;
        }
        record.item(&place.0, key).map(Some)
    }

    async fn peek(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure> {
        let place = (path::encode(scope, namespace), key.to_owned());
        let record = self.alive(&place, now_ms).await?;
        record.map(|record| record.item(&place.0, key)).transpose()
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
        let place = (path::encode(scope, namespace), key.to_owned());
        self.write(Change::Delete { place }).await.map(drop)
    }

    async fn compare_and_delete(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        known: &Value,
        now_ms: i64,
    ) -> Result<bool, Failure> {
        let place = (path::encode(scope, namespace), key.to_owned());
        let gone = self.write(Change::DeleteIf { place, known: known.clone(), now_ms }).await?;
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
            self.read(move |documents| shelf::search(documents, &scope, &search, now_ms)).await?;
        self.touch(found.refreshed, now_ms).await?;
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
        self.read(move |documents| shelf::list(documents, &after, limit, now_ms)).await
    }

    async fn namespaces(
        &self,
        scope: &MemoryScope,
        list: &ListNamespaces,
        now_ms: i64,
    ) -> Result<Vec<Vec<String>>, Failure> {
        let (scope, list) = (scope.clone(), list.clone());
        self.read(move |documents| shelf::namespaces(documents, &scope, &list, now_ms)).await
    }

    async fn usage(&self, scope: &MemoryScope, prefix: &[String]) -> Result<u64, Failure> {
        let prefix = path::encode(scope, prefix);
        if let Some(bytes) = self.0.usage.known(&prefix) {
            return Ok(bytes);
        }
        let (file, usage) = (self.0.file.clone(), self.0.usage.clone());
        let count = move || {
            let handle = file.handle();
            let mut counted = Err(closed());
            let done = guarded("read", || {
                let begin_read = || handle.begin_read().map_err(redb_error(READ));
                let (id, transaction) = usage.begin(&prefix, begin_read)?;
                let documents = Documents::open(&transaction);
                counted = documents
                    .and_then(|documents| documents.bytes_in(&path::under(&prefix)))
                    .map(|bytes| usage.finish(&prefix, id, bytes));
                Ok(())
            });
            done.map_err(failure)?;
            counted
        };
        self.noted(spawn_blocking(count).await.map_err(broken_off)?)
    }

    async fn clear(&self, scope: &MemoryScope, prefix: &[String]) -> Result<usize, Failure> {
        let paths = path::under(&path::encode(scope, prefix));
        self.remove(|| Change::Clear { paths: paths.clone() }).await
    }

    async fn sweep(&self, now_ms: i64) -> Result<usize, Failure> {
        self.remove(|| Change::Sweep { now_ms }).await
    }

    async fn backup(&self, folder: &Path) -> Result<(), Failure> {
        let to = folder.join(self.0.file.path().file_name().unwrap_or_default());
        let handle = self.0.file.handle();
        let copy = move || {
            guarded(BACK_UP, || {
                let from = handle.begin_read().map_err(redb_error(BACK_UP))?;
                let database = redb::Database::create(to).map_err(redb_error(BACK_UP))?;
                table::create(&database).map_err(redb_error(BACK_UP))?;
                backup::copy_table(&from, &database, DOCUMENTS)?;
                backup::copy_table(&from, &database, EXPIRIES)?;
                backup::make_durable(&database)?;
                database.close().map_err(redb_error(BACK_UP))
            })
        };
        self.noted(spawn_blocking(copy).await.map_err(broken_off)?.map_err(failure))
    }

    async fn find_damage(&self) -> Result<Vec<Damage>, Failure> {
        let file = self.0.file.clone();
        let look = move || {
            let handle = file.handle();
            let begun = guarded("read", || handle.begin_read().map_err(redb_error(READ)));
            survey::survey(file.path(), &begun?)
        };
        self.noted(spawn_blocking(look).await.map_err(broken_off)?.map_err(failure))
    }
}

const BACK_UP: &str = "back its file up";

/// Returns the failure of a read that panicked or was aborted.
fn broken_off(error: JoinError) -> Failure {
    Failure::internal(format!("a read of the long-term memory was aborted: {error}"))
}
