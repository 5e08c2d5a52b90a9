//! What is known of the superstep of the root graph that is under way, from before it was begun in
//! this process or tried again: calls of its tasks, and where nested graphs stand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wattle_graph::id::{Namespace, TaskId};

use crate::driver::walk::Stand;
use crate::gate::Scopes;
use crate::view::{Nest, Strand};

/// What the log holds of a task that was begun before.
#[derive(Clone, Debug, Default)]
pub(crate) struct PastTask {
    /// Its calls, and those of the tools it called, for the journal of its next execution.
    pub scopes: Scopes,
    /// Failed attempts since it was last given up.
    pub failed_attempts: u32,
    /// Whether it was begun at all.
    pub begun: bool,
}

/// What is known of the superstep of the root graph that is under way, nested graphs included.
#[derive(Default)]
pub(crate) struct Past {
    inner: Mutex<Inner>,
    /// Whether nested graphs that go on pass static interrupts, because the run was resumed.
    pass_static: bool,
}

#[derive(Default)]
struct Inner {
    tasks: BTreeMap<TaskId, PastTask>,
    nest: Nest,
    /// Nested graphs whose task may be tried again.
    parked: BTreeMap<Namespace, Stand>,
    /// Held by whoever walks through a nested graph: one at a time.
    turns: BTreeMap<Namespace, Arc<tokio::sync::Mutex<()>>>,
}

impl Past {
    /// What the log holds.
    pub(crate) fn new(tasks: BTreeMap<TaskId, PastTask>, nest: Nest, pass_static: bool) -> Self {
        let inner = Inner { tasks, nest, ..Inner::default() };
        Self { inner: Mutex::new(inner), pass_static }
    }

    /// No code that can panic runs under this lock.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a task was begun before.
    pub(crate) fn has_begun(&self, task: &TaskId) -> bool {
        self.inner().tasks.get(task).is_some_and(|past| past.begun)
    }

    /// What the log holds of a task, once.
    pub(crate) fn take_task(&self, task: &TaskId) -> PastTask {
        self.inner().tasks.remove(task).unwrap_or_default()
    }

    /// What the log holds of a nested graph.
    pub(super) fn strand(&self, namespace: &Namespace) -> Option<Strand> {
        self.inner().nest.strand(namespace).cloned()
    }

    /// Whether a nested graph that goes on passes static interrupts.
    pub(super) fn passes_static(&self) -> bool {
        self.pass_static
    }

    /// Whose turn it is to walk through a nested graph.
    pub(super) fn turn(&self, namespace: &Namespace) -> Arc<tokio::sync::Mutex<()>> {
        self.inner().turns.entry(namespace.clone()).or_default().clone()
    }

    /// Keeps where a nested graph stands, in case its task is tried again.
    pub(super) fn park(&self, namespace: Namespace, stand: Stand) {
        self.inner().parked.insert(namespace, stand);
    }

    /// Where a nested graph stood when its task was last tried.
    pub(super) fn unpark(&self, namespace: &Namespace) -> Option<Stand> {
        self.inner().parked.remove(namespace)
    }

    /// Forgets what was inside of a superstep of a graph that goes on: everything, for the root.
    pub(super) fn leave(&self, namespace: &Namespace) {
        let mut inner = self.inner();
        if namespace.is_root() {
            *inner = Inner::default();
        } else if !inner.parked.is_empty() {
            inner.parked.retain(|known, _| !known.is_below(namespace));
            inner.turns.retain(|known, _| !known.is_below(namespace));
        }
    }
}
