//! Tests of conversations with an agent as the streams of the AI SDK and of AG-UI, with real
//! components, the real server, and a model that follows the script of the user.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use wattle_kit::need;
use wattle_kit::needs::{LeftOut, clients};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::binary;
use wattle_suite::desk::{Desk, MODEL_PATH, message};
use wattle_suite::scene::Scene;
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::workspace;

/// A script that calls a tool too early, then calls the tools in order; then the model reports the
/// results of the tools.
const SCRIPT: &str = "call add {\"a\":1,\"b\":2}\ncall echo {\"text\":\"a\"}\nthen\n\
                      call add {\"a\":1,\"b\":2}";

/// The path where the stand-in holds requests.
const HELD: &str = "/count/held";

async fn server() -> TestServer {
    let desk = Desk::with("order = [{ tool = \"add\", after = [\"echo\"] }]");
    Setup::desk(&desk).await.start().await
}

async fn read(server: &TestServer, run: &Value, format: &str) -> String {
    let thread = run["thread"].as_str().unwrap();
    let path = format!("/api/v1/threads/{thread}/events?format={format}");
    let response = server.request("GET", &path).send().await.unwrap();
    response.text().await.unwrap()
}

/// Returns the documents of a stream, without comments.
fn documents(text: &str) -> Vec<Value> {
    let data = text.split("\n\n").filter_map(|block| block.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

fn of_type<'d>(documents: &'d [Value], name: &str) -> Vec<&'d Value> {
    documents.iter().filter(|it| it["type"] == name).collect()
}

#[tokio::test]
async fn calls_and_results_are_parts_of_the_message() {
    let server = server().await;
    let run = server.chat(SCRIPT).await;
    let text = read(&server, &run, "ai-sdk").await;
    let chunks = documents(&text);
    let steps = of_type(&chunks, "start-step").len();
    assert_eq!((steps, of_type(&chunks, "finish-step").len()), (3, 3), "{text}");
    let made = of_type(&chunks, "tool-input-available");
    let names: Vec<&str> = made.iter().map(|it| it["toolName"].as_str().unwrap()).collect();
    assert_eq!(names, ["add", "echo", "add"]);
    assert_eq!(made[0]["input"], json!({ "a": 1, "b": 2 }));
    let refused = of_type(&chunks, "tool-output-error");
    assert_eq!(refused.len(), 1, "{text}");
    assert_eq!(refused[0]["toolCallId"], made[0]["toolCallId"]);
    assert_eq!(
        refused[0]["errorText"], "call `echo` first, wait for the result, then call `add`",
        "a call that does not reach its tool also has a result"
    );
    let answered = of_type(&chunks, "tool-output-available");
    let ids: Vec<&Value> = answered.iter().map(|it| &it["toolCallId"]).collect();
    assert_eq!(ids, [&made[1]["toolCallId"], &made[2]["toolCallId"]]);
    let said: String =
        of_type(&chunks, "text-delta").iter().filter_map(|it| it["delta"].as_str()).collect();
    assert!(said.contains("The tools answered"), "{text}");
    assert_eq!(chunks.last().unwrap()["finishReason"], "stop");
    assert!(text.ends_with("data: [DONE]\n\n"));
}

#[tokio::test]
async fn live_and_later_readers_receive_the_same_stream() {
    let server = server().await;
    for format in ["ai-sdk", "ag-ui"] {
        let begun = message(None, SCRIPT);
        let run = server.post("/api/v1/apps/desk/runs", &begun).await.expect(202);
        let along = read(&server, &run, format).await;
        let later = read(&server, &run, format).await;
        assert_eq!(documents(&along), documents(&later));
    }
}

#[tokio::test]
async fn an_ag_ui_stream_has_steps_calls_and_the_state() {
    let server = server().await;
    let run = server.chat(SCRIPT).await;
    let text = read(&server, &run, "ag-ui").await;
    let events = documents(&text);
    assert_eq!(events[0]["type"], "RUN_STARTED");
    assert_eq!(events[0]["threadId"], run["thread"]);
    let steps = of_type(&events, "STEP_STARTED");
    assert_eq!(steps[0]["stepName"], "agent");
    assert_eq!(steps.len(), of_type(&events, "STEP_FINISHED").len());
    assert_eq!(of_type(&events, "TOOL_CALL_RESULT").len(), 3, "{text}");
    let snapshot = of_type(&events, "STATE_SNAPSHOT")[0];
    assert_eq!(snapshot["snapshot"]["messages"], run["state"]["messages"]);
    assert_eq!(events.last().unwrap()["outcome"], json!({ "type": "success" }));
}

#[tokio::test]
async fn the_stream_of_a_failed_run_has_the_failure() {
    let server = server().await;
    let down = Fault::Status { status: 400, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::path(MODEL_PATH), down));
    let run = server.say(None, "say hello").await;
    assert_eq!(run["status"], "failed", "{run}");
    let chunks = documents(&read(&server, &run, "ai-sdk").await);
    let last = chunks.last().unwrap();
    assert_eq!((&last["type"], &last["errorText"]), (&json!("error"), &run["failure"]["message"]));
}

