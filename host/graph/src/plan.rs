//! Planning: which tasks run in the next superstep.

mod input;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::checkpoint::{CheckpointMeta, Trigger, Values};
use crate::event::TaskFailed;
use crate::graph::Graph;
use crate::id::{CheckpointId, Namespace, NodeName, TaskId, ThreadId};
use crate::lineage::Lineage;

pub use self::input::{CutInput, TaskInput};

/// One execution of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Stable id, which is the same after a restart.
    pub id: TaskId,
    /// The node.
    pub node: NodeName,
    /// Number of the superstep.
    pub step: u32,
    /// Index among the tasks of the node in this superstep, from 0.
    pub index: u32,
    /// Whether another task of the node in this superstep comes before this one or has finished.
    pub follows_same_node: bool,
    /// The node that triggered the task, or whose failure it handles; `None` for the entry.
    pub from: Option<NodeName>,
    /// The input of a send; `None` if the task reads the state. [`Task::input`] returns the input
    /// of every task.
    pub own_input: Option<Arc<Value>>,
    /// Timeout of one attempt in milliseconds, in place of the node's own.
    pub timeout_ms: Option<u64>,
    /// The permanently failed task in whose place this error handler runs.
    pub handles: Option<Box<TaskFailed>>,
    /// The error handler that runs in place of this task after a permanent failure. The event of
    /// that failure names it ([`TaskFailed::handler`]).
    pub handler: Option<TaskId>,
}

impl Task {
    /// Returns the input: that of the send, or else the part of the state that the node reads.
    /// `values` are those of the checkpoint that the task starts from.
    pub fn input(&self, graph: &Graph, values: &Values) -> TaskInput {
        match &self.own_input {
            Some(own) => TaskInput::Sent(own.clone()),
            None => TaskInput::State {
                values: values.clone(),
                reads: graph.node(&self.node).and_then(|node| node.reads.clone()),
            },
        }
    }
}

/// The next step of a graph.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// No task is triggered: the graph has ended.
    Done,
    /// The tasks of the superstep.
    Tasks {
        /// Every task of the superstep, in order.
        all: Vec<TaskId>,
        /// Tasks that can run now: not finished, and without a pending interrupt.
        runnable: Vec<Task>,
        /// Tasks with a pending interrupt.
        waiting: Vec<TaskId>,
    },
    /// Every task has finished, and some return an outcome for the parent graph, which ends the
    /// subgraph; see [`crate::step::parent_outcome`].
    ParentOutcome,
    /// The run has reached its recursion limit.
    RecursionLimitReached,
}

/// Index of the error handler of the first task of a superstep. The handler of the second task has
/// the next index, and so on. No superstep has that many tasks, so only error handlers have such
/// indexes.
const FIRST_HANDLER_INDEX: u32 = 1 << 31;

/// Plans the next superstep. Tasks are ordered by node name, then by index. Task ids derive from
/// `thread`. `steps_left` is the number of supersteps that the run may still take.
///
/// The error handler of a permanently failed task takes the position of that task. A superstep
/// therefore always has as many tasks as triggers.
///
/// If `runnable` and `waiting` are empty and `all` is not, every task has finished. The caller then
/// applies the superstep with [`crate::step::advance`].
pub fn plan(graph: &Graph, thread: &ThreadId, lineage: &Lineage, steps_left: u32) -> Plan {
    let meta = &lineage.checkpoint.meta;
    if meta.next.is_empty() {
        return Plan::Done;
    }
    if steps_left == 0 {
        return Plan::RecursionLimitReached;
    }
    let slots =
        with_indexes(&meta.next).into_iter().enumerate().map(|(place, (trigger, index))| {
            let mut slot = TaskSlot::of(graph, thread, lineage, place as u32, trigger, index);
            slot.follow_error_handlers();
            slot
        });
    let slots: Vec<TaskSlot<'_>> = slots.collect();
    let all = slots.iter().map(|slot| slot.id.clone()).collect();
    let (asking, first) = (lineage.waiting(), First::of(&slots));
    let (mut runnable, mut waiting) = (Vec::new(), Vec::new());
    for slot in &slots {
        if asking.contains(&slot.id) {
            waiting.push(slot.id.clone());
        } else if !lineage.finished.contains_key(&slot.id) {
            runnable.push(slot.task(first.is_before(slot)));
        }
    }
    let for_parent = || lineage.finished.values().any(|finished| finished.for_parent);
    if runnable.is_empty() && waiting.is_empty() && for_parent() {
        return Plan::ParentOutcome;
    }
    Plan::Tasks { all, runnable, waiting }
}

/// Returns the tasks that a checkpoint triggers, each with its trigger. Task ids derive from
/// `thread`. Error handlers are not among them.
pub fn tasks_of<'m>(thread: &ThreadId, meta: &'m CheckpointMeta) -> Vec<(TaskId, &'m Trigger)> {
    let task = |(trigger, index): (&'m Trigger, u32)| {
        let id = TaskId::derive(thread, &meta.namespace, meta.id, &trigger.node, index);
        (id, trigger)
    };
    with_indexes(&meta.next).into_iter().map(task).collect()
}

