//! What runs in the next superstep.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::checkpoint::{Trigger, Values};
use crate::graph::{Graph, Node};
use crate::id::{NodeName, TaskId, ThreadId};
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
    /// The node that led here; `None` for the entry.
    pub from: Option<NodeName>,
    /// The part of the state that the node reads, or the input of its own from a send.
    pub input: Value,
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
    /// The run has used up its supersteps.
    RecursionLimit {
        /// How many it could take.
        limit: u32,
    },
}

/// Plans the next superstep. The order is by node name, then by index.
///
/// If `all` is not empty and both `run` and `waiting` are, every task has finished and the
/// superstep is to be applied with [`crate::step::advance`].
pub fn plan(
    graph: &Graph,
    thread: &ThreadId,
    lineage: &Lineage,
    steps_taken_in_run: u32,
) -> Planned {
    let meta = &lineage.checkpoint.meta;
    if meta.next.is_empty() {
        return Planned::Done;
    }
    if steps_taken_in_run >= graph.recursion_limit() {
        return Planned::RecursionLimit { limit: graph.recursion_limit() };
    }
    let mut all = Vec::with_capacity(meta.next.len());
    let (mut run, mut waiting) = (Vec::new(), Vec::new());
    for (trigger, index) in numbered(&meta.next) {
        let id = TaskId::derive(thread, &meta.namespace, meta.id, &trigger.node, index);
        all.push(id.clone());
        if lineage.is_waiting(&id) {
            waiting.push(id);
        } else if !lineage.finished.contains_key(&id) {
            run.push(task(graph, lineage, trigger, index, id));
        }
    }
    Planned::Tasks { all, run, waiting }
}

fn task(graph: &Graph, lineage: &Lineage, trigger: &Trigger, index: u32, id: TaskId) -> Task {
    let input = match &trigger.input {
        Some(own) => (**own).clone(),
        None => visible(graph.node(&trigger.node), &lineage.checkpoint.values),
    };
    Task {
        id,
        node: trigger.node.clone(),
        step: lineage.checkpoint.meta.step,
        index,
        from: trigger.from.clone(),
        input,
    }
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
