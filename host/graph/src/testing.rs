//! In-memory threads for tests, with nodes that are functions of their input.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::check::{AnyPlugin, check_toml};
use crate::checkpoint::Checkpoint;
use crate::event::{
    Event, EventKind, InterruptRaised, Send, TaskFailed, TaskFault, TaskFinished, Write,
};
use crate::failure::Failure;
use crate::graph::Graph;
use crate::id::{
    ChannelName, CheckpointId, Digest, InterruptId, Namespace, NodeName, RunId, TaskId, ThreadId,
};
use crate::lineage::Lineage;
use crate::plan::{Plan, Task, plan};
use crate::step::{CheckpointStamp, StepError, accept_input, advance, check_writes};

/// Returns the only graph of a document.
pub(crate) fn graph(text: &str) -> Graph {
    let graphs = check_toml("graph.toml", text, &AnyPlugin).unwrap_or_else(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        panic!("{}", lines.join("\n"))
    });
    graphs.into_iter().next().expect("a graph")
}

/// Returns a graph with channels `c0` to `c19`, whose schema applies 100 subschemas to each item.
pub(crate) fn costly_graph() -> Graph {
    let parts = vec![r#"{ type = "integer" }"#; 100].join(", ");
    let channel = |index: usize| {
        format!(
            "channels.c{index}.schema = {{ type = \"array\", items = {{ allOf = [{parts}] }} }}\n"
        )
    };
    let channels: String = (0..20).map(channel).collect();
    graph(&format!("[graphs.g]\nentry = \"a\"\nnodes.a = {{}}\n{channels}"))
}

/// Returns values of the first channels of [`costly_graph`]. Validating two of them stays within a
/// budget of steps, and validating twenty does not.
pub(crate) fn costly_values(count: usize) -> Vec<(String, Value)> {
    (0..count).map(|index| (format!("c{index}"), json!(vec![0; 10_000]))).collect()
}

pub(crate) fn thread() -> ThreadId {
    ThreadId::new("thread").unwrap()
}

pub(crate) fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

pub(crate) fn at(id: u64) -> CheckpointStamp {
    CheckpointStamp {
        tasks: None,
        id: CheckpointId(id),
        run: RunId::new("run").unwrap(),
        at_ms: 0,
        version: Digest::of(b"code"),
        parents: BTreeMap::new(),
    }
}

/// The result of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScriptedResult {
    pub(crate) writes: Vec<(String, Value)>,
    pub(crate) goto: Option<Vec<NodeName>>,
    pub(crate) sends: Vec<Send>,
    /// Whether a node with an error handler fails instead of returning the result.
    pub(crate) fails: bool,
}

impl ScriptedResult {
    pub(crate) fn write(channel: &str, value: impl Into<Value>) -> Self {
        Self { writes: vec![(channel.to_owned(), value.into())], ..Self::default() }
    }
}

pub(crate) fn writes(pairs: &[(String, Value)]) -> Vec<Write> {
    let write = |(channel, value): &(String, Value)| Write {
        channel: ChannelName::new(channel).unwrap(),
        value: value.clone(),
        overwrite: false,
    };
    pairs.iter().map(write).collect()
}

pub(crate) fn event(kind: EventKind) -> Event {
    let run = RunId::new("run").unwrap();
    Event { seq: 0, at_ms: 0, run, namespace: Namespace::root(), kind }
}

pub(crate) fn finished(task: &Task, base: CheckpointId, did: ScriptedResult) -> Event {
    event(EventKind::TaskFinished(Arc::new(TaskFinished {
        task: task.id.clone(),
        node: task.node.clone(),
        index: task.index,
        base,
        writes: writes(&did.writes),
        goto: did.goto,
        sends: did.sends,
        for_parent: false,
        child: None,
        cached: false,
        duration_us: 0,
    })))
}

/// Returns the event of a permanent failure.
pub(crate) fn failed(task: &Task) -> Event {
    event(EventKind::TaskFailed(TaskFailed {
        task: task.id.clone(),
        node: task.node.clone(),
        attempt: 1,
        fault: TaskFault::Failure,
        failure: Failure::new("broken", "it broke"),
        retry_in_ms: None,
        handler: task.handler.clone(),
    }))
}

pub(crate) fn interrupt_raised(task: &TaskId, name: &str, call: u32) -> InterruptRaised {
    InterruptRaised {
        interrupt: InterruptId::derive(task, &[], call),
        task: task.clone(),
        node: node(name),
        scope: Vec::new(),
        call,
        payload: Value::Null,
        response_schema: None,
        expires_ms: None,
        answered: false,
        elicited: None,
    }
}

pub(crate) fn start(graph: &Graph, input: &Value) -> Result<Lineage, StepError> {
    let none = BTreeMap::new();
    accept_input(graph, None, &Namespace::root(), input, &none, at(1)).map(Lineage::new)
}

/// Returns the tasks that can run now.
pub(crate) fn ready(graph: &Graph, lineage: &Lineage) -> Vec<Task> {
    match plan(graph, &thread(), lineage, 1) {
        Plan::Tasks { runnable, .. } => runnable,
        _ => Vec::new(),
    }
}

/// Finishes the superstep of a lineage and returns its events.
pub(crate) fn finish_superstep(
    graph: &Graph,
    lineage: &mut Lineage,
    act: &dyn Fn(&Task) -> ScriptedResult,
) -> Result<Vec<Event>, StepError> {
    let base = lineage.checkpoint.meta.id;
    let mut events = Vec::new();
    loop {
        let tasks = ready(graph, lineage);
        if tasks.is_empty() {
            return Ok(events);
        }
        for task in tasks {
            let did = act(&task);
            let written = writes(&did.writes);
            check_writes(graph, &task.node, &written, did.goto.as_deref(), &did.sends)?;
            let fails = did.fails && task.handler.is_some();
            let event = if fails { failed(&task) } else { finished(&task, base, did) };
            lineage.apply(&event);
            events.push(event);
        }
    }
}

/// Runs one superstep.
pub(crate) fn superstep(
    graph: &Graph,
    lineage: &mut Lineage,
    act: &dyn Fn(&Task) -> ScriptedResult,
) -> Result<(), StepError> {
    finish_superstep(graph, lineage, act)?;
    let id = lineage.checkpoint.meta.id;
    let next = advance(graph, lineage, &BTreeMap::new(), at(id.0 + 1))?;
    lineage.advance_to(next);
    Ok(())
}

/// Runs a graph to its end. Returns the nodes of each superstep, and the last checkpoint.
pub(crate) fn run(
    graph: &Graph,
    input: &Value,
    act: &dyn Fn(&Task) -> ScriptedResult,
) -> Result<(Vec<Vec<String>>, Checkpoint), StepError> {
    let mut lineage = start(graph, input)?;
    let mut steps = Vec::new();
    loop {
        let nodes: Vec<String> =
            ready(graph, &lineage).iter().map(|task| task.node.to_string()).collect();
        if nodes.is_empty() {
            return Ok((steps, lineage.checkpoint));
        }
        steps.push(nodes);
        superstep(graph, &mut lineage, act)?;
    }
}
