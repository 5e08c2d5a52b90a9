//! Announces the newest durable sequence number of each watched thread.

use std::collections::HashMap;
use std::sync::Mutex;

use tokio::sync::watch;
use wattle_graph::id::ThreadId;

use crate::lock::lock;

/// Number of entries at which the entries without a watcher are dropped. Otherwise the map would
/// keep an entry for every thread that was ever watched.
const MAX_IDLE_ENTRIES: usize = 1024;

/// One watch channel per watched thread.
#[derive(Debug, Default)]
pub(crate) struct WatchRegistry(Mutex<HashMap<ThreadId, watch::Sender<u64>>>);

impl WatchRegistry {
    /// Watches a thread. `newest` runs under the lock, so a write that becomes durable during
    /// `newest` is announced after it, and no write is missed.
    pub(crate) fn subscribe(
        &self,
        thread: &ThreadId,
        newest: impl FnOnce() -> u64,
    ) -> watch::Receiver<u64> {
        let mut senders = lock(&self.0);
        if let Some(sender) = senders.get(thread) {
            return sender.subscribe();
        }
        if senders.len() >= MAX_IDLE_ENTRIES {
            senders.retain(|_, sender| sender.receiver_count() > 0);
        }
        let (sender, receiver) = watch::channel(newest());
        senders.insert(thread.clone(), sender);
        receiver
    }

    /// Returns true if the thread has a watcher.
    pub(crate) fn is_watched(&self, thread: &ThreadId) -> bool {
        lock(&self.0).get(thread).is_some_and(|sender| sender.receiver_count() > 0)
    }

    /// Announces the newest sequence number of a thread.
    pub(crate) fn publish(&self, thread: &ThreadId, seq: u64) {
        if let Some(sender) = lock(&self.0).get(thread) {
            sender.send_if_modified(|newest| {
                let newer = seq > *newest;
                *newest = seq.max(*newest);
                newer
            });
        }
    }

    /// Announces the newest sequence number of a thread, and retains it for later watchers.
    pub(crate) fn publish_retained(&self, thread: &ThreadId, seq: u64) {
        drop(self.subscribe(thread, || seq));
        self.publish(thread, seq);
    }

    /// Returns the threads that have a watcher, with their newest known sequence numbers.
    pub(crate) fn watched(&self) -> Vec<(ThreadId, u64)> {
        let senders = lock(&self.0);
        let watched = senders.iter().filter(|(_, sender)| sender.receiver_count() > 0);
        watched.map(|(thread, sender)| (thread.clone(), *sender.borrow())).collect()
    }

    /// Drops entries without a watcher. Their sequence numbers may be outdated.
    pub(crate) fn drop_idle(&self) {
        lock(&self.0).retain(|_, sender| sender.receiver_count() > 0);
    }

    /// Ends all watches of a deleted thread.
    pub(crate) fn remove(&self, thread: &ThreadId) {
        lock(&self.0).remove(thread);
    }
}
