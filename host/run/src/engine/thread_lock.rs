//! Locks of threads in this process. The locks serialize the operations on the runs of a thread.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use wattle_graph::id::ThreadId;

/// The locks of the threads in use.
#[derive(Default)]
pub(super) struct ThreadLocks(Mutex<HashMap<ThreadId, Arc<AsyncMutex<()>>>>);

/// Guard of a thread's lock. The drop of the last guard removes the lock from the map.
pub(super) struct ThreadLock<'l> {
    locks: &'l ThreadLocks,
    thread: ThreadId,
    held: Option<OwnedMutexGuard<()>>,
}

impl ThreadLocks {
    /// Locks the map. No code that can panic runs under this lock.
    fn all(&self) -> MutexGuard<'_, HashMap<ThreadId, Arc<AsyncMutex<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the lock of a thread.
    pub(super) async fn lock(&self, thread: &ThreadId) -> ThreadLock<'_> {
        let lock = self.all().entry(thread.clone()).or_default().clone();
        // The guard exists before the await, so that a caller that is dropped while it waits leaves
        // no entry.
        let mut held = ThreadLock { locks: self, thread: thread.clone(), held: None };
        held.held = Some(lock.lock_owned().await);
        held
    }
}

impl Drop for ThreadLock<'_> {
    fn drop(&mut self) {
        self.held = None;
        let mut all = self.locks.all();
        // The map holds one reference itself.
        if all.get(&self.thread).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            all.remove(&self.thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn thread_lock_is_removed_even_if_a_waiter_was_dropped() {
        let (locks, thread) = (ThreadLocks::default(), ThreadId::new("t").unwrap());
        let held = locks.lock(&thread).await;
        assert!(locks.lock(&thread).now_or_never().is_none());
        assert_eq!(locks.all().len(), 1);
        drop(held);
        assert!(locks.all().is_empty());
    }
}
