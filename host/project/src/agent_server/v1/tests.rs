//! Tests of whole streams. They compare the streams with captured streams of a LangGraph server for
//! the same graph.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{Event, RunReason, RunStatus};
use wattle_graph::failure::Failure;
use wattle_graph::id::Digest;
use wattle_graph::llm::Delta;

use super::{Frame, V1};
use crate::agent_server::id::EventId;
use crate::agent_server::mode::Mode;
use crate::agent_server::sample::{RUNS, Sample, answer, context, thread_info};
use crate::projection::{EventState, NeededState, Projection as _};

fn stream(log: &Sample, run: &str, modes: &[Mode], subgraphs: bool) -> Vec<Frame> {
    let modes = modes.iter().copied().collect::<BTreeSet<_>>();
    let mut stream = V1::new(modes, subgraphs, context(run));
    let take = |event: &Event| {
        let state = log.read(stream.needs(event), event);
        stream.apply(event, &state)
    };
    log.events.iter().flat_map(take).collect()
}

/// Compares server-sent events with the lines of a file. Each line has a name and data.
fn check(log: &Sample, frames: &[Frame], expected: &str) {
    let ours = frames.iter().map(|frame| {
        let data = log.readable(frame.data.to_string());
        let data = data.replace(log.question(), "<question>");
        (log.readable(frame.event.clone()), serde_json::from_str(&data).unwrap())
    });
    let expected = expected.lines().map(|line| {
        let (name, data) = line.split_once(' ').unwrap();
        (name.to_owned(), serde_json::from_str(data).unwrap())
    });
    let ours: Vec<(String, Value)> = ours.collect();
    let expected: Vec<(String, Value)> = expected.collect();
    for (ours, expected) in ours.iter().zip(&expected) {
        assert_eq!(ours, expected);
    }
    assert_eq!(ours.len(), expected.len());
}

fn names(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

fn data<'f>(frames: &'f [Frame], name: &str) -> Vec<&'f Value> {
    frames.iter().filter(|frame| frame.event == name).map(|frame| &frame.data).collect()
}

#[test]
fn resumed_run_has_the_stream_of_a_langgraph_server() {
    let log = Sample::whole();
    let modes = [Mode::Values, Mode::Updates, Mode::Messages, Mode::Tasks];
    let frames = stream(&log, RUNS[1], &modes, true);
    check(&log, &frames, include_str!("testdata/resume.txt"));
}

#[test]
fn interrupted_run_has_the_stream_of_a_langgraph_server_in_all_modes() {
    let log = Sample::until_question();
    let modes = [
        Mode::Values,
        Mode::Updates,
        Mode::MessagesTuple,
        Mode::Custom,
        Mode::Tasks,
        Mode::Checkpoints,
        Mode::Debug,
    ];
    let frames = stream(&log, RUNS[0], &modes, true);
    // The model of the captured stream ended its message with an empty delta, which the file lacks.
    // In this test a node streams the message, so the stream has no such delta. In the state before
    // the input, the captured stream has empty lists for channels that have no value here.
    check(&log, &frames, include_str!("testdata/interrupt.txt"));
}

#[test]
fn input_of_a_later_run_follows_the_state_of_the_run_before() {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({ "a": 1 }), &["agent"]);
    log.begin("agent");
    log.finish(json!({ "a": 2 }));
    log.checkpoint(CheckpointSource::Loop, 1, json!({ "a": 2 }), &[]);
    log.end(RunStatus::Completed);
    log.go_on(RUNS[1]);
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 3, json!({ "a": 3 }), &["agent"]);
    log.end(RunStatus::Cancelled);
    let frames = stream(&log, RUNS[1], &[Mode::Checkpoints, Mode::Values], false);
    assert_eq!(names(&frames), ["metadata", "checkpoints", "values", "checkpoints"]);
    let (before, made) = (&frames[1].data, &frames[3].data);
    assert_eq!((&before["values"], &before["metadata"]["step"]), (&json!({ "a": 2 }), &json!(2)));
    assert_eq!(before["next"], json!(["__start__"]));
    let id = |config: &Value| log.readable(config["configurable"]["checkpoint_id"].to_string());
    assert_eq!(id(&before["config"]), "\"<before 3>\"");
    assert_eq!(id(&before["parent_config"]), "\"<checkpoint 2>\"");
    assert_eq!(made["parent_config"], before["config"]);
    assert_eq!((&made["values"], &made["metadata"]["step"]), (&json!({ "a": 3 }), &json!(3)));
}

