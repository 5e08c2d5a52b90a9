//! Commands and typed events of the streaming protocol.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use wattle_api::ApiConfig;
use wattle_graph::id::ThreadId;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::hostcall::emit::Emission;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::ports::store::{Batch, Store, Ticket};
use wattle_store::InMemoryStore;

use crate::host::{Host, HostOptions, TestResponse, request};
use crate::live_stream::{Frame, LiveStream};
use crate::plugin::{Closures, Nothing};

pub(crate) const ID: &str = "01a1ffdc-22ab-744e-a2fc-8bb051a654f8";

/// Timeout of the wait for an expected effect.
const SOON: Duration = Duration::from_secs(10);

pub(crate) async fn command(host: &Host, method: &str, params: Value) -> Value {
    let path = format!("/threads/{ID}/commands");
    let answer = host.post(&path, json!({ "id": 7, "method": method, "params": params })).await;
    let answer = answer.ok();
    assert_eq!(answer["id"], 7);
    answer
}

#[track_caller]
pub(crate) fn result(answer: &Value) -> &Value {
    assert_eq!(answer["type"], "success", "{answer}");
    assert!(answer["meta"]["applied_through_seq"].is_u64(), "{answer}");
    &answer["result"]
}

#[track_caller]
fn assert_error(answer: &Value, code: &str) {
    assert_eq!((&answer["type"], &answer["error"]), (&json!("error"), &json!(code)), "{answer}");
    assert!(answer["message"].as_str().is_some_and(|text| !text.is_empty()), "{answer}");
}

pub(crate) async fn start(host: &Host, input: Value) -> String {
    let params = json!({ "assistant_id": "agent", "input": input });
    let answer = command(host, "run.start", params).await;
    result(&answer)["run_id"].as_str().unwrap().to_owned()
}

/// Returns the methods of the events, with the name of each lifecycle event.
pub(crate) fn event_names(frames: &[Frame]) -> Vec<String> {
    let word = |(kind, data, _): &Frame| match data["params"]["data"]["event"].as_str() {
        Some(word) => format!("{kind} {word}"),
        None => kind.clone(),
    };
    frames.iter().map(word).collect()
}

fn interrupt_id(frames: &[Frame]) -> &str {
    let asked = frames.iter().find(|(kind, ..)| kind == "input.requested").unwrap();
    asked.1["params"]["data"]["interrupt_id"].as_str().unwrap()
}

#[tokio::test]
async fn event_stream_opens_before_its_thread_and_spans_all_runs() {
    let host = Host::new();
    let wanted = json!({ "channels": ["lifecycle", "input", "values", "updates", "custom"] });
    let mut live = LiveStream::events(&host, ID, wanted.clone()).await;
    let first = start(&host, json!({ "value": "v" })).await;
    let frames = live.run().await;
    assert_eq!(
        event_names(&frames),
        [
            "lifecycle running",
            "values",
            "custom",
            "updates",
            "values",
            "updates",
            "input.requested",
            "lifecycle interrupted",
        ]
    );
    let id = interrupt_id(&frames).to_owned();
    let answer = json!({ "namespace": [], "interrupt_id": id, "response": "yes" });
    let answer = command(&host, "input.respond", answer).await;
    assert_ne!(result(&answer)["run_id"], first);
    let further = live.run().await;
    assert_eq!(
        event_names(&further),
        [
            "lifecycle running",
            "values",
            "input.answered",
            "updates",
            "values",
            "lifecycle completed",
        ]
    );
    assert_eq!(further[2].1["params"]["data"], json!({ "interrupt_ids": [id] }));
    let last = &further[4].1["params"]["data"];
    assert_eq!(last["items"], json!(["greeted", "asked"]));
    assert_eq!(last["value"], "yes");
    // A client that connects later gets the same events.
    let mut again = LiveStream::events(&host, ID, wanted).await;
    assert_eq!(again.run().await, frames);
    assert_eq!(again.run().await, further);
    let ids: Vec<u64> =
        frames.iter().chain(&further).map(|(_, _, id)| id.parse().unwrap()).collect();
    assert!(ids.is_sorted_by(|one, other| one < other), "{ids:?}");
    assert!(frames.iter().all(|(_, event, id)| event["seq"].as_u64() == id.parse().ok()));
}

