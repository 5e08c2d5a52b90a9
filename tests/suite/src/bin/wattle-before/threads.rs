//! Threads: one of each kind, under the name of its kind.

use serde_json::{Map, Value, json};
use wattle_kit::standin::{Fault, FaultRule, Gate, Pattern};
use wattle_suite::before::{CACHED, GATED, HELD, MORE, RUNS, VISITS, errand, record, url};
use wattle_suite::server::TestServer;

/// Creates all threads without an active run, except those that are settled after a restart.
pub(crate) async fn make(server: &TestServer) {
    run(server, &finished(), "completed").await;
    failing(server).await;
    asking(server).await;
    time_travel(server).await;
    cancelled(server, "cancelled").await;
    cancelled(server, "reused").await;
    run(server, &on("reused", "errand", errand(GATED)), "completed").await;
    run(server, &on("cached", "cached", json!({ "url": url(CACHED) })), "completed").await;
    run(server, &on("pruned", "row", json!({})), "completed").await;
    let prune = json!({ "strategy": "keep_latest" });
    server.post("/api/v1/threads/pruned/prune", &prune).await.expect(204);
    run(server, &on("pending", "row", json!({})), "completed").await;
    let mut later = on("pending", "row", json!({}));
    later["after_seconds"] = json!(1_800);
    let later = server.post(RUNS, &later).await.expect(202);
    assert_eq!(later["status"], "pending", "{later}");
}

/// Records each thread of the list.
pub(crate) async fn records(server: &TestServer) -> Value {
    let listed = server.get("/api/v1/threads?limit=500").await.expect(200);
    let mut records = Map::new();
    for thread in listed["items"].as_array().into_iter().flatten() {
        let thread = text(&thread["thread"]);
        records.insert(thread.to_owned(), record(server, thread).await);
    }
    Value::Object(records)
}

/// Returns the request of a run with an effect that is not idempotent.
pub(crate) fn paying(thread: &str) -> Value {
    let call = json!({ "tool": "tools/effect", "arguments": { "url": url(HELD) } });
    on(thread, "tool", json!({ "call": call }))
}

/// Starts a run, and waits until one of its requests is held. Returns the gate and the id of the
/// run.
pub(crate) async fn held(server: &TestServer, at: Pattern, start: &Value) -> (Gate, Value) {
    server.clock().advance_ms(1_000);
    let gate = server.standin().gate(at);
    let run = server.post(RUNS, start).await.expect(202);
    gate.arrived(1).await.expect("a request that is held");
    (gate, run["run"].clone())
}

/// Answers pending interrupts of a thread. The resumed run must end with this status.
pub(crate) async fn answer(
    server: &TestServer,
    thread: &str,
    answers: &Value,
    status: &str,
) -> Value {
    server.clock().advance_ms(1_000);
    let mut resume = answers.clone();
    resume["wait"] = json!(true);
    let path = format!("/api/v1/threads/{thread}/resume");
    let run = server.post(&path, &resume).await.expect(200);
    assert_eq!(run["status"], status, "{run}");
    run
}

fn on(thread: &str, graph: &str, input: Value) -> Value {
    json!({ "graph": graph, "input": input, "thread_id": thread })
}

/// Starts a run that must end with this status.
async fn run(server: &TestServer, start: &Value, status: &str) -> Value {
    server.clock().advance_ms(1_000);
    let mut start = start.clone();
    start["wait"] = json!(true);
    let run = server.post(RUNS, &start).await.expect(200);
    assert_eq!(run["status"], status, "{run}");
    run
}

/// Returns the request of a run with one call of each kind: models, tools with host calls, the
/// clock, the memory, blobs and a database.
fn finished() -> Value {
    let call = |tool: &str, arguments: Value| json!({ "tool": tool, "arguments": arguments });
    let other_db = json!({ "database": "ledger", "statement": "SELECT 1 AS n" });
    let input = json!({
        "route": "chat", "text": "hello",
        "calls": [
            call("tools/echo", json!({ "text": "well" })),
            call("tools/add", json!({ "a": 1, "b": 2, "channel": "total" })),
            call("tools/net", json!({ "url": url("/count/read") })),
            call("tools/effect", json!({ "url": url("/count/paid"), "key": "one" })),
            call("tools/other_db", other_db),
            call("tools/fail", json!({})),
        ],
        "count": 3,
        "namespace": ["users", "42"], "key": "tea", "document": { "text": "green tea" },
        "blobs": 2, "bytes": 1_000,
        "database": "ledger", "statement": "SELECT 7 AS n",
    });
    let mut start = on("finished", "work", input);
    start["context"] = json!({ "language": "en" });
    start["metadata"] = json!({ "customer": 4_711 });
    start
}