#[test]
fn subgraph_has_the_state_before_its_input() {
    let frames = stream(&Sample::whole(), RUNS[1], &[Mode::Checkpoints], true);
    let steps = |is_nested: bool| {
        let shown = frames[1..].iter().filter(|frame| frame.event.contains('|') == is_nested);
        shown.map(|frame| frame.data["metadata"]["step"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(steps(true), [-1, 0, 1]);
    assert_eq!(steps(false), [3, 4], "the run begins with an answer");
}

#[test]
fn message_streamed_by_a_node_ends_with_the_whole_message() {
    let log = Sample::until_question();
    let frames = stream(&log, RUNS[0], &[Mode::Messages], false);
    let streamed =
        ["messages/metadata", "messages/partial", "messages/partial", "messages/complete"];
    assert_eq!(names(&frames)[1..5], streamed);
    assert_eq!(frames[4].data[0], frames[3].data[0]);
    assert_eq!(frames[4].data[0]["content"], "Hello, world!");
    let frames = stream(&log, RUNS[0], &[Mode::MessagesTuple], false);
    let pieces = data(&frames, "messages");
    let pieces = pieces.iter().filter(|piece| piece[0]["type"] == "AIMessageChunk");
    let contents: Vec<&Value> = pieces.map(|piece| &piece[0]["content"]).collect();
    assert_eq!(contents, ["Hello,", " world!"]);
}

#[test]
fn ids_of_frames_increase_and_are_the_same_after_a_reconnect() {
    let log = Sample::whole();
    let modes = [Mode::Values, Mode::Updates, Mode::Messages, Mode::Tasks];
    for run in RUNS {
        let first = stream(&log, run, &modes, true);
        let ids: Vec<EventId> = first.iter().map(|frame| frame.id).collect();
        assert!(ids.is_sorted_by(|a, b| a.number < b.number), "{ids:?}");
        assert_eq!(first, stream(&log, run, &modes, true));
    }
}

#[test]
fn frames_are_encoded_as_server_sent_events() {
    let log = Sample::until_question();
    let frames = stream(&log, RUNS[0], &[Mode::Values], false);
    let text = String::from_utf8(frames[0].to_bytes().to_vec()).unwrap();
    let expected = format!(
        "event: metadata\r\ndata: {{\"run_id\":\"{}\",\"attempt\":1}}\r\nid: 1795293980000-1000\r\n\r\n",
        RUNS[0]
    );
    assert_eq!(text, expected);
}

#[test]
fn subgraphs_are_left_out_unless_requested() {
    let log = Sample::whole();
    let frames = stream(&log, RUNS[1], &[Mode::Updates, Mode::Messages], false);
    assert_eq!(
        names(&frames),
        [
            "metadata",
            "messages/metadata",
            "messages/complete",
            "updates",
            // The messages of the subgraph are sent when the task that ran the subgraph finishes.
            "messages/metadata",
            "messages/complete",
            "updates",
        ]
    );
}

#[test]
fn only_modes_that_need_states_read_them() {
    let log = Sample::whole();
    let needs = |modes: &[Mode]| {
        let modes = modes.iter().copied().collect();
        let mut stream = V1::new(modes, false, context(RUNS[1]));
        let mut reads = 0;
        for event in &log.events {
            let need = stream.needs(event);
            reads += u32::from(need.is_some());
            stream.apply(event, &log.read(need, event));
        }
        reads
    };
    assert_eq!(needs(&[Mode::Custom]), 0);
    assert_eq!(needs(&[Mode::Updates]), 1, "interrupts before the run");
    assert_eq!(needs(&[Mode::Messages]), 1, "messages before the run");
    assert_eq!(needs(&[Mode::Values]), 3);
}

#[test]
fn task_after_a_deleted_checkpoint_has_no_input() {
    let log = Sample::whole();
    let modes = BTreeSet::from([Mode::Tasks]);
    let mut stream = V1::new(modes, false, context(RUNS[0]));
    let mut inputs = Vec::new();
    for event in &log.events {
        let mut state = log.read(stream.needs(event), event);
        state.checkpoint = state.checkpoint.filter(|checkpoint| checkpoint.meta.step != 1);
        let frames = stream.apply(event, &state);
        inputs.extend(frames.iter().filter_map(|frame| frame.data.get("input").cloned()));
    }
    assert_eq!(inputs.len(), 3);
    assert_eq!((&inputs[0]["value"], &inputs[2]["value"]), (&json!("i"), &json!("x")));
    assert_eq!(inputs[1], Value::Null, "its state is deleted");
}

/// Returns a run of one node that calls a model.
fn asked_model(deltas: Vec<Delta>, parts: Value, message: Value) -> Sample {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({ "messages": [] }), &["agent"]);
    log.begin("agent");
    log.call(0, "llm.stream");
    log.stream(0, deltas);
    log.called(0, "llm.stream", Value::Null, Ok(answer(&parts)));
    log.finish(json!({ "messages": [message] }));
    log.checkpoint(CheckpointSource::Loop, 1, json!({ "messages": [message] }), &[]);
    log.end(RunStatus::Completed);
    log
}

fn text(text: &str) -> Delta {
    Delta::Text { text: text.to_owned() }
}

#[test]
fn streamed_completion_ends_with_the_whole_message() {
    let deltas = vec![text("Hel"), text("lo"), text("!")];
    let said = json!({ "role": "assistant", "content": "Hello!" });
    let log = asked_model(deltas, json!([{ "text": "Hello!" }]), said);
    let frames = stream(&log, RUNS[0], &[Mode::MessagesTuple], false);
    let pieces = data(&frames, "messages");
    let contents: Vec<&Value> = pieces.iter().map(|piece| &piece[0]["content"]).collect();
    assert_eq!(contents, ["Hello!", ""], "deltas of one event are joined");
    assert_eq!(pieces[0][0]["type"], "AIMessageChunk");
    assert_eq!(pieces[1][0]["usage_metadata"]["total_tokens"], 5);
    assert_eq!(pieces[0][0]["id"], pieces[1][0]["id"]);
    assert_eq!(pieces[0][1]["langgraph_node"], "agent");

    let frames = stream(&log, RUNS[0], &[Mode::Messages], false);
    let streamed = ["metadata", "messages/metadata", "messages/partial", "messages/complete"];
    assert_eq!(names(&frames), streamed, "the message of the node is not sent again");
    let (partial, whole) = (&frames[2].data[0], &frames[3].data[0]);
    assert_eq!((&partial["type"], &partial["usage_metadata"]), (&json!("ai"), &Value::Null));
    assert_eq!((&whole["id"], &whole["content"]), (&partial["id"], &json!("Hello!")));
    let usage = json!({ "input_tokens": 3, "output_tokens": 2, "total_tokens": 5 });
    assert_eq!(whole["usage_metadata"], usage);
    let finish = json!({ "finish_reason": "stop", "model_name": "m" });
    assert_eq!(whole["response_metadata"], finish);
    assert_eq!(pieces[1][0]["response_metadata"], finish);
}

#[test]
fn restarted_completion_becomes_another_message() {
    let deltas = vec![text("Wro"), Delta::Restart, text("Right")];
    let said = json!({ "id": "m", "role": "assistant", "content": "Right" });
    let log = asked_model(deltas, json!([{ "text": "Right" }]), said);
    let frames = stream(&log, RUNS[0], &[Mode::Messages], false);
    let partial = data(&frames, "messages/partial");
    assert_eq!(partial.len(), 2);
    assert_eq!(partial[1][0]["content"], "Right");
    assert_ne!(partial[0][0]["id"], partial[1][0]["id"]);
}

#[test]
fn partial_tool_calls_have_no_arguments_until_they_parse() {
    let piece = |id: Option<&str>, arguments: &str| Delta::ToolCall {
        index: 0,
        id: id.map(str::to_owned),
        name: id.map(|_| "find".to_owned()),
        arguments: arguments.to_owned(),
    };
    let deltas = vec![piece(Some("c"), "{\"q\":"), text("so"), piece(None, "1}")];
    let call = json!({ "id": "c", "name": "find", "arguments": { "q": 1 } });
    let parts = json!([{ "text": "so" }, { "tool_call": call }]);
    let said = json!({ "role": "assistant", "content": "so", "tool_calls": [call] });
    let log = asked_model(deltas, parts, said);
    let frames = stream(&log, RUNS[0], &[Mode::Messages], false);
    let partial = data(&frames, "messages/partial");
    assert_eq!(partial[0][0]["tool_calls"][0]["args"], json!({}));
    assert_eq!(partial[2][0]["tool_calls"][0]["args"], json!({ "q": 1 }));
    let frames = stream(&log, RUNS[0], &[Mode::MessagesTuple], false);
    let pieces = data(&frames, "messages");
    assert_eq!(pieces[2][0]["tool_call_chunks"][0]["args"], "1}");
    assert_eq!(pieces.len(), 4);
}

#[test]
fn completion_without_deltas_is_sent_at_its_end() {
    let said = json!({ "role": "assistant", "content": "at once" });
    let log = asked_model(Vec::new(), json!([{ "text": "at once" }]), said);
    let frames = stream(&log, RUNS[0], &[Mode::Messages], false);
    let streamed = ["metadata", "messages/metadata", "messages/partial", "messages/complete"];
    assert_eq!(names(&frames), streamed);
    assert_eq!(frames[2].data[0]["content"], "at once");
    assert_eq!(frames[3].data[0]["content"], "at once");
}

#[test]
fn failure_ends_the_task_and_the_run() {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({}), &["agent"]);
    log.begin("agent");
    log.fail(Some(10));
    log.fail(None);
    log.end(RunStatus::Failed);
    let frames = stream(&log, RUNS[0], &[Mode::Updates, Mode::Tasks], false);
    assert_eq!(names(&frames), ["metadata", "tasks", "tasks", "error"]);
    assert_eq!(frames[2].data["error"], "not allowed");
    assert_eq!(frames[3].data, json!({ "error": "denied", "message": "not allowed" }));
}

#[test]
fn run_at_a_breakpoint_has_no_interrupts() {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({ "a": 1 }), &["agent"]);
    log.end(RunStatus::Interrupted);
    let frames = stream(&log, RUNS[0], &[Mode::Updates, Mode::Values], false);
    assert_eq!(names(&frames), ["metadata", "values", "updates"]);
    assert_eq!(frames[1].data, json!({ "a": 1 }));
    assert_eq!(frames[2].data, json!({ "__interrupt__": [] }));
}