#[tokio::test]
async fn reconnect_receives_missed_events() {
    let host = Host::new();
    start(&host, json!({ "value": "v" })).await;
    let all = ["lifecycle", "input", "values", "updates", "custom", "tasks", "checkpoints"];
    let mut live = LiveStream::events(&host, ID, json!({ "channels": all })).await;
    let frames = live.run().await;
    for known in 0..frames.len() - 1 {
        let since: u64 = frames[known].2.parse().unwrap();
        let wanted = json!({ "channels": all, "since": since });
        let mut live = LiveStream::events(&host, ID, wanted).await;
        assert_eq!(live.run().await, frames[known + 1..], "since {since}");
    }
    // A number above the number of the last event is from an earlier thread with the same id.
    let mut live =
        LiveStream::events(&host, ID, json!({ "channels": all, "since": 1_u64 << 40 })).await;
    assert_eq!(live.run().await, frames);
}

#[tokio::test]
async fn reconnect_in_a_later_run_receives_missed_events() {
    let host = Host::new();
    let all = [
        "lifecycle",
        "input",
        "values",
        "updates",
        "messages",
        "tools",
        "tasks",
        "checkpoints",
        "custom",
    ];
    let mut live = LiveStream::events(&host, ID, json!({ "channels": all })).await;
    let mut frames = Vec::new();
    for _ in 0..2 {
        start(&host, json!({ "value": "v" })).await;
        let interrupted = live.run().await;
        let id = interrupt_id(&interrupted);
        let answer = json!({ "namespace": [], "interrupt_id": id, "response": "yes" });
        frames.extend(interrupted);
        result(&command(&host, "input.respond", answer).await);
        frames.extend(live.run().await);
    }
    for known in 0..frames.len() - 1 {
        let since: u64 = frames[known].2.parse().unwrap();
        let mut live =
            LiveStream::events(&host, ID, json!({ "channels": all, "since": since })).await;
        for missed in &frames[known + 1..] {
            assert_eq!(live.next().await.unwrap(), *missed, "since {since}");
        }
    }
}

#[tokio::test]
async fn reply_to_run_start_has_the_sequence_number_before_the_events_of_the_run() {
    let host = Host::new();
    let first = command(&host, "run.start", json!({ "assistant_id": "slow", "input": {} })).await;
    let mut live = LiveStream::events(&host, ID, json!({ "channels": ["lifecycle"] })).await;
    live.run().await;
    let next = command(&host, "run.start", json!({ "assistant_id": "slow", "input": {} })).await;
    let runs = [result(&first)["run_id"].clone(), result(&next)["run_id"].clone()];
    assert_ne!(runs[0], runs[1]);
    let since = &next["meta"]["applied_through_seq"];
    let mut live =
        LiveStream::events(&host, ID, json!({ "channels": ["values"], "since": since })).await;
    let (_, event, _) = live.next().await.unwrap();
    assert_eq!(event["params"]["data"]["items"], json!([null]), "items of the first run only");
}

#[tokio::test]
async fn subscription_filters_by_channel_and_namespace() {
    let host = nested();
    command(&host, "run.start", json!({ "assistant_id": "outer", "input": {} })).await;
    let ids = async |wanted: Value| {
        let mut live = LiveStream::events(&host, ID, wanted).await;
        live.run().await
    };
    let all = ids(json!({ "channels": ["lifecycle", "values"] })).await;
    assert_eq!(
        event_names(&all),
        [
            "lifecycle running",
            "values",
            "lifecycle started",
            "values",
            "values",
            "lifecycle completed",
            "values",
            "lifecycle completed",
        ]
    );
    let inner = &all[2].1["params"];
    let level = inner["namespace"][0].as_str().unwrap();
    assert!(level.starts_with("inside:"), "{level}");
    assert_eq!(inner["data"]["namespace"], inner["namespace"]);
    assert_eq!(inner["data"]["graph_name"], "inside");
    let root = ids(json!({ "channels": ["lifecycle", "values"], "depth": 0 })).await;
    assert_eq!(event_names(&root).len(), 4);
    let scoped = json!({ "channels": ["values", "lifecycle"], "namespaces": [["inside"]] });
    let mut live = LiveStream::events(&host, ID, scoped).await;
    let ends = |(_, event, _): &Frame| event["params"]["data"]["event"] == "completed";
    assert_eq!(live.until(ends).await, all[2..6]);
    for wrong in [json!(["nothing"]), json!([]), json!(["custom:"])] {
        let path = format!("/threads/{ID}/stream/events");
        let refused = host.post(&path, json!({ "channels": wrong })).await;
        assert_eq!(refused.status, 400, "{wrong}");
    }
    let tree = command(&host, "agent.getTree", json!({})).await;
    let tree = &result(&tree)["tree"];
    assert_eq!((&tree["status"], &tree["graph_name"]), (&json!("completed"), &json!("outer")));
    assert_eq!(tree["children"][0]["namespace"], inner["namespace"]);
    assert_eq!(tree["children"][0]["status"], "completed");
}

