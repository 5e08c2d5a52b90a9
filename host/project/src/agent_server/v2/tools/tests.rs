//! Tests of the events of tool calls.

use serde_json::{Value, json};
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{RunReason, RunStatus};
use wattle_graph::id::TaskId;

use super::ToolCalls;
use crate::agent_server::sample::{RUNS, Sample, thread_info};

/// Returns a run whose tool node has started.
fn begun() -> Sample {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({ "messages": [] }), &["tools"]);
    log.begin("tools");
    log
}

fn request(id: &str, tool: &str, arguments: Value) -> Value {
    json!({ "tool": tool, "call_id": id, "arguments": arguments })
}

fn told(log: &Sample) -> Value {
    told_where(log).into_iter().map(|(_, data)| data).collect()
}

/// Returns the events, each with the depth of its graph.
fn told_where(log: &Sample) -> Vec<(usize, Value)> {
    let mut tools = ToolCalls::default();
    let told = log.events.iter().flat_map(|event| tools.apply(event, &thread_info()));
    told.map(|(graph, data)| (graph.depth(), data)).collect()
}

fn started(id: &str, tool: &str, input: Value) -> Value {
    json!({ "event": "tool-started", "tool_call_id": id, "tool_name": tool, "input": input })
}

fn finished(id: &str, text: &str) -> Value {
    let output = json!({
        "type": "tool", "name": "find", "tool_call_id": id, "content": text, "artifact": null,
        "status": "success",
    });
    json!({ "event": "tool-finished", "tool_call_id": id, "output": output })
}

fn answer(text: &str) -> Value {
    json!({ "content": [{ "text": text }] })
}

