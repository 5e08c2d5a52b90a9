//! Tests of questions from MCP servers to people through the interfaces of the host: the native
//! API, the Agent Server, AG-UI, and the command line.

mod killed;

use serde_json::{Value, json};
use wattle_kit::replay::{Case, Replays};
use wattle_suite::binary;
use wattle_suite::desk::tool_messages;
use wattle_suite::event_stream::blocks;
use wattle_suite::server::{Setup, TestServer};

use super::{as_program, mcp, over_http, read};

/// The name of the replayed case in both folders, and of its app and graph.
const CASE: &str = "asks-a-person";

/// The name of the replayed case whose question a person cancels, and of its app and graph.
const CANCELLED: &str = "asks-a-person-who-cancels";

fn cases(area: &str, name: &str) -> Vec<Case> {
    let mut cases = read(area);
    cases.retain(|case| case.name == name);
    cases
}

fn input(cases: &[Case]) -> Value {
    json!({ "messages": [{ "role": "user", "content": cases[0].key("say") }] })
}

fn accept() -> Value {
    json!({ "action": "accept", "content": { "sure": true } })
}

async fn start(server: &TestServer, cases: &[Case]) -> (String, Value) {
    let start = json!({ "graph": CASE, "input": input(cases), "wait": true });
    let run = server.post(&format!("/api/v1/apps/{CASE}/runs"), &start).await.expect(200);
    assert_eq!(run["interrupts"][0]["payload"]["message"], "Sure?", "{run}");
    (run["thread"].as_str().unwrap().to_owned(), run)
}

async fn resume(server: &TestServer, thread: &str, answer: &Value) -> Value {
    let resume = json!({ "answers": { "": answer }, "wait": true });
    server.post(&format!("/api/v1/threads/{thread}/resume"), &resume).await.expect(200)
}

/// Returns the tool results of an agent as clients of the Agent Server receive them.
fn told(values: &Value) -> Vec<&Value> {
    let messages = values["messages"].as_array().into_iter().flatten();
    messages.filter(|it| it["type"] == "tool").map(|it| &it["content"]).collect()
}

/// Returns the request of an AG-UI client with one message, and with entries for the pending
/// interrupts.
fn client_request(thread: &str, run: &str, words: &str, resume: &Value) -> Value {
    json!({
        "threadId": thread,
        "runId": run,
        "messages": [{ "id": "m1", "role": "user", "content": words }],
        "resume": resume,
    })
}

/// Returns the events of a stream of AG-UI.
fn client_events(stream: &Value) -> Vec<Value> {
    let blocks = blocks(stream.as_str().unwrap());
    blocks.filter_map(|block| serde_json::from_str(&block.data?).ok()).collect()
}

/// Returns the tool result among the events of an AG-UI client.
fn client_result(events: &[Value]) -> &Value {
    let result = events.iter().find(|event| event["type"] == "TOOL_CALL_RESULT");
    &result.unwrap_or_else(|| panic!("{events:?}"))["content"]
}

/// The program that asked ends with the host, so its call is in doubt. The repeated call asks the
/// same question and receives the answer.
#[tokio::test]
async fn a_question_of_a_program_survives_a_restart() {
    let cases = cases("mcp-stdio", CASE);
    let reach = |case: &Case| {
        let tools = format!("tools = [\"mcp:{CASE}/*\"]");
        format!("{}\n[grants.std]\nllm = [\"chat\"]\n{tools}\nin_doubt = \"ask\"", as_program(case))
    };
    let server = mcp("mcp-stdio", &cases, None, reach).await.start().await;
    let (thread, _) = start(&server, &cases).await;
    let server = server.restart().await;
    let run = resume(&server, &thread, &accept()).await;
    let doubt = &run["interrupts"][0]["payload"]["in_doubt"];
    assert_eq!(doubt["function"], "tools.call", "{run}");
    let message = doubt["message"].as_str().unwrap_or_default();
    assert!(message.contains("waited for the answer of a person"), "{message}");
    let run = resume(&server, &thread, &json!({ "kind": "retry" })).await;
    assert_eq!(tool_messages(&run)[0]["content"], "3", "{run}");
}

