//! Test of questions whose host is killed in the middle of the calls that ask them. The next host
//! takes the answers through the native API, AG-UI and a web handler of the app.

use std::fs;

use serde_json::{Value, json};
use wattle_suite::binary::{self, Served};
use wattle_suite::desk::tool_messages;
use wattle_suite::scene::Scene;
use wattle_suite::{guests, workspace};

use super::{accept, client_events, client_request, client_result};
use crate::replays::GRAPH;

/// The app: the agent of the plugin `std`, with the web handlers of the application `notes`.
const APP: &str = r#"
[app]
name = "booking"
version = "0.1.0"
doc = "an agent whose tools ask a person"
web = "notes"
[components]
notes = "notes.wasm"
[needs]
memory = [{ namespace = ["notes"], access = "read-write" }]
[needs.plugins.std]
llm = ["chat"]
tools = ["mcp:booking/*"]
"#;

/// A program with two tools that ask in the middle of a call. Only `book` permits repetitions.
const PROGRAM: &str = r#">>>* initialize
<<<

{"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"booking","version":"1"}}}
>>>* notifications/initialized
<<<

>>>* tools/list
<<<

{"jsonrpc":"2.0","id":$id,"result":{"tools":[{"name":"book","inputSchema":{"type":"object"},"annotations":{"idempotentHint":true}},{"name":"pay","inputSchema":{"type":"object"}}]}}
>>>* tools/call
<<<

{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}}}
>>>* answer
/result = {"action":"accept","content":{"sure":true}}
<<<

{"jsonrpc":"2.0","id":$call,"result":{"content":[{"type":"text","text":"done"}]}}
"#;

/// The file with all messages that processes of the program received.
const LOG: &str = "received.jsonl";

/// The id of the thread of the AG-UI client.
const CLIENT_THREAD: &str = "front-desk";

async fn scene() -> Scene {
    Scene::new(|workspace, standin| {
        workspace.write("plugins/std/std.wasm", guests::bytes("wattle-std"));
        workspace.write("plugins/apps/booking/app.toml", APP);
        let graph = GRAPH.replace("NAME", "notes").replace("ROUTE", "chat").replace("AGENT", "");
        workspace.write("plugins/apps/booking/graph.toml", graph);
        workspace.write("program.txt", PROGRAM);
        let program = binary::path().with_file_name("wattle-standin-mcp");
        let in_folder = |file: &str| workspace.root().join(file).display().to_string();
        let (transcript, log) = (in_folder("program.txt"), in_folder(LOG));
        let args = ["--replay", &transcript, "--log", &log];
        let config = format!(
            "[apps.booking]\npath = \"plugins/apps/booking\"\ncomponents = {{ notes = {:?} }}\n\
             [mcp.booking]\ncommand = {:?}\nargs = {args:?}\nhandshake = true\n\
             [grants.std]\nllm = [\"chat\"]\ntools = [\"mcp:booking/*\"]\nin_doubt = \"ask\"\n",
            guests::path("wattle-app-notes").display().to_string(),
            program.display().to_string(),
        );
        workspace::base_toml(standin) + &config
    })
    .await
}

/// Returns the numbers of calls and of answers that processes of the program received.
fn received(scene: &Scene) -> (usize, usize) {
    let text = fs::read_to_string(scene.workspace.root().join(LOG)).unwrap();
    let messages = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let messages: Vec<Value> = messages.collect();
    let calls = messages.iter().filter(|message| message["method"] == "tools/call");
    let answers = messages.iter().filter(|message| message["result"]["action"] == "accept");
    (calls.count(), answers.count())
}

/// Returns the pending interrupts of all threads.
async fn pending(scene: &Scene, server: &Served) -> Vec<Value> {
    let listed = scene.get(server, "/api/v1/interrupts").await;
    let items = listed["items"].as_array().unwrap().iter();
    items.map(|item| item["interrupt"].clone()).collect()
}

/// Runs the agent for an AG-UI client with answers to its interrupts. Returns the events.
async fn as_client(scene: &Scene, server: &Served, run: &str, resume: &Value) -> Vec<Value> {
    let body = client_request(CLIENT_THREAD, run, "call book {}", resume);
    let path = "/api/v1/apps/booking/graphs/notes/ag-ui";
    client_events(&scene.post(server, path, &body).await.expect(200))
}

/// Answers the only pending interrupt of a thread through the native API.
async fn resume(scene: &Scene, server: &Served, thread: &str, answer: &Value) -> Value {
    let path = format!("/api/v1/threads/{thread}/resume");
    let body = json!({ "answers": { "": answer }, "wait": true });
    scene.post(server, &path, &body).await.expect(200)
}

/// Each process of the program ends with its host, so each call is made again, with the answer:
/// that of `book` at once, that of `pay` if a person decides so.
#[tokio::test]
async fn a_question_of_a_killed_host_is_answered_through_every_interface() {
    let scene = scene().await;
    let mut server = binary::serve(&scene.workspace).await;
    let input = json!({ "messages": [{ "role": "user", "content": "call pay {}" }] });
    let start = json!({ "graph": "notes", "input": input, "wait": true });
    let started = scene.post(&server, "/api/v1/apps/booking/runs", &start).await.expect(200);
    let shown = as_client(&scene, &server, "run-1", &json!([])).await;
    let shown = &shown.last().unwrap()["outcome"]["interrupts"][0];
    assert_eq!(shown["message"], "Sure?", "{shown}");
    let message = json!({ "message": "call book {}" });
    let waiting = scene.post(&server, "/apps/booking/api/chat", &message).await.expect(202);
    let asked = pending(&scene, &server).await;
    assert_eq!((asked.len(), received(&scene)), (3, (3, 0)));
    for question in &asked {
        let content = &question["response_schema"]["then"]["properties"]["content"];
        assert_eq!(content["required"], json!(["sure"]), "{question}");
    }

    server.program.kill().await.unwrap();
    let server = binary::serve(&scene.workspace).await;
    assert_eq!(pending(&scene, &server).await, asked);
    assert_eq!(received(&scene), (3, 0), "no call is made again without its answer");

    let thread = started["thread"].as_str().unwrap();
    let run = resume(&scene, &server, thread, &accept()).await;
    assert_eq!(run["interrupts"][0]["payload"]["in_doubt"]["function"], "tools.call", "{run}");
    assert_eq!(received(&scene), (3, 0), "a person decides about the call");
    let run = resume(&scene, &server, thread, &json!({ "kind": "retry" })).await;
    assert_eq!(tool_messages(&run)[0]["content"], "done", "{run}");

    let entry = json!({ "interruptId": shown["id"], "status": "resolved", "payload": accept() });
    let events = as_client(&scene, &server, "run-2", &json!([entry])).await;
    assert_eq!(client_result(&events), "done", "{events:?}");
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success", "{events:?}");

    let path =
        format!("/apps/booking/api/threads/{}/answers", waiting["threadId"].as_str().unwrap());
    let answer = json!({ "id": waiting["questions"][0]["id"], "answer": accept() });
    let reply = scene.post(&server, &path, &answer).await.expect(200);
    assert_eq!(reply["reply"], "The tools answered:\nbook: done", "{reply}");
    assert_eq!(received(&scene), (6, 3), "each call has one answer");
    scene.post(&server, &path, &answer).await.expect(409);
    assert_eq!(received(&scene), (6, 3));
}