/// Returns the data of the server-sent events of mode `events`.
fn events(log: &Sample, run: &str) -> Vec<Value> {
    let frames = stream(log, run, &[Mode::Events], true);
    let names: BTreeSet<&str> = names(&frames[1..]).into_iter().collect();
    assert_eq!(names, BTreeSet::from(["events"]), "also in subgraphs");
    frames.into_iter().skip(1).map(|frame| frame.data).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().unwrap()).collect()
}

#[test]
fn events_of_mode_events_have_langchain_names() {
    let said = json!({ "id": "m", "role": "assistant", "content": "hi" });
    let log = asked_model(vec![text("hi")], json!([{ "text": "hi" }]), said);
    let events = events(&log, RUNS[0]);
    let expected = [
        "on_chain_start",
        "on_chain_start",
        "on_chat_model_start",
        "on_chat_model_stream",
        "on_chat_model_stream",
        "on_chat_model_end",
        "on_chain_stream",
        "on_chain_end",
        "on_chain_end",
    ];
    assert_eq!(kinds(&events), expected);
    let (graph, node) = (&events[0], &events[1]);
    assert_eq!((&graph["name"], &graph["run_id"]), (&json!("agent"), &json!(RUNS[0])));
    assert_eq!(graph["metadata"]["thread_id"], json!(thread_info().thread));
    assert_eq!((&node["parent_ids"], &node["tags"]), (&json!([RUNS[0]]), &json!(["graph:step:1"])));
    assert_eq!(node["metadata"]["langgraph_step"], 1);
    let update = &events[6]["data"]["chunk"];
    assert_eq!(update["messages"][0]["content"], "hi");
    assert_eq!((&events[7]["data"]["output"], &events[7]["run_id"]), (update, &node["run_id"]));
    assert_eq!(events[7]["data"]["input"], json!({ "messages": [] }));
}