/// A server of the newer protocol keeps no state, so a restart or a copy of a thread loses nothing.
#[tokio::test]
async fn a_question_can_be_answered_through_every_interface() {
    let cases = cases("mcp-http", CASE);
    let replays = Replays::start(&cases).await.unwrap();
    let reach = |case: &Case| over_http(&replays, case);
    let server = mcp("mcp-http", &cases, None, reach).await.start().await;

    let (native, run) = start(&server, &cases).await;
    let schema = &run["interrupts"][0]["response_schema"]["then"]["properties"]["content"];
    assert_eq!(schema["required"], json!(["sure"]), "{run}");
    for place in ["events?until=idle", "trace", "checkpoints/latest"] {
        let shown = server.get(&format!("/api/v1/threads/{native}/{place}")).await.expect(200);
        assert!(!shown.to_string().contains("opaque-1"), "{place}: {shown}");
    }

    let made = server.post("/threads", &json!({})).await.expect(200);
    let agents = format!("/threads/{}", made["thread_id"].as_str().unwrap());
    let wait = format!("{agents}/runs/wait");
    let run = json!({ "assistant_id": CASE, "input": input(&cases) });
    server.post(&wait, &run).await.expect(200);
    let state = server.get(&format!("{agents}/state")).await.expect(200);
    assert_eq!(state["interrupts"][0]["value"]["message"], "Sure?", "{state}");
    let copy = server.post(&format!("{agents}/copy"), &json!({})).await.expect(200);
    let copy = format!("/threads/{}", copy["thread_id"].as_str().unwrap());

    let server = server.restart().await;
    let wrong = json!({ "answers": { "": { "action": "accept" } }, "wait": true });
    let resumes = format!("/api/v1/threads/{native}/resume");
    assert_eq!(server.post(&resumes, &wrong).await.status, 400);
    let run = resume(&server, &native, &accept()).await;
    assert_eq!(tool_messages(&run)[0]["content"], "3", "{run}");
    for thread in [&copy, &agents] {
        let run = json!({ "assistant_id": CASE, "command": { "resume": accept() } });
        let values = server.post(&format!("{thread}/runs/wait"), &run).await.expect(200);
        assert_eq!(told(&values), [&json!("3")], "{values}");
    }
}

#[tokio::test]
async fn a_client_of_ag_ui_cancels_a_question() {
    let cases = cases("mcp-http", CANCELLED);
    let replays = Replays::start(&cases).await.unwrap();
    let reach = |case: &Case| over_http(&replays, case);
    let server = mcp("mcp-http", &cases, None, reach).await.start().await;
    let path = format!("/api/v1/apps/{CANCELLED}/graphs/{CANCELLED}/ag-ui");
    let words = cases[0].key("say").unwrap();
    let run = async |run: &str, resume: Value| {
        let request = client_request("front-desk", run, words, &resume);
        client_events(&server.post(&path, &request).await.expect(200))
    };
    let asked = run("run-1", json!([])).await;
    let interrupt = &asked.last().unwrap()["outcome"]["interrupts"][0];
    assert_eq!(interrupt["message"], "Sure?", "{asked:?}");
    let entry = json!({ "interruptId": interrupt["id"], "status": "cancelled" });
    let ended = run("run-2", json!([entry])).await;
    assert_eq!(client_result(&ended), "nothing was added", "{ended:?}");
    assert_eq!(ended.last().unwrap()["outcome"]["type"], "success", "{ended:?}");
}

#[tokio::test]
async fn a_question_can_be_answered_on_the_command_line() {
    let cases = cases("mcp-http", CASE);
    let replays = Replays::start(&cases).await.unwrap();
    let setup: Setup = mcp("mcp-http", &cases, None, |case: &Case| over_http(&replays, case)).await;
    setup.workspace.share_compiled_code();
    setup.config();
    let input = input(&cases).to_string();
    let run = ["run", CASE, "--json", "--quiet", "--input", &input];
    let asked = binary::run(&setup.workspace, &run).await;
    assert_eq!(asked.code, 5, "{}", asked.text());
    let thread = asked.json()["thread"].as_str().unwrap().to_owned();
    let answer = accept().to_string();
    let resume = ["thread", "resume", &thread, "--json", "--quiet", "--answer", &answer];
    let ended = binary::run(&setup.workspace, &resume).await;
    assert_eq!(ended.code, 0, "{}", ended.text());
    assert_eq!(tool_messages(&ended.json())[0]["content"], "3", "{}", ended.text());
}
