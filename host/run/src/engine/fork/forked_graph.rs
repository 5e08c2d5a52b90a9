//! A graph in which a fork continues, with its current superstep and the events of its tasks.

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{CallStarted, Event, EventKind, TaskStarted};
use wattle_graph::id::{CheckpointId, Namespace, NodeName, TaskId, path_of_call};
use wattle_graph::lineage::Lineage;

use super::journal_prefix::JournalPrefix;
use crate::driver::LoggedTask;
use crate::hostcall::runs::EndedRun;
use crate::ports::store::CheckpointTuple;
use crate::view::{self, SubgraphLog, Subgraphs};

/// The events of a superstep of the root graph, including the events of subgraphs.
pub(super) struct SuperstepEvents {
    pub tuple: CheckpointTuple,
    subgraphs: Subgraphs,
    tasks: BTreeMap<TaskId, LoggedTask>,
}

impl SuperstepEvents {
    /// Indexes the events since a checkpoint of the root graph.
    pub(super) fn new(tuple: CheckpointTuple) -> Self {
        let subgraphs = Subgraphs::new(&tuple.events);
        let tasks = view::logged_tasks(&tuple.events);
        Self { tuple, subgraphs, tasks }
    }

    /// Keeps the events before the first one for which `is_end` returns true.
    fn until(&self, is_end: impl Fn(&Event) -> bool) -> Self {
        let events = self.tuple.events.iter().take_while(|event| !is_end(event));
        let checkpoint = self.tuple.checkpoint.clone();
        Self::new(CheckpointTuple { checkpoint, events: events.cloned().collect() })
    }

    /// Keeps the events before the first `reopened` event after a sequence number.
    pub(super) fn before_reopen(&self, seq: u64) -> Self {
        self.until(|event| event.seq > seq && matches!(event.kind, EventKind::Reopened(_)))
    }

    /// Returns the logged events of a task, up to the end of the attempt that contains event `seq`.
    pub(super) fn task_until_attempt_end(&self, task: &TaskId, seq: u64) -> LoggedTask {
        let mut known = self.until(|event| {
            event.seq > seq
                && match &event.kind {
                    EventKind::TaskFailed(failed) => failed.task == *task,
                    kind => matches!(kind, EventKind::Reopened(_)),
                }
        });
        known.tasks.remove(task).unwrap_or_default()
    }

    /// Returns the events of a graph. Omits the events of a subgraph if a reopen discarded them.
    pub(super) fn events_of(&self, namespace: &Namespace) -> Vec<Event> {
        if namespace.is_root() {
            return self.tuple.events.clone();
        }
        self.subgraphs
            .get(namespace)
            .map(|subgraph_log| subgraph_log.events.clone())
            .unwrap_or_default()
    }

    /// Returns the events and the checkpoint of a subgraph.
    pub(super) fn subgraph(&self, namespace: &Namespace) -> Option<&SubgraphLog> {
        self.subgraphs.get(namespace)
    }

    /// Returns all subgraphs.
    pub(super) fn subgraphs(&self) -> impl Iterator<Item = (&Namespace, &SubgraphLog)> {
        self.subgraphs.iter()
    }

    /// Returns the calls and attempts of a task, if the log has any.
    pub(super) fn task(&self, task: &TaskId) -> Option<&LoggedTask> {
        self.tasks.get(task)
    }
}

/// Base checkpoint, node and index of a task, from which its id derives.
pub(super) struct TaskKey {
    pub base: CheckpointId,
    pub node: NodeName,
    pub index: u32,
}

/// The task that restarts: the task that made the overridden call, or a task that runs a subgraph
/// that contains this call.
pub(super) struct RestartPoint {
    pub task: TaskId,
    /// Logged events of the task up to the end of the attempt that made the call.
    pub logged_task: LoggedTask,
    /// Path and batch of the call before which the carried-over journal ends; `None` if the node of
    /// the task is a subgraph.
    pub journal_end: Option<(Vec<u32>, u32)>,
}

impl RestartPoint {
    /// Returns the part of the task's journal that the fork takes over.
    pub(super) fn journal_prefix(&self) -> Option<JournalPrefix<'_>> {
        let (path, batch) = self.journal_end.clone()?;
        Some(JournalPrefix::before(&self.logged_task, path, batch))
    }
}

/// A graph in which the fork continues.
pub(super) struct ForkedGraph<'a> {
    pub namespace: Namespace,
    pub superstep: &'a SuperstepEvents,
    /// The current checkpoint, if it is stored.
    pub stored_checkpoint: Option<Checkpoint>,
    /// Tasks with events in the supersteps that are carried over.
    pub tasks: BTreeMap<TaskId, TaskKey>,
    pub lineage: Lineage,
    pub restart_point: Option<RestartPoint>,
    /// Tasks that restart and keep nothing but their answers.
    pub restarted: BTreeSet<TaskId>,
}