fn nested() -> Host {
    let graphs = r#"
        [graphs.outer]
        entry = "inside"
        [graphs.outer.channels]
        items = { reducer = "append" }
        [graphs.outer.nodes.inside]
        graph = "inner"
        [graphs.inner]
        entry = "work"
        [graphs.inner.channels]
        items = { reducer = "append" }
        [graphs.inner.nodes.work]
        plugin = "p"
    "#;
    let plugin =
        Closures::new("p").node("work", |_, _| async move { Ok(json!({ "items": ["worked"] })) });
    Host::with_model(graphs, plugin, std::sync::Arc::new(Nothing))
}

/// Creates a host with the graph of the recorded stream of the reference server: a message in two
/// deltas, a tool call that a node writes, and an interrupt.
pub(crate) fn reference() -> Host {
    let graphs = r#"
        [graphs.agent]
        entry = "stream_message"
        [graphs.agent.channels]
        messages = { reducer = "messages" }
        value = {}
        items = { reducer = "append" }
        [graphs.agent.nodes.stream_message]
        plugin = "p"
        [graphs.agent.nodes.call_tool]
        plugin = "p"
        [graphs.agent.nodes.ask_human]
        plugin = "p"
        [[graphs.agent.edges]]
        from = "stream_message"
        to = "call_tool"
        [[graphs.agent.edges]]
        from = "call_tool"
        to = "ask_human"
    "#;
    let emit = |name: &str, data: Value| Emission::Custom { name: name.into(), data };
    let progress = move |step: &str, phase: &str| {
        emit("progress", json!({ "name": "progress", "step": step, "phase": phase }))
    };
    let plugin = Closures::new("p")
        .node("stream_message", move |_, gate| async move {
            gate.emit(progress("stream_message", "start")).await?;
            for piece in ["Hello,", " world!"] {
                let piece = json!({ "id": "ai-msg-1", "text": piece });
                gate.emit(emit("message.delta", piece)).await?;
            }
            gate.emit(emit("message.end", json!({ "id": "ai-msg-1" }))).await?;
            gate.emit(progress("stream_message", "end")).await?;
            let said = json!({ "id": "ai-msg-1", "role": "assistant", "content": "Hello, world!" });
            Ok(json!({ "messages": [said], "value": "x", "items": ["streamed"] }))
        })
        .node("call_tool", move |_, gate| async move {
            gate.emit(progress("call_tool", "start")).await?;
            gate.emit(progress("call_tool", "end")).await?;
            let call = json!({ "id": "tc-1", "name": "search", "arguments": { "query": "v3" } });
            let messages = json!([
                { "id": "ai-msg-2", "role": "assistant", "content": "", "tool_calls": [call] },
                { "id": "msg-1", "role": "tool", "content": "result for 'v3'",
                    "tool_call_id": "tc-1" },
            ]);
            Ok(json!({ "messages": messages, "items": ["tool"] }))
        })
        .node("ask_human", move |_, gate| async move {
            gate.emit(progress("ask_human", "start")).await?;
            let ask = InterruptRequest { payload: json!("Are we good?"), response_schema: None };
            let answer = gate.ask(ask).await?;
            Ok(json!({ "items": ["asked"], "value": answer }))
        });
    Host::with_model(graphs, plugin, std::sync::Arc::new(Nothing))
}

