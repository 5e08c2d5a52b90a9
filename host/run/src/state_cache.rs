//! A cache of the states of threads.
//!
//! A store keeps a list as a chain of deltas, so reading a checkpoint takes longer as its thread
//! grows. The cache has the channel values of the newest checkpoints that this host wrote or read.
//! A turn on a long thread therefore reads no chain.
//!
//! The cache never serves a read alone. Each read asks the store for the checkpoint without its
//! values:
//!
//! * The store does not return a checkpoint that was deleted, or that is not durable yet.
//! * Metadata and events are those of the store. A checkpoint that another host wrote has an id
//!   that is not in the cache.
//! * Ids of checkpoints are never reused within one incarnation of a thread. Values with the id and
//!   the incarnation that the store returns are therefore the values of the checkpoint, unless
//!   their batch was refused and another host assigned the id. Only values whose batch became
//!   durable are used.

mod states;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::Shared;
use serde_json::Value;
use wattle_graph::checkpoint::{ChannelValue, Checkpoint};
use wattle_graph::id::{CheckpointId, Namespace, ThreadId};

use self::states::{State, States};
use crate::blocking::{are_large_values, block_in_place_if};
use crate::ports::store::{
    CheckpointOutline, CheckpointTuple, Store, StoreError, ThreadHead, ThreadSnapshot,
    ThreadStatus, Ticket,
};

/// Reads checkpoints of a store. Their values come from memory where possible. Clones share the
/// states.
#[derive(Clone)]
pub struct StateCache(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    states: Mutex<States>,
}

impl StateCache {
    /// Creates an empty cache over a store. Its states take at most `capacity_bytes`.
    pub fn with_capacity(store: Arc<dyn Store>, capacity_bytes: u64) -> Self {
        Self(Arc::new(Inner { store, states: Mutex::new(States::new(capacity_bytes)) }))
    }

    /// Creates a cache that keeps no state: each read takes the values from the store. For work
    /// that has no part of the memory budget.
    pub fn disabled(store: Arc<dyn Store>) -> Self {
        Self::with_capacity(store, 0)
    }

    /// Returns the store.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// Returns a checkpoint like [`Store::checkpoint`].
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn checkpoint(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: CheckpointId,
    ) -> Result<Option<CheckpointTuple>, StoreError> {
        let store = self.store();
        let known = self.states().find(thread, namespace, id);
        if let Some(state) = known {
            match store.checkpoint_outline(thread, namespace, id).await? {
                None => return Ok(None),
                Some(CheckpointOutline { head, tuple }) if state.is_of(&head.record) => {
                    return Ok(Some(state.complete(tuple)));
                }
                Some(_) => {}
            }
        }
        store.checkpoint(thread, namespace, Some(id)).await
    }

    /// Returns the current checkpoint of a thread, and adds its state to the cache.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub(crate) async fn current(
        &self,
        head: &ThreadHead,
    ) -> Result<Option<CheckpointTuple>, StoreError> {
        let (thread, root) = (&head.record.id, Namespace::root());
        let Some(id) = head.current else { return Ok(None) };
        let tuple = self.checkpoint(thread, &root, id).await?;
        if let Some(tuple) = &tuple {
            let known = self.states().find(thread, &root, id);
            if known.is_none_or(|state| !state.is_of(&head.record)) {
                let incarnation: Arc<str> = head.record.incarnation_text().into();
                let made = &tuple.checkpoint;
                let is_long = are_large_values(WeighedState::decoded_values(made));
                let weigh = || WeighedState::weigh(thread, &incarnation, made);
                self.add(block_in_place_if(is_long, weigh), None);
            }
        }
        Ok(tuple)
    }

    /// Returns a thread like [`Store::thread_snapshot`]. The newest run is left out while it is
    /// active, since its record may be newer than the thread.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub(crate) async fn thread_snapshot(
        &self,
        thread: &ThreadId,
    ) -> Result<Option<ThreadSnapshot>, StoreError> {
        let (store, root) = (self.store(), Namespace::root());
        let newest = self.states().newest(thread, &root);
        if let Some(state) = newest
            && let Some(outline) = store.checkpoint_outline(thread, &root, state.checkpoint).await?
            && outline.head.current == Some(state.checkpoint)
            && state.is_of(&outline.head.record)
        {
            let CheckpointOutline { head, tuple } = outline;
            let run = match &head.record.run {
                Some(run) if head.record.status != ThreadStatus::Running => store.run(run).await?,
                _ => None,
            };
            return Ok(Some(ThreadSnapshot { head, tuple: Some(state.complete(tuple)), run }));
        }
        store.thread_snapshot(thread).await
    }

    /// Adds a state. `ticket` is the ticket of the batch with the checkpoint; `None` if the
    /// checkpoint was read from the store.
    pub(crate) fn add(&self, weighed: WeighedState, ticket: Option<Shared<Ticket>>) {
        let WeighedState { thread, namespace, mut state } = weighed;
        state.ticket = ticket;
        let removed = self.states().insert(thread, namespace, Arc::new(state));
        // The lock is released before the removed values are freed, because that takes a while.
        drop(removed);
    }

    /// Removes the states of a thread whose history was deleted or rewritten.
    pub(crate) fn remove(&self, thread: &ThreadId) {
        let removed = self.states().remove(thread);
        drop(removed);
    }

    /// Locks the states. No code that can panic runs under this lock.
    fn states(&self) -> MutexGuard<'_, States> {
        self.0.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A state that is not in the cache yet.
pub(crate) struct WeighedState {
    thread: ThreadId,
    namespace: Namespace,
    state: State,
}

impl WeighedState {
    /// Weighs the state of a checkpoint, for [`StateCache::add`]. Reads all values that the store
    /// has just decoded, which may be long work.
    pub(crate) fn weigh(
        thread: &ThreadId,
        incarnation: &Arc<str>,
        checkpoint: &Checkpoint,
    ) -> Self {
        let (thread, namespace) = (thread.clone(), checkpoint.meta.namespace.clone());
        Self { thread, namespace, state: State::new(incarnation, checkpoint) }
    }

    /// Returns the values that [`WeighedState::weigh`] reads.
    pub(crate) fn decoded_values(checkpoint: &Checkpoint) -> impl Iterator<Item = &Value> {
        let decoded = checkpoint.values.values().filter(|value| !value.is_weighed());
        decoded.flat_map(ChannelValue::items)
    }
}
