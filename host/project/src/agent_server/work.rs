//! JSON objects about tasks in streams.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::TaskStarted;
use wattle_graph::id::{Namespace, TaskId};
use wattle_graph::plan::tasks_of;

use crate::agent_server::document::Interrupt;
use crate::agent_server::id::task_uuid;
use crate::agent_server::thread_info::ThreadInfo;

/// Returns the JSON object of a task that starts, with its input.
pub(super) fn begun(started: &TaskStarted, input: &Value) -> Value {
    json!({
        "id": task_uuid(&started.task),
        "name": started.node,
        "input": input,
        "triggers": [trigger(started.node.as_str())],
    })
}

/// Returns the JSON object of a task that has ended or waits for answers.
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

/// Returns the input of a task: the input of the send that started it, or the state; `null` if the
/// state is unknown.
pub(super) fn input(
    thread_info: &ThreadInfo,
    at: &BTreeMap<Namespace, Checkpoint>,
    namespace: &Namespace,
    task: &TaskId,
) -> Value {
    let Some(checkpoint) = at.get(namespace) else { return Value::Null };
    let mut tasks = tasks_of(&thread_info.origin, &checkpoint.meta).into_iter();
    let sent = tasks.find(|(id, _)| id == task).and_then(|(_, trigger)| trigger.input.clone());
    thread_info.values(&sent.map_or_else(|| checkpoint.state(), |input| (*input).clone()))
}

/// Returns the name that LangGraph gives the trigger of a node.
pub(super) fn trigger(node: &str) -> String {
    format!("branch:to:{node}")
}
