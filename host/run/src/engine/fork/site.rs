//! A graph in which a fork goes on: the superstep that it stood in, and what its tasks did there.

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

/// What is known of a superstep of the thread's own graph, nested graphs included.
pub(super) struct Known {
    pub tuple: CheckpointTuple,
    nest: Nest,
    past: BTreeMap<TaskId, PastTask>,
}

impl Known {
    /// Sorts out what happened since a checkpoint of the thread's own graph.
    pub(super) fn new(tuple: CheckpointTuple) -> Self {
        let nest = Nest::new(&tuple.events);
        let past = view::past_tasks(&tuple.events);
        Self { tuple, nest, past }
    }

    /// The same without what happened from the first event on that is an end.
    fn until(&self, is_end: impl Fn(&Event) -> bool) -> Self {
        let events = self.tuple.events.iter().take_while(|event| !is_end(event));
        let checkpoint = self.tuple.checkpoint.clone();
        Self::new(CheckpointTuple { checkpoint, events: events.cloned().collect() })
    }

    /// The same without what was undone after a place in the log.
    pub(super) fn before_undone(&self, seq: u64) -> Self {
        self.until(|event| event.seq > seq && matches!(event.kind, EventKind::Reopened(_)))
    }

    /// What a task knew in the attempt in which something happened.
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

    /// What happened in a graph and was not undone.
    pub(super) fn events_of(&self, namespace: &Namespace) -> Vec<Event> {
        if namespace.is_root() {
            return self.tuple.events.clone();
        }
        self.nest.strand(namespace).map(|strand| strand.events.clone()).unwrap_or_default()
    }

    /// What is known of a nested graph.
    pub(super) fn strand(&self, namespace: &Namespace) -> Option<&Strand> {
        self.nest.strand(namespace)
    }

    /// All nested graphs.
    pub(super) fn strands(&self) -> impl Iterator<Item = (&Namespace, &Strand)> {
        self.nest.strands()
    }

    /// What is known of a task of a graph.
    pub(super) fn past(&self, task: &TaskId) -> Option<&PastTask> {
        self.past.get(task)
    }
}

/// Which of a superstep's tasks one is.
pub(super) struct Seat {
    pub base: CheckpointId,
    pub node: NodeName,
    pub index: u32,
}

/// The task in which something is done anew: that of the call, or one around it.
pub(super) struct Target {
    pub task: TaskId,
    /// What it knew in the attempt in which that was done.
    pub past: PastTask,
    /// Where in the task that is, unless the task is a graph as a whole.
    pub place: Option<(Vec<u32>, u32)>,
}

impl Target {
    /// What of its journal is taken over.
    pub(super) fn part(&self) -> Option<Part<'_>> {
        let (path, batch) = self.place.clone()?;
        Some(Part::before(&self.past, path, batch))
    }
}

/// A graph in which the fork goes on.
pub(super) struct Site<'a> {
    pub namespace: Namespace,
    pub known: &'a Known,
    /// The checkpoint where it stood, if it makes any.
    pub stored: Option<Checkpoint>,
    /// Supersteps and tasks that are taken over, as far as anything happened in them.
    pub tasks: BTreeMap<TaskId, Seat>,
    pub lineage: Lineage,
    pub target: Option<Target>,
    /// Tasks that run from their beginning, with no more than the answers that they were given.
    pub afresh: BTreeSet<TaskId>,
}

impl Site<'_> {
    /// The checkpoint where it stood, which may be none that is stored.
    pub(super) fn at(&self) -> CheckpointId {
        self.lineage.checkpoint.meta.id
    }

    /// Checkpoints of it and the graphs around it.
    pub(super) fn parents_inside(&self) -> BTreeMap<Namespace, CheckpointId> {
        let mut parents = self.lineage.checkpoint.meta.parents.clone();
        parents.insert(self.namespace.clone(), self.at());
        parents
    }

    /// Whether a task is one that is to run anew, or that stood in for it.
    pub(super) fn is_void(&self, task: &TaskId) -> bool {
        let handler = |of: &TaskId| self.lineage.failed.get(of)?.handler.clone();
        let target = self.target.as_ref().map(|target| target.task.clone());
        std::iter::successors(target, handler).any(|void| void == *task)
    }

    /// Whether what happened in a nested graph beside the call is to be taken over.
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
        match (child.place(), part) {
            (None, _) => !is_target,
            (Some(place), Some(part)) => {
                let wait = self.wait(&owner, &place, begun);
                wait.is_some_and(|wait| part.has(&wait) && !part.has_answer(&wait))
            }
            (Some(_), None) => false,
        }
    }

    /// The task that a nested graph ran as, or that called for it, before a place in the log.
    pub(super) fn owner(&self, child: &Namespace, seq: u64) -> Option<TaskId> {
        let owner = child.task().or_else(|| {
            self.begun_before(seq)
                .find(|it| it.node.as_str() == child.node())
                .map(|it| &it.task)
                .cloned()
        });
        owner.filter(|task| self.tasks.contains_key(task))
    }

    /// Tasks of the superstep that were begun before a place in the log, the newest first.
    fn begun_before(&self, seq: u64) -> impl Iterator<Item = &TaskStarted> {
        let events = self.known.tuple.events.iter().rev();
        let events = events.filter(move |it| it.seq < seq && it.namespace == self.namespace);
        events.filter_map(|event| match &event.kind {
            EventKind::TaskStarted(begun) if self.tasks.contains_key(&begun.task) => Some(begun),
            _ => None,
        })
    }

    /// The call of a task that waits for the graph that it started at a place, while that was at
    /// work at some place in the log. A task, or a tool, waits for one graph at a time.
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

/// All that a fork takes over, as it stood.
#[derive(Default)]
pub(super) struct Sites<'a> {
    /// The graphs, each after the one around it.
    pub sites: Vec<Site<'a>>,
    /// Checkpoints that nested graphs go on from with their next invocation.
    pub remembered: Vec<Checkpoint>,
}

impl Sites<'_> {
    /// How many checkpoints of nested graphs the fork copies.
    pub(super) fn copies(&self) -> u64 {
        let nested = self.sites.iter().filter(|site| !site.namespace.is_root());
        (nested.filter(|site| site.stored.is_some()).count() + self.remembered.len()) as u64
    }
}
