//! Requests of AG-UI clients.

use serde_json::{Value, json};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::hostcall::runs::{RunOutcome, RunRef, RunService as _};

use crate::fixture::{Fixture, GRAPH, answer, write_app};
use crate::native_sandbox::SLOW;
use crate::streams::{documents, types};

const PATH: &str = "/api/v1/apps/greeter/graphs/Greet/ag-ui";

/// Returns a request as the official client sends it, without messages.
fn request(run: &str) -> Value {
    json!({
        "threadId": "front desk", "runId": run, "protocolVersion": "1.0", "messages": [],
        "state": {}, "tools": [], "context": [], "forwardedProps": {},
    })
}

/// Returns the first request of a thread, with the input of the graph.
fn first(run: &str, name: &str) -> Value {
    let mut request = request(run);
    request["state"] = json!({ "name": name });
    request
}

/// Returns a request with the answer to an interrupt, or without one.
fn resume(run: &str, interrupt: &str, payload: Option<Value>) -> Value {
    let mut request = request(run);
    let entry = match payload {
        Some(payload) => {
            json!({ "interruptId": interrupt, "status": "resolved", "payload": payload })
        }
        None => json!({ "interruptId": interrupt, "status": "cancelled" }),
    };
    request["resume"] = json!([entry]);
    request
}

fn user(id: &str) -> Value {
    json!({ "id": id, "role": "user", "content": format!("message {id}") })
}

/// Returns the events of the stream that responds to a request.
async fn events(fixture: &Fixture, request: &Value) -> Vec<Value> {
    let (status, body) = fixture.post(PATH, request).await;
    assert_eq!(status, 200, "{body}");
    documents(body.as_str().unwrap())
}

/// Returns the status, the code and the message of a refused request.
async fn refusal(fixture: &Fixture, request: &Value) -> (u16, String, String) {
    let (status, problem) = fixture.post(PATH, request).await;
    let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
    (status, text("code"), text("detail"))
}

/// Starts a server whose graph has a channel for messages.
async fn with_messages() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let graph = format!("{GRAPH}[graphs.Greet.channels.messages]\nreducer = \"messages\"\n");
    std::fs::write(folder.path().join("plugins/greeter/graph.toml"), graph).unwrap();
    Fixture::start_in(folder, "").await
}