/// Runs nodes whose failures are retried, handled, or end the run.
async fn failing(server: &TestServer) {
    let once = json!({ "retryable": true, "succeed_on_attempt": 2 });
    run(server, &on("retried", "retried", once), "completed").await;
    run(server, &on("handled", "handled", json!({ "number": 1 })), "completed").await;
    refuse_models(server);
    run(server, &on("failed", "errand", errand(MORE)), "failed").await;
    server.standin().clear_faults();
}

fn refuse_models(server: &TestServer) {
    let refusal = Fault::Status { status: 400, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::model("chat"), refusal));
}

/// Leaves interrupts pending: of a graph, of subgraphs, of several nodes, of an MCP server, and
/// after earlier interrupts.
async fn asking(server: &TestServer) {
    let asks = json!({ "url": url(VISITS), "route": "chat" });
    for graph in ["nested", "stateless"] {
        run(server, &on(graph, graph, asks.clone()), "interrupted").await;
    }
    let inner = json!({ "errand": { "graph": "late", "input": asks } });
    run(server, &on("started", "caller", inner), "interrupted").await;

    let mut both = asks.clone();
    both["schema"] = json!({ "type": "string" });
    run(server, &on("parallel", "both", both.clone()), "interrupted").await;
    let partly = run(server, &on("partly", "both", both), "interrupted").await;
    let open = partly["interrupts"].as_array().into_iter().flatten();
    let shaped = open.filter(|it| it["node"] == "ask_shaped").map(|it| text(&it["id"]));
    let answers: Map<String, Value> = shaped.map(|id| (id.to_owned(), json!("x"))).collect();
    answer(server, "partly", &json!({ "answers": answers }), "interrupted").await;

    let first = json!({ "answers": { "": "a" } });
    run(server, &on("asked-again", "late", asks.clone()), "interrupted").await;
    answer(server, "asked-again", &first, "interrupted").await;
    let copy = json!({ "thread_id": "copied" });
    server.post("/api/v1/threads/asked-again/copy", &copy).await.expect(201);

    run(server, &on("reopened", "late", asks.clone()), "interrupted").await;
    refuse_models(server);
    let reopening = json!({ "answers": { "": "wrong" }, "on_failure": "reopen" });
    answer(server, "reopened", &reopening, "failed").await;
    server.standin().clear_faults();

    let mut unpersisted = on("unpersisted", "late", asks);
    unpersisted["options"] = json!({ "durability": "exit" });
    run(server, &unpersisted, "interrupted").await;
    let mut breakpoint = on("breakpoint", "row", json!({}));
    breakpoint["options"] = json!({ "interrupt_before": ["two"] });
    run(server, &breakpoint, "interrupted").await;
    let call = json!({ "call": { "tool": "mcp:far/add", "arguments": { "a": 1, "b": 2 } } });
    run(server, &on("elicited", "tool", call), "interrupted").await;
}

/// Edits a thread, forks from a checkpoint, and forks from a model call into a copy.
async fn time_travel(server: &TestServer) {
    run(server, &on("edited", "row", json!({})), "completed").await;
    let edits = json!({ "supersteps": [[{ "as_node": "two", "values": { "number": 10 } }]] });
    server.post("/api/v1/threads/edited/edits", &edits).await.expect(200);

    run(server, &on("forked", "row", json!({})), "completed").await;
    let history = server.get("/api/v1/threads/forked/history").await.expect(200);
    let mut history = history.as_array().into_iter().flatten();
    let second = history.find(|it| it["next"] == json!(["two"])).expect("a checkpoint before it");
    let fork = json!({ "checkpoint": second["id"], "wait": true });
    let forked = server.post("/api/v1/threads/forked/fork", &fork).await.expect(200);
    assert_eq!(forked["status"], "completed", "{forked}");

    run(server, &on("errand", "errand", errand("/count/read")), "completed").await;
    let events = server.events("errand").await;
    let mut called = events.iter().filter(|event| event.event == "called");
    let said = called.find(|it| it.data["function"] == "llm.complete").expect("a model call");
    let call = json!({ "seq": said.id, "answer": said.data["result"]["Ok"] });
    let fork = json!({ "call": call, "copy": true, "thread_id": "forked-call", "wait": true });
    let forked = server.post("/api/v1/threads/errand/fork", &fork).await.expect(200);
    assert_eq!(forked["status"], "completed", "{forked}");
}

/// Cancels a run after its model call has completed.
async fn cancelled(server: &TestServer, thread: &str) {
    let start = on(thread, "errand", errand(GATED));
    let (_gate, run) = held(server, Pattern::path(GATED), &start).await;
    let path = format!("/api/v1/runs/{}/cancel", text(&run));
    let ended = server.post(&path, &json!({})).await.expect(202);
    assert_eq!(ended["status"], "cancelled", "{ended}");
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
