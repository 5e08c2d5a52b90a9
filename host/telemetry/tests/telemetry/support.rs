//! A log as JSON, a store that contains the log, and a stand-in that receives its spans.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use serde_json::{Value, json};
use wattle_graph::event::{Event, RunStatus};
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, Digest, GraphName, RunId, ThreadId};
use wattle_graph::llm::{Completion, CompletionRequest};
use wattle_kit::standin::{Config, Entry, Handle, Server};
use wattle_run::ports::model::{DeltaSink, RouteInfo};
use wattle_run::ports::observer::RunSummary;
use wattle_run::ports::store::{Batch, ThreadRecord, ThreadStatus};
use wattle_run::ports::{BlobStore, Caller, Model, Observer as _, Store};
use wattle_store::InMemoryStore;
use wattle_telemetry::{OtlpConfig, Telemetry, TelemetryConfig};

/// Path at which the stand-in receives traces.
pub(crate) const TRACES: &str = "/api/public/otel/v1/traces";

/// Maximum number of polls while a test waits for a worker, and the delay between them.
const LOOKS: u32 = 400;
const PAUSE: Duration = Duration::from_millis(25);

pub(crate) async fn standin() -> Handle {
    Server::start(Config::default()).await.unwrap()
}

/// Returns settings for the stand-in, with the given secret key.
pub(crate) fn config(standin: &Handle, secret: &str) -> TelemetryConfig {
    let otlp = OtlpConfig::new(&format!("{}/api/public/otel", standin.base_url)).unwrap();
    let otlp = otlp.with_keys("pk-test", &SecretString::from(secret));
    TelemetryConfig { otlp: Some(otlp), content: true }
}

/// Creates a store with one thread that has these events. Sets their sequence numbers, times and
/// runs.
pub(crate) async fn store(events: &[Value]) -> Arc<dyn Store> {
    let store = InMemoryStore::new();
    let events = events.iter().zip(1_u64..).map(|(event, seq)| {
        let mut event = event.clone();
        event["seq"] = json!(seq);
        event["run"] = json!("run-1");
        let at_ms = event["at_ms"].take();
        event["at_ms"] = if at_ms.is_null() { json!(1_000 + seq) } else { at_ms };
        serde_json::from_value::<Event>(event).unwrap()
    });
    let batch = Batch { record: Some(record()), events: events.collect(), ..Batch::default() };
    store.append(&thread(), batch).await.await.unwrap();
    Arc::new(store)
}

fn thread() -> ThreadId {
    ThreadId::new("thread-1").unwrap()
}

fn record() -> ThreadRecord {
    ThreadRecord {
        id: thread(),
        app: AppName::new("asset").unwrap(),
        graph: GraphName::new("main").unwrap(),
        version: Digest::of(b"version"),
        status: ThreadStatus::Idle,
        stopped: false,
        failure: None,
        run: None,
        created_ms: 1,
        updated_ms: 1,
        expires_ms: None,
        tenant: Some("acme".into()),
        context: Value::Null,
        metadata: BTreeMap::new(),
        incarnation: None,
        origin: None,
        ttl: None,
        pruned_ms: None,
    }
}

/// Returns the notification about the end of the run. `last_seq` is the sequence number of its last
/// event.
pub(crate) fn note(last_seq: usize) -> RunSummary {
    let record = record();
    RunSummary {
        app: record.app,
        graph: record.graph,
        thread: record.id,
        run: RunId::new("run-1").unwrap(),
        tenant: record.tenant,
        first_seq: 1,
        last_seq: last_seq as u64,
        status: RunStatus::Completed,
        failure: None,
    }
}

/// Starts telemetry, notifies it about the end of a run, and waits until all spans are sent.
/// Returns the metrics.
pub(crate) async fn tell(config: &TelemetryConfig, events: &[Value], note: RunSummary) -> String {
    let telemetry = Telemetry::start(config, store(events).await, Arc::new(NoModel), None).unwrap();
    telemetry.run_started(&note.app, &note.graph);
    telemetry.run_ended(note);
    telemetry.close(Duration::from_secs(10)).await;
    telemetry.metrics().text()
}

/// Returns all received spans in order.
pub(crate) fn spans(standin: &Handle) -> Vec<Value> {
    let of = |entry: &Entry| entry.body.as_ref().and_then(|body| body["spans"].as_array()).cloned();
    standin.requests().iter().filter_map(of).flatten().collect()
}

/// Returns the span with the given name.
pub(crate) fn named<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    let names: Vec<&Value> = spans.iter().map(|span| &span["name"]).collect();
    spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{name}: {names:?}"))
}

