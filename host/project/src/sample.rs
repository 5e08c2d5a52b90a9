//! Fixed and generated event logs for tests.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use serde_json::{Value, json};
use wattle_graph::call::CallKind;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{
    CallStarted, Called, Custom, Event, EventKind, InterruptRaised, Progress, RunEnded, RunReason,
    RunStarted, RunStatus, Streamed, TaskFailed, TaskFault, TaskFinished, TaskStarted, Write,
};
use wattle_graph::failure::Failure;
use wattle_graph::id::{
    ChannelName, CheckpointId, Digest, GraphName, InterruptId, Namespace, NodeName, RunId, TaskId,
    ThreadId,
};
use wattle_graph::llm::Delta;

pub(crate) fn thread() -> ThreadId {
    ThreadId::new("thread").unwrap()
}

pub(crate) fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

pub(crate) fn event(kind: EventKind) -> Event {
    let run = RunId::new("run").unwrap();
    Event { seq: 0, at_ms: 0, run, namespace: Namespace::root(), kind }
}

/// Returns a checkpoint of the root graph with these values.
pub(crate) fn checkpoint(values: Value) -> Checkpoint {
    let meta = json!({
        "id": 1, "parent": null, "step": 0, "source": "loop", "run": "run", "at_ms": 0, "next": [],
        "versions": {},
    });
    serde_json::from_value(json!({ "meta": meta, "values": values })).unwrap()
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

/// Returns a task by its number. Tasks with even numbers belong to the node `agent`, tasks with odd
/// numbers to `tools`.
fn task(number: usize) -> (TaskId, &'static str) {
    let name = if number.is_multiple_of(2) { "agent" } else { "tools" };
    (TaskId::new(format!("task-{number}")).unwrap(), name)
}

pub(crate) fn run_started(reason: RunReason) -> Event {
    let (graph, digest) = (GraphName::new("g").unwrap(), Digest::of(b""));
    event(EventKind::RunStarted(RunStarted {
        graph,
        digest,
        reason,
        context: Value::Null,
        principal: None,
    }))
}

pub(crate) fn run_ended(status: RunStatus) -> Event {
    let failure = (status == RunStatus::Failed).then(|| Failure::new("denied", "not allowed"));
    let ended = RunEnded { status, failure, drained: false, principal: None, store_us: 0 };
    event(EventKind::RunEnded(ended))
}

pub(crate) fn task_started(number: usize) -> Event {
    let (task, name) = task(number);
    event(EventKind::TaskStarted(TaskStarted { task, node: node(name), step: 0, attempt: 1 }))
}

pub(crate) fn task_finished(number: usize, messages: Value) -> Event {
    let (task, name) = task(number);
    let channel = ChannelName::new("messages").unwrap();
    event(EventKind::TaskFinished(Arc::new(TaskFinished {
        task,
        node: node(name),
        index: 0,
        base: CheckpointId(1),
        writes: vec![Write { channel, value: messages, overwrite: false }],
        goto: None,
        sends: Vec::new(),
        for_parent: false,
        child: None,
        cached: false,
        duration_us: 0,
    })))
}

pub(crate) fn task_failed(number: usize) -> Event {
    let (task, name) = task(number);
    event(EventKind::TaskFailed(TaskFailed {
        task,
        node: node(name),
        attempt: 1,
        fault: TaskFault::Failure,
        failure: Failure::new("unavailable", "gone"),
        retry_in_ms: None,
        handler: None,
    }))
}

pub(crate) fn call_started(number: usize, call: u32, is_structured: bool) -> Event {
    event(EventKind::CallStarted(CallStarted {
        task: task(number).0,
        scope: Vec::new(),
        call,
        function: CallKind::Complete.name().to_owned(),
        summary: String::new(),
        is_structured,
        start_number: 0,
        request: None,
    }))
}

pub(crate) fn streamed(number: usize, call: u32, deltas: Vec<Delta>) -> Event {
    let (task, name) = task(number);
    let scope = Vec::new();
    event(EventKind::Streamed(Streamed { task, node: node(name), scope, call, deltas }))
}

fn called(
    number: usize,
    call: u32,
    kind: CallKind,
    request: Value,
    result: Result<Value, Failure>,
) -> Event {
    let (task, name) = task(number);
    event(EventKind::Called(Box::new(Called {
        task,
        node: node(name),
        scope: Vec::new(),
        call,
        function: kind.name().to_owned(),
        digest: Digest::of(b""),
        request,
        result,
        started_ms: 0,
        duration_us: 0,
        store_us: 0,
        summary: String::new(),
        tokens: None,
        reused: None,
        batch: call,
    })))
}

pub(crate) fn completed(number: usize, call: u32, parts: Value) -> Event {
    let has_calls = parts.to_string().contains("tool_call");
    let reason = if has_calls { "tool_calls" } else { "stop" };
    let answer = json!({ "parts": parts, "finish_reason": reason, "usage": {}, "model": "m" });
    called(number, call, CallKind::Complete, Value::Null, Ok(answer))
}

pub(crate) fn not_completed(number: usize, call: u32) -> Event {
    let failure = Failure::new("unavailable", "no model answers");
    called(number, call, CallKind::Complete, Value::Null, Err(failure))
}

pub(crate) fn tool_called(number: usize, call_id: &str, result: Result<Value, Failure>) -> Event {
    let request = json!({ "tool": "t/find", "call_id": call_id, "arguments": { "q": 1 } });
    called(number, 9, CallKind::CallTool, request, result)
}

pub(crate) fn tool_call(id: &str, arguments: Value) -> Value {
    json!({ "tool_call": { "id": id, "name": "find", "arguments": arguments } })
}

pub(crate) fn text(text: &str) -> Delta {
    Delta::Text { text: text.to_owned() }
}

pub(crate) fn call_piece(id: Option<&str>, arguments: &str) -> Delta {
    let name = id.map(|_| "find".to_owned());
    let (id, arguments) = (id.map(str::to_owned), arguments.to_owned());
    Delta::ToolCall { index: 0, id, name, arguments }
}

/// Ids of generated tool calls. The list is short, so that ids of different calls are often equal.
const IDS: &[&str] = &["", "a", "b", "run-1"];

fn delta() -> impl Strategy<Value = Delta> {
    let call = (0..3_u32, option::of(select(IDS)), option::of(select(vec!["find", "save"])));
    prop_oneof![
        3 => select(vec!["", "x", "y"]).prop_map(text),
        1 => select(vec!["", "hm"]).prop_map(|text| Delta::Reasoning { text: text.to_owned() }),
        3 => (call, select(vec!["", "{", "}"])).prop_map(|((index, id, name), arguments)| {
            let (id, name) = (id.map(str::to_owned), name.map(str::to_owned));
            Delta::ToolCall { index, id, name, arguments: arguments.to_owned() }
        }),
        1 => Just(Delta::Restart),
    ]
}

fn part() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({ "text": "said" })),
        Just(json!({ "reasoning": "thought" })),
        Just(json!({ "other": {} })),
        (select(IDS), select(vec![json!({}), json!("no json")]))
            .prop_map(|(id, arguments)| tool_call(id, arguments)),
    ]
}

