//! Tasks as streams tell of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::TaskStarted;
use wattle_graph::id::{Namespace, NodeName, TaskId};
use wattle_graph::plan::led_to;

use crate::wire::id::task_uuid;
use crate::wire::lens::Lens;
use crate::wire::shape::Interrupt;

/// A task that begins, with what it reads.
pub(super) fn begun(started: &TaskStarted, input: &Value) -> Value {
    json!({
        "id": task_uuid(&started.task),
        "name": started.node,
        "input": input,
        "triggers": [trigger(started.node.as_str())],
    })
}

/// A task that ended, or waits for answers.
pub(super) fn ended(
    task: &TaskId,
    node: &str,
    error: Option<String>,
    result: &Value,
    open: &[Interrupt],
) -> Value {
    json!({
        "id": task_uuid(task),
        "name": node,
        "error": error,
        "result": result,
        "interrupts": open,
    })
}

/// What a task reads: what it was sent, or the state; `null` if that is not known.
pub(super) fn input(
    lens: &Lens,
    at: &BTreeMap<Namespace, Checkpoint>,
    namespace: &Namespace,
    task: &TaskId,
) -> Value {
    let Some(checkpoint) = at.get(namespace) else { return Value::Null };
    let mut tasks = led_to(&lens.origin, &checkpoint.meta).into_iter();
    let sent = tasks.find(|(id, _)| id == task).and_then(|(_, trigger)| trigger.input.clone());
    lens.values(&sent.map_or_else(|| checkpoint.state(), |input| (*input).clone()))
}

/// Whether a graph runs, at any depth, inside of a task of another.
pub(super) fn is_inside(
    graph: &Namespace,
    around: &Namespace,
    task: &TaskId,
    node: &NodeName,
) -> bool {
    let mut levels = std::iter::successors(Some(graph.clone()), Namespace::parent);
    let level = levels.find(|level| level.parent().as_ref() == Some(around));
    // One that keeps its state is of the node.
    level.is_some_and(|it| it.task().map_or(it.node() == node.as_str(), |own| own == *task))
}

/// What leads to a node.
pub(super) fn trigger(node: &str) -> String {
    format!("branch:to:{node}")
}