/// Maps every task id that the nodes can have in a superstep of at most `triggers` tasks to its
/// node and index. A fork derives the new id of a task from its node and index.
pub fn possible_tasks<'n>(
    thread: &ThreadId,
    namespace: &Namespace,
    base: CheckpointId,
    nodes: impl IntoIterator<Item = &'n NodeName>,
    triggers: u32,
) -> BTreeMap<TaskId, (NodeName, u32)> {
    let indexes = (0..triggers).chain((0..triggers).map(|place| FIRST_HANDLER_INDEX + place));
    let of_node = |node: &'n NodeName| {
        let id = move |index| TaskId::derive(thread, namespace, base, node, index);
        indexes.clone().map(move |index| (id(index), (node.clone(), index)))
    };
    nodes.into_iter().flat_map(of_node).collect()
}

/// One of the tasks of a superstep. Each trigger has a slot. At first, the slot holds the task that
/// the trigger starts. When a task fails permanently, its error handler takes the slot.
struct TaskSlot<'l> {
    graph: &'l Graph,
    thread: &'l ThreadId,
    lineage: &'l Lineage,
    /// Index of the slot, which is the index of its trigger among all triggers of the superstep.
    slot_index: u32,
    /// The trigger of the task; `None` once an error handler replaces the task.
    trigger: Option<&'l Trigger>,
    node: &'l NodeName,
    index: u32,
    id: TaskId,
    handles: Option<&'l TaskFailed>,
}

impl<'l> TaskSlot<'l> {
    fn of(
        graph: &'l Graph,
        thread: &'l ThreadId,
        lineage: &'l Lineage,
        slot_index: u32,
        trigger: &'l Trigger,
        index: u32,
    ) -> Self {
        let (node, trigger, handles) = (&trigger.node, Some(trigger), None);
        let id = id(thread, lineage, node, index);
        Self { graph, thread, lineage, slot_index, trigger, node, index, id, handles }
    }

    /// Replaces the task by its error handler until the slot holds a task that has not failed
    /// permanently.
    fn follow_error_handlers(&mut self) {
        while let Some(failed) = self.lineage.failed.get(&self.id)
            && failed.handler.is_some()
            && failed.handler == self.handler()
            && let Some(node) = self.on_error()
        {
            self.index = FIRST_HANDLER_INDEX + self.slot_index;
            self.id = id(self.thread, self.lineage, node, self.index);
            self.node = node;
            self.trigger = None;
            self.handles = Some(failed);
        }
    }

    fn on_error(&self) -> Option<&'l NodeName> {
        self.graph.node(self.node)?.on_error.as_ref()
    }

    /// Returns the id of the error handler that takes the slot if the current task fails.
    fn handler(&self) -> Option<TaskId> {
        let index = FIRST_HANDLER_INDEX + self.slot_index;
        Some(id(self.thread, self.lineage, self.on_error()?, index))
    }

    fn task(&self, follows_same_node: bool) -> Task {
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
            follows_same_node,
            from,
            own_input: self.trigger.and_then(|trigger| trigger.input.clone()),
            timeout_ms: self.trigger.and_then(|trigger| trigger.timeout_ms),
            handles: self.handles.cloned().map(Box::new),
        }
    }
}

/// For each node, the lowest index of a task that comes after another task of the node. It is 0 if
/// a task of the node has finished, because a finished error handler can have a higher index.
struct First<'l>(BTreeMap<&'l NodeName, u32>);

impl<'l> First<'l> {
    fn of(slots: &[TaskSlot<'l>]) -> Self {
        let mut first: BTreeMap<&NodeName, u32> = BTreeMap::new();
        if slots.len() == 1 {
            // No other task comes before the only one.
            return Self(first);
        }
        for slot in slots {
            let is_finished = slot.lineage.finished.contains_key(&slot.id);
            // Every unfinished task of the node counts as coming after a finished task.
            let index = if is_finished { 0 } else { slot.index.saturating_add(1) };
            let lowest = first.entry(slot.node).or_insert(index);
            *lowest = index.min(*lowest);
        }
        Self(first)
    }

    /// Returns true if another task of the node comes before an unfinished task.
    fn is_before(&self, slot: &TaskSlot<'_>) -> bool {
        self.0.get(slot.node).is_some_and(|lowest| *lowest <= slot.index)
    }
}

fn id(thread: &ThreadId, lineage: &Lineage, node: &NodeName, index: u32) -> TaskId {
    let meta = &lineage.checkpoint.meta;
    TaskId::derive(thread, &meta.namespace, meta.id, node, index)
}

/// Returns the triggers in order, each with its index among the triggers of the same node. A node
/// that several edges trigger runs once; a node with several sends runs once for each of them.
fn with_indexes(next: &[Trigger]) -> Vec<(&Trigger, u32)> {
    // Most supersteps have one trigger, for which the collections below would be allocated.
    if let [only] = next {
        return vec![(only, 0)];
    }
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