#[test]
fn events_of_a_model_call_have_its_run_id_and_its_messages() {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({ "messages": [] }), &["agent"]);
    log.begin("agent");
    log.call(0, "llm.stream");
    log.stream(0, vec![text("Wro"), Delta::Restart, text("hi")]);
    let asked = json!([{ "role": "user", "parts": [{ "text": "hello?" }] }]);
    let mut result = answer(&json!([{ "text": "hi" }]));
    result["attempts"] = json!([{ "provider": "p", "model": "m" }]);
    let request = json!({ "route": "chat", "messages": asked });
    log.called(0, "llm.stream", request, Ok(result));
    log.end(RunStatus::Completed);
    let events = events(&log, RUNS[0]);
    let (discarded, rest) = (&events[2..4], &events[4..8]);
    assert_eq!(kinds(discarded), ["on_chat_model_start", "on_chat_model_stream"]);
    let expected = [
        "on_chat_model_start",
        "on_chat_model_stream",
        "on_chat_model_stream",
        "on_chat_model_end",
    ];
    assert_eq!(kinds(rest), expected);
    let task = &events[1]["run_id"];
    for event in rest {
        assert_eq!(event["run_id"], rest[0]["run_id"]);
        assert_eq!(event["parent_ids"], json!([RUNS[0], task]));
        assert_eq!(event["metadata"]["langgraph_node"], "agent");
        assert_eq!(event["metadata"]["ls_model_type"], "chat");
    }
    assert_ne!(rest[0]["run_id"], discarded[0]["run_id"]);
    assert_eq!(rest[2]["data"]["chunk"]["chunk_position"], "last");
    let (data, metadata) = (&rest[3]["data"], &rest[3]["metadata"]);
    assert_eq!(data["output"]["content"], "hi");
    assert_eq!(data["output"]["usage_metadata"]["total_tokens"], 5);
    assert_eq!(data["input"]["messages"][0][0]["content"], "hello?");
    assert_eq!((&metadata["ls_model_name"], &metadata["ls_provider"]), (&json!("m"), &json!("p")));
}

