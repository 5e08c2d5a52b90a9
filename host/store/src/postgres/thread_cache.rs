//! The thread states that one writer caches for the fast path.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use wattle_graph::id::ThreadId;
use wattle_run::ports::store::Batch;

use crate::postgres::prefetch::Lookups;
use crate::postgres::stage::{CachedThread, CommitGroup, HistoryCache, ThreadRow};

/// Maximum number of threads that one writer caches. A full cache is cleared.
const MAX_CACHED_THREADS: usize = 4096;

/// Thread states that one writer caches.
#[derive(Debug, Default)]
pub(super) struct ThreadCache(HashMap<ThreadId, CachedThread>);

impl ThreadCache {
    /// Caches the current states of the threads of a group.
    pub(super) fn insert_group(&mut self, group: CommitGroup) {
        if self.0.len() >= MAX_CACHED_THREADS {
            self.0.clear();
        }
        let threads = group.threads.into_iter().filter(|(_, cached)| !cached.history.is_large());
        self.0.extend(threads);
    }

    /// Caches the state of a thread as of the acquisition of its lease.
    pub(super) fn insert_leased(&mut self, thread: ThreadId, row: ThreadRow) {
        let history = self.take_history(&thread, &row);
        if self.0.len() < MAX_CACHED_THREADS {
            self.0.insert(thread, CachedThread { row, history });
        }
    }

    /// Removes a thread from the cache. Returns its cached history without the pending runs; an
    /// empty history if the thread is not cached, or if its number or newest position differs from
    /// that of `row`. The history is without runs if the ledger number differs.
    pub(super) fn take_history(&mut self, thread: &ThreadId, row: &ThreadRow) -> HistoryCache {
        let position = |row: &ThreadRow| (row.number, row.last_position);
        let known = self.0.remove(thread);
        let Some(known) = known.filter(|known| position(&known.row) == position(row)) else {
            return HistoryCache::default();
        };
        // A pending run that is dequeued may be deleted, and its id be used again.
        let has_same_runs = known.row.ledger == row.ledger;
        let runs = if has_same_runs { known.history.runs } else { BTreeSet::new() };
        // Pending runs may have changed since the history was cached.
        HistoryCache { runs, pending: None, ..known.history }
    }

    /// Removes and returns the threads of a group, if all threads are cached with the lease epochs
    /// of their batches and no row has to be looked up.
    pub(super) fn take_group(&mut self, batches: &[(ThreadId, Batch)]) -> Option<CommitGroup> {
        let is_known = |(thread, batch): &(ThreadId, Batch)| {
            let lease = self.0.get(thread).and_then(|cached| cached.row.lease);
            lease.zip(batch.epoch).is_some_and(|(lease, epoch)| lease.epoch == epoch.0)
        };
        if !batches.iter().all(is_known) {
            return None;
        }
        let mut group = CommitGroup::default();
        for (thread, _) in batches {
            if let Entry::Occupied(known) = self.0.entry(thread.clone()) {
                let (thread, cached) = known.remove_entry();
                group.threads.insert(thread, cached);
            }
        }
        if Lookups::of(&group.threads, batches).needs_only_run_owners() {
            return Some(group);
        }
        self.0.extend(group.threads);
        None
    }
}