#[tokio::test]
async fn a_cancelled_run_closes_its_open_calls() {
    let server = server().await;
    let gate = server.standin().gate(Pattern::path(HELD));
    let held = format!("{}{HELD}", server.standin().base_url);
    let script = format!("call net {{\"url\":\"{held}\"}}");
    let begun = message(None, &script);
    let run = server.post("/api/v1/apps/desk/runs", &begun).await.expect(202);
    let path = format!("/api/v1/threads/{}/events?format=ai-sdk", run["thread"].as_str().unwrap());
    let mut response = server.request("GET", &path).send().await.unwrap();
    let mut text = String::new();
    while !text.contains("tool-input-available") {
        text.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    gate.arrived(1).await.unwrap();
    let cancel = format!("/api/v1/runs/{}/cancel", run["run"].as_str().unwrap());
    server.post(&cancel, &json!({})).await.expect(202);
    while let Some(chunk) = response.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    let chunks = documents(&text);
    let end: Vec<&str> =
        chunks[chunks.len() - 3..].iter().map(|it| it["type"].as_str().unwrap()).collect();
    assert_eq!(end, ["tool-output-error", "finish-step", "abort"], "{text}");
}

/// How long the client may take. Node starts slowly on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The installed clients of AG-UI: the newest version, and the last one before version 1.
const AG_UI: [&str; 2] = ["ag-ui", "ag-ui-older"];

/// Returns what an official client of AG-UI has after it has read a stream.
async fn read_by_client(client: &str, server: &TestServer, run: &Value) -> Result<Value, LeftOut> {
    let thread = run["thread"].as_str().unwrap();
    let url = server.url(&format!("/api/v1/threads/{thread}/events?format=ag-ui"));
    run_client(client, &["read.mjs", &url]).await
}

/// Returns what an official client of AG-UI has after a conversation with the app.
async fn converse(
    client: &str,
    server: &TestServer,
    thread: &str,
    steps: &Value,
) -> Result<Value, LeftOut> {
    let url = server.url("/api/v1/apps/desk/graphs/chat/ag-ui");
    run_client(client, &["agent.mjs", &url, thread, &steps.to_string()]).await
}

/// Runs a program that uses an official client of AG-UI, and returns what it says.
async fn run_client(client: &str, args: &[&str]) -> Result<Value, LeftOut> {
    let folder = clients::node(client)?;
    let mut command = Command::new("node");
    command.args(args).current_dir(folder);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let read = tokio::time::timeout(PATIENCE, command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "{said}");
    Ok(serde_json::from_slice(&read.stdout).unwrap())
}

#[tokio::test]
async fn official_clients_of_ag_ui_read_a_run() {
    let server = server().await;
    let run = server.chat(SCRIPT).await;
    for client in AG_UI {
        let seen = need!(read_by_client(client, &server, &run).await);
        assert_eq!(seen["outcome"], json!({ "type": "success" }), "{client}");
        assert_eq!(seen["state"]["messages"], run["state"]["messages"], "{client}");
        let messages = seen["messages"].as_array().unwrap();
        let answers = messages.iter().filter(|message| message["role"] == "tool");
        let answers: Vec<&str> = answers.map(|it| it["content"].as_str().unwrap()).collect();
        assert!(answers.contains(&"{\"sum\":3}"), "{client}: {answers:?}");
        let corrects = |it: &&str| it.starts_with("call `echo` first");
        assert!(answers.iter().any(corrects), "{client}: {answers:?}");
        let words = messages.last().unwrap();
        assert_eq!(words["role"], "assistant", "{client}");
        let content = words["content"].as_str().unwrap();
        assert!(content.starts_with("The tools answered"), "{client}: {words}");
    }
}

#[tokio::test]
async fn official_clients_of_ag_ui_receive_the_interrupt() {
    let server = server().await;
    let run = server.say(None, "call ask_first {\"question\":\"sure?\"}").await;
    assert_eq!(run["status"], "interrupted", "{run}");
    for client in AG_UI {
        let seen = need!(read_by_client(client, &server, &run).await);
        let interrupt = &seen["outcome"]["interrupts"][0];
        assert_eq!(interrupt["id"], run["interrupts"][0]["id"], "{client}");
        let payload = &interrupt["metadata"]["payload"];
        assert_eq!(payload, &run["interrupts"][0]["payload"], "{client}");
    }
}

fn roles(messages: &Value) -> Vec<&str> {
    messages.as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_agent_of_ag_ui_runs_answers_and_goes_on() {
    let server = server().await;
    let ask = "call ask_first {\"question\":\"sure?\"}";
    let steps = json!([{ "say": ask }, { "answer": "yes" }, { "say": "hello" }]);
    for client in AG_UI {
        let thread = format!("front desk {client}");
        let seen = need!(converse(client, &server, &thread, &steps).await);
        let ends: Vec<&Value> =
            seen["outcomes"].as_array().unwrap().iter().map(|it| &it["type"]).collect();
        assert_eq!(ends, ["interrupt", "success", "success"], "{client}: {seen:#}");
        assert_eq!(seen["echoes"], json!([true, true, true]), "{client}");
        let order = ["user", "assistant", "tool", "assistant", "user", "assistant"];
        assert_eq!(roles(&seen["messages"]), order, "{client}: {seen:#}");
        let function = &seen["messages"][1]["toolCalls"][0]["function"];
        let arguments = function["arguments"].as_str().unwrap();
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        assert_eq!(arguments, json!({ "question": "sure?" }), "{client}: they are not sent again");

        let path = format!("/api/v1/threads/front%20desk%20{client}/state");
        let state = server.get(&path).await.expect(200);
        assert_eq!(seen["state"]["messages"], state["messages"], "{client}");
        assert_eq!(roles(&state["messages"]), order, "{client}: no message is added twice");
        for place in [0, 4] {
            let (stored, sent) = (&state["messages"][place], &seen["messages"][place]);
            assert_eq!(stored["id"], sent["id"], "{client}");
        }
    }
    let models = server.standin().requests().into_iter().filter(|it| it.path == MODEL_PATH);
    assert_eq!(models.count(), 3 * AG_UI.len(), "each model turn is paid once");
}

#[tokio::test]
async fn an_agent_of_ag_ui_dismisses_an_approval() {
    let desk = Desk::with("approve = { tools = \"*\" }");
    let server = Setup::desk(&desk).await.start().await;
    let call = json!({ "say": "call echo {\"text\":\"a\"}" });
    let rejected =
        need!(converse(AG_UI[0], &server, "one", &json!([call, { "cancel": true }])).await);
    assert_eq!(rejected["outcomes"][1], json!({ "type": "success" }), "{rejected:#}");
    assert_eq!(roles(&rejected["messages"]), ["user", "assistant", "tool", "assistant"]);
    assert_eq!(rejected["messages"][2]["content"], "a person rejected the call");

    let other = json!({ "say": "hello", "cancel": true });
    let changed = need!(converse(AG_UI[0], &server, "two", &json!([call, other])).await);
    assert_eq!(changed["outcomes"][1], json!({ "type": "success" }), "{changed:#}");
    let state = server.get("/api/v1/threads/two/state").await.expect(200);
    let said: Vec<&Value> = state["messages"].as_array().unwrap().iter().collect();
    let users = said.iter().filter(|message| message["role"] == "user");
    let newest = users.map(|message| &message["content"]).next_back();
    assert_eq!(newest, Some(&json!("hello")));
    assert_eq!(said.last().unwrap()["role"], "assistant");
}

#[tokio::test]
async fn a_call_that_waits_for_a_person_gets_its_result_in_the_next_run() {
    let server = server().await;
    let run = server.say(None, "call ask_first {\"question\":\"sure?\"}").await;
    let before = documents(&read(&server, &run, "ai-sdk").await);
    let question = of_type(&before, "data-interrupt")[0];
    assert_eq!(question["id"], run["interrupts"][0]["id"]);
    assert_eq!(before.last().unwrap()["finishReason"], "tool-calls");
    let made = of_type(&before, "tool-input-available")[0];
    let ended = server.decide(run["thread"].as_str().unwrap(), &json!({ "": "yes" })).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    let after = documents(&read(&server, &run, "ai-sdk").await);
    assert_ne!(before[0]["messageId"], after[0]["messageId"], "the next run has its own message");
    assert_eq!(of_type(&after, "tool-input-available")[0]["toolCallId"], made["toolCallId"]);
    assert_eq!(of_type(&after, "tool-output-available")[0]["toolCallId"], made["toolCallId"]);
    assert_eq!(after.last().unwrap()["finishReason"], "stop");
}

#[tokio::test]
async fn a_crash_during_an_answer_leaves_the_message_complete() {
    let scene = Scene::new(|workspace, standin| {
        let desk = Desk::default();
        desk.put(workspace);
        [workspace::base_toml(standin), desk.toml(standin.addr.port())].concat()
    })
    .await;
    let gate = scene.standin.stream_gate(Pattern::path(MODEL_PATH));
    gate.release(2);
    let mut server = binary::serve(&scene.workspace).await;
    let begun = message(None, "hello");
    let run = scene.post(&server, "/api/v1/apps/desk/runs", &begun).await.expect(202);
    let thread = run["thread"].as_str().unwrap();
    let path = format!("/api/v1/threads/{thread}/events?format=ai-sdk");
    let mut response = reqwest::get(format!("{}{path}", server.url)).await.unwrap();
    let mut before = String::new();
    while !before.contains("text-delta") {
        before.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    server.program.kill().await.unwrap();
    let server = binary::serve(&scene.workspace).await;
    gate.open();
    let read = reqwest::get(format!("{}{path}", server.url)).await.unwrap();
    let after = documents(&read.text().await.unwrap());
    let seen = documents(&before);
    assert_eq!(after[..seen.len()], seen, "documents that were sent do not change");
    let types = |name| of_type(&after, name).len();
    assert_eq!((types("start"), types("start-step"), types("finish-step")), (1, 1, 1));
    assert_eq!((types("text-start"), types("text-end")), (2, 2), "the answer is sent again");
    assert_eq!(after.last().unwrap()["finishReason"], "stop");
}
