//! Tests of the stream of a whole thread. They compare the stream with a captured stream of a
//! LangGraph server for the same graph.

use serde_json::{Value, json};
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{Event, RunReason, RunStatus};
use wattle_graph::llm::Delta;

use super::{StreamEvent, Subscription, V2};
use crate::agent_server::id::EventId;
use crate::agent_server::sample::{RUNS, Sample, answer, thread_info};
use crate::projection::Projection as _;

fn stream(log: &Sample, channels: &[&str]) -> Vec<StreamEvent> {
    stream_after(log, 0, channels)
}

/// Returns the stream of a projection that starts after the first `events` events of the log.
fn stream_after(log: &Sample, events: usize, channels: &[&str]) -> Vec<StreamEvent> {
    let channels: Vec<String> = channels.iter().map(|name| (*name).to_owned()).collect();
    let subscription = Subscription::new(&channels, Vec::new(), None).unwrap();
    let mut stream = V2::new(subscription, thread_info(), "agent".to_owned());
    let take = |event: &Event| {
        let state = log.read(stream.needs(event), event);
        stream.apply(event, &state)
    };
    log.events[events..].iter().flat_map(take).collect()
}

/// Returns method, namespace and data of each event.
fn told(log: &Sample, sent: &[StreamEvent]) -> Vec<Value> {
    let told = sent.iter().map(|sent| {
        let params = &sent.data["params"];
        let told = json!([sent.method, params["namespace"], params["data"]]).to_string();
        let told = told.replace(log.question(), "<question>");
        serde_json::from_str(&log.readable(told)).unwrap()
    });
    told.collect()
}

fn data(sent: &[StreamEvent]) -> Vec<&Value> {
    sent.iter().map(|sent| &sent.data["params"]["data"]).collect()
}

#[test]
fn thread_has_the_stream_of_a_langgraph_server() {
    let log = Sample::whole();
    let channels = ["lifecycle", "values", "updates", "messages", "tools", "input", "custom"];
    let mut sent = stream(&log, &channels);
    // The captured server does not send `input.answered`.
    sent.retain(|sent| sent.method != "input.answered");
    let ours = told(&log, &sent);
    let expected = include_str!("testdata/thread.txt").lines();
    let expected: Vec<Value> = expected.map(|line| serde_json::from_str(line).unwrap()).collect();
    for (ours, expected) in ours.iter().zip(&expected) {
        assert_eq!(ours, expected);
    }
    assert_eq!(ours.len(), expected.len());
}

#[test]
fn numbers_do_not_depend_on_the_subscription() {
    let log = Sample::whole();
    let all = stream(&log, &["lifecycle", "values", "updates", "messages", "tasks", "custom"]);
    let some = stream(&log, &["updates"]);
    assert!(all.is_sorted_by(|a, b| a.seq < b.seq));
    for sent in &some {
        assert!(all.contains(sent), "{sent:?}");
    }
    let text = String::from_utf8(some[0].to_bytes().to_vec()).unwrap();
    assert!(text.starts_with("event: updates\r\ndata: {\"type\":\"event\""), "{text}");
    assert!(text.ends_with(&format!("\r\nid: {}\r\n\r\n", some[0].seq)), "{text}");
}

/// Returns a thread with two runs, and the number of events of the first run. The second run makes
/// a tool call that a model requested in the first run, and its node writes all messages of the
/// thread.
fn two_runs() -> (Sample, usize) {
    let mut log = Sample::new();
    let user = |id: &str| json!({ "id": id, "role": "user", "content": "find" });
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({ "messages": [user("h1")] }), &["agent"]);
    log.begin("agent");
    log.custom("message.delta", json!({ "id": "a1", "text": "so" }));
    let call = json!({ "id": "tc-1", "name": "find", "arguments": { "query": "v3" } });
    let said = json!({ "id": "a1", "role": "assistant", "content": "so", "tool_calls": [call] });
    log.finish(json!({ "messages": [said] }));
    log.checkpoint(CheckpointSource::Loop, 1, json!({ "messages": [user("h1"), said] }), &[]);
    log.end(RunStatus::Completed);
    let first = log.events.len();

    log.go_on(RUNS[1]);
    log.start(RunReason::Input);
    let messages = json!([user("h1"), said, user("h2")]);
    log.checkpoint(CheckpointSource::Input, 2, json!({ "messages": messages }), &["tools"]);
    log.begin("tools");
    // The log omits the arguments of a request that is too large.
    let request = json!({ "tool": "kit/find", "call_id": "tc-1" });
    log.call_tool(0, request.clone());
    log.called(0, "tools.call", request, Ok(json!({ "content": [{ "text": "found" }] })));
    log.custom("message.delta", json!({ "id": "a2", "text": "here" }));
    let found = json!({ "id": "t1", "role": "tool", "tool_call_id": "tc-1", "content": "found" });
    let last = json!({ "id": "a2", "role": "assistant", "content": "here" });
    let messages = json!([user("h1"), said, user("h2"), found, last]);
    log.finish(json!({ "messages": messages }));
    log.checkpoint(CheckpointSource::Loop, 3, json!({ "messages": messages }), &[]);
    log.end(RunStatus::Completed);
    (log, first)
}

