//! The cache of the selecting fields of records, from which lists and counts select without
//! decoding all records.
//!
//! The first list reads the fields of all records. The next one moves them to its own snapshot: it
//! decodes only the records that commits have changed since then. It selects from the fields, and
//! reads the records of its page from the same snapshot. The writer notes the
//! [keys](crate::disk::changed_keys) of the records that it changes. An index in the file would
//! make each commit slower instead.
//!
//! # Why a list has exactly the changes of its snapshot
//!
//! A reader holds the lock of the cache while it
//!
//! 1. takes the settled keys,
//! 2. opens its snapshot,
//! 3. adds the open keys and the keys that were settled since step 1, without taking them,
//! 4. decodes the records of all these keys from its snapshot, and
//! 5. selects from the fields.
//!
//! Let S be the snapshot to which the cache belongs, and T the one that a reader opens. S was opened
//! under the same lock, so T is not older. A record that differs between them was changed by a
//! commit that S does not have and T has.
//!
//! * The commit ended after S was opened, and its key was settled after that. So the reader of S
//!   did not take the key in its step 1, and no reader between them did, since S is the newest
//!   snapshot of the cache.
//! * The commit became visible before T was opened, and its key was opened before that. So the key
//!   is settled in step 1 of the reader of T, or open or settled in its step 3.
//!
//! Hence the reader decodes every record that differs. A key whose commit T does not have may be
//! among them: its record is decoded from T, so the change is not shown. The reader has not taken
//! this key, so the next reader decodes the record again.
//!
//! The argument needs that all changes are noted and that no snapshot is older than an earlier one.
//! Neither holds while the file has failed: a commit with an unknown outcome may appear when the
//! file is reopened. So the writer begins a new epoch when the file fails, and another one when it
//! is open again, and readers scan in between. A reader whose epoch ends between steps 1 and 3
//! scans, and fields of another epoch are read anew. If the epoch ends after step 3, the snapshot
//! was opened within the epoch, and the fields are discarded by the next reader.
//!
//! If a step fails, the cache is empty and the next reader reads all records.

#[cfg(test)]
mod tests;

use std::mem;
use std::sync::{Arc, Mutex};

use wattle_graph::id::ThreadId;
use wattle_run::ports::store::StoreError;

use crate::disk::changed_keys::ChangedKeys;
use crate::disk::field_set::FieldSet;
use crate::disk::snapshot::Snapshot;
use crate::lock::lock;
use crate::query::ThreadFields;

/// Maximum size of the fields of one table in memory, in bytes: half of the page cache of the file.
/// It is enough for more than a hundred thousand threads. Lists of more records scan the file.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The cache of selecting fields.
pub(crate) struct FieldCache {
    changed: Arc<ChangedKeys>,
    cached: Mutex<Cached>,
    /// Maximum size of the fields of one table.
    max_bytes: usize,
}

/// The fields as of the newest snapshot of a reader.
#[derive(Default)]
struct Cached {
    /// Epoch of the changed keys.
    epoch: u64,
    threads: Table<ThreadFields>,
}

/// The fields of one table.
#[derive(Default)]
enum Table<F> {
    #[default]
    Unread,
    Read(FieldSet<F>),
    /// The fields were too large. Lists scan until the file is opened again.
    TooLarge,
}

impl FieldCache {
    /// Creates an empty cache.
    pub(crate) fn new(changed: Arc<ChangedKeys>) -> Self {
        Self { changed, cached: Mutex::default(), max_bytes: MAX_BYTES }
    }

    /// Opens a snapshot by `open`, and selects from the fields of its threads. Returns the snapshot
    /// and the selection; `None` instead of the selection if the caller must scan.
    pub(crate) fn select_threads<T>(
        &self,
        open: impl FnOnce() -> Result<Snapshot, StoreError>,
        select: impl FnOnce(&FieldSet<ThreadFields>) -> T,
    ) -> Result<(Snapshot, Option<T>), StoreError> {
        let mut cached = lock(&self.cached);
        let settled = match cached.threads {
            Table::TooLarge => None,
            Table::Unread | Table::Read(_) => self.changed.take_settled(),
        };
        let Some((epoch, mut keys)) = settled else {
            drop(cached);
            return Ok((open()?, None));
        };
        // The keys are taken, so the fields stay in the cache only if they are moved.
        let before = mem::take(&mut *cached);
        let snapshot = open()?;
        if !self.changed.add_recent(epoch, &mut keys) {
            return Ok((snapshot, None));
        }
        let threads = match before.threads {
            Table::Read(threads) if before.epoch == epoch => {
                let keys = keys.threads.iter().map(ThreadId::as_str);
                threads.moved_to(&snapshot, keys, self.max_bytes)?
            }
            _ => FieldSet::read(&snapshot, self.max_bytes)?,
        };
        let selected = threads.as_ref().map(select);
        let threads = threads.map_or(Table::TooLarge, Table::Read);
        *cached = Cached { epoch, threads };
        Ok((snapshot, selected))
    }

    /// Removes all fields, because one of their records was found damaged.
    pub(crate) fn clear(&self) {
        *lock(&self.cached) = Cached::default();
    }
}
