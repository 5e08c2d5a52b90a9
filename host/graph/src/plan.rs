//! What runs in the next superstep.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::checkpoint::{CheckpointMeta, Trigger, Values};
use crate::event::TaskFailed;
use crate::graph::{Graph, Node};
use crate::id::{CheckpointId, Namespace, NodeName, TaskId, ThreadId};
use crate::lineage::Lineage;

/// One execution of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Stable id: the same task has the same id after a restart.
    pub id: TaskId,
    /// The node.
    pub node: NodeName,
    /// Its superstep.
    pub step: u32,
    /// Which of the node's tasks in this superstep, from 0.
    pub index: u32,
    /// Whether the superstep has another task of the node that comes first, or came before.
    pub is_further: bool,
    /// The node that led here, or whose failure it handles; `None` for the entry.
    pub from: Option<NodeName>,
    /// The part of the state that the node reads, or the input of its own from a send.
    pub input: Value,
    /// How long one attempt may take, in milliseconds, in place of the node's own.
    pub timeout_ms: Option<u64>,
    /// The task in whose place it runs, since that failed for good.
    pub handles: Option<Box<TaskFailed>>,
    /// The task that runs in its place if it fails for good: who writes that down names it
    /// ([`TaskFailed::handler`]).
    pub handler: Option<TaskId>,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Planned {
    /// Nothing is left: the graph has ended.
    Done,
    /// The superstep's tasks.
    Tasks {
        /// Every task of the superstep, in order.
        all: Vec<TaskId>,
        /// Those that can run now: not finished, and without an unanswered question.
        run: Vec<Task>,
        /// Those that wait for an answer.
        waiting: Vec<TaskId>,
    },
    /// Every task has finished, and some want something of the graph above theirs, which ends
    /// with that: see [`crate::step::parent_outcome`].
    ToParent,
    /// The run has used up its supersteps.
    OutOfSteps,
}

/// Index of a task that handles the failure of the first task of its superstep; that of the second
/// is one more, and so on. No superstep has as many tasks, so none of them has such an index.
const HANDLER_INDEX: u32 = 1 << 31;

/// Plans the next superstep. The order is by node name, then by index. `thread` is the one that
/// ids derive from, `steps_left` how many supersteps the run may still take.
///
/// In the place of a task that has failed for good stands the task that handles its failure, if
/// there is one; so a superstep has as many tasks as triggers, whatever happens in it.
///
/// If `all` is not empty and both `run` and `waiting` are, every task has finished and the
/// superstep is to be applied with [`crate::step::advance`].
pub fn plan(graph: &Graph, thread: &ThreadId, lineage: &Lineage, steps_left: u32) -> Planned {
    let meta = &lineage.checkpoint.meta;
    if meta.next.is_empty() {
        return Planned::Done;
    }
    if steps_left == 0 {
        return Planned::OutOfSteps;
    }
    let seats = numbered(&meta.next).into_iter().enumerate().map(|(place, (trigger, index))| {
        let mut seat = Seat::of(graph, thread, lineage, place as u32, trigger, index);
        seat.give_way();
        seat
    });
    let seats: Vec<Seat<'_>> = seats.collect();
    let all = seats.iter().map(|seat| seat.id.clone()).collect();
    let (asking, first) = (lineage.waiting(), First::of(&seats));
    let (mut run, mut waiting) = (Vec::new(), Vec::new());
    for seat in &seats {
        if asking.contains(&seat.id) {
            waiting.push(seat.id.clone());
        } else if !lineage.finished.contains_key(&seat.id) {
            run.push(seat.task(first.is_before(seat)));
        }
    }
    let for_parent = || lineage.finished.values().any(|finished| finished.for_parent);
    if run.is_empty() && waiting.is_empty() && for_parent() {
        return Planned::ToParent;
    }
    Planned::Tasks { all, run, waiting }
}

/// The tasks that a checkpoint leads to, each with what led to it. `thread` is the one that ids of
/// tasks derive from. Those that stand in for a task that fails are not among them.
pub fn led_to<'m>(thread: &ThreadId, meta: &'m CheckpointMeta) -> Vec<(TaskId, &'m Trigger)> {
    let task = |(trigger, index): (&'m Trigger, u32)| {
        let id = TaskId::derive(thread, &meta.namespace, meta.id, &trigger.node, index);
        (id, trigger)
    };
    numbered(&meta.next).into_iter().map(task).collect()
}

/// The tasks of some nodes that a superstep of at most so many triggers can have, by id. From
/// the node and the index of a task, its id under another checkpoint or namespace can be derived.
pub fn conceivable<'n>(
    thread: &ThreadId,
    namespace: &Namespace,
    base: CheckpointId,
    nodes: impl IntoIterator<Item = &'n NodeName>,
    triggers: u32,
) -> BTreeMap<TaskId, (NodeName, u32)> {
    let indexes = (0..triggers).chain((0..triggers).map(|place| HANDLER_INDEX + place));
    let of_node = |node: &'n NodeName| {
        let id = move |index| TaskId::derive(thread, namespace, base, node, index);
        indexes.clone().map(move |index| (id(index), (node.clone(), index)))
    };
    nodes.into_iter().flat_map(of_node).collect()
}

