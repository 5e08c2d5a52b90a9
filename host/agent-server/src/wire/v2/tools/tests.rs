//! Calls of tools, event by event.

use serde_json::{Value, json};
use wattle_graph::checkpoint::Source;
use wattle_graph::event::{RunReason, RunStatus};

use super::Tools;
use crate::wire::sample::{RUNS, Sample, lens};

/// A run whose tool node has begun.
fn begun() -> Sample {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(Source::Input, 0, json!({ "messages": [] }), &["tools"]);
    log.begin("tools");
    log
}

fn request(id: &str, tool: &str, arguments: Value) -> Value {
    json!({ "tool": tool, "call_id": id, "arguments": arguments })
}

fn told(log: &Sample) -> Value {
    told_where(log).into_iter().map(|(_, data)| data).collect()
}

/// With the depth of the graph.
fn told_where(log: &Sample) -> Vec<(usize, Value)> {
    let mut tools = Tools::default();
    let told = log.events.iter().flat_map(|event| tools.take(event, &lens()));
    told.map(|(graph, data)| (graph.depth(), data)).collect()
}

fn started(id: &str, tool: &str, input: Value) -> Value {
    json!({ "event": "tool-started", "tool_call_id": id, "tool_name": tool, "input": input })
}

fn finished(id: &str, output: &str) -> Value {
    json!({ "event": "tool-finished", "tool_call_id": id, "output": output })
}

fn answer(text: &str) -> Value {
    json!({ "content": [{ "text": text }] })
}

#[test]
fn two_calls_of_one_tool_at_once_are_told_apart() {
    let mut log = begun();
    let requests = [("a", 1), ("b", 2)].map(|(id, n)| request(id, "kit/find", json!({ "n": n })));
    // They begin in any order, and so they end.
    log.call_tool(1, requests[1].clone());
    log.call_tool(0, requests[0].clone());
    log.called(0, "tools.call", requests[0].clone(), Ok(answer("one")));
    log.called(1, "tools.call", requests[1].clone(), Ok(answer("two")));
    let expected = json!([
        started("b", "find", json!({ "n": 2 })),
        started("a", "find", json!({ "n": 1 })),
        finished("a", "one"),
        finished("b", "two"),
    ]);
    assert_eq!(told(&log), expected);
}

#[test]
fn a_call_that_goes_on_after_a_question_begins_once() {
    let mut log = begun();
    let request = request("a", "find", json!({}));
    log.call_tool(0, request.clone());
    log.ask("sure?".into());
    log.end(RunStatus::Interrupted);
    log.start(RunReason::Resume);
    log.call_tool(0, request.clone());
    log.called(0, "tools.call", request, Ok(answer("one")));
    log.end(RunStatus::Completed);
    assert_eq!(told(&log), json!([started("a", "find", json!({})), finished("a", "one")]));
}

#[test]
fn a_call_that_another_task_goes_on_with_ends_once() {
    let mut log = begun();
    let request = request("a", "find", json!({}));
    log.call_tool(0, request.clone());
    log.ask("sure?".into());
    log.end(RunStatus::Interrupted);
    log.go_on(RUNS[1]);
    log.start(RunReason::Fork);
    log.checkpoint(Source::Fork, 0, json!({ "messages": [] }), &["tools"]);
    log.begin("tools");
    log.call_tool(0, request.clone());
    log.called(0, "tools.call", request, Ok(answer("one")));
    let said = json!({ "role": "tool", "tool_call_id": "a", "content": "one" });
    log.finish(json!({ "messages": [said] }));
    assert_eq!(told(&log), json!([started("a", "find", json!({})), finished("a", "one")]));
}

#[test]
fn calls_of_two_tasks_that_have_one_id_are_two() {
    let mut log = begun();
    let request = request("a", "find", json!({}));
    log.call_tool(0, request.clone());
    log.begin("other");
    log.call_tool(0, request);
    let start = started("a", "find", json!({}));
    assert_eq!(told(&log), json!([start, start]));
}

#[test]
fn a_call_that_gets_no_answer_ends_with_what_it_was_part_of() {
    let mut log = begun();
    let request = request("a", "find", json!({}));
    log.call_tool(0, request.clone());
    log.fail(Some(10));
    log.call_tool(0, request);
    log.end(RunStatus::Cancelled);
    let error = |message: &str, code: &str| super::failed("a", message, Some(code));
    let start = started("a", "find", json!({}));
    let cancelled = error(super::CANCELLED, "cancelled");
    assert_eq!(told(&log), json!([start, error("not allowed", "denied"), start, cancelled]));
}

#[test]
fn calls_inside_of_nested_graphs_end_with_their_run_or_task() {
    let mut log = begun();
    log.call_tool(0, request("a", "task", json!({})));
    let outer = log.task();
    log.enter("tools");
    log.checkpoint(Source::Input, 0, json!({ "messages": [] }), &["inner"]);
    log.begin("inner");
    log.call_tool(0, request("b", "find", json!({})));
    let (start_a, start_b) = (started("a", "task", json!({})), started("b", "find", json!({})));
    let error = |id: &str, message: &str, code: &str| super::failed(id, message, Some(code));
    let cancelled = |id: &str| error(id, super::CANCELLED, "cancelled");
    let mut other = log.clone();

    log.leave();
    log.end(RunStatus::Cancelled);
    let expected = [(0, &start_a), (1, &start_b), (1, &cancelled("b")), (0, &cancelled("a"))];
    assert_eq!(told_where(&log), expected.map(|(depth, data)| (depth, data.clone())));

    // The graph around gives the nested one up.
    other.leave();
    other.tasks.push(("tools".to_owned(), outer));
    other.fail(None);
    let denied = |id: &str| error(id, "not allowed", "denied");
    let expected = [(0, &start_a), (1, &start_b), (1, &denied("b")), (0, &denied("a"))];
    assert_eq!(told_where(&other), expected.map(|(depth, data)| (depth, data.clone())));
}

#[test]
fn a_call_that_another_task_closes_ends_with_the_message() {
    let mut log = begun();
    log.call_tool(0, request("a", "find", json!({})));
    log.end(RunStatus::Interrupted);
    log.start(RunReason::Input);
    log.begin("agent");
    let closed = json!({ "role": "tool", "tool_call_id": "a", "content": "cancelled" });
    log.finish(json!({ "messages": [closed] }));
    let error = json!({ "event": "tool-error", "tool_call_id": "a", "message": "cancelled" });
    assert_eq!(told(&log), json!([started("a", "find", json!({})), error]));
}

#[test]
fn arguments_that_are_too_large_for_the_log_come_from_the_conversation() {
    let mut log = begun();
    let call = json!({ "id": "a", "name": "write", "arguments": { "text": "long" } });
    let said = json!({ "role": "assistant", "content": "", "tool_calls": [call] });
    log.finish(json!({ "messages": [said] }));
    log.begin("tools");
    let head =
        json!({ "tool": "kit/write", "call_id": "a", "head": "{\"tool\":", "bytes": 20_000 });
    log.call_tool(0, head);
    assert_eq!(told(&log), json!([started("a", "write", json!({ "text": "long" }))]));
}

#[test]
fn calls_that_no_model_asked_for_are_not_told() {
    let mut log = begun();
    log.call_tool(0, request("", "find", json!({})));
    log.called(0, "tools.call", request("", "find", json!({})), Ok(answer("one")));
    log.call(1, "http.send");
    assert_eq!(told(&log), json!([]));
}