#[test]
fn stream_that_starts_after_a_completed_run_equals_the_rest_of_the_whole_stream() {
    let (log, first) = two_runs();
    let all = ["lifecycle", "values", "updates", "messages", "tools", "tasks", "checkpoints"];
    for channels in [&all[..], &["messages"], &["tools"], &["values", "messages"]] {
        let whole = stream(&log, channels);
        let rest = stream_after(&log, first, channels);
        assert!(!rest.is_empty(), "{channels:?}");
        assert_eq!(rest, whole[whole.len() - rest.len()..], "{channels:?}");
        let of_rest = whole.iter().filter(|sent| EventId::seq_of(sent.seq) > first as u64);
        assert_eq!(of_rest.count(), rest.len(), "{channels:?}");
    }
}

#[test]
fn checkpoint_precedes_its_values_and_names_its_parent() {
    let (log, _) = two_runs();
    let sent = stream(&log, &["values", "checkpoints"]);
    let methods: Vec<&str> = sent.iter().map(|sent| sent.method).collect();
    assert_eq!(methods, ["checkpoints", "values"].repeat(4));
    let ids = |name: &str| -> Vec<String> {
        let checkpoints = data(&sent).into_iter().step_by(2);
        checkpoints.map(|data| log.readable(data[name].as_str().unwrap().to_owned())).collect()
    };
    let made = ["<checkpoint 1>", "<checkpoint 2>", "<checkpoint 3>", "<checkpoint 4>"];
    assert_eq!(ids("id"), made);
    assert_eq!(ids("parent_id"), ["<before 1>", made[0], "<before 3>", made[2]]);
}

#[test]
fn blocks_of_a_message_do_not_interleave() {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({ "messages": [] }), &["agent"]);
    log.begin("agent");
    let call = |name: Option<&str>, arguments: &str| Delta::ToolCall {
        index: 0,
        id: name.map(|_| "c".to_owned()),
        name: name.map(str::to_owned),
        arguments: arguments.to_owned(),
    };
    log.call(0, "llm.stream");
    log.stream(
        0,
        vec![
            Delta::Reasoning { text: "hm".to_owned() },
            Delta::Text { text: "so".to_owned() },
            call(Some("find"), "{\"q\":"),
        ],
    );
    log.stream(0, vec![call(None, "1}")]);
    let parts = json!([
        { "reasoning": "hm" }, { "text": "so" },
        { "tool_call": { "id": "c", "name": "find", "arguments": { "q": 1 } } },
    ]);
    log.called(0, "llm.stream", Value::Null, Ok(answer(&parts)));
    log.end(RunStatus::Completed);
    let sent = stream(&log, &["messages"]);
    let data = data(&sent);
    let events: Vec<_> =
        data.iter().map(|data| (data["event"].as_str().unwrap(), data["index"].as_u64())).collect();
    assert_eq!(
        events,
        [
            ("message-start", None),
            ("content-block-start", Some(0)),
            ("content-block-delta", Some(0)),
            ("content-block-finish", Some(0)),
            ("content-block-start", Some(1)),
            ("content-block-delta", Some(1)),
            ("content-block-finish", Some(1)),
            ("content-block-start", Some(2)),
            ("content-block-delta", Some(2)),
            ("content-block-delta", Some(2)),
            ("content-block-finish", Some(2)),
            ("message-finish", None),
        ]
    );
    assert_eq!(data[9]["delta"]["fields"]["args"], "{\"q\":1}", "all arguments so far");
    let call = json!({ "type": "tool_call", "id": "c", "name": "find", "args": { "q": 1 } });
    assert_eq!(data[10]["content"], call);
    assert_eq!(data[11]["usage"]["total_tokens"], 5);
}