/// Returns the ids of the messages of the thread.
async fn stored(fixture: &Fixture) -> Vec<String> {
    let (_, state) = fixture.get("/api/v1/threads/front%20desk/state").await;
    let messages = state["messages"].as_array().unwrap();
    messages.iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_run_starts_waits_and_continues_with_the_answer() {
    let fixture = Fixture::start("").await;
    let asked = events(&fixture, &first("r1", "Ada")).await;
    let (start, end) = (&asked[0], asked.last().unwrap());
    assert_eq!((&start["threadId"], &start["runId"]), (&json!("front desk"), &json!("r1")));
    assert_eq!((&end["threadId"], &end["runId"]), (&json!("front desk"), &json!("r1")));
    let interrupt = &end["outcome"]["interrupts"][0];
    assert_eq!(interrupt["metadata"]["payload"]["about"], "hello Ada");
    let id = interrupt["id"].as_str().unwrap();

    let (status, code, why) = refusal(&fixture, &request("r2")).await;
    assert_eq!((status, code.as_str()), (409, "conflict"), "{why}");
    assert!(why.contains(id), "{why}");
    let (status, code, why) = refusal(&fixture, &resume("r2", "other", Some(json!(true)))).await;
    assert_eq!((status, code.as_str()), (409, "conflict"), "{why}");
    let (status, code, why) = refusal(&fixture, &resume("r2", id, None)).await;
    assert_eq!((status, code.as_str()), (400, "invalid"), "nothing says no to a boolean: {why}");
    let (status, code, why) = refusal(&fixture, &resume("r2", id, Some(json!(7)))).await;
    assert_eq!((status, code.as_str()), (400, "invalid"), "{why}");

    let done = events(&fixture, &resume("r2", id, Some(json!(true)))).await;
    assert_eq!(types(&done)[0], "RUN_STARTED");
    assert_eq!(done.last().unwrap()["outcome"], json!({ "type": "success" }));
    let snapshot = done.iter().find(|event| event["type"] == "STATE_SNAPSHOT").unwrap();
    assert_eq!(snapshot["snapshot"]["approved"], true);

    let (status, code, why) = refusal(&fixture, &resume("r3", id, Some(json!(true)))).await;
    assert_eq!((status, code.as_str()), (409, "conflict"), "{why}");
    for again in [request("r3"), resume("r3", id, None)] {
        let (status, code, why) = refusal(&fixture, &again).await;
        assert_eq!((status, code.as_str()), (409, "conflict"), "{why}");
        assert!(why.contains("has reached its end"), "{why}");
    }
}

#[tokio::test]
async fn new_messages_are_added_once() {
    let fixture = with_messages().await;
    let mut one = first("r1", "Ada");
    one["messages"] = json!([user("1")]);
    let asked = events(&fixture, &one).await;
    let interrupt = &asked.last().unwrap()["outcome"]["interrupts"][0]["id"];
    let said = json!({ "id": "r1:text-1", "role": "assistant", "content": "hello" });
    let mut two = resume("r2", interrupt.as_str().unwrap(), None);
    two["messages"] = json!([user("1"), said, user("2")]);
    two["state"] = asked[asked.len() - 2]["snapshot"].clone();
    let asked = events(&fixture, &two).await;
    assert_eq!(asked.last().unwrap()["outcome"]["type"], "interrupt", "the graph starts again");
    assert_eq!(stored(&fixture).await, ["1", "2"]);

    let interrupt = &asked.last().unwrap()["outcome"]["interrupts"][0]["id"];
    let mut three = resume("r3", interrupt.as_str().unwrap(), Some(json!(true)));
    three["messages"] = json!([user("1"), said, user("2"), user("3")]);
    let done = events(&fixture, &three).await;
    assert_eq!(done.last().unwrap()["outcome"], json!({ "type": "success" }));
    assert_eq!(stored(&fixture).await, ["1", "2", "3"]);
}

#[tokio::test]
async fn an_invalid_request_is_refused_and_creates_no_thread() {
    let fixture = Fixture::start("").await;
    let mut message = first("r1", "Ada");
    message["messages"] = json!([user("1")]);
    let mut unknown = first("r1", "Ada");
    unknown["state"]["color"] = json!("red");
    let mut nameless = first("r1", "Ada");
    nameless["threadId"] = json!("");
    let mut list = first("r1", "Ada");
    list["resume"] = json!([["i", "resolved"]]);
    for (request, word) in [
        (message, "`Greet` has no channel for the messages"),
        (unknown, "has no channel `color`"),
        (nameless, "thread id"),
        (list, "resume[0]"),
    ] {
        let (status, code, why) = refusal(&fixture, &request).await;
        assert_eq!((status, code.as_str()), (400, "invalid"), "{why}");
        assert!(why.contains(word), "{why}");
    }
    for path in ["/api/v1/apps/other/graphs/Greet/ag-ui", "/api/v1/apps/greeter/graphs/X/ag-ui"] {
        let (status, problem) = fixture.post(path, &first("r1", "Ada")).await;
        assert_eq!((status, &problem["code"]), (404, &json!("not-found")), "{path}: {problem}");
    }
    let (status, problem) = fixture.post(&format!("{PATH}?wait=1"), &first("r1", "Ada")).await;
    assert_eq!(status, 400, "{problem}");
    assert_eq!(fixture.get("/api/v1/threads/front%20desk").await.0, 404);
}

#[tokio::test]
async fn a_thread_and_a_run_belong_to_one_graph_and_one_tenant() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["greeter", "other"] {
        write_app(&folder.path().join("plugins"), name);
    }
    let fixture = Fixture::start_in(folder, "[server]\ntenant_header = \"x-tenant\"\n").await;
    let post = async |tenant: &str, path: &str, run: &str| {
        let post = fixture.client.post(fixture.url(path)).json(&first(run, "Ada"));
        answer(post.header("x-tenant", tenant)).await
    };
    assert_eq!(post("acme", PATH, "r1").await.0, 200);
    let other = "/api/v1/apps/other/graphs/Greet/ag-ui";
    for (tenant, path, run, word) in [
        ("globex", PATH, "r2", "is taken"),
        ("acme", other, "r2", "is of graph `Greet` of app `greeter`"),
    ] {
        let (status, problem) = post(tenant, path, run).await;
        assert_eq!((status, &problem["code"]), (409, &json!("conflict")), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{problem}");
    }
    let mut elsewhere = first("r1", "Ada");
    elsewhere["threadId"] = json!("elsewhere");
    let again = fixture.client.post(fixture.url(PATH)).json(&elsewhere).header("x-tenant", "acme");
    let (status, problem) = answer(again).await;
    assert_eq!((status, &problem["code"]), (409, &json!("conflict")), "{problem}");
}

#[tokio::test]
async fn a_request_after_a_failed_run_retries_the_run() {
    let fixture = Fixture::start("").await;
    let failed = events(&fixture, &first("r1", "nobody")).await;
    assert_eq!(failed.last().unwrap()["code"], "rude");
    let failed = events(&fixture, &first("r2", "Ada")).await;
    let end = failed.last().unwrap();
    assert_eq!((&end["type"], &end["code"]), (&json!("RUN_ERROR"), &json!("rude")));
    let (_, trace) = fixture.get("/api/v1/threads/front%20desk/trace").await;
    assert_eq!(trace["runs"][1]["reason"], "retry", "the thread keeps its state: {trace}");
}

fn reference(run: &str) -> RunRef {
    let thread = ThreadId::new("front desk").unwrap();
    RunRef { thread, run: RunId::new(run).unwrap() }
}

#[tokio::test]
async fn a_disconnect_of_the_client_ends_the_run_only_on_request() {
    for (query, is_cancelled) in [("?cancel_on_disconnect=true", true), ("", false)] {
        let fixture = Fixture::start("").await;
        let url = fixture.url(&format!("{PATH}{query}"));
        let post = fixture.client.post(url).json(&first("r1", SLOW));
        let mut response = post.send().await.unwrap();
        assert!(response.chunk().await.unwrap().is_some());
        drop(response);
        let (engine, run) = (fixture.server.engine.clone(), reference("r1"));
        if !is_cancelled {
            assert!(engine.is_active(&run.thread));
            engine.cancel(&run).await.unwrap();
        }
        assert_eq!(engine.wait(&run).await.unwrap().outcome, RunOutcome::Cancelled);
    }
}

#[tokio::test]
async fn the_stream_of_a_run_that_is_cancelled_in_the_queue_ends() {
    let fixture = Fixture::start("").await;
    let running = fixture.client.post(fixture.url(PATH)).json(&first("r1", SLOW));
    let mut running = running.send().await.unwrap();
    assert!(running.chunk().await.unwrap().is_some());
    let mut next = first("r2", "Ada");
    next["messages"] = json!([]);
    let pending = fixture.client.post(fixture.url(PATH)).json(&next).send().await.unwrap();
    assert_eq!(pending.status(), 200);
    assert_eq!(fixture.get("/api/v1/runs/r2").await.1["status"], "pending");
    let (status, cancelled) = fixture.post("/api/v1/runs/r2/cancel", &json!({})).await;
    assert_eq!(status, 202, "{cancelled}");
    let told = documents(&pending.text().await.unwrap());
    assert_eq!(types(&told), ["RUN_STARTED", "RUN_FINISHED"]);
    assert_eq!(told[1]["runId"], "r2");
    assert_eq!(told[1]["outcome"], json!({ "type": "cancelled" }));
    let ai_sdk = fixture.url("/api/v1/threads/front%20desk/events?format=ai-sdk&run=r2");
    let ai_sdk = fixture.client.get(ai_sdk).send().await.unwrap().text().await.unwrap();
    assert_eq!(ai_sdk, "data: {\"type\":\"abort\"}\n\ndata: [DONE]\n\n");
    fixture.server.engine.cancel(&reference("r1")).await.unwrap();
}
