//! The writer thread. It commits all queued changes together, so that concurrent writes share one
//! flush.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redb::{Database, Durability, Error, ReadableTable as _, Table, WriteTransaction};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use wattle_graph::failure::Failure;
use wattle_run::ports::memory::PutItem;
use wattle_run::ports::store::StoreError;

use crate::error::{backend, redb_error};
use crate::file::guarded;
use crate::file::handle::{NOT_REOPENED, SharedFile};
use crate::memory::disk::failure::failure;
use crate::memory::disk::table::{DOCUMENTS, EXPIRIES, Key, Row, bytes_of, get, to_row};
use crate::memory::disk::usage::{ByteChange, Usage};
use crate::memory::document::{CompareOutcome, DocumentKey, StoredDocument};

/// Capacity of the queue, and the maximum number of changes in one commit. Callers wait while the
/// queue is full. Since documents are small, the number of changes bounds the size of a commit.
pub(crate) const QUEUE_CAPACITY: usize = 64;

/// Maximum number of documents that one change deletes. The limit bounds how long other changes
/// wait.
pub(crate) const MAX_DELETES: usize = 1_000;

const OP_COMMIT: &str = "commit";

/// Minimum delay between two attempts to reopen a file that failed.
const MIN_REOPEN_DELAY: Duration = Duration::from_secs(1);

/// A queued change with the sender of its result.
pub(crate) struct QueuedChange {
    pub change: Change,
    /// Receives the number of deleted documents once the deletion is durable; for a conditional
    /// change, 1 if the document now has the requested state, and 0 otherwise.
    pub reply: oneshot::Sender<Result<usize, Failure>>,
}

/// A change of the documents.
pub(crate) enum Change {
    /// Writes a document.
    Put {
        /// Path of the document; the key is in `item`.
        path: Vec<u8>,
        item: PutItem,
        now_ms: i64,
    },
    /// Writes a document if the stored document equals `known`.
    PutIf {
        /// Path of the document; the key is in `item`.
        path: Vec<u8>,
        /// The expected document; `None` if the caller expects that no document exists.
        known: Option<Value>,
        item: PutItem,
        now_ms: i64,
    },
    /// Deletes a document.
    Delete { doc_key: DocumentKey },
    /// Deletes a document if the stored document equals `known`.
    DeleteIf {
        doc_key: DocumentKey,
        /// The expected document.
        known: Value,
        now_ms: i64,
    },
    /// Extends the sliding expiry of documents that were read.
    RefreshExpiry { doc_keys: Vec<DocumentKey>, now_ms: i64 },
    /// Deletes the documents in a range of paths, at most [`MAX_DELETES`].
    Clear { paths: Range<Vec<u8>> },
    /// Deletes documents that have expired, at most [`MAX_DELETES`].
    Sweep { now_ms: i64 },
}

/// The writer thread.
pub(crate) struct Writer {
    pub file: Arc<SharedFile>,
    /// Time of the next attempt to reopen the file, if it failed.
    pub reopen_at: Option<Instant>,
    /// The queue.
    pub commands: mpsc::Receiver<QueuedChange>,
    /// The bytes of the documents.
    pub usage: Arc<Usage>,
}

impl Writer {
    /// Runs until all senders are dropped and the queue is empty.
    pub(crate) fn run(mut self) {
        while let Some(first) = self.commands.blocking_recv() {
            let mut group = vec![first];
            while group.len() < QUEUE_CAPACITY
                && let Ok(command) = self.commands.try_recv()
            {
                group.push(command);
            }
            let done = self.commit(&group).map_err(failure);
            if let Err(failure) = &done {
                tracing::error!(
                    %failure,
                    changes = group.len(),
                    "long-term memory: commit failed, its changes were not written"
                );
            }
            for (index, command) in group.into_iter().enumerate() {
                let result = done.as_ref().map(|removed| removed[index]).map_err(Clone::clone);
                // The caller may have been dropped.
                let _ = command.reply.send(result);
            }
        }
    }
}