#[test]
fn tool_calls_have_start_and_end_events() {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({}), &["tools"]);
    log.begin("tools");
    let request =
        |id: &str| json!({ "tool": "kit/search", "call_id": id, "arguments": { "query": "v3" } });
    let found = json!({ "content": [{ "text": "result for 'v3'" }] });
    let wrong = json!({ "content": [{ "text": "no" }], "is_error": true });
    log.called(0, "tools.call", request("tc-1"), Ok(found));
    log.called(1, "tools.call", request("tc-2"), Ok(wrong));
    log.called(2, "http.fetch", json!({}), Ok(json!({})));
    log.end(RunStatus::Completed);
    let sent = stream(&log, &["tools"]);
    let expected = json!([
        { "event": "tool-started", "tool_call_id": "tc-1", "tool_name": "search",
            "input": { "query": "v3" } },
        { "event": "tool-finished", "tool_call_id": "tc-1", "output": {
            "type": "tool", "name": "search", "tool_call_id": "tc-1",
            "content": "result for 'v3'", "artifact": null, "status": "success",
        } },
        { "event": "tool-started", "tool_call_id": "tc-2", "tool_name": "search",
            "input": { "query": "v3" } },
        { "event": "tool-error", "tool_call_id": "tc-2", "message": "no" },
    ]);
    assert_eq!(json!(data(&sent)), expected);
}

#[test]
fn result_of_a_tool_is_a_message_in_the_namespace_of_its_call() {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({}), &["tools"]);
    log.begin("tools");
    let request =
        |id: &str| json!({ "tool": "kit/search", "call_id": id, "arguments": { "query": "v3" } });
    let found = json!({ "content": [{ "text": "result for 'v3'" }] });
    let wrong = json!({ "content": [{ "text": "no" }], "is_error": true });
    log.call_tool(0, request("tc-1"));
    log.called(0, "tools.call", request("tc-1"), Ok(found));
    log.called(1, "tools.call", request("tc-2"), Ok(wrong));
    log.end(RunStatus::Completed);
    let sent = stream(&log, &["messages"]);
    let expected = json!([
        { "event": "message-start", "role": "tool", "id": "tool-tc-1", "tool_call_id": "tc-1" },
        { "event": "content-block-start", "index": 0, "content": { "type": "text", "text": "" } },
        { "event": "content-block-delta", "index": 0,
            "delta": { "type": "text-delta", "text": "result for 'v3'" } },
        { "event": "content-block-finish", "index": 0,
            "content": { "type": "text", "text": "result for 'v3'" } },
        { "event": "message-finish" },
    ]);
    assert_eq!(json!(data(&sent)), expected);
    for sent in &sent {
        assert_eq!(sent.data["params"]["namespace"], json!(["tools:tc-1"]));
    }
    let both = stream(&log, &["messages", "tools"]);
    let methods: Vec<&str> = both[..3].iter().map(|sent| sent.method).collect();
    assert_eq!(methods, ["tools", "tools", "messages"], "the call ends before its message");
    let messages = both.into_iter().filter(|sent| sent.method == "messages");
    assert_eq!(messages.collect::<Vec<_>>(), sent, "their numbers are the same");
}

