//! State as JSON. The first line is the input of a graph with every reducer, each further line
//! contains the writes of the tasks of one superstep. Every accepted value matches the schema of
//! its channel, and a checkpoint is equal after a round trip.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;
use wattle_graph::check::{AnyPlugin, check_toml};
use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta};
use wattle_graph::event::{Event, EventKind, Send, TaskFinished, Write};
use wattle_graph::graph::Graph;
use wattle_graph::id::{CheckpointId, Digest, Namespace, NodeName, RunId, ThreadId};
use wattle_graph::lineage::Lineage;
use wattle_graph::plan::{Plan, Task, plan};
use wattle_graph::step::{CheckpointStamp, accept_input, advance, check_writes};

/// Maximum number of supersteps of one input.
const STEPS: u64 = 8;

/// A graph with every reducer of the host, with and without a schema.
const GRAPH: &str = r#"
    [graphs.g]
    entry = ["a", "b"]
    channels.last = { schema = { type = ["string", "null"], maxLength = 4 } }
    channels.any = { reducer = "any" }
    channels.append = { reducer = "append" }
    channels.texts = { reducer = "append", schema = { type = "array", items = { type = "string" } } }
    channels.merge = { reducer = "merge", schema = { type = "object" } }
    channels.sum = { reducer = "sum", default = 0 }
    channels.min = { reducer = "min" }
    channels.max = { reducer = "max", schema = { type = "number", maximum = 100 } }
    channels.talk = { reducer = "messages" }
    channels.gone = { reducer = "ephemeral" }
    nodes.a = {}
    nodes.b = { goto = ["c"] }
    nodes.c = { defer = true }
    edges = [{ from = "a", to = "b" }]
    [[graphs.g.branches]]
    name = "more"
    from = "c"
    cases = [{ when = "state.last == 'more'", to = "a" }, { to = "END" }]
"#;

/// The outcome of a task, from the input.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Done {
    writes: Vec<Write>,
    goto: Option<Vec<NodeName>>,
    sends: Vec<Send>,
}

/// Runs a graph.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let graph = graph();
    let mut lines = text.lines();
    let Ok(input) = serde_json::from_str(lines.next().unwrap_or_default()) else { return };
    let none = BTreeMap::new();
    let Ok(first) = accept_input(graph, None, &Namespace::root(), &input, &none, at(1)) else {
        return;
    };
    let thread = ThreadId::new("t").expect("the name is valid");
    let mut lineage = Lineage::new(sound(graph, first));
    for (line, id) in lines.zip(2..2 + STEPS) {
        let planned = plan(graph, &thread, &lineage, 1);
        assert_eq!(planned, plan(graph, &thread, &lineage, 1));
        let Plan::Tasks { runnable, .. } = planned else { return };
        let done: Vec<Done> = serde_json::from_str(line).unwrap_or_default();
        let mut done = done.into_iter();
        for task in runnable {
            let event = finished(graph, &lineage, task, done.next().unwrap_or_default());
            lineage.apply(&event);
        }
        let Ok(next) = advance(graph, &lineage, &none, at(id)) else { return };
        lineage.advance_to(sound(graph, next));
    }
}

/// Returns the graph, which is checked only once.
fn graph() -> &'static Graph {
    static CHECKED: OnceLock<Vec<Graph>> = OnceLock::new();
    let check = || check_toml("graph.toml", GRAPH, &AnyPlugin).expect("the graph is valid");
    &CHECKED.get_or_init(check)[0]
}

fn at(id: u64) -> CheckpointStamp {
    CheckpointStamp {
        id: CheckpointId(id),
        run: RunId::new("r").expect("the name is valid"),
        at_ms: 0,
        version: Digest::of(b""),
        parents: BTreeMap::new(),
        tasks: None,
    }
}

/// Returns the event at the end of a task. An outcome that the graph does not allow is replaced by
/// an empty one.
fn finished(graph: &Graph, lineage: &Lineage, task: Task, done: Done) -> Event {
    let Done { writes, goto, sends } = done;
    let is_valid = check_writes(graph, &task.node, &writes, goto.as_deref(), &sends).is_ok();
    let Done { writes, goto, sends } =
        if is_valid { Done { writes, goto, sends } } else { Done::default() };
    let kind = EventKind::TaskFinished(Arc::new(TaskFinished {
        task: task.id,
        node: task.node,
        index: task.index,
        base: lineage.checkpoint.meta.id,
        writes,
        goto,
        sends,
        for_parent: false,
        child: None,
        cached: false,
        duration_us: 0,
    }));
    let run = RunId::new("r").expect("the name is valid");
    Event { seq: 1, at_ms: 0, run, namespace: Namespace::root(), kind }
}

/// Checks that the values of a checkpoint match their schemas and that it survives a round trip.
fn sound(graph: &Graph, checkpoint: Checkpoint) -> Checkpoint {
    for (name, value) in &checkpoint.values {
        let channel = graph.channels().get(name).expect("the graph has the channel");
        let whole = value.value();
        channel.validate(&whole).unwrap_or_else(|misfit| panic!("`{name}`: {misfit}: {whole}"));
        let text = serde_json::to_string(value).expect("a value can be written");
        let again: Value = serde_json::from_str(&text).expect("it can be read");
        assert_eq!(*value, again);
    }
    let text = serde_json::to_string(&checkpoint.meta).expect("a checkpoint can be written");
    let again: CheckpointMeta = serde_json::from_str(&text).expect("it can be read");
    assert_eq!(checkpoint.meta, again);
    checkpoint
}