fn message() -> impl Strategy<Value = Value> {
    let calls = || vec(select(IDS).prop_map(|id| json!({ "id": id, "name": "find" })), 0..3);
    prop_oneof![
        calls().prop_map(|calls| json!({ "role": "assistant", "tool_calls": calls })),
        (select(IDS), select(vec!["success", "error"])).prop_map(|(id, status)| {
            json!({ "role": "tool", "tool_call_id": id, "content": "x", "status": status })
        }),
        Just(json!("no message")),
    ]
}

fn work() -> impl Strategy<Value = Event> {
    let (task, call) = (|| 0..3_usize, || 0..2_u32);
    let output = || Ok(json!({ "content": [{ "text": "found" }] }));
    prop_oneof![
        2 => task().prop_map(task_started),
        4 => (task(), call(), any::<bool>())
            .prop_map(|(task, call, document)| call_started(task, call, document && call == 1)),
        6 => (task(), call(), vec(delta(), 0..4))
            .prop_map(|(task, call, deltas)| streamed(task, call, deltas)),
        3 => (task(), call(), vec(part(), 0..4))
            .prop_map(|(task, call, parts)| completed(task, call, parts.into())),
        1 => (task(), call()).prop_map(|(task, call)| not_completed(task, call)),
        3 => (task(), select(IDS)).prop_map(move |(task, id)| tool_called(task, id, output())),
        2 => (task(), vec(message(), 0..3))
            .prop_map(|(task, messages)| task_finished(task, messages.into())),
        1 => task().prop_map(task_failed),
        1 => select(vec![RunReason::Recovery, RunReason::Resume]).prop_map(run_started),
        1 => task().prop_map(|number| emitted(number, "step", json!({ "id": "s" }))),
        1 => task().prop_map(|number| {
            let (task, name) = self::task(number);
            event(EventKind::InterruptRaised(interrupt_raised(&task, name, 0)))
        }),
        1 => task().prop_map(|number| {
            let (task, name) = self::task(number);
            let (node, message) = (node(name), "half".to_owned());
            event(EventKind::Progress(Progress { task, node, message, fraction: Some(0.5) }))
        }),
    ]
}