#[test]
fn tool_call_precedes_its_subgraph() {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({ "messages": [] }), &["model"]);
    log.begin("model");
    let order = json!({ "description": "research" });
    let call = json!({ "id": "tc-1", "name": "task", "arguments": order });
    let said = json!({ "id": "m", "role": "assistant", "content": "", "tool_calls": [call] });
    log.finish(json!({ "messages": [said] }));
    log.checkpoint(CheckpointSource::Loop, 1, json!({ "messages": [said] }), &["tools"]);
    log.begin("tools");
    let request = json!({ "tool": "kit/task", "call_id": "tc-1", "arguments": order });
    log.call_tool(2, request.clone());
    log.enter_call("tools", "2.0");
    log.checkpoint(CheckpointSource::Input, 0, json!({ "messages": [] }), &["inner"]);
    log.leave();
    log.called(2, "tools.call", request, Ok(json!({ "content": [{ "text": "done" }] })));
    let answer = json!({ "id": "n", "role": "tool", "tool_call_id": "tc-1", "content": "done" });
    log.finish(json!({ "messages": [answer] }));
    log.end(RunStatus::Completed);
    let sent = stream(&log, &["tools", "lifecycle"]);
    let data = data(&sent);
    let events: Vec<&str> = data.iter().map(|data| data["event"].as_str().unwrap()).collect();
    let expected =
        ["running", "tool-started", "started", "tool-finished", "completed", "completed"];
    assert_eq!(events, expected);
    assert_eq!((&data[1]["tool_name"], &data[1]["input"]), (&json!("task"), &order));
    assert_eq!(data[2]["trigger_call_id"], "tc-1");
}

#[test]
fn every_run_has_an_end_event() {
    for (status, word) in [
        (RunStatus::Completed, "completed"),
        (RunStatus::Interrupted, "interrupted"),
        (RunStatus::Failed, "failed"),
        (RunStatus::Cancelled, "interrupted"),
    ] {
        let mut log = Sample::new();
        log.start(RunReason::Input);
        log.start(RunReason::Recovery);
        log.end(status);
        let sent = stream(&log, &["lifecycle"]);
        let words: Vec<&Value> = data(&sent).iter().map(|data| &data["event"]).collect();
        assert_eq!(words, ["running", word]);
        assert_eq!(sent[1].data["params"]["data"].get("error").is_some(), word == "failed");
    }
}

#[test]
fn subgraph_state_is_kept_until_the_parent_graph_continues() {
    for status in [RunStatus::Interrupted, RunStatus::Cancelled, RunStatus::Failed] {
        let mut log = nested();
        log.end(status);
        assert_eq!(folded(&log).checkpoints.len(), 2, "{status:?}");
        log.start(RunReason::Input);
        log.checkpoint(CheckpointSource::Input, 1, json!({ "a": 1 }), &[]);
        assert_eq!(folded(&log).checkpoints.len(), 1, "{status:?}");
    }
    assert_eq!(folded(&Sample::whole()).checkpoints.len(), 1);
}

#[test]
fn retried_task_of_a_subgraph_has_its_input() {
    let mut log = nested();
    let outer = log.tasks.clone();
    log.enter("outer");
    log.begin("inner");
    log.fail(None);
    log.leave();
    log.tasks = outer;
    log.fail(None);
    log.end(RunStatus::Failed);
    log.start(RunReason::Retry);
    log.begin("outer");
    log.enter("outer");
    log.begin("inner");
    let sent = stream(&log, &["tasks"]);
    let begun = data(&sent).into_iter().filter(|data| data["name"] == "inner");
    let inputs: Vec<&Value> = begun.filter_map(|data| data.get("input")).collect();
    assert_eq!(inputs, [&json!({ "b": 2 }); 2]);
}

/// Returns a run with a subgraph in a task of the root graph.
fn nested() -> Sample {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({ "a": 1 }), &["outer"]);
    log.begin("outer");
    log.enter("outer");
    log.checkpoint(CheckpointSource::Input, 0, json!({ "b": 2 }), &["inner"]);
    log.leave();
    log
}

#[test]
fn answers_are_sent_to_all_subscribers() {
    let log = Sample::whole();
    let sent = stream(&log, &["input"]);
    let told: Vec<_> =
        sent.iter().map(|sent| (sent.method, sent.data["params"]["data"].clone())).collect();
    assert_eq!(told.len(), 2);
    assert_eq!(told[0].0, "input.requested");
    let answered = json!({ "interrupt_ids": [told[0].1["interrupt_id"]] });
    assert_eq!(told[1], ("input.answered", answered));
}

fn folded(log: &Sample) -> V2 {
    let subscription = Subscription::new(&["values".to_owned()], Vec::new(), None).unwrap();
    let mut stream = V2::new(subscription, thread_info(), "agent".to_owned());
    for event in &log.events {
        let state = log.read(stream.needs(event), event);
        stream.apply(event, &state);
    }
    stream
}
