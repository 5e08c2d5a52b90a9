//! What is known of the superstep of the root graph that is under way, from before it was begun in
//! this process or tried again: calls of its tasks, and where nested graphs stand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wattle_graph::id::{Namespace, TaskId};

use crate::driver::stand::Stand;
use crate::gate::Scopes;
use crate::view::{Nest, Strand};

/// What the log holds of a task that was begun before.
#[derive(Clone, Debug, Default)]
pub(crate) struct PastTask {
    /// Its calls, and those of the tools it called, for the journal of its next execution.
    pub scopes: Scopes,
    /// Failed attempts since it was last given up.
    pub failed_attempts: u32,
    /// The place in the log at which it was begun first; `None` if it was not begun at all.
    pub begun: Option<u64>,
    /// Where in the log what it had done was taken back last.
    pub undone: Option<u64>,
    /// The same as `begun` for graphs that it started and waited for, by scope and call.
    pub waits: BTreeMap<(Vec<u32>, u32), u64>,
}

impl PastTask {
    /// Whether the log holds anything of it that was not taken back.
    pub(crate) fn is_known(&self) -> bool {
        self.begun.is_some() || !self.scopes.is_empty()
    }
}

/// What is known of the superstep of the root graph that is under way, nested graphs included.
#[derive(Default)]
pub(crate) struct Past {
    inner: Mutex<Inner>,
    /// The place in the log from which on static interrupts are passed where graphs stood.
    passed: Option<u64>,
}

#[derive(Default)]
struct Inner {
    tasks: BTreeMap<TaskId, PastTask>,
    nest: Nest,
    /// The place in the log at which each task was begun first.
    begun: BTreeMap<TaskId, u64>,
    /// The same for graphs that tasks started and waited for.
    waits: BTreeMap<(TaskId, Vec<u32>, u32), u64>,
    /// Nested graphs whose task may be tried again.
    parked: BTreeMap<Namespace, Stand>,
    /// A lock for each subgraph, held by the task that walks through it.
    turns: BTreeMap<Namespace, Arc<tokio::sync::Mutex<()>>>,
}

impl Past {
    /// What the log holds. Static interrupts at which graphs stood before the place `passed` in it
    /// are passed.
    pub(crate) fn new(
        mut tasks: BTreeMap<TaskId, PastTask>,
        nest: Nest,
        passed: Option<u64>,
    ) -> Self {
        let begun = tasks.iter().filter_map(|(id, task)| Some((id.clone(), task.begun?))).collect();
        let waits = tasks.iter_mut().flat_map(|(id, task)| {
            let waits = std::mem::take(&mut task.waits);
            waits.into_iter().map(|((scope, call), begun)| ((id.clone(), scope, call), begun))
        });
        let waits = waits.collect();
        let inner = Inner { tasks, nest, begun, waits, ..Inner::default() };
        Self { inner: Mutex::new(inner), passed }
    }

    /// No code that can panic runs under this lock.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place in the log at which a task was begun first, before this process.
    pub(crate) fn begun(&self, task: &TaskId) -> Option<u64> {
        self.inner().begun.get(task).copied()
    }

    /// The same for a graph that a call of a task started and waited for.
    pub(crate) fn wait_begun(&self, task: &TaskId, scope: &[u32], call: u32) -> Option<u64> {
        self.inner().waits.get(&(task.clone(), scope.to_vec(), call)).copied()
    }

    /// What the log holds of a task, once.
    pub(crate) fn take_task(&self, task: &TaskId) -> PastTask {
        self.inner().tasks.remove(task).unwrap_or_default()
    }

    /// What the log holds of a nested graph.
    pub(super) fn strand(&self, namespace: &Namespace) -> Option<Strand> {
        self.inner().nest.strand(namespace).cloned()
    }

    /// Whether a nested graph that was begun before makes checkpoints.
    pub(super) fn is_kept(&self, namespace: &Namespace) -> Option<bool> {
        self.inner().nest.strand(namespace).map(|strand| strand.at.is_some())
    }

    /// Whether a graph passes static interrupts where it stands: the run went on from there since
    /// it came there, at the place `arrived` in the log.
    pub(super) fn passes_static(&self, arrived: u64) -> bool {
        self.passed.is_some_and(|passed| passed > arrived)
    }

    /// Whose turn it is to walk through a nested graph.
    pub(super) fn turn(&self, namespace: &Namespace) -> Arc<tokio::sync::Mutex<()>> {
        self.inner().turns.entry(namespace.clone()).or_default().clone()
    }

    /// Keeps where a nested graph stands, in case its task is tried again.
    pub(super) fn park(&self, namespace: Namespace, stand: Stand) {
        self.inner().parked.insert(namespace, stand);
    }

    /// Whether it is known where a nested graph stood when its task was last tried.
    pub(super) fn is_parked(&self, namespace: &Namespace) -> bool {
        self.inner().parked.contains_key(namespace)
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
