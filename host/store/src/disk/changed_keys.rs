//! The keys of the records that commits change, which the writer notes for the
//! [`FieldCache`](crate::disk::field_cache).
//!
//! A key is open from before the commit that changes its record until after this commit. It is
//! then settled, until a reader takes it. The keys of all commits that begin after the first reader
//! of an epoch are noted. Readers get no keys while an earlier commit is open. A new epoch begins
//! when the file may have changed otherwise, and when readers leave too many keys.

use std::collections::HashSet;
use std::mem;
use std::sync::Mutex;

use wattle_graph::id::{RunId, ThreadId};

use crate::disk::write_set::WriteSet;
use crate::lock::lock;

/// Maximum number of settled keys, which take some megabytes. With more of them, reading the records
/// of their keys is hardly faster than a scan of a hundred thousand records.
const MAX_SETTLED: usize = 64 * 1024;

/// Keys of records.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    pub(crate) threads: HashSet<ThreadId>,
    pub(crate) runs: HashSet<RunId>,
}

impl Keys {
    /// Returns the keys of the records that a write set writes or deletes, and of the threads that
    /// it sets aside: a damaged record is decoded again, and left out of lists.
    fn of(write_set: &WriteSet) -> Self {
        let WriteSet { records, runs, deleted, aside, .. } = write_set;
        let (deleted_threads, deleted_runs) = deleted;
        let aside = aside.iter().map(|(thread, _)| thread);
        Self {
            threads: records.keys().chain(deleted_threads).chain(aside).cloned().collect(),
            runs: runs.keys().chain(deleted_runs).cloned().collect(),
        }
    }

    fn extend(&mut self, keys: Self) {
        self.threads.extend(keys.threads);
        self.runs.extend(keys.runs);
    }

    fn extend_from(&mut self, keys: &Self) {
        self.threads.extend(keys.threads.iter().cloned());
        self.runs.extend(keys.runs.iter().cloned());
    }

    fn len(&self) -> usize {
        self.threads.len() + self.runs.len()
    }
}

/// The keys of the records that commits change.
#[derive(Debug, Default)]
pub(crate) struct ChangedKeys(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    epoch: u64,
    /// Whether the file has failed and has not been reopened yet.
    is_suspended: bool,
    /// Whether keys are noted, because this epoch has a reader.
    is_read: bool,
    /// Whether a commit is open whose keys are not noted.
    has_unnoted: bool,
    open: Keys,
    settled: Keys,
}

impl State {
    fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.is_read = false;
        self.settled = Keys::default();
    }
}

/// The open keys of a commit. They are settled when this value is dropped.
#[must_use]
pub(crate) struct OpenKeys<'a>(&'a ChangedKeys);

impl Drop for OpenKeys<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.0);
        state.has_unnoted = false;
        let keys = mem::take(&mut state.open);
        if state.is_read {
            state.settled.extend(keys);
        }
        if state.settled.len() > MAX_SETTLED {
            state.begin_epoch();
        }
    }
}

impl ChangedKeys {
    /// Opens the keys of a write set, if the epoch has a reader. The writer calls this method
    /// before the commit, and drops the result after the commit, whether the commit succeeded or
    /// not.
    pub(crate) fn begin(&self, write_set: &WriteSet) -> OpenKeys<'_> {
        if !self.begin_unnoted() {
            let keys = Keys::of(write_set);
            lock(&self.0).open.extend(keys);
        }
        OpenKeys(self)
    }

    /// Begins a commit whose keys are not noted, if the epoch has no reader. Returns false if it
    /// has one.
    fn begin_unnoted(&self) -> bool {
        let mut state = lock(&self.0);
        state.has_unnoted = !state.is_read;
        state.has_unnoted
    }

    /// Begins a new epoch after a failure of the file. No reader uses keys before
    /// [`resume`](Self::resume).
    pub(crate) fn suspend(&self) {
        let mut state = lock(&self.0);
        state.begin_epoch();
        state.is_suspended = true;
    }

    /// Begins a new epoch after the file was reopened.
    pub(crate) fn resume(&self) {
        let mut state = lock(&self.0);
        state.begin_epoch();
        state.is_suspended = false;
    }

    /// Returns the epoch.
    pub(crate) fn epoch(&self) -> u64 {
        lock(&self.0).epoch
    }

    /// Returns the epoch, and takes the keys that were settled since the last call in the epoch.
    /// Returns `None` while the file has failed, and while a commit is open that began before the
    /// first reader of the epoch.
    pub(crate) fn take_settled(&self) -> Option<(u64, Keys)> {
        let mut state = lock(&self.0);
        if state.is_suspended {
            return None;
        }
        state.is_read = true;
        if state.has_unnoted {
            return None;
        }
        Some((state.epoch, mem::take(&mut state.settled)))
    }

    /// Adds the open keys, and the keys that were settled since
    /// [`take_settled`](Self::take_settled). Returns false if `epoch` has ended.
    pub(crate) fn add_recent(&self, epoch: u64, keys: &mut Keys) -> bool {
        let state = lock(&self.0);
        let is_current = state.epoch == epoch;
        if is_current {
            keys.extend_from(&state.open);
            keys.extend_from(&state.settled);
        }
        is_current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_set(names: impl IntoIterator<Item = String>) -> WriteSet {
        let records = names.into_iter().map(|name| (ThreadId::new(name).unwrap(), Vec::new()));
        WriteSet { records: records.collect(), ..WriteSet::default() }
    }

    #[test]
    fn keys_are_noted_only_for_readers() {
        let changed = ChangedKeys::default();
        drop(changed.begin(&write_set(["before".to_owned()])));
        let (epoch, keys) = changed.take_settled().unwrap();
        assert_eq!(keys.len(), 0);
        drop(changed.begin(&write_set(["after".to_owned()])));
        assert_eq!(changed.take_settled().unwrap().1.len(), 1);
        assert!(changed.add_recent(epoch, &mut Keys::default()));
    }

    #[test]
    fn readers_get_no_keys_while_an_earlier_commit_is_open() {
        let changed = ChangedKeys::default();
        let before = changed.begin(&write_set(["before".to_owned()]));
        assert_eq!(lock(&changed.0).open.len(), 0);
        assert!(changed.take_settled().is_none());
        assert!(changed.take_settled().is_none(), "the commit is still open");
        drop(before);
        let open = changed.begin(&write_set(["after".to_owned()]));
        let (epoch, mut keys) = changed.take_settled().unwrap();
        assert_eq!(keys.len(), 0);
        assert!(changed.add_recent(epoch, &mut keys));
        assert_eq!(keys.len(), 1);
        drop(open);
    }

    #[test]
    fn too_many_settled_keys_begin_an_epoch() {
        let changed = ChangedKeys::default();
        let (epoch, _) = changed.take_settled().unwrap();
        drop(changed.begin(&write_set((0..=MAX_SETTLED).map(|number| number.to_string()))));
        let (next, keys) = changed.take_settled().unwrap();
        assert_eq!((next, keys.len()), (epoch + 1, 0));
        assert!(!changed.add_recent(epoch, &mut Keys::default()));
    }
}