/// Waits until the metrics satisfy a condition.
pub(crate) async fn until(telemetry: &Telemetry, said: impl Fn(&str) -> bool) -> String {
    for _ in 0..LOOKS {
        let text = telemetry.metrics().text();
        if said(&text) {
            return text;
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("the metrics never satisfied the condition:\n{}", telemetry.metrics().text());
}

/// Returns the value of a metric without labels; 0 if the text does not contain it.
pub(crate) fn metric(text: &str, name: &str) -> i64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// A model port that fails every call. A call may name any route, but only the route `chat` has
/// models that the operator configured.
pub(crate) struct NoModel;

#[async_trait]
impl Model for NoModel {
    fn has_route(&self, _: &Caller, _: &str) -> bool {
        true
    }

    fn route(&self, _: &Caller, _: &str) -> Option<RouteInfo> {
        let (provider, model) = ("openai".to_owned(), "gpt-4o".to_owned());
        Some(RouteInfo { provider, model, has_fallback: false, candidates: 1 })
    }

    fn configured_models(&self, route: &str) -> Vec<String> {
        let models: &[&str] = if route == "chat" { &["gpt-4o", "gpt-4o-mini"] } else { &[] };
        models.iter().map(|&model| model.to_owned()).collect()
    }

    async fn complete(
        &self,
        _: &Caller,
        _: &CompletionRequest,
        _: &dyn BlobStore,
        _: &dyn DeltaSink,
    ) -> Result<Completion, Failure> {
        Err(Failure::unsupported("model"))
    }

    async fn set_route(&self, _: &Caller, _: &str, _: Value) -> Result<(), Failure> {
        Err(Failure::unsupported("model"))
    }

    async fn get_route(&self, _: &Caller, _: &str) -> Result<Option<Value>, Failure> {
        Ok(None)
    }

    async fn remove_route(&self, _: &Caller, _: &str) -> Result<(), Failure> {
        Ok(())
    }
}

fn digest() -> String {
    Digest::of(b"request").to_hex()
}

/// Returns a journal entry.
pub(crate) fn called(
    function: &str,
    call: u32,
    scope: &[u32],
    request: Value,
    result: Value,
) -> Value {
    json!({
        "type": "called", "task": "task-1", "node": "agent", "scope": scope, "call": call,
        "function": function, "digest": digest(), "request": request, "result": result,
        "started_ms": 1_010, "duration_us": 2_500, "batch": call,
    })
}

/// Returns the log of a run with one node. The node calls a model, then a tool that itself calls a
/// model, then an HTTP service that is unavailable. Finally the node emits a custom event.
pub(crate) fn log() -> Vec<Value> {
    let messages = json!([{ "role": "user", "parts": [{ "text": "hello" }] }]);
    let completion = json!({ "Ok": {
        "parts": [{ "text": "hi" }], "finish_reason": "stop", "model": "gpt-4o-2024",
        "usage": { "input_tokens": 12, "output_tokens": 3 },
    } });
    let ask = json!({ "route": "chat", "messages": messages, "temperature": 0.5 });
    let tool = json!({ "tool": "date/parse", "call_id": "c1", "arguments": { "text": "today" } });
    let parsed = json!({ "Ok": { "content": [{ "text": "1" }], "structured": { "day": 1 } } });
    let get = json!({ "method": "GET", "url": "https://a.example/b?key={{secret:K}}" });
    let away = json!({ "Err": { "code": "unavailable", "message": "gone", "retryable": true } });
    let mut model = called("llm.complete", 0, &[], ask.clone(), completion.clone());
    model["tokens"] = json!({ "input": 12, "output": 3 });
    vec![
        json!({ "type": "run_started", "graph": "main", "digest": digest(), "reason": "input" }),
        json!({
            "type": "task_started", "task": "task-1", "node": "agent", "step": 0, "attempt": 1,
        }),
        model,
        json!({
            "type": "call_started", "task": "task-1", "call": 1, "function": "tools.call",
            "summary": "date/parse",
        }),
        called("llm.complete", 0, &[1], ask, completion),
        called("tools.call", 1, &[], tool, parsed),
        called("llm.route", 2, &[], json!({ "route": "chat" }), json!({ "Ok": {} })),
        called("http.send", 3, &[], get, away),
        json!({
            "type": "custom", "task": "task-1", "node": "agent", "name": "task_planned",
            "data": { "n": 1 },
        }),
        json!({
            "type": "task_finished", "task": "task-1", "node": "agent", "base": 1,
            "writes": [{ "channel": "answer", "value": "hi" }], "duration_us": 40_000,
        }),
        json!({ "type": "run_ended", "status": "completed" }),
    ]
}
