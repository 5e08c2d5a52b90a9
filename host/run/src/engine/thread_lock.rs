//! Locks of threads in this process: what is done to the runs of a thread is decided by one caller at a
//! time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use wattle_graph::id::ThreadId;

/// Who decides what a thread does next.
#[derive(Default)]
pub(super) struct ThreadLocks(Mutex<HashMap<ThreadId, Arc<AsyncMutex<()>>>>);

/// The right to decide what a thread does next, in this process.
pub(super) struct ThreadLock<'l> {
    locks: &'l ThreadLocks,
    thread: ThreadId,
    held: Option<OwnedMutexGuard<()>>,
}

impl ThreadLocks {
    /// No code that can panic runs under this lock.
    fn all(&self) -> MutexGuard<'_, HashMap<ThreadId, Arc<AsyncMutex<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the right to decide what a thread does next.
    pub(super) async fn lock(&self, thread: &ThreadId) -> ThreadLock<'_> {
        let lock = self.all().entry(thread.clone()).or_default().clone();
        // Made before anything is awaited, so that a caller who stops waiting leaves nothing.
        let mut held = ThreadLock { locks: self, thread: thread.clone(), held: None };
        held.held = Some(lock.lock_owned().await);
        held
    }
}

impl Drop for ThreadLock<'_> {
    fn drop(&mut self) {
        self.held = None;
        let mut all = self.locks.all();
        // One reference is that of the map.
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
    async fn a_lock_is_forgotten_also_if_somebody_stopped_waiting_for_it() {
        let (locks, thread) = (ThreadLocks::default(), ThreadId::new("t").unwrap());
        let held = locks.lock(&thread).await;
        assert!(locks.lock(&thread).now_or_never().is_none());
        assert_eq!(locks.all().len(), 1);
        drop(held);
        assert!(locks.all().is_empty());
    }
}