#[tokio::test]
async fn event_stream_equals_the_recorded_stream_of_the_reference_server() {
    let host = reference();
    let channels = ["lifecycle", "values", "updates", "messages", "tools", "input", "custom"];
    let mut live = LiveStream::events(&host, ID, json!({ "channels": channels })).await;
    let run = start(&host, json!({ "messages": [], "value": "i", "items": [] })).await;
    let frames = live.run().await;
    let question = interrupt_id(&frames).to_owned();
    let ours = frames.iter().map(|(kind, event, _)| {
        assert_eq!((&event["type"], &event["method"]), (&json!("event"), &json!(kind)));
        let id = event["event_id"].as_str().unwrap();
        assert!(event["params"]["timestamp"].is_i64());
        // Only the ids of lifecycle events and interrupts contain the run.
        let names_run = id.strip_prefix("synth:").and_then(|rest| rest.split_once(':'));
        let of_run = ["lifecycle", "input.requested"].contains(&kind.as_str());
        assert_eq!(names_run.map(|(run, _)| run), of_run.then_some(run.as_str()), "{id}");
        let params = &event["params"];
        let line = json!([kind, params["namespace"], params["data"]]).to_string();
        line.replace(&question, "<question>")
    });
    let ours: Vec<Value> = ours.map(|line| serde_json::from_str(&line).unwrap()).collect();
    let captured = include_str!("../../../project/src/agent_server/v2/testdata/thread.txt")
        .lines()
        .take(ours.len());
    let captured: Vec<Value> = captured.map(|line| serde_json::from_str(line).unwrap()).collect();
    for (ours, captured) in ours.iter().zip(&captured) {
        assert_eq!(without_ids(ours), without_ids(captured));
    }
    assert_eq!(ours.len(), 20);
}

