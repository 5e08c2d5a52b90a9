//! Calls that servers of tools hold open on this host until a person has answered.
//!
//! Much ends such a wait: an input, an edit, a fork, a decision, a cancel, the end of the thread, on this host or on
//! another one. None of these names calls. Instead, what is held for a thread is compared with what the thread waits
//! for, whenever this host has done something with it, and now and then.

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::id::ThreadId;

use super::Engine;
use crate::ports::store::{StoreError, ThreadStatus};
use crate::view;

impl Engine {
    /// Lets go of calls that are held for a thread now and that it does not wait for. Nothing may be at work on the
    /// thread in this process: a call is held before its question is in the log.
    pub(super) fn let_go(&self, thread: &ThreadId) {
        let held = self.0.ports.tools.held(Some(thread));
        if !held.is_empty() {
            let engine = self.clone();
            self.0.runtime.spawn(async move { engine.compare(held).await });
        }
    }

    /// The same for all threads on which nothing is at work here. Other hosts may have done something with them.
    pub(super) async fn sweep_held(&self) {
        let held = self.0.ports.tools.held(None).into_iter();
        self.compare(held.filter(|(thread, _)| !self.is_active(thread)).collect()).await;
    }

    /// Lets go of those of some calls that no thread waits for.
    async fn compare(&self, held: Vec<(ThreadId, String)>) {
        let mut by_thread: BTreeMap<ThreadId, BTreeSet<String>> = BTreeMap::new();
        for (thread, name) in held {
            by_thread.entry(thread).or_default().insert(name);
        }
        for (thread, held) in by_thread {
            match self.waited_for(&thread).await {
                Ok(wanted) => {
                    for name in held.difference(&wanted) {
                        tracing::debug!(%thread, "nobody waits for a call that is held open");
                        self.0.ports.tools.release(&thread, name);
                    }
                }
                Err(error) => {
                    tracing::debug!(%thread, %error, "calls that are held open stay so for now");
                }
            }
        }
    }

    /// The names of the calls with which a thread goes on.
    async fn waited_for(&self, thread: &ThreadId) -> Result<BTreeSet<String>, StoreError> {
        let store = self.0.ports.store.as_ref();
        let head = store.thread(thread).await?;
        // One that is idle was cancelled, or is at its end.
        let Some(head) = head.filter(|head| head.record.status != ThreadStatus::Idle) else {
            return Ok(BTreeSet::new());
        };
        let tuple = view::current(store, &head).await?;
        let held = tuple.map(view::held).unwrap_or_default();
        Ok(held.into_iter().filter_map(|it| it.asked.held).collect())
    }
}
