//! A graph in which a fork continues, with its current superstep and the events of its tasks.

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{CallStarted, Event, EventKind, TaskStarted};
use wattle_graph::id::{CheckpointId, Namespace, NodeName, TaskId};
use wattle_graph::lineage::Lineage;

use super::order::{Part, path};
use crate::driver::PastTask;
use crate::hostcall::runs::EndedRun;
use crate::ports::store::CheckpointTuple;
use crate::view::{self, Nest, Strand};

/// The events of a superstep of the root graph, with those of subgraphs.
pub(super) struct Known {
    pub tuple: CheckpointTuple,
    nest: Nest,
    past: BTreeMap<TaskId, PastTask>,
}

impl Known {
    /// Indexes the events since a checkpoint of the root graph.
    pub(super) fn new(tuple: CheckpointTuple) -> Self {
        let nest = Nest::new(&tuple.events);
        let past = view::past_tasks(&tuple.events);
        Self { tuple, nest, past }
    }

    /// Keeps the events before the first one for which `is_end` returns true.
    fn until(&self, is_end: impl Fn(&Event) -> bool) -> Self {
        let events = self.tuple.events.iter().take_while(|event| !is_end(event));
        let checkpoint = self.tuple.checkpoint.clone();
        Self::new(CheckpointTuple { checkpoint, events: events.cloned().collect() })
    }

    /// Keeps the events before the first `reopened` event after a sequence number.
    pub(super) fn before_undone(&self, seq: u64) -> Self {
        self.until(|event| event.seq > seq && matches!(event.kind, EventKind::Reopened(_)))
    }

    /// Returns the calls of a task up to the end of the attempt that contains a sequence number.
    pub(super) fn attempt(&self, task: &TaskId, seq: u64) -> PastTask {
        let mut known = self.until(|event| {
            event.seq > seq
                && match &event.kind {
                    EventKind::TaskFailed(failed) => failed.task == *task,
                    kind => matches!(kind, EventKind::Reopened(_)),
                }
        });
        known.past.remove(task).unwrap_or_default()
    }

    /// Returns the events of a graph. Events of a subgraph that a reopen discarded are left out.
    pub(super) fn events_of(&self, namespace: &Namespace) -> Vec<Event> {
        if namespace.is_root() {
            return self.tuple.events.clone();
        }
        self.nest.strand(namespace).map(|strand| strand.events.clone()).unwrap_or_default()
    }

    /// Returns the events and the checkpoint of a subgraph.
    pub(super) fn strand(&self, namespace: &Namespace) -> Option<&Strand> {
        self.nest.strand(namespace)
    }

    /// Returns all subgraphs.
    pub(super) fn strands(&self) -> impl Iterator<Item = (&Namespace, &Strand)> {
        self.nest.strands()
    }

    /// Returns the calls and attempts of a task, if the log has any.
    pub(super) fn past(&self, task: &TaskId) -> Option<&PastTask> {
        self.past.get(task)
    }
}

/// Base checkpoint, node and index of a task, from which its id derives.
pub(super) struct Seat {
    pub base: CheckpointId,
    pub node: NodeName,
    pub index: u32,
}

/// The task that restarts: the one that made the overridden call, or one that runs a graph around
/// it.
pub(super) struct Target {
    pub task: TaskId,
    /// Calls of the task up to the end of the attempt that made the call.
    pub past: PastTask,
    /// Path and batch of the call before which its journal ends; `None` if the task runs a
    /// subgraph.
    pub place: Option<(Vec<u32>, u32)>,
}

impl Target {
    /// Returns the part of the journal that is carried over.
    pub(super) fn part(&self) -> Option<Part<'_>> {
        let (path, batch) = self.place.clone()?;
        Some(Part::before(&self.past, path, batch))
    }
}

/// A graph in which the fork continues.
pub(super) struct Site<'a> {
    pub namespace: Namespace,
    pub known: &'a Known,
    /// The current checkpoint, if it is stored.
    pub stored: Option<Checkpoint>,
    /// Tasks with events in the supersteps that are carried over.
    pub tasks: BTreeMap<TaskId, Seat>,
    pub lineage: Lineage,
    pub target: Option<Target>,
    /// Tasks that restart and keep nothing but their answers.
    pub afresh: BTreeSet<TaskId>,
}