impl Writer {
    /// Commits a group. Reopens the file before the commit if it has failed, because redb refuses
    /// all further commits to a failed file.
    fn commit(&mut self, group: &[QueuedChange]) -> Result<Vec<usize>, StoreError> {
        if self.file.take_failure() && self.reopen_at.is_none() {
            self.reopen_at = Some(Instant::now());
        }
        if let Some(at) = self.reopen_at {
            if Instant::now() < at {
                return Err(backend(OP_COMMIT, NOT_REOPENED));
            }
            self.reopen_at = Some(Instant::now() + MIN_REOPEN_DELAY);
            self.file.reopen()?;
        }
        let handle = self.file.handle();
        let usage = &self.usage;
        let done = guarded(OP_COMMIT, || {
            commit(handle.writable()?, usage, group).map_err(redb_error(OP_COMMIT))
        });
        drop(handle);
        self.reopen_at = match &done {
            Ok(_) => None,
            Err(_) => {
                if let Err(error) = self.file.read_only() {
                    tracing::error!(%error, "long-term memory cannot be read");
                }
                Some(self.reopen_at.unwrap_or_else(Instant::now))
            }
        };
        done
    }
}

/// Applies all changes in one transaction. Returns the result of each change, see
/// [`QueuedChange::reply`].
fn commit(database: &Database, usage: &Usage, group: &[QueuedChange]) -> Result<Vec<usize>, Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    let (removed, changes) = {
        let mut tables = Tables::open(&transaction)?;
        let removed = group.iter().map(|command| tables.apply(&command.change));
        (removed.collect::<Result<Vec<usize>, Error>>()?, tables.changes)
    };
    usage.commit(changes, move || transaction.commit())?;
    Ok(removed)
}

struct Tables<'t> {
    documents: Table<'t, Key, Row<'static>>,
    expiries: Table<'t, (i64, &'static [u8], &'static str), ()>,
    /// Changes of the bytes of documents.
    changes: Vec<ByteChange>,
}

impl<'t> Tables<'t> {
    fn open(transaction: &'t WriteTransaction) -> Result<Self, Error> {
        let documents = transaction.open_table(DOCUMENTS)?;
        let expiries = transaction.open_table(EXPIRIES)?;
        Ok(Self { documents, expiries, changes: Vec::new() })
    }

    fn apply(&mut self, change: &Change) -> Result<usize, Error> {
        match change {
            Change::Put { path, item, now_ms } => {
                let doc_key = (path.clone(), item.key.clone());
                let old = self.intact_document(&doc_key)?;
                let new = StoredDocument::after_put(old.as_ref(), item, *now_ms);
                self.replace(&doc_key, old.as_ref(), Some(&new))
            }
            Change::PutIf { path, known, item, now_ms } => {
                let doc_key = (path.clone(), item.key.clone());
                let old = self.intact_document(&doc_key)?;
                let outcome =
                    StoredDocument::compare_for_put(old.as_ref(), known.as_ref(), item, *now_ms);
                if outcome == CompareOutcome::Write {
                    let new = StoredDocument::after_put(old.as_ref(), item, *now_ms);
                    self.replace(&doc_key, old.as_ref(), Some(&new))?;
                }
                Ok(usize::from(outcome != CompareOutcome::Conflict))
            }
            Change::Delete { doc_key } => self.remove(std::slice::from_ref(doc_key)),
            Change::DeleteIf { doc_key, known, now_ms } => {
                let outcome = match get(&self.documents, doc_key)?.transpose() {
                    Ok(old) => StoredDocument::compare_for_delete(old.as_ref(), known, *now_ms),
                    // The expected document cannot be compared with a damaged document.
                    Err(_damaged) => CompareOutcome::Conflict,
                };
                if outcome == CompareOutcome::Write {
                    self.remove(std::slice::from_ref(doc_key))?;
                }
                Ok(usize::from(outcome != CompareOutcome::Conflict))
            }
            Change::RefreshExpiry { doc_keys, now_ms } => self.refresh_expiry(doc_keys, *now_ms),
            Change::Clear { paths } => {
                let doc_keys = self.doc_keys_in(paths)?;
                self.remove(&doc_keys)
            }
            Change::Sweep { now_ms } => self.sweep(*now_ms),
        }
    }