impl ForkedGraph<'_> {
    /// Returns the id of the current checkpoint, stored or not.
    pub(super) fn checkpoint_id(&self) -> CheckpointId {
        self.lineage.checkpoint.meta.id
    }

    /// Returns the checkpoints of the graph and of its parent graphs.
    pub(super) fn parents_for_subgraphs(&self) -> BTreeMap<Namespace, CheckpointId> {
        let mut parents = self.lineage.checkpoint.meta.parent_graphs.clone();
        parents.insert(self.namespace.clone(), self.checkpoint_id());
        parents
    }

    /// Returns true if a task is the task that restarts, or an error handler in place of that task.
    pub(super) fn is_discarded(&self, task: &TaskId) -> bool {
        let handler = |of: &TaskId| self.lineage.failed.get(of)?.handler.clone();
        let target = self.restart_point.as_ref().map(|target| target.task.clone());
        std::iter::successors(target, handler).any(|void| void == *task)
    }

    /// Returns true if the fork takes over the state of a subgraph that does not contain the
    /// overridden call.
    pub(super) fn carries_over(&self, child: &Namespace, subgraph_log: &SubgraphLog) -> bool {
        let begun = subgraph_log.events.first().map_or(0, |event| event.seq);
        let Some(owner) = self.owning_task(child, u64::MAX) else { return false };
        let is_target = self.restart_point.as_ref().is_some_and(|target| target.task == owner);
        let is_new = self.restarted.contains(&owner);
        if !is_target && (is_new || self.is_discarded(&owner) || self.lineage.has_ended(&owner)) {
            return false;
        }
        let part = match &self.restart_point {
            Some(target) if is_target => target.journal_prefix(),
            _ => self.superstep.task(&owner).map(JournalPrefix::all),
        };
        match (child.call_path(), part) {
            (None, _) => !is_target,
            (Some(place), Some(part)) => {
                let wait = self.waiting_call(&owner, &place, begun);
                wait.is_some_and(|wait| part.includes(&wait) && !part.has_succeeded(&wait))
            }
            (Some(_), None) => false,
        }
    }

    /// Returns the task that ran a subgraph, or whose call started it, before a sequence number.
    pub(super) fn owning_task(&self, child: &Namespace, seq: u64) -> Option<TaskId> {
        let owner = child.task().or_else(|| {
            self.tasks_started_before(seq)
                .find(|it| it.node.as_str() == child.node())
                .map(|it| &it.task)
                .cloned()
        });
        owner.filter(|task| self.tasks.contains_key(task))
    }

    /// Returns the tasks of the superstep that started before a sequence number, newest first.
    fn tasks_started_before(&self, seq: u64) -> impl Iterator<Item = &TaskStarted> {
        let events = self.superstep.tuple.events.iter().rev();
        let events = events.filter(move |it| it.seq < seq && it.namespace == self.namespace);
        events.filter_map(|event| match &event.kind {
            EventKind::TaskStarted(begun) if self.tasks.contains_key(&begun.task) => Some(begun),
            _ => None,
        })
    }

    /// Returns the `runs.wait` call of a task that was pending at sequence number `seq`, for the
    /// graph that the task started at `place`. A task, or a tool, waits for one graph at a time.
    pub(super) fn waiting_call(&self, task: &TaskId, place: &[u32], seq: u64) -> Option<Vec<u32>> {
        let (_, scope) = place.split_last()?;
        let mut open = None;
        for event in &self.superstep.tuple.events {
            match &event.kind {
                EventKind::CallStarted(CallStarted {
                    task: of,
                    scope: inside,
                    call,
                    function,
                    ..
                }) if of == task && inside == scope && function == EndedRun::FUNCTION => {
                    if event.seq > seq && open.is_some() {
                        break;
                    }
                    open = Some(*call);
                }
                EventKind::Called(called)
                    if event.seq < seq
                        && called.task == *task
                        && called.scope == scope
                        && open == Some(called.call) =>
                {
                    open = None;
                }
                _ => {}
            }
        }
        open.map(|call| path_of_call(scope, call))
    }
}

/// The state that a fork carries over.
#[derive(Default)]
pub(super) struct ForkedGraphs<'a> {
    /// The graphs, each after its parent graph.
    pub graphs: Vec<ForkedGraph<'a>>,
    /// Last checkpoints of subgraphs that keep their state until their next invocation.
    pub idle_checkpoints: Vec<Checkpoint>,
}

impl ForkedGraphs<'_> {
    /// Returns the number of subgraph checkpoints that the fork copies.
    pub(super) fn copied_checkpoint_count(&self) -> u64 {
        let nested = self.graphs.iter().filter(|graph| !graph.namespace.is_root());
        (nested.filter(|graph| graph.stored_checkpoint.is_some()).count()
            + self.idle_checkpoints.len()) as u64
    }
}