/// Removes the id of the tool message, which the node of the reference server does not set.
fn without_ids(line: &Value) -> Value {
    let text = line.to_string().replace("\"id\":\"msg-1\",", "");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn input_of_run_start_answers_a_pending_interrupt() {
    let host = Host::new();
    let mut live =
        LiveStream::events(&host, ID, json!({ "channels": ["lifecycle", "input"] })).await;
    start(&host, json!({ "value": "v" })).await;
    live.run().await;
    start(&host, json!("certainly")).await;
    let expected = ["lifecycle running", "input.answered", "lifecycle completed"];
    assert_eq!(event_names(&live.run().await), expected);
    let state = command(&host, "state.get", json!({ "keys": ["value"] })).await;
    assert_eq!(result(&state)["values"], json!({ "value": "certainly" }));
    // No interrupt is pending any more, so the input is not an answer.
    let params = json!({ "assistant_id": "agent", "input": "certainly" });
    assert_error(&command(&host, "run.start", params).await, "invalid_argument");
}

#[tokio::test]
async fn respond_answers_all_interrupts_or_none() {
    let host = Host::new();
    assert_error(&command(&host, "input.respond", json!({})).await, "invalid_argument");
    let nothing = json!({ "interrupt_id": "0", "response": 1 });
    assert_error(&command(&host, "input.respond", nothing.clone()).await, "no_such_run");
    let mut live =
        LiveStream::events(&host, ID, json!({ "channels": ["lifecycle", "input"] })).await;
    start(&host, json!({ "value": "v" })).await;
    let id = interrupt_id(&live.run().await).to_owned();
    assert_error(&command(&host, "input.respond", nothing).await, "no_such_interrupt");
    let one = json!({ "interrupt_id": id, "namespace": [], "response": "yes" });
    let many = json!({ "responses": [one, { "interrupt_id": "0", "response": 1 }] });
    assert_error(&command(&host, "input.respond", many).await, "no_such_interrupt");
    let answer = json!({ "responses": [one], "metadata": { "who": "me" }, "strict_resume": true });
    let answer = command(&host, "input.respond", answer).await;
    let run = result(&answer)["run_id"].as_str().unwrap().to_owned();
    assert_eq!(event_names(&live.run().await).last().unwrap(), "lifecycle completed");
    let run = host.get(&format!("/threads/{ID}/runs/{run}")).await.ok();
    assert_eq!(run["metadata"]["who"], "me");
}

#[tokio::test]
async fn states_are_read_and_forked() {
    let host = Host::new();
    let nothing = command(&host, "state.get", json!({ "namespace": [] })).await;
    assert_eq!(result(&nothing), &json!({ "values": {} }));
    let nested = json!({ "namespace": ["x"] });
    assert_error(&command(&host, "state.get", nested).await, "no_such_namespace");
    let none = command(&host, "state.listCheckpoints", json!({})).await;
    assert_eq!(result(&none), &json!({ "checkpoints": [] }));
    let mut live = LiveStream::events(&host, ID, json!({ "channels": ["lifecycle"] })).await;
    start(&host, json!({ "value": "v" })).await;
    live.run().await;
    let state = command(&host, "state.get", json!({ "namespace": [] })).await;
    assert_eq!(result(&state)["values"]["items"], json!(["greeted"]));
    let listed = command(&host, "state.listCheckpoints", json!({ "limit": 5 })).await;
    let points = result(&listed)["checkpoints"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    assert_eq!(points[0]["id"], result(&state)["checkpoint"]["id"]);
    assert_eq!((&points[0]["node_name"], &points[1]["step"]), (&json!("greet"), &json!(0)));
    let older = json!({ "before": points[0]["id"] });
    let older = command(&host, "state.listCheckpoints", older).await;
    assert_eq!(result(&older)["checkpoints"], json!([points[1]]));
    assert_error(&command(&host, "state.fork", json!({})).await, "invalid_argument");
    let unknown = json!({ "checkpoint_id": ID });
    assert_error(&command(&host, "state.fork", unknown).await, "no_such_checkpoint");
    let fork = json!({ "checkpoint_id": points[1]["id"] });
    let forked = command(&host, "state.fork", fork).await;
    assert_eq!(result(&forked)["thread_id"], ID);
    assert_eq!(event_names(&live.run().await), ["lifecycle running", "lifecycle interrupted"]);
}

#[tokio::test]
async fn invalid_command_is_rejected() {
    let host = Host::new();
    let path = format!("/threads/{ID}/commands");
    for wrong in [json!({}), json!([]), json!({ "id": "x", "method": "run.start" })] {
        let answer = host.post(&path, wrong.clone()).await;
        assert_eq!(answer.status, 400, "{wrong}");
        assert_eq!(answer.json()["error"], "invalid_argument");
        assert_eq!(answer.json()["id"], Value::Null);
    }
    assert_error(&command(&host, "input.inject", json!({})).await, "unknown_command");
    assert_error(&command(&host, "what", json!({})).await, "unknown_command");
    let subscribe = json!({ "channels": ["values"] });
    assert_error(&command(&host, "subscription.subscribe", subscribe).await, "not_supported");
    assert_error(&command(&host, "run.start", json!({ "input": {} })).await, "invalid_argument");
    let unknown = json!({ "assistant_id": "nobody", "input": {} });
    assert_error(&command(&host, "run.start", unknown).await, "invalid_argument");
    assert_error(&command(&host, "agent.getTree", json!({})).await, "no_such_run");
    assert_eq!(host.get(&format!("/threads/{ID}")).await.status, 404, "no thread was created");
    assert_eq!(host.post("/threads/x/commands", json!({})).await.status, 422);
}

#[tokio::test]
async fn failed_run_ends_with_a_failed_event() {
    let host = Host::new();
    let mut live = LiveStream::events(&host, ID, json!({ "channels": ["lifecycle"] })).await;
    command(&host, "run.start", json!({ "assistant_id": "broken", "input": {} })).await;
    let frames = live.run().await;
    assert_eq!(event_names(&frames), ["lifecycle running", "lifecycle failed"]);
    let expected = json!({
        "event": "failed", "graph_name": "broken", "error": "no way", "code": "invalid",
        "node": "fail", "plugin": "p",
    });
    assert_eq!(frames[1].1["params"]["data"], expected);
}

#[tokio::test]
async fn event_stream_ends_when_its_thread_is_deleted() {
    let host = Host::new();
    let id = host.thread().await;
    let mut live = LiveStream::events(&host, &id, json!({ "channels": ["lifecycle"] })).await;
    let run = json!({ "assistant_id": "slow", "input": {} });
    host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    live.run().await;
    assert_eq!(host.call("DELETE", &format!("/threads/{id}"), None).await.status, 204);
    assert_eq!(live.next().await, None);
}

#[tokio::test]
async fn event_stream_continues_after_a_rollback() {
    let host = Host::new();
    host.hold();
    let id = host.thread().await;
    let mut live =
        LiveStream::events(&host, &id, json!({ "channels": ["lifecycle", "values"] })).await;
    let runs = format!("/threads/{id}/runs");
    let run = |word: &str| json!({ "assistant_id": "slow", "input": { "word": word } });
    host.post(&runs, run("a")).await.ok();
    host.wait_for_started(1).await;
    live.until(|(kind, ..)| kind == "values").await;
    let mut other = run("b");
    other["multitask_strategy"] = "rollback".into();
    host.post(&runs, other).await.ok();
    host.wait_for_started(2).await;
    host.release.send_replace(true);
    let ends = |(_, event, _): &Frame| event["params"]["data"]["event"] == "completed";
    let frames = live.until(ends).await;
    let last = frames.iter().rev().find(|(kind, ..)| kind == "values").unwrap();
    assert_eq!(last.1["params"]["data"]["items"], json!(["b"]));
}

#[tokio::test(start_paused = true)]
async fn idle_stream_sends_heartbeats() {
    let host = Host::new();
    let path = format!("/threads/{ID}/stream/events");
    let wanted = json!({ "channels": ["values"] });
    let response = host.raw(request("POST", &path, Some(wanted))).await;
    let mut body = response.into_body().into_data_stream();
    let chunk = futures::StreamExt::next(&mut body).await.unwrap().unwrap();
    assert_eq!(chunk, ": heartbeat\r\n\r\n");
}

#[tokio::test]
async fn threads_of_other_tenants_are_not_found() {
    let config =
        ApiConfig { tenant_header: Some("x-tenant".parse().unwrap()), ..ApiConfig::default() };
    let host = Host::with_config(config);
    let send = async |tenant: &str, path: String, body: Value| -> TestResponse {
        let mut request = request("POST", &path, Some(body));
        request.headers_mut().insert("x-tenant", tenant.parse().unwrap());
        host.send(request).await
    };
    let params = json!({ "assistant_id": "slow", "input": {} });
    let start = json!({ "id": 1, "method": "run.start", "params": params });
    let commands = format!("/threads/{ID}/commands");
    assert_eq!(send("a", commands.clone(), start.clone()).await.ok()["type"], "success");
    assert_eq!(send("b", commands, start).await.status, 404);
    let events = format!("/threads/{ID}/stream/events");
    let wanted = json!({ "channels": ["values"] });
    assert_eq!(send("b", events, wanted).await.status, 404);
    let mut get = request("GET", &format!("/threads/{ID}/stream"), None);
    get.headers_mut().insert("x-tenant", "b".parse().unwrap());
    assert_eq!(host.send(get).await.status, 404);
}

#[tokio::test]
async fn respond_can_update_the_state() {
    let host = Host::new();
    let mut live =
        LiveStream::events(&host, ID, json!({ "channels": ["lifecycle", "input"] })).await;
    start(&host, json!({ "value": "v" })).await;
    let id = interrupt_id(&live.run().await).to_owned();
    let answer = json!({
        "interrupt_id": id, "namespace": [], "response": "yes", "update": { "items": ["more"] },
    });
    result(&command(&host, "input.respond", answer).await);
    assert_eq!(event_names(&live.run().await).last().unwrap(), "lifecycle completed");
    let state = command(&host, "state.get", json!({})).await;
    let items = result(&state)["values"]["items"].as_array().unwrap();
    assert!(items.contains(&json!("more")) && items.contains(&json!("asked")), "{items:?}");
}

/// A store that waits for the runtime after each write.
struct Slow(Arc<dyn Store>);

#[async_trait]
impl Layer for Slow {
    fn over(below: Arc<dyn Store>) -> Self {
        Self(below)
    }

    fn below(&self) -> &dyn Store {
        &*self.0
    }

    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let ticket = self.0.append(thread, batch).await;
        // The log polls this call twice in a row, so that a `yield_now` would not wait.
        tokio::spawn(async {}).await.unwrap();
        ticket
    }
}

#[tokio::test]
async fn thread_created_by_a_command_gets_its_run_after_a_disconnect() {
    let params = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    let body = json!({ "id": 7, "method": "run.start", "params": params });
    let mut were_left = 0;
    for polls in 1.. {
        let store = Arc::new(Layered::<Slow>::over(Arc::new(InMemoryStore::new())));
        let options = HostOptions { store, ..HostOptions::default() };
        let host = Host::with_options(ApiConfig::default(), options);
        let wanted = request("POST", &format!("/threads/{ID}/commands"), Some(body.clone()));
        let mut asked = Box::pin(host.raw(wanted));
        let mut is_answered = false;
        for _ in 0..polls {
            is_answered = futures::poll!(&mut asked).is_ready();
            if is_answered {
                break;
            }
            tokio::task::yield_now().await;
        }
        if is_answered {
            break;
        }
        drop(asked);
        let has_run = async {
            let runs = format!("/threads/{ID}/runs");
            loop {
                let answer = host.get(&runs).await;
                if answer.status == 404 || !answer.json().as_array().unwrap().is_empty() {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(SOON, has_run).await;
        assert!(waited.is_ok(), "the client left after {polls} polls, and the thread has no run");
        were_left += 1;
    }
    assert!(were_left > 0, "no client could disconnect");
}