    /// Returns a document if it is intact. Puts overwrite a damaged document.
    fn intact_document(&self, doc_key: &DocumentKey) -> Result<Option<StoredDocument>, Error> {
        Ok(get(&self.documents, doc_key)?.and_then(Result::ok))
    }

    /// Replaces a document in both tables.
    fn replace(
        &mut self,
        doc_key: &DocumentKey,
        old: Option<&StoredDocument>,
        new: Option<&StoredDocument>,
    ) -> Result<usize, Error> {
        let (path, key) = (doc_key.0.as_slice(), doc_key.1.as_str());
        if let Some(expires_ms) = old.and_then(|old| old.expires_ms) {
            self.expiries.remove((expires_ms, path, key))?;
        }
        let Some(new) = new else {
            let removed = self.documents.remove((path, key))?;
            let before = removed.map(|row| bytes_of((path, key), row.value()));
            self.note_change(path, before, None);
            return Ok(usize::from(before.is_some()));
        };
        let row = to_row((path, key), new);
        let replaced = self.documents.insert((path, key), row)?;
        let before = replaced.map(|old| bytes_of((path, key), old.value()));
        self.note_change(path, before, Some(bytes_of((path, key), row)));
        if let Some(expires_ms) = new.expires_ms {
            self.expiries.insert((expires_ms, path, key), ())?;
        }
        Ok(0)
    }

    /// Records how a change of a document changes its bytes. The bytes of a damaged document are
    /// included.
    fn note_change(&mut self, path: &[u8], before: Option<u64>, after: Option<u64>) {
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        if before != after {
            self.changes.push((path.to_vec(), after.wrapping_sub(before).cast_signed()));
        }
    }

    fn remove(&mut self, doc_keys: &[DocumentKey]) -> Result<usize, Error> {
        let mut removed = 0;
        for doc_key in doc_keys {
            let old = self.intact_document(doc_key)?;
            removed += self.replace(doc_key, old.as_ref(), None)?;
        }
        Ok(removed)
    }

    fn refresh_expiry(&mut self, doc_keys: &[DocumentKey], now_ms: i64) -> Result<usize, Error> {
        for doc_key in doc_keys {
            let Some(old) = self.intact_document(doc_key)? else {
                continue;
            };
            if let Some(expires_ms) = old.refreshed_expiry(now_ms) {
                let new = StoredDocument { expires_ms: Some(expires_ms), ..old.clone() };
                self.replace(doc_key, Some(&old), Some(&new))?;
            }
        }
        Ok(0)
    }

    fn doc_keys_in(&self, paths: &Range<Vec<u8>>) -> Result<Vec<DocumentKey>, Error> {
        let range = (paths.start.as_slice(), "")..(paths.end.as_slice(), "");
        let mut doc_keys = Vec::new();
        for entry in self.documents.range(range)?.take(MAX_DELETES) {
            let (doc_key, _) = entry?;
            let (path, key) = doc_key.value();
            doc_keys.push((path.to_vec(), key.to_owned()));
        }
        Ok(doc_keys)
    }

    /// Deletes expired documents. A damaged document that was overwritten leaves its entry in
    /// `expiries`, so the expiry of the current document decides.
    fn sweep(&mut self, now_ms: i64) -> Result<usize, Error> {
        let mut removed = 0;
        for (expires_ms, doc_key) in self.expired(now_ms)? {
            self.expiries.remove((expires_ms, doc_key.0.as_slice(), doc_key.1.as_str()))?;
            if self.intact_document(&doc_key)?.is_none_or(|old| !old.is_alive(now_ms)) {
                removed += self.remove(std::slice::from_ref(&doc_key))?;
            }
        }
        Ok(removed)
    }

    fn expired(&self, now_ms: i64) -> Result<Vec<(i64, DocumentKey)>, Error> {
        let until = (now_ms.saturating_add(1), [].as_slice(), "");
        let mut expired = Vec::new();
        for entry in self.expiries.range(..until)?.take(MAX_DELETES) {
            let (expiry, _) = entry?;
            let (expires_ms, path, key) = expiry.value();
            expired.push((expires_ms, (path.to_vec(), key.to_owned())));
        }
        Ok(expired)
    }
}
