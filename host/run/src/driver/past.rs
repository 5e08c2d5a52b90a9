//! State of the root graph's current superstep that outlives one attempt: journals read from the
//! log, and the position of every subgraph.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wattle_graph::id::{Namespace, TaskId};

use crate::driver::stand::Stand;
use crate::gate::Scopes;
use crate::view::{Nest, Strand};

/// Logged events of a task that started before.
#[derive(Clone, Debug, Default)]
pub(crate) struct PastTask {
    /// Calls of the task and of its tools, for the journal of its next execution.
    pub scopes: Scopes,
    /// Number of failed attempts since the last permanent failure.
    pub failed_attempts: u32,
    /// Sequence number of the first start of the task; `None` if it has not started.
    pub begun: Option<u64>,
    /// Sequence number of the last `reopened` event for the task.
    pub undone: Option<u64>,
    /// Sequence numbers of the first waits for subgraphs that the task started, by scope and call.
    pub waits: BTreeMap<(Vec<u32>, u32), u64>,
}

impl PastTask {
    /// Returns true if the log holds events of the task that were not rolled back.
    pub(crate) fn is_known(&self) -> bool {
        self.begun.is_some() || !self.scopes.is_empty()
    }
}

/// State of the root graph's current superstep, subgraphs included.
#[derive(Default)]
pub(crate) struct Past {
    inner: Mutex<Inner>,
    /// Sequence number of the last `run_started` event that passes breakpoints. Checkpoints that
    /// were reached before it do not stop the run.
    passed: Option<u64>,
}

#[derive(Default)]
struct Inner {
    tasks: BTreeMap<TaskId, PastTask>,
    nest: Nest,
    /// Sequence number of the first start of each task.
    begun: BTreeMap<TaskId, u64>,
    /// Sequence numbers of the first waits for subgraphs that tasks started.
    waits: BTreeMap<(TaskId, Vec<u32>, u32), u64>,
    /// Loop states of subgraphs whose tasks may be retried.
    parked: BTreeMap<Namespace, Stand>,
    /// A lock for each subgraph, held while its superstep loop or one of its tasks runs.
    turns: BTreeMap<Namespace, Arc<tokio::sync::Mutex<()>>>,
}

impl Past {
    /// Creates the state from the log. Breakpoints at checkpoints that were reached before `passed`
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

    /// Returns the sequence number of the first start of a task before this process.
    pub(crate) fn begun(&self, task: &TaskId) -> Option<u64> {
        self.inner().begun.get(task).copied()
    }

    /// Returns the sequence number of the first wait for a subgraph that a call of a task started.
    pub(crate) fn wait_begun(&self, task: &TaskId, scope: &[u32], call: u32) -> Option<u64> {
        self.inner().waits.get(&(task.clone(), scope.to_vec(), call)).copied()
    }

    /// Takes the logged events of a task. Returns them only once.
    pub(crate) fn take_task(&self, task: &TaskId) -> PastTask {
        self.inner().tasks.remove(task).unwrap_or_default()
    }

    /// Returns the logged events of a subgraph.
    pub(super) fn strand(&self, namespace: &Namespace) -> Option<Strand> {
        self.inner().nest.strand(namespace).cloned()
    }

    /// Returns true if a subgraph that started before persists its checkpoints; `None` if it has
    /// not started.
    pub(super) fn is_kept(&self, namespace: &Namespace) -> Option<bool> {
        self.inner().nest.strand(namespace).map(|strand| strand.at.is_some())
    }

    /// Returns true if the run has already continued past the breakpoint at a checkpoint. `arrived`
    /// is the sequence number at which the graph reached the checkpoint.
    pub(super) fn passes_static(&self, arrived: u64) -> bool {
        self.passed.is_some_and(|passed| passed > arrived)
    }

    /// Returns the lock of a subgraph.
    pub(super) fn turn(&self, namespace: &Namespace) -> Arc<tokio::sync::Mutex<()>> {
        self.inner().turns.entry(namespace.clone()).or_default().clone()
    }

    /// Saves the loop state of a subgraph for a retry of its task.
    pub(super) fn park(&self, namespace: Namespace, stand: Stand) {
        self.inner().parked.insert(namespace, stand);
    }

    /// Returns true if a loop state of a subgraph is saved.
    pub(super) fn is_parked(&self, namespace: &Namespace) -> bool {
        self.inner().parked.contains_key(namespace)
    }

    /// Takes the saved loop state of a subgraph.
    pub(super) fn unpark(&self, namespace: &Namespace) -> Option<Stand> {
        self.inner().parked.remove(namespace)
    }

    /// Drops the state of a superstep that a graph has completed. For the root graph, drops
    /// everything.
    pub(super) fn leave(&self, namespace: &Namespace) {
        let mut inner = self.inner();
        if namespace.is_root() {
            *inner = Inner::default();
        } else if !inner.parked.is_empty() {
            inner.parked.retain(|known, _| !known.is_nested_in(namespace));
            inner.turns.retain(|known, _| !known.is_nested_in(namespace));
        }
    }
}
