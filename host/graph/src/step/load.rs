//! Tests of the limits on tasks and on the state.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Command, Edit, EditAs, StepError, advance, command, edit, next};
use crate::checkpoint::Trigger;
use crate::event::Send;
use crate::graph::Graph;
use crate::limit::{GraphLimits, RUN_TASKS, STEP_INPUT_BYTES, STEP_TASKS, TASK_SENDS};
use crate::plan::Task;
use crate::testing::{
    ScriptedResult, at, finish_superstep, graph, node, ready, start, superstep, writes,
};
use crate::weight::weight;

fn sender() -> Graph {
    graph("[graphs.g]\nentry = [\"a\", \"b\"]\nnodes = { a = { goto = \"c\" }, b = {}, c = {} }")
}

fn sends(count: u64, input: &Value) -> ScriptedResult {
    let send = || Send { node: node("c"), input: input.clone(), timeout_ms: None };
    ScriptedResult { sends: (0..count).map(|_| send()).collect(), ..ScriptedResult::default() }
}

fn limit(result: Result<(), StepError>) -> &'static str {
    match result.unwrap_err() {
        StepError::Limit(exceeded) => exceeded.limit,
        error => panic!("{error}"),
    }
}

#[test]
fn tasks_of_a_superstep_are_limited() {
    let graph = sender();
    let after = |count: u64, input: &Value| {
        let mut lineage = start(&graph, &json!({})).unwrap();
        superstep(&graph, &mut lineage, &|_: &Task| sends(count, input)).map(|()| lineage)
    };
    assert_eq!(limit(after(TASK_SENDS + 1, &json!(1)).map(drop)), "task_sends");
    assert_eq!(limit(after(STEP_TASKS / 2 + 1, &json!(1)).map(drop)), "step_tasks");
    let large = json!("x".repeat((STEP_INPUT_BYTES / 200) as usize));
    assert_eq!(limit(after(101, &large).map(drop)), "step_input_bytes");

    let full = after(STEP_TASKS / 2, &json!(1)).unwrap();
    let tasks = ready(&graph, &full);
    assert_eq!(tasks.len() as u64, STEP_TASKS);
    assert_eq!(tasks.iter().filter(|task| task.follows_same_node).count() as u64, STEP_TASKS - 1);
}

#[test]
fn inputs_of_numbers_count_by_memory_and_not_by_digits() {
    let graph = sender();
    let input = Arc::new(json!(vec![0; 10_000]));
    let load = |tasks: u64| {
        let plain = || Trigger::without_input(node("c"), None);
        let sends = (0..tasks).map(|_| Trigger { input: Some(input.clone()), ..plain() });
        next::check_load(&graph, &sends.collect::<Vec<_>>())
    };
    let fitting = STEP_INPUT_BYTES / weight(&input);
    assert!(fitting < STEP_INPUT_BYTES / input.to_string().len() as u64);
    assert_eq!(load(fitting), Ok(()));
    assert_eq!(limit(load(fitting + 1)), "step_input_bytes");
}

#[test]
fn tasks_of_a_run_are_limited() {
    let graph = sender();
    let mut lineage = start(&graph, &json!({})).unwrap();
    superstep(&graph, &mut lineage, &|_: &Task| sends(1, &json!(1))).unwrap();
    assert_eq!(lineage.checkpoint.meta.tasks, 2);
    superstep(&graph, &mut lineage, &|_: &Task| sends(1, &json!(1))).unwrap();
    assert_eq!(lineage.checkpoint.meta.tasks, 4);
    lineage.checkpoint.meta.tasks = RUN_TASKS - 1;
    assert_eq!(
        limit(superstep(&graph, &mut lineage, &|_: &Task| sends(1, &json!(1)))),
        "run_tasks"
    );

    // The tasks of another run are counted separately.
    finish_superstep(&graph, &mut lineage, &|_: &Task| sends(1, &json!(1))).unwrap();
    let other = super::CheckpointStamp { run: "other".parse().unwrap(), ..at(9) };
    let next = advance(&graph, &lineage, &BTreeMap::new(), other).unwrap();
    assert_eq!(next.meta.tasks, 2);
}

/// Returns a graph whose state has at most 10,000 bytes. Its node runs again and again.
fn small_state() -> Graph {
    let text = r#"[graphs.g]
        entry = "a"
        channels.log.reducer = "append"
        channels.kind = {}
        nodes.a.goto = "END"
        edges = [{ from = "a", to = "a" }]"#;
    graph(text).with_limits(GraphLimits { state_bytes: 10_000, ..GraphLimits::default() })
}

#[test]
fn a_state_that_grows_without_end_is_limited() {
    let graph = small_state();
    let mut lineage = start(&graph, &json!({ "kind": "small" })).unwrap();
    let more = |_: &Task| ScriptedResult::write("log", "x".repeat(1_000));
    let error = (0..20).find_map(|_| superstep(&graph, &mut lineage, &more).err()).unwrap();
    let StepError::Limit(exceeded) = &error else { panic!("{error}") };
    assert_eq!((exceeded.limit, exceeded.allowed), ("state_bytes", 10_000));
    assert!(exceeded.message.contains("channel `log` has the most"), "{error}");
    let items = lineage.checkpoint.state()["log"].as_array().map(Vec::len);
    assert_eq!(items, Some(9), "the state before remains");
}

#[test]
fn inputs_edits_and_commands_cannot_make_a_state_above_the_limit() {
    let graph = small_state();
    let base = start(&graph, &json!({})).unwrap().checkpoint;
    let none = BTreeMap::new();
    let kind = |length: usize| writes(&[("kind".to_owned(), json!("x".repeat(length)))]);
    let edited = |as_node: EditAs| {
        let edits = [Edit { as_node, writes: kind(10_000) }];
        edit(&graph, &base, &edits, &none, at(2)).map(drop)
    };
    let wish = Command { writes: kind(10_000), ..Command::default() };
    for made in [
        start(&graph, &json!({ "kind": "x".repeat(10_000) })).map(drop),
        edited(EditAs::Input),
        edited(EditAs::Node(node("a"))),
        command(&graph, Some(&base), &wish, &none, at(2)).map(drop),
    ] {
        assert_eq!(limit(made), "state_bytes");
    }

    // A state above the limit, which a higher limit allowed before, can still be copied, ended and
    // made smaller.
    let mut large = base;
    large.values.insert("kind".parse().unwrap(), json!("x".repeat(20_000)).into());
    for (as_node, writes) in [
        (EditAs::Copy, Vec::new()),
        (EditAs::End, Vec::new()),
        (EditAs::Node(node("a")), kind(5_000)),
    ] {
        let edits = [Edit { as_node, writes }];
        assert!(edit(&graph, &large, &edits, &none, at(2)).is_ok(), "{edits:?}");
    }
}
