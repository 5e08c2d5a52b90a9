//! The newest durable sequence number of each thread, to wait for more.

use std::collections::HashMap;
use std::sync::Mutex;

use tokio::sync::watch;
use wattle_graph::id::ThreadId;

use crate::lock::lock;

/// Above so many entries those that nobody watches are dropped, so that the map does not grow
/// with every thread there ever was.
const IDLE_LIMIT: usize = 1024;

/// One watch channel per watched thread.
#[derive(Debug, Default)]
pub(crate) struct Watches(Mutex<HashMap<ThreadId, watch::Sender<u64>>>);

impl Watches {
    /// Watches a thread. `newest` is asked under the lock, so a write that becomes durable
    /// meanwhile is announced afterwards and none is missed.
    pub(crate) fn subscribe(
        &self,
        thread: &ThreadId,
        newest: impl FnOnce() -> u64,
    ) -> watch::Receiver<u64> {
        let mut senders = lock(&self.0);
        if let Some(sender) = senders.get(thread) {
            return sender.subscribe();
        }
        if senders.len() >= IDLE_LIMIT {
            senders.retain(|_, sender| sender.receiver_count() > 0);
        }
        let (sender, receiver) = watch::channel(newest());
        senders.insert(thread.clone(), sender);
        receiver
    }

    /// Whether somebody watches a thread.
    pub(crate) fn is_watched(&self, thread: &ThreadId) -> bool {
        lock(&self.0).get(thread).is_some_and(|sender| sender.receiver_count() > 0)
    }

    /// Announces the newest sequence number of a thread.
    pub(crate) fn advance(&self, thread: &ThreadId, seq: u64) {
        if let Some(sender) = lock(&self.0).get(thread) {
            sender.send_if_modified(|newest| {
                let newer = seq > *newest;
                *newest = seq.max(*newest);
                newer
            });
        }
    }

    /// Announces the newest sequence number of a thread, and keeps it for watches that begin.
    pub(crate) fn remember(&self, thread: &ThreadId, seq: u64) {
        drop(self.subscribe(thread, || seq));
        self.advance(thread, seq);
    }

    /// Threads that somebody watches, with the newest sequence numbers that are known.
    pub(crate) fn watched(&self) -> Vec<(ThreadId, u64)> {
        let senders = lock(&self.0);
        let watched = senders.iter().filter(|(_, sender)| sender.receiver_count() > 0);
        watched.map(|(thread, sender)| (thread.clone(), *sender.borrow())).collect()
    }

    /// Forgets what nobody watches: it may have changed unnoticed.
    pub(crate) fn forget_idle(&self) {
        lock(&self.0).retain(|_, sender| sender.receiver_count() > 0);
    }

    /// Ends all watches of a thread that is gone.
    pub(crate) fn remove(&self, thread: &ThreadId) {
        lock(&self.0).remove(thread);
    }
}