#[test]
fn concurrent_calls_of_one_tool_are_distinguished() {
    let mut log = begun();
    let requests = [("a", 1), ("b", 2)].map(|(id, n)| request(id, "kit/find", json!({ "n": n })));
    // The calls start and end in any order.
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
fn call_with_an_interrupt_starts_once() {
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
fn tool_call_that_another_task_continues_ends_once() {
    let mut log = begun();
    let request = request("a", "find", json!({}));
    log.call_tool(0, request.clone());
    log.ask("sure?".into());
    log.end(RunStatus::Interrupted);
    log.go_on(RUNS[1]);
    log.start(RunReason::Fork);
    log.checkpoint(CheckpointSource::Fork, 0, json!({ "messages": [] }), &["tools"]);
    log.begin("tools");
    log.call_tool(0, request.clone());
    log.called(0, "tools.call", request, Ok(answer("one")));
    let said = json!({ "role": "tool", "tool_call_id": "a", "content": "one" });
    log.finish(json!({ "messages": [said] }));
    assert_eq!(told(&log), json!([started("a", "find", json!({})), finished("a", "one")]));
}

#[test]
fn equal_ids_in_two_tasks_are_two_calls() {
    let mut log = begun();
    let request = request("a", "find", json!({}));
    log.call_tool(0, request.clone());
    log.begin("other");
    log.call_tool(0, request);
    let start = started("a", "find", json!({}));
    assert_eq!(told(&log), json!([start, start]));
}

#[test]
fn call_without_a_result_ends_with_its_task_or_run() {
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
fn calls_of_subgraphs_end_with_their_run_or_task() {
    let mut log = begun();
    log.call_tool(0, request("a", "task", json!({})));
    let outer = log.task();
    log.enter("tools");
    log.checkpoint(CheckpointSource::Input, 0, json!({ "messages": [] }), &["inner"]);
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

    // The task that runs the subgraph fails.
    other.leave();
    other.tasks.push(("tools".to_owned(), outer));
    other.fail(None);
    let denied = |id: &str| error(id, "not allowed", "denied");
    let expected = [(0, &start_a), (1, &start_b), (1, &denied("b")), (0, &denied("a"))];
    assert_eq!(told_where(&other), expected.map(|(depth, data)| (depth, data.clone())));
}

#[test]
fn tool_message_of_another_task_ends_an_abandoned_call() {
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

/// Returns a write of a tool message.
fn message(id: &str) -> Value {
    json!({ "messages": [{ "role": "tool", "tool_call_id": id, "content": "said" }] })
}

/// Adds the following events in a task that has started before.
fn turn_to(log: &mut Sample, (name, task): &(String, TaskId)) {
    log.tasks.push((name.clone(), task.clone()));
}

/// Returns a run with two running tasks, each with a call for which the model gave the same id.
fn two_at_once() -> (Sample, [(String, TaskId); 2]) {
    let mut log = begun();
    log.call_tool(0, request("a", "find", json!({})));
    log.begin("other");
    log.call_tool(0, request("a", "find", json!({})));
    let both = [log.tasks[0].clone(), log.tasks[1].clone()];
    (log, both)
}

#[test]
fn tool_message_does_not_end_a_call_of_another_running_task() {
    let start = started("a", "find", json!({}));
    let closed = json!({ "event": "tool-error", "tool_call_id": "a", "message": "said" });
    let end = |log: &mut Sample| {
        log.called(0, "tools.call", request("a", "find", json!({})), Ok(answer("one")));
        log.finish(message("a"));
    };

    // Each call ends with its own result, in either order.
    for order in [[0, 1], [1, 0]] {
        let (mut log, both) = two_at_once();
        for which in order {
            turn_to(&mut log, &both[which]);
            end(&mut log);
        }
        let each = finished("a", "one");
        assert_eq!(told(&log), json!([start, start, each, each]), "{order:?}");
    }

    // One task leaves its call open, and the other continues.
    let (mut log, [first, second]) = two_at_once();
    turn_to(&mut log, &first);
    log.finish(message("a"));
    turn_to(&mut log, &second);
    end(&mut log);
    assert_eq!(told(&log), json!([start, start, closed, finished("a", "one")]));

    // One task still waits while the other task continues after an interrupt.
    let (mut log, [first, _]) = two_at_once();
    log.end(RunStatus::Interrupted);
    log.start(RunReason::Resume);
    turn_to(&mut log, &first);
    end(&mut log);
    assert_eq!(told(&log), json!([start, start, finished("a", "one")]));
}

#[test]
fn tool_message_ends_a_call_that_its_task_left_open() {
    let mut log = begun();
    log.call_tool(0, request("a", "find", json!({})));
    log.finish(json!({}));
    log.begin("other");
    log.finish(message("a"));
    let closed = json!({ "event": "tool-error", "tool_call_id": "a", "message": "said" });
    assert_eq!(told(&log), json!([started("a", "find", json!({})), closed]));
}

#[test]
fn repeated_tool_message_of_a_subgraph_ends_no_other_call() {
    let (mut log, [around, _]) = two_at_once();
    turn_to(&mut log, &around);
    log.enter("tools");
    log.checkpoint(CheckpointSource::Input, 0, json!({ "messages": [] }), &["inner"]);
    log.begin("inner");
    log.call_tool(0, request("a", "find", json!({})));
    log.called(0, "tools.call", request("a", "find", json!({})), Ok(answer("one")));
    log.finish(message("a"));
    log.leave();
    turn_to(&mut log, &around);
    log.called(0, "tools.call", request("a", "find", json!({})), Ok(answer("two")));
    // The parent graph writes the message of the subgraph again.
    log.finish(message("a"));
    let start = started("a", "find", json!({}));
    let expected = json!([start, start, start, finished("a", "one"), finished("a", "two")]);
    assert_eq!(told(&log), expected);

    // The repeated message also ends no call of a task that waits after an interrupt.
    let mut log = begun();
    log.call_tool(0, request("a", "find", json!({})));
    log.end(RunStatus::Interrupted);
    log.start(RunReason::Resume);
    log.begin("sub");
    let around = log.tasks.last().unwrap().clone();
    log.enter("sub");
    log.checkpoint(CheckpointSource::Input, 0, json!({ "messages": [] }), &["inner"]);
    log.begin("inner");
    log.call_tool(0, request("a", "find", json!({})));
    log.called(0, "tools.call", request("a", "find", json!({})), Ok(answer("one")));
    log.finish(message("a"));
    log.leave();
    turn_to(&mut log, &around);
    log.finish(message("a"));
    assert_eq!(told(&log), json!([start, start, finished("a", "one")]));
}

#[test]
fn large_arguments_are_read_from_the_messages() {
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
fn calls_without_an_id_have_no_events() {
    let mut log = begun();
    log.call_tool(0, request("", "find", json!({})));
    log.called(0, "tools.call", request("", "find", json!({})), Ok(answer("one")));
    log.call(1, "http.send");
    assert_eq!(told(&log), json!([]));
}

#[test]
fn output_of_a_tool_event_has_the_form_of_a_tool_message() {
    let picture = json!({ "media": { "media_type": "image/png", "blob": "b" } });
    for (answer, content, artifact) in [
        (json!({ "content": [{ "text": "a" }, { "text": "b" }] }), json!("a\nb"), Value::Null),
        (json!({ "content": [] }), json!(""), Value::Null),
        (json!({ "content": [], "structured": { "n": 1 } }), json!("{\"n\":1}"), json!({ "n": 1 })),
        (json!({ "content": [{ "text": "one" }], "structured": [1] }), json!("one"), json!([1])),
    ] {
        let mut log = begun();
        let request = request("a", "kit/find", json!({}));
        log.called(0, "tools.call", request, Ok(answer));
        let output = &told(&log)[1]["output"];
        assert_eq!((&output["content"], &output["artifact"]), (&content, &artifact));
        assert_eq!((&output["type"], &output["name"]), (&json!("tool"), &json!("find")));
    }
    let mut log = begun();
    let shown = json!({ "content": [{ "text": "see" }, picture] });
    log.called(0, "tools.call", request("a", "kit/find", json!({})), Ok(shown));
    let content = &told(&log)[1]["output"]["content"];
    assert_eq!(content[0], json!({ "type": "text", "text": "see" }));
    assert_eq!(content.as_array().unwrap().len(), 2);
}