#[test]
fn the_end_of_a_model_call_with_a_history_has_no_input() {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({ "messages": [] }), &["agent"]);
    log.begin("agent");
    log.call(0, "llm.complete");
    let history = json!({
        "channel": "messages", "at": 1, "from": 0, "to": 2, "length": 2, "bytes": 70_000,
        "digest": Digest::of(b""),
    });
    let asked = json!([{ "role": "system", "parts": [{ "text": "be brief" }] }]);
    let request = json!({ "route": "chat", "history": history, "messages": asked });
    log.called(0, "llm.complete", request, Ok(answer(&json!([{ "text": "hi" }]))));
    log.end(RunStatus::Completed);
    let events = events(&log, RUNS[0]);
    let end = events.iter().find(|event| event["event"] == "on_chat_model_end").unwrap();
    assert_eq!(end["data"]["output"]["content"], "hi");
    assert_eq!(end["data"].get("input"), None, "the log has only a part of it");
}

#[test]
fn events_of_a_tool_call_have_its_input_and_its_result() {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({}), &["tools"]);
    log.begin("tools");
    let request =
        |id: &str| json!({ "tool": "kit/search", "call_id": id, "arguments": { "query": "v3" } });
    log.call_tool(0, request("tc-1"));
    log.call_tool(1, request("tc-2"));
    let found = json!({ "content": [{ "text": "result for 'v3'" }] });
    log.called(0, "tools.call", request("tc-1"), Ok(found));
    log.called(1, "tools.call", request("tc-2"), Err(Failure::new("timeout", "too slow")));
    log.end(RunStatus::Completed);
    let events = events(&log, RUNS[0]);
    let tools = &events[2..6];
    let expected = ["on_tool_start", "on_tool_start", "on_tool_end", "on_tool_error"];
    assert_eq!(kinds(tools), expected);
    for (start, end) in [(&tools[0], &tools[2]), (&tools[1], &tools[3])] {
        assert_eq!(start["run_id"], end["run_id"]);
        assert_eq!((&start["name"], &end["name"]), (&json!("search"), &json!("search")));
        assert_eq!(start["data"], json!({ "input": { "query": "v3" } }));
        assert_eq!(end["data"]["input"], json!({ "query": "v3" }));
        assert_eq!(end["metadata"]["langgraph_node"], "tools");
    }
    assert_ne!(tools[0]["run_id"], tools[1]["run_id"]);
    let output = &tools[2]["data"]["output"];
    assert_eq!((&output["type"], &output["content"]), (&json!("tool"), &json!("result for 'v3'")));
    let error = json!({ "error": "too slow", "input": { "query": "v3" }, "tool_call_id": "tc-2" });
    assert_eq!(tools[3]["data"], error);
}

