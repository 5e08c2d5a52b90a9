//! Tests with FastMCP, whose tools ask a person during a call. `cargo xtask peers` installs it and
//! runs these tests.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;
use wattle_kit::need;
use wattle_kit::needs::clients::{self, PEERS};
use wattle_kit::process::Program;
use wattle_suite::binary::{self, Served};
use wattle_suite::desk::{Desk, message, tool_messages};
use wattle_suite::scene::Scene;
use wattle_suite::{guests, workspace};

/// How long a server may take. It starts within three seconds, and slowly on a busy machine.
const PATIENCE: &str = "120s";

/// The question of every tool.
const QUESTION: &str = "How many seats to Rome?";

fn script() -> PathBuf {
    guests::root().join("tests/clients/peers/server.py")
}

/// Starts the server over HTTP and returns it with its address. The server ends when the program is
/// dropped.
async fn over_http(python: &Path) -> (Program, String) {
    let mut command = Command::new(python);
    command.arg("-B").arg(script()).arg("http").env("NO_PROXY", "*");
    let mut program = Program::start(command).unwrap();
    let address = program.uvicorn_address().await.unwrap();
    (program, address)
}

/// Prepares an agent with the tools of three servers: `stateless` over HTTP, `handshake` as the
/// same server with the handshake of sessions, and the program `session`.
async fn scene(python: &Path, address: &str) -> Scene {
    Scene::new(|workspace, standin| {
        let granted = json!(["mcp:stateless/*", "mcp:handshake/*", "mcp:session/*"]).to_string();
        let desk = Desk { granted, ..Desk::default() };
        desk.put(workspace);
        let servers = format!(
            "[mcp.stateless]\nurl = \"{address}/mcp\"\nprivate = true\ntimeout = \"{PATIENCE}\"\n\
             [mcp.handshake]\nurl = \"{address}/mcp\"\nprivate = true\nhandshake = true\n\
             timeout = \"{PATIENCE}\"\n\
             [mcp.session]\ncommand = \"{}\"\nargs = [\"-B\", \"{}\", \"stdio\"]\n\
             timeout = \"{PATIENCE}\"\n",
            python.display(),
            script().display()
        );
        [workspace::base_toml(standin), desk.toml(standin.addr.port()), servers].concat()
    })
    .await
}

/// Makes the agent call a tool. Returns the run at its first question or at its end.
async fn call(scene: &Scene, server: &Served, tool: &str) -> Value {
    let mut start = message(None, &format!("call {tool} {{\"city\":\"Rome\"}}"));
    start["wait"] = true.into();
    scene.post(server, "/api/v1/apps/desk/runs", &start).await.expect(200)
}

/// Returns the only tool result of a completed run.
fn told(run: &Value) -> (String, String) {
    assert_eq!(run["status"], "completed", "{run}");
    let messages = tool_messages(run);
    assert_eq!(messages.len(), 1, "{run}");
    let text = |field: &str| messages[0][field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("content"))
}

#[tokio::test]
async fn questions_of_tools_survive_a_kill_of_the_host() {
    let python = need!(clients::python(PEERS, "python"));
    let (_peer, address) = over_http(&python).await;
    let scene = scene(&python, &address).await;
    let mut server = binary::serve(&scene.workspace).await;
    let mut asked = Vec::new();
    for (peer, tool) in [("stateless", "book"), ("handshake", "ask"), ("session", "book")] {
        for (answer, result) in [
            (json!({ "action": "accept", "content": { "seats": 2 } }), "2 seats to Rome"),
            (json!({ "action": "decline" }), "decline for Rome"),
        ] {
            let run = call(&scene, &server, &format!("mcp:{peer}/{tool}")).await;
            assert_eq!(run["status"], "interrupted", "{peer}: {run}");
            let question = &run["interrupts"][0]["payload"];
            assert_eq!(
                (&question["message"], &question["server"], &question["tool"]),
                (&json!(QUESTION), &json!(peer), &json!(tool))
            );
            asked.push((run["thread"].as_str().unwrap().to_owned(), answer, result));
        }
    }
    // The server over HTTP continues, but its sessions and the program that asked end with the
    // host. Their calls are repeated, since the tools declare that a repeated call has no further
    // effect.
    server.program.kill().await.unwrap();
    let server = binary::serve(&scene.workspace).await;
    for (thread, answer, result) in asked {
        let path = format!("/api/v1/threads/{thread}/resume");
        let body = json!({ "answers": { "": answer }, "wait": true });
        let run = scene.post(&server, &path, &body).await.expect(200);
        assert_eq!(told(&run), ("success".to_owned(), result.to_owned()));
    }
}

/// The host uses the newest protocol of a server unless it is configured to start with a handshake.
/// With the newest protocol a server cannot ask through a session, and this library returns an
/// error to the model.
#[tokio::test]
async fn a_question_through_a_missing_session_is_an_error() {
    let python = need!(clients::python(PEERS, "python"));
    let (_peer, address) = over_http(&python).await;
    let scene = scene(&python, &address).await;
    let server = binary::serve(&scene.workspace).await;
    let (status, content) = told(&call(&scene, &server, "mcp:stateless/ask").await);
    assert_eq!(status, "error");
    assert!(content.contains("elicitation via server-initiated requests"), "{content}");
}
