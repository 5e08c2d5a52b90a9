//! State of the root graph's current superstep that outlives one attempt: journals read from the
//! log, and the position of every subgraph.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wattle_graph::id::{CallKey, Namespace, TaskId};

use crate::driver::loop_state::LoopState;
use crate::gate::CallsByScope;
use crate::view::{SubgraphLog, Subgraphs};

/// Logged events of a task that started before.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedTask {
    /// Calls of the task and of its tools, for the journal of its next execution.
    pub calls_by_scope: CallsByScope,
    /// Number of failed attempts since the last permanent failure.
    pub failed_attempts: u32,
    /// Sequence number of the first start of the task; `None` if it has not started.
    pub started_seq: Option<u64>,
    /// Sequence number of the last `reopened` event for the task.
    pub reopened_seq: Option<u64>,
    /// Sequence numbers of the first waits for subgraphs that the task started.
    pub wait_seqs: BTreeMap<CallKey, u64>,
}

impl LoggedTask {
    /// Returns true if the log holds events of the task that were not rolled back.
    pub(crate) fn has_events(&self) -> bool {
        self.started_seq.is_some() || !self.calls_by_scope.is_empty()
    }

    /// Returns the number of calls of the task and of its tools that have results.
    pub(crate) fn call_count(&self) -> usize {
        self.calls_by_scope.values().map(|calls| calls.results.len()).sum()
    }
}

/// State of the root graph's current superstep, subgraphs included.
#[derive(Default)]
pub(crate) struct RootSuperstep {
    state: Mutex<RootSuperstepState>,
    /// Sequence number of the last `run_started` event that passes breakpoints. Checkpoints that
    /// were reached before it do not stop the run.
    breakpoints_passed_seq: Option<u64>,
    /// Recorded calls of the tasks of all supersteps, if the run is executed again; empty in every
    /// other run.
    recorded_calls: Arc<BTreeMap<TaskId, CallsByScope>>,
}

#[derive(Default)]
struct RootSuperstepState {
    tasks: BTreeMap<TaskId, LoggedTask>,
    subgraphs: Subgraphs,
    /// Sequence number of the first start of each task.
    started_seqs: BTreeMap<TaskId, u64>,
    /// Sequence numbers of the first waits for subgraphs that tasks started.
    wait_seqs: BTreeMap<CallKey, u64>,
    /// Loop states of subgraphs whose tasks may be retried.
    saved_states: BTreeMap<Namespace, LoopState>,
    /// A lock for each subgraph, held while its superstep loop or one of its tasks runs.
    locks: BTreeMap<Namespace, Arc<tokio::sync::Mutex<()>>>,
}

impl RootSuperstep {
    /// Creates the state from the log. Breakpoints at checkpoints that were reached before
    /// `breakpoints_passed_seq` are passed.
    pub(crate) fn new(
        mut tasks: BTreeMap<TaskId, LoggedTask>,
        subgraphs: Subgraphs,
        breakpoints_passed_seq: Option<u64>,
    ) -> Self {
        let started_seqs =
            tasks.iter().filter_map(|(id, task)| Some((id.clone(), task.started_seq?))).collect();
        let wait_seqs = tasks.values_mut().flat_map(|task| std::mem::take(&mut task.wait_seqs));
        let wait_seqs = wait_seqs.collect();
        let state = RootSuperstepState {
            tasks,
            subgraphs,
            started_seqs,
            wait_seqs,
            ..RootSuperstepState::default()
        };
        Self { state: Mutex::new(state), breakpoints_passed_seq, ..Self::default() }
    }

    /// Creates the state for a run that is executed again: the host calls of its tasks return the
    /// recorded results.
    pub(crate) fn with_recorded_calls(recorded_calls: Arc<BTreeMap<TaskId, CallsByScope>>) -> Self {
        Self { recorded_calls, ..Self::default() }
    }

    /// Locks the state. No code that can panic runs under this lock.
    fn lock_state(&self) -> MutexGuard<'_, RootSuperstepState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sequence number of the first `task_started` event of a task, if the event was
    /// logged before this value was created.
    pub(crate) fn started_seq(&self, task: &TaskId) -> Option<u64> {
        self.lock_state().started_seqs.get(task).copied()
    }

    /// Returns the sequence number of the first wait for a subgraph that a call of a task started.
    pub(crate) fn wait_seq(&self, call: &CallKey) -> Option<u64> {
        self.lock_state().wait_seqs.get(call).copied()
    }

    /// Takes the logged events of a task, which a further call does not return. For a task without
    /// logged events, returns its recorded calls.
    pub(crate) fn take_task(&self, task: &TaskId) -> LoggedTask {
        let logged = self.lock_state().tasks.remove(task);
        logged.unwrap_or_else(|| LoggedTask {
            calls_by_scope: self.recorded_calls.get(task).cloned().unwrap_or_default(),
            ..LoggedTask::default()
        })
    }

    /// Returns the logged events of a subgraph.
    pub(super) fn subgraph(&self, namespace: &Namespace) -> Option<SubgraphLog> {
        self.lock_state().subgraphs.get(namespace).cloned()
    }

    /// Returns true if a subgraph that started before persists its checkpoints; `None` if it has
    /// not started.
    pub(super) fn persists_checkpoints(&self, namespace: &Namespace) -> Option<bool> {
        self.lock_state()
            .subgraphs
            .get(namespace)
            .map(|subgraph_log| subgraph_log.checkpoint.is_some())
    }

    /// Returns true if the run has already continued past the breakpoint at a checkpoint.
    /// `checkpoint_seq` is the sequence number at which the graph reached the checkpoint.
    pub(super) fn has_passed_breakpoints(&self, checkpoint_seq: u64) -> bool {
        self.breakpoints_passed_seq.is_some_and(|passed| passed > checkpoint_seq)
    }

    /// Returns the lock of a subgraph.
    pub(super) fn lock(&self, namespace: &Namespace) -> Arc<tokio::sync::Mutex<()>> {
        self.lock_state().locks.entry(namespace.clone()).or_default().clone()
    }

    /// Saves the loop state of a subgraph for a retry of its task.
    pub(super) fn save_state(&self, namespace: Namespace, loop_state: LoopState) {
        self.lock_state().saved_states.insert(namespace, loop_state);
    }

    /// Returns true if a loop state of a subgraph is saved.
    pub(super) fn has_state(&self, namespace: &Namespace) -> bool {
        self.lock_state().saved_states.contains_key(namespace)
    }

    /// Takes the saved loop state of a subgraph.
    pub(super) fn take_state(&self, namespace: &Namespace) -> Option<LoopState> {
        self.lock_state().saved_states.remove(namespace)
    }

    /// Drops the state of a superstep that a graph has completed. For the root graph, drops
    /// everything.
    pub(super) fn end_superstep(&self, namespace: &Namespace) {
        let mut inner = self.lock_state();
        if namespace.is_root() {
            *inner = RootSuperstepState::default();
        } else if !inner.saved_states.is_empty() {
            inner.saved_states.retain(|known, _| !known.is_nested_in(namespace));
            inner.locks.retain(|known, _| !known.is_nested_in(namespace));
        }
    }
}