impl Site<'_> {
    /// Returns the id of the current checkpoint, stored or not.
    pub(super) fn at(&self) -> CheckpointId {
        self.lineage.checkpoint.meta.id
    }

    /// Returns the checkpoints of the graph and of its parent graphs.
    pub(super) fn parents_inside(&self) -> BTreeMap<Namespace, CheckpointId> {
        let mut parents = self.lineage.checkpoint.meta.parent_graphs.clone();
        parents.insert(self.namespace.clone(), self.at());
        parents
    }

    /// Returns true for the task that restarts and for the error handlers in its place.
    pub(super) fn is_void(&self, task: &TaskId) -> bool {
        let handler = |of: &TaskId| self.lineage.failed.get(of)?.handler.clone();
        let target = self.target.as_ref().map(|target| target.task.clone());
        std::iter::successors(target, handler).any(|void| void == *task)
    }

    /// Returns true if the state of a subgraph that is not on the path to the call is carried over.
    pub(super) fn takes(&self, child: &Namespace, strand: &Strand) -> bool {
        let begun = strand.events.first().map_or(0, |event| event.seq);
        let Some(owner) = self.owner(child, u64::MAX) else { return false };
        let is_target = self.target.as_ref().is_some_and(|target| target.task == owner);
        let is_new = self.afresh.contains(&owner);
        if !is_target && (is_new || self.is_void(&owner) || self.lineage.has_ended(&owner)) {
            return false;
        }
        let part = match &self.target {
            Some(target) if is_target => target.part(),
            _ => self.known.past(&owner).map(Part::all),
        };
        match (child.call_path(), part) {
            (None, _) => !is_target,
            (Some(place), Some(part)) => {
                let wait = self.wait(&owner, &place, begun);
                wait.is_some_and(|wait| part.has(&wait) && !part.has_answer(&wait))
            }
            (Some(_), None) => false,
        }
    }

    /// Returns the task that ran a subgraph, or whose call started it, before a sequence number.
    pub(super) fn owner(&self, child: &Namespace, seq: u64) -> Option<TaskId> {
        let owner = child.task().or_else(|| {
            self.begun_before(seq)
                .find(|it| it.node.as_str() == child.node())
                .map(|it| &it.task)
                .cloned()
        });
        owner.filter(|task| self.tasks.contains_key(task))
    }

    /// Returns the tasks of the superstep that started before a sequence number, newest first.
    fn begun_before(&self, seq: u64) -> impl Iterator<Item = &TaskStarted> {
        let events = self.known.tuple.events.iter().rev();
        let events = events.filter(move |it| it.seq < seq && it.namespace == self.namespace);
        events.filter_map(|event| match &event.kind {
            EventKind::TaskStarted(begun) if self.tasks.contains_key(&begun.task) => Some(begun),
            _ => None,
        })
    }

    /// Returns the `runs.wait` call of a task that was pending at sequence number `seq`, for the
    /// graph that the task started at `place`. A task, or a tool, waits for one graph at a time.
    pub(super) fn wait(&self, task: &TaskId, place: &[u32], seq: u64) -> Option<Vec<u32>> {
        let (_, scope) = place.split_last()?;
        let mut open = None;
        for event in &self.known.tuple.events {
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
        open.map(|call| path(scope, call))
    }
}

/// The state that a fork carries over.
#[derive(Default)]
pub(super) struct Sites<'a> {
    /// The graphs, each after its parent graph.
    pub sites: Vec<Site<'a>>,
    /// Last checkpoints of subgraphs that keep their state until their next invocation.
    pub remembered: Vec<Checkpoint>,
}

impl Sites<'_> {
    /// Returns the number of subgraph checkpoints that the fork copies.
    pub(super) fn copies(&self) -> u64 {
        let nested = self.sites.iter().filter(|site| !site.namespace.is_root());
        (nested.filter(|site| site.stored.is_some()).count() + self.remembered.len()) as u64
    }
}
