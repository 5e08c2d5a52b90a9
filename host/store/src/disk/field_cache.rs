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
//! * The commit ended after S was opened, and its key was noted. A commit whose keys are not noted
//!   begins before the first reader of the epoch, and readers scan until it has ended. So no such
//!   commit was open in step 1 of the reader of S, and none began later in the epoch.
//! * The key was settled after S was opened. So the reader of S did not take the key in its step 1,
//!   and no reader between them did, since S is the newest snapshot of the cache.
//! * The commit became visible before T was opened, and its key was opened before that. So the key
//!   is settled in step 1 of the reader of T, or open or settled in its step 3.
//!
//! Hence the reader decodes every record that differs. A key whose commit T does not have may be
//! among them: its record is decoded from T, so the change is not shown. The reader has not taken
//! this key, so the next reader decodes the record again.
//!
//! The argument needs that all changes since S are noted and that no snapshot is older than an
//! earlier one. Neither holds while the file has failed: a commit with an unknown outcome may
//! appear when the file is reopened. So the writer begins a new epoch when the file fails, and
//! another one when it is open again, and readers scan in between. A reader whose epoch ends
//! between steps 1 and 3 scans, and fields of another epoch are read anew. If the epoch ends after
//! step 3, the snapshot was opened within the epoch, and the fields are discarded by the next
//! reader.
//!
//! The first search of runs reads the fields of all runs from its snapshot. From then on, each
//! reader moves those of both tables.
//!
//! If a step fails, the cache is empty and the next reader reads all records.

#[cfg(test)]
mod tests;

use std::mem;
use std::sync::{Arc, Mutex};

use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::StoreError;

use crate::disk::changed_keys::ChangedKeys;
use crate::disk::field_set::{FieldSet, Fields};
use crate::disk::snapshot::Snapshot;
use crate::lock::lock;
use crate::query::ThreadFields;
use crate::run_search::RunFields;

/// The cache of selecting fields.
pub(crate) struct FieldCache {
    changed: Arc<ChangedKeys>,
    cached: Mutex<Cached>,
    /// Maximum size of the fields of one table in memory, in bytes. Lists of more records scan the
    /// file.
    max_bytes: usize,
}

/// The fields as of the newest snapshot of a reader.
#[derive(Default)]
struct Cached {
    /// Epoch of the changed keys.
    epoch: u64,
    threads: Table<ThreadFields>,
    /// The fields of runs are read by the first search of runs.
    runs: Table<RunFields>,
}

/// The fields of one table.
#[derive(Default)]
enum Table<F> {
    #[default]
    Unread,
    Read(FieldSet<F>),
    /// The fields are too large, so lists scan until the epoch ends. It ends after so many changes
    /// that the fields may have become smaller.
    TooLarge,
}

impl<F: Fields> Table<F> {
    /// Returns the fields, if they are read.
    fn set(&self) -> Option<&FieldSet<F>> {
        match self {
            Self::Read(set) => Some(set),
            Self::Unread | Self::TooLarge => None,
        }
    }

    /// Moves fields that are read to a later snapshot; see [`FieldSet::moved_to`].
    fn moved_to<'k>(
        self,
        snapshot: &Snapshot,
        keys: impl IntoIterator<Item = &'k str>,
        max_bytes: usize,
    ) -> Result<Self, StoreError> {
        match self {
            Self::Read(set) => {
                let moved = set.moved_to(snapshot, keys, max_bytes)?;
                Ok(moved.map_or(Self::TooLarge, Self::Read))
            }
            table => Ok(table),
        }
    }

    /// Reads the fields of a snapshot, unless they are already read or too large.
    fn read(self, snapshot: &Snapshot, max_bytes: usize) -> Result<Self, StoreError> {
        match self {
            Self::Unread => {
                let read = FieldSet::read(snapshot, max_bytes)?;
                Ok(read.map_or(Self::TooLarge, Self::Read))
            }
            table => Ok(table),
        }
    }
}

impl Cached {
    /// Returns the cache without the fields of another epoch.
    fn of_epoch(self, epoch: u64) -> Self {
        if self.epoch == epoch { self } else { Self { epoch, ..Self::default() } }
    }
}

impl FieldCache {
    /// Creates an empty cache. The fields of one table take at most `max_bytes`.
    pub(crate) fn new(changed: Arc<ChangedKeys>, max_bytes: u64) -> Self {
        Self { changed, cached: Mutex::default(), max_bytes: max_bytes as usize }
    }

    /// Opens a snapshot by `open`, and selects from the fields of its threads. Returns the snapshot
    /// and the selection; `None` instead of the selection if the caller must scan.
    pub(crate) fn select_threads<T>(
        &self,
        open: impl FnOnce() -> Result<Snapshot, StoreError>,
        select: impl FnOnce(&FieldSet<ThreadFields>) -> T,
    ) -> Result<(Snapshot, Option<T>), StoreError> {
        self.select(open, false, |cached| cached.threads.set().map(select))
    }

    /// Opens a snapshot by `open`, and selects from the fields of its runs and threads. Returns the
    /// snapshot and the selection; `None` instead of the selection if the caller must scan.
    pub(crate) fn select_runs<T>(
        &self,
        open: impl FnOnce() -> Result<Snapshot, StoreError>,
        select: impl FnOnce(&FieldSet<RunFields>, &FieldSet<ThreadFields>) -> T,
    ) -> Result<(Snapshot, Option<T>), StoreError> {
        self.select(open, true, |cached| Some(select(cached.runs.set()?, cached.threads.set()?)))
    }

    fn select<T>(
        &self,
        open: impl FnOnce() -> Result<Snapshot, StoreError>,
        with_runs: bool,
        select: impl FnOnce(&Cached) -> Option<T>,
    ) -> Result<(Snapshot, Option<T>), StoreError> {
        let mut cached = lock(&self.cached);
        let is_too_large = matches!(cached.threads, Table::TooLarge)
            || (with_runs && matches!(cached.runs, Table::TooLarge));
        let scans = is_too_large && cached.epoch == self.changed.epoch();
        let settled = if scans { None } else { self.changed.take_settled() };
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
        let Cached { threads, runs, .. } = before.of_epoch(epoch);
        let changed_threads = keys.threads.iter().map(ThreadId::as_str);
        let threads = threads.moved_to(&snapshot, changed_threads, self.max_bytes)?;
        let threads = threads.read(&snapshot, self.max_bytes)?;
        let changed_runs = keys.runs.iter().map(RunId::as_str);
        let runs = match threads {
            // A search of runs needs the fields of both tables.
            Table::Unread | Table::TooLarge => Table::Unread,
            Table::Read(_) => runs.moved_to(&snapshot, changed_runs, self.max_bytes)?,
        };
        let runs = if with_runs && threads.set().is_some() {
            runs.read(&snapshot, self.max_bytes)?
        } else {
            runs
        };
        *cached = Cached { epoch, threads, runs };
        let selected = select(&cached);
        Ok((snapshot, selected))
    }

    /// Removes all fields, because one of their records was found damaged.
    pub(crate) fn clear(&self) {
        *lock(&self.cached) = Cached::default();
    }
}
