//! Tests of commands, and of the nodes that run after them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Command, command};
use crate::checkpoint::{Checkpoint, CheckpointSource};
use crate::error::StepError;
use crate::event::Send;
use crate::graph::Graph;
use crate::limit::STEP_TASKS;
use crate::testing::{ScriptedResult, at, graph, node, start, superstep, writes};

const GRAPH: &str = r#"
    [graphs.g]
    entry = "split"
    channels.log.reducer = "append"
    channels.once.reducer = "ephemeral"
    channels.kind = {}
    nodes = { split = { goto = "c" }, a = {}, b = {}, c = {}, last = { defer = true } }
    edges = [{ from = "split", to = ["a", "b", "last"] }]
"#;

fn send(to: &str, input: Value) -> Send {
    Send { node: node(to), input, timeout_ms: None }
}

fn goto(nodes: &[&str]) -> Command {
    Command { goto: nodes.iter().map(|name| node(name)).collect(), ..Command::default() }
}

fn apply(graph: &Graph, base: &Checkpoint, wish: &Command) -> Result<Checkpoint, StepError> {
    command(graph, Some(base), wish, &BTreeMap::new(), at(9))
}

/// Returns the nodes that run next, with the inputs of sends.
fn next(checkpoint: &Checkpoint) -> Vec<(&str, Option<Value>)> {
    let next = checkpoint.meta.next.iter();
    next.map(|it| (it.node.as_str(), it.input.as_deref().cloned())).collect()
}

/// Returns the checkpoint after the first superstep, which triggers `a` and `b` and defers `last`.
fn base(graph: &Graph) -> Checkpoint {
    let mut lineage = start(graph, &json!({})).unwrap();
    let did = |_: &_| ScriptedResult {
        writes: vec![("log".into(), "split".into()), ("once".into(), json!(1))],
        ..ScriptedResult::default()
    };
    superstep(graph, &mut lineage, &did).unwrap();
    lineage.checkpoint
}

#[test]
fn command_targets_join_pending_triggers() {
    let graph = graph(GRAPH);
    let base = base(&graph);
    let made = apply(&graph, &base, &goto(&["c", "a", "END"])).unwrap();
    assert_eq!(next(&made), [("a", None), ("b", None), ("c", None)]);
    assert_eq!((made.meta.source, made.meta.step), (CheckpointSource::Fork, base.meta.step));
    assert_eq!((made.meta.parent, &made.values), (Some(base.meta.id), &base.values));
    assert_eq!(made.meta.deferred, base.meta.deferred);
    let late = apply(&graph, &base, &goto(&["last"])).unwrap();
    assert_eq!(late.meta.deferred, base.meta.deferred, "it is already deferred");
}

#[test]
fn writes_are_visible_to_all_next_tasks() {
    let graph = graph(GRAPH);
    let base = base(&graph);
    let writes = writes(&[("log".into(), json!("mine")), ("kind".into(), json!(7))]);
    let command = Command { writes, ..Command::default() };
    let made = apply(&graph, &base, &command).unwrap();
    assert_eq!(made.state(), json!({ "log": ["split", "mine"], "kind": 7, "once": 1 }));
    assert_eq!(next(&made), next(&base));
    assert_eq!(made.meta.written_channels().count(), 2);
}

#[test]
fn tasks_keep_their_indexes_after_a_command() {
    let graph = graph(GRAPH);
    let sent = Command { sends: vec![send("c", json!(1)), send("c", json!(2))], ..goto(&[]) };
    let base = apply(&graph, &base(&graph), &sent).unwrap();
    let made = apply(&graph, &base, &goto(&["c", "c"])).unwrap();
    let state = base.state();
    let inputs: Vec<Option<Value>> = next(&made).into_iter().skip(2).map(|it| it.1).collect();
    assert_eq!(inputs, [Some(json!(1)), Some(json!(2)), Some(state)]);
}

#[test]
fn sends_of_a_command_are_limited() {
    let graph = graph(GRAPH);
    let base = base(&graph);
    let wish = |count: u64| Command {
        sends: (0..count).map(|_| send("c", json!(1))).collect(),
        ..Command::default()
    };
    // There are so many sends that adding them one by one would take minutes.
    let error = apply(&graph, &base, &wish(20 * STEP_TASKS)).unwrap_err();
    assert!(matches!(&error, StepError::Limit(it) if it.limit == "step_tasks"), "{error}");
    assert_eq!(next(&apply(&graph, &base, &wish(3)).unwrap()).len(), 2 + 3);
}

#[test]
fn first_command_of_a_thread_is_an_input() {
    let graph = graph(GRAPH);
    let wish = Command { writes: writes(&[("kind".into(), json!(1))]), ..goto(&["c"]) };
    let made = command(&graph, None, &wish, &BTreeMap::new(), at(1)).unwrap();
    assert_eq!(next(&made), [("c", None), ("split", None)]);
    assert_eq!((made.meta.source, made.state()), (CheckpointSource::Input, json!({ "kind": 1 })));
}

#[test]
fn first_command_of_a_thread_can_skip_the_entry_nodes() {
    let graph = graph(GRAPH);
    let first = |wish: &Command| command(&graph, None, wish, &BTreeMap::new(), at(1)).unwrap();
    let wish = Command { sends: vec![send("c", json!(1))], skips_entry: true, ..goto(&["a"]) };
    assert_eq!(next(&first(&wish)), [("a", None), ("c", Some(json!(1)))]);
    let late = first(&Command { skips_entry: true, ..goto(&["last"]) });
    assert_eq!((next(&late), late.meta.deferred.len()), (vec![("last", None)], 0));
    let base = base(&graph);
    let made = apply(&graph, &base, &Command { skips_entry: true, ..goto(&["c"]) }).unwrap();
    assert_eq!(next(&made), [("a", None), ("b", None), ("c", None)], "pending work goes on");
}

#[test]
fn invalid_commands_are_rejected() {
    let graph = graph(GRAPH);
    let base = base(&graph);
    let nowhere = apply(&graph, &base, &goto(&["x"])).unwrap_err().to_string();
    assert!(nowhere.contains("has no node `x`, its nodes are `a`"), "{nowhere}");
    let sent = Command { sends: vec![send("END", Value::Null)], ..Command::default() };
    assert!(apply(&graph, &base, &sent).is_err());
    let wish = Command { writes: writes(&[("x".into(), json!(1))]), ..Command::default() };
    let unknown = apply(&graph, &base, &wish).unwrap_err().to_string();
    assert!(unknown.contains("no channel `x`"), "{unknown}");
}