pub(crate) fn emitted(number: usize, name: &str, data: Value) -> Event {
    let (task, node_name) = task(number);
    let name = name.to_owned();
    event(EventKind::Custom(Custom { task, node: node(node_name), name, data }))
}

/// Generates events in arbitrary order, followed by the end of the run. Most of these logs are not
/// logs that the engine writes.
pub(crate) fn log() -> impl Strategy<Value = Vec<Event>> {
    let ends =
        vec![RunStatus::Completed, RunStatus::Interrupted, RunStatus::Failed, RunStatus::Cancelled];
    let place = select(vec!["", "", "agent:task-0", "tools", "agent:task-0|tools:task-1.0"]);
    let work = (work(), place).prop_map(|(mut event, place)| {
        event.namespace = Namespace::new(place);
        event
    });
    (vec(work, 0..60), select(ends)).prop_map(|(mut log, end)| {
        log.insert(0, run_started(RunReason::Input));
        log.push(run_ended(end));
        log
    })
}

/// Returns a run with two model calls and two tool calls. One tool call is rejected before it
/// reaches its tool.
pub(crate) fn two_turns() -> Vec<Event> {
    let answer = json!({ "content": [{ "text": "1 found" }], "structured": { "count": 1 } });
    let asked = json!([{ "role": "assistant", "tool_calls": [
        { "id": "a", "name": "find", "arguments": {} }, { "id": "b-2", "name": "find" },
    ] }]);
    let answers = json!([
        { "role": "tool", "tool_call_id": "a", "content": "1 found", "status": "success" },
        { "role": "tool", "tool_call_id": "b-2", "content": "too early", "status": "error" },
    ]);
    let pieces = vec![text("see"), call_piece(Some("a"), "{")];
    vec![
        run_started(RunReason::Input),
        task_started(0),
        call_started(0, 0, false),
        streamed(0, 0, vec![text("Let me ")]),
        streamed(0, 0, pieces),
        streamed(0, 0, vec![call_piece(None, "}")]),
        completed(
            0,
            0,
            json!([{ "text": "Let me see" }, tool_call("a", json!({})), tool_call("b", json!({}))]),
        ),
        task_finished(0, asked),
        task_started(1),
        tool_called(1, "a", Ok(answer)),
        task_finished(1, answers),
        task_started(2),
        call_started(2, 0, false),
        completed(2, 0, json!([{ "reasoning": "one" }, { "text": "There is one." }])),
        task_finished(2, json!({ "role": "assistant", "content": "There is one." })),
        run_ended(RunStatus::Completed),
    ]
}

/// Returns a run in which the host crashes during a tool call of the first completion.
pub(crate) fn cut_and_recovered() -> Vec<Event> {
    vec![
        run_started(RunReason::Input),
        task_started(0),
        call_started(0, 0, false),
        streamed(0, 0, vec![text("Let"), call_piece(Some("a"), "{\"q\":")]),
        run_started(RunReason::Recovery),
        task_started(0),
        call_started(0, 0, false),
        streamed(0, 0, vec![text("I"), call_piece(Some("z"), "{}")]),
        completed(0, 0, json!([{ "text": "I" }, tool_call("z", json!({}))])),
        task_finished(0, json!([{ "role": "assistant", "tool_calls": [{ "id": "z" }] }])),
        task_started(1),
        tool_called(1, "z", Err(Failure::new("denied", "not allowed"))),
        task_finished(1, Value::Null),
        run_ended(RunStatus::Completed),
    ]
}