/// A place in a superstep: the task of a trigger, or the one that stands in for it.
struct Seat<'l> {
    graph: &'l Graph,
    thread: &'l ThreadId,
    lineage: &'l Lineage,
    /// Which of the superstep's places.
    place: u32,
    /// What led here; it is gone once another task handles a failure.
    trigger: Option<&'l Trigger>,
    node: &'l NodeName,
    index: u32,
    id: TaskId,
    handles: Option<&'l TaskFailed>,
}

impl<'l> Seat<'l> {
    fn of(
        graph: &'l Graph,
        thread: &'l ThreadId,
        lineage: &'l Lineage,
        place: u32,
        trigger: &'l Trigger,
        index: u32,
    ) -> Self {
        let (node, trigger, handles) = (&trigger.node, Some(trigger), None);
        let id = id(thread, lineage, node, index);
        Self { graph, thread, lineage, place, trigger, node, index, id, handles }
    }

    /// Goes on to the task that handles the failure of the one before, as often as one failed.
    fn give_way(&mut self) {
        while let Some(failed) = self.lineage.failed.get(&self.id)
            && failed.handler.is_some()
            && failed.handler == self.handler()
            && let Some(node) = self.on_error()
        {
            self.index = HANDLER_INDEX + self.place;
            self.id = id(self.thread, self.lineage, node, self.index);
            self.node = node;
            self.trigger = None;
            self.handles = Some(failed);
        }
    }

    fn on_error(&self) -> Option<&'l NodeName> {
        self.graph.node(self.node)?.on_error.as_ref()
    }

    /// The id of the task that would handle a failure here.
    fn handler(&self) -> Option<TaskId> {
        let index = HANDLER_INDEX + self.place;
        Some(id(self.thread, self.lineage, self.on_error()?, index))
    }

    fn task(&self, is_further: bool) -> Task {
        let own = self.trigger.and_then(|trigger| trigger.input.as_ref());
        let input = match own {
            Some(own) => (**own).clone(),
            None => visible(self.graph.node(self.node), &self.lineage.checkpoint.values),
        };
        let from = match self.trigger {
            Some(trigger) => trigger.from.clone(),
            None => self.handles.map(|failed| failed.node.clone()),
        };
        Task {
            handler: self.handler(),
            id: self.id.clone(),
            node: self.node.clone(),
            step: self.lineage.checkpoint.meta.step,
            index: self.index,
            is_further,
            from,
            input,
            timeout_ms: self.trigger.and_then(|trigger| trigger.timeout_ms),
            handles: self.handles.cloned().map(Box::new),
        }
    }
}

/// The lowest index of each node's tasks that came first: 0 for a node of which a task has finished,
/// since one that handles a failure may have finished though its place is a later one.
struct First<'l>(BTreeMap<&'l NodeName, u32>);

impl<'l> First<'l> {
    fn of(seats: &[Seat<'l>]) -> Self {
        let mut first: BTreeMap<&NodeName, u32> = BTreeMap::new();
        for seat in seats {
            let is_finished = seat.lineage.finished.contains_key(&seat.id);
            // An unfinished task is further than a finished one, whatever its index.
            let index = if is_finished { 0 } else { seat.index.saturating_add(1) };
            let lowest = first.entry(seat.node).or_insert(index);
            *lowest = index.min(*lowest);
        }
        Self(first)
    }

    /// Whether another task of the node comes before a task that has not finished.
    fn is_before(&self, seat: &Seat<'_>) -> bool {
        self.0.get(seat.node).is_some_and(|lowest| *lowest <= seat.index)
    }
}

fn id(thread: &ThreadId, lineage: &Lineage, node: &NodeName, index: u32) -> TaskId {
    let meta = &lineage.checkpoint.meta;
    TaskId::derive(thread, &meta.namespace, meta.id, node, index)
}

/// The part of the state that a node reads. Channels without a value are left out.
fn visible(node: Option<&Node>, values: &Values) -> Value {
    let entry = |name: &str, value: &Arc<Value>| (name.to_owned(), (**value).clone());
    let fields: Map<String, Value> = match node.and_then(|node| node.reads.as_ref()) {
        None => values.iter().map(|(name, value)| entry(name.as_str(), value)).collect(),
        Some(reads) => reads
            .iter()
            .filter_map(|name| values.get(name).map(|value| entry(name.as_str(), value)))
            .collect(),
    };
    Value::Object(fields)
}

/// Triggers in order, each with its index among those of its node. A node that several edges lead
/// to runs once; a node with several sends runs once for each.
fn numbered(next: &[Trigger]) -> Vec<(&Trigger, u32)> {
    let mut ordered: Vec<&Trigger> = next.iter().collect();
    ordered.sort_by_key(|trigger| (&trigger.node, trigger.input.is_some()));
    let mut numbered: Vec<(&Trigger, u32)> = Vec::with_capacity(ordered.len());
    let mut plain = BTreeSet::new();
    for trigger in ordered {
        if trigger.input.is_none() && !plain.insert(&trigger.node) {
            continue;
        }
        let index = match numbered.last() {
            Some((before, index)) if before.node == trigger.node => index + 1,
            _ => 0,
        };
        numbered.push((trigger, index));
    }
    numbered
}

#[cfg(test)]
mod tests;