#[test]
fn parent_ids_of_a_subgraph_are_the_run_and_the_task_around_it() {
    let log = Sample::whole();
    let events = events(&log, RUNS[1]);
    let run = |name: &str| &events.iter().find(|event| event["name"] == name).unwrap()["run_id"];
    let inner = events.iter().find(|event| event["name"] == "sub").unwrap();
    assert_eq!(inner["parent_ids"], json!([RUNS[1], run("run_subgraph")]));
    let namespace = log.readable(inner["metadata"]["langgraph_checkpoint_ns"].to_string());
    assert_eq!(namespace, "\"run_subgraph:<run_subgraph>|sub:<sub>\"");
}

#[test]
fn failed_model_call_leaves_no_message() {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({ "messages": [] }), &["agent"]);
    log.begin("agent");
    log.call(0, "llm.stream");
    log.stream(0, vec![text("ha")]);
    log.called(0, "llm.stream", Value::Null, Err(Failure::new("timeout", "too slow")));
    log.call(1, "llm.stream");
    log.stream(1, vec![text("hi")]);
    log.end(RunStatus::Cancelled);
    let frames = stream(&log, RUNS[0], &[Mode::MessagesTuple], false);
    let ids: BTreeSet<_> =
        data(&frames, "messages").iter().map(|it| it[0]["id"].to_string()).collect();
    assert_eq!((frames.len(), ids.len()), (3, 2));
}

#[test]
fn interrupt_of_a_subgraph_appears_in_its_parent_graphs() {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({ "a": 1 }), &["outer"]);
    log.begin("outer");
    let outer = log.task();
    log.enter("outer");
    log.begin_at("inner", 0);
    log.ask("sure?".into());
    log.leave();
    log.end(RunStatus::Interrupted);
    let frames = stream(&log, RUNS[0], &[Mode::Updates, Mode::Tasks], true);
    let child = format!("|outer:{}", crate::agent_server::id::task_uuid(&outer));
    let nested = |name: &str| format!("{name}{child}");
    assert_eq!(
        names(&frames),
        [
            "metadata",
            "tasks",
            &nested("tasks"),
            &nested("updates"),
            "updates",
            &nested("tasks"),
            "tasks",
        ]
    );
    assert_eq!(frames[6].data["interrupts"][0]["value"], "sure?");
    let frames = stream(&log, RUNS[0], &[Mode::Updates, Mode::Values], false);
    assert_eq!(names(&frames), ["metadata", "values", "updates", "values"]);
    assert_eq!(frames[3].data["__interrupt__"][0]["value"], "sure?");
}

#[test]
fn unanswered_interrupt_stays_pending() {
    let mut log = Sample::until_question();
    let before = log.events.len();
    log.go_on(RUNS[1]);
    log.start(RunReason::Resume);
    log.end(RunStatus::Interrupted);
    // A later run answers the interrupt; the stream of this run ignores it.
    log.answer("yes".into());
    let mut stream = V1::new(BTreeSet::from([Mode::Values]), false, context(RUNS[1]));
    let started = &log.events[before];
    assert_eq!(stream.needs(started), Some(NeededState::Start));
    let state = log.read(Some(NeededState::Start), started);
    let mut frames = stream.apply(started, &EventState { before: log.events.clone(), ..state });
    frames.extend(stream.apply(&log.events[before + 1], &EventState::default()));
    assert_eq!(names(&frames), ["metadata", "values", "values"]);
    assert_eq!(frames[2].data["__interrupt__"][0]["value"], "Are we good?");
}

#[test]
fn fork_starts_with_the_state_of_its_checkpoint() {
    let mut log = Sample::until_question();
    log.go_on(RUNS[1]);
    log.start(RunReason::Fork);
    log.checkpoint(CheckpointSource::Fork, 1, json!({ "value": "again" }), &[]);
    log.end(RunStatus::Completed);
    let frames = stream(&log, RUNS[1], &[Mode::Values], false);
    assert_eq!(names(&frames), ["metadata", "values"]);
    assert_eq!(frames[1].data, json!({ "value": "again" }));
}

#[test]
fn ids_increase_even_if_the_log_has_gaps() {
    let whole = Sample::whole();
    let modes = [Mode::Values, Mode::Updates, Mode::Messages, Mode::MessagesTuple, Mode::Debug];
    for gap in 0..whole.events.len() {
        let mut log = Sample::whole();
        log.events.remove(gap);
        for run in RUNS {
            let frames = stream(&log, run, &modes, true);
            assert!(frames.is_sorted_by(|a, b| a.id.number < b.id.number), "without event {gap}");
            assert_eq!(frames.first().map(|frame| frame.event.as_str()), Some("metadata"));
        }
    }
}
