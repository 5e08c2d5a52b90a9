//! Tests of an agent that uses tools of MCP servers, with real components, the real server, and a
//! stand-in for the MCP server.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::{OpenOptions, Receiver};
use tokio::time::timeout;
use wattle_kit::standin::{Entry, Fault, FaultRule, Pattern};
use wattle_suite::binary::{self, Served};
use wattle_suite::desk::{Desk, last_words, message, tool_messages};
use wattle_suite::scene::Scene;
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::workspace;

/// The longest wait for the end of processes.
const SOON: Duration = Duration::from_mins(1);

/// Starts a server with an agent that may use the `granted` tools of these servers, which are
/// tables of the configuration.
async fn server(granted: &str, servers: impl FnOnce(&str) -> String) -> TestServer {
    let desk = Desk { granted: granted.to_owned(), ..Desk::default() };
    let setup = Setup::desk(&desk).await;
    let toml = servers(&setup.standin.base_url);
    setup.with(&toml).start().await
}

/// Returns the configuration of one server over HTTP.
fn over_http(name: &str, base_url: &str, query: &str) -> String {
    format!("[mcp.{name}]\nurl = \"{base_url}/mcp{query}\"\nprivate = true\n")
}

/// Returns the results of the tools with the status of each message.
fn told(run: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let messages = tool_messages(run);
    messages.iter().map(|it| (text(&it["status"]), text(&it["content"]))).collect()
}

fn calls(server: &TestServer) -> Vec<Entry> {
    let is_call =
        |entry: &Entry| entry.body.as_ref().is_some_and(|body| body["method"] == "tools/call");
    server.standin().requests().into_iter().filter(is_call).collect()
}

#[tokio::test]
async fn an_agent_calls_tools_over_each_protocol_version() {
    for query in ["", "?era=legacy&sse=1", "?era=current&sse=1"] {
        let server = server("[\"mcp:probe/*\"]", |base| over_http("probe", base, query)).await;
        let run = server
            .chat("call echo {\"text\":\"one\"}\ncall echo {\"text\":\"two\"}\ncall fail {}")
            .await;
        let told = told(&run);
        assert_eq!(told[0], ("success".into(), r#"{"text":"one"}"#.into()), "{query}");
        assert_eq!(told[1], ("success".into(), r#"{"text":"two"}"#.into()), "{query}");
        assert_eq!(told[2], ("error".into(), "the probe failed".into()), "{query}");
        assert_eq!(calls(&server).len(), 3, "{query}");
        let trace = server.get(&format!("/api/v1/threads/{}/trace", text(&run["thread"]))).await;
        assert!(trace.expect(200).to_string().contains("tools.call"), "{query}");
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[tokio::test]
async fn the_conversation_continues_after_a_server_fails() {
    let server =
        server("[\"mcp:probe/*\"]", |base| over_http("probe", base, "") + "output = \"10KiB\"\n")
            .await;
    let hits = |fault: Fault| FaultRule {
        on: Pattern { body_contains: Some("tools/call".into()), ..Pattern::any() },
        fault,
        times: Some(1),
        skip: 0,
    };
    server.standin().fault(hits(Fault::Status { status: 503, retry_after: None, body: None }));
    let run = server.chat("call echo {\"text\":\"a\"}").await;
    let away = &told(&run)[0];
    assert!(away.0 == "error" && away.1.contains("the MCP server `probe`"), "{away:?}");
    let large = server.chat("call huge {\"bytes\":20000}").await;
    let cut = &told(&large)[0];
    assert_eq!(cut.0, "success");
    assert!(cut.1.contains("[cut after 10240 of 20000 bytes;"), "{} bytes", cut.1.len());
    let thread = text(&large["thread"]).to_owned();
    let again = server.say(Some(&thread), "call echo {\"text\":\"still here\"}").await;
    let last = told(&again).pop().unwrap();
    assert_eq!(last, ("success".into(), r#"{"text":"still here"}"#.into()));
    assert!(!last_words(&again).is_empty(), "{again}");
}

#[tokio::test]
async fn a_server_checks_arguments_and_receives_only_granted_calls() {
    let server = server("[\"mcp:probe/echo\"]", |base| over_http("probe", base, "")).await;
    let run = server.chat("call echo {\"text\":1}\ncall fail {}").await;
    let told = told(&run);
    assert!(told.iter().all(|(status, _)| status == "error"), "{told:?}");
    assert!(told[0].1.contains("`text` is missing"), "the message comes from the server: {told:?}");
    let names: Vec<Value> = calls(&server)
        .into_iter()
        .filter_map(|call| Some(call.body?["params"]["name"].clone()))
        .collect();
    assert_eq!(names, ["echo"], "a call that is not granted is not sent");
}

#[tokio::test]
async fn tools_of_the_same_name_are_distinguished_by_full_names() {
    let server = server("[\"mcp:a/echo\", \"mcp:b/echo\"]", |base| {
        over_http("a", base, "?era=legacy") + &over_http("b", base, "?era=current")
    })
    .await;
    let run = server.chat("call echo {\"text\":\"?\"}\ncall mcp:b/echo {\"text\":\"b\"}").await;
    let told = told(&run);
    assert_eq!(told[0].0, "error", "{told:?}");
    assert!(told[0].1.contains("mcp:a/echo") && told[0].1.contains("mcp:b/echo"), "{told:?}");
    assert_eq!(told[1], ("success".into(), r#"{"text":"b"}"#.into()));
    assert_eq!(calls(&server).len(), 1);
    assert_eq!(calls(&server)[0].query["era"], "current");
}

/// No server responds before each of them has a request. A turn that waited for one server after
/// the other would wait for two timeouts.
#[tokio::test]
async fn a_turn_waits_for_all_servers_at_once() {
    let server = server("[\"mcp:a/echo\", \"mcp:b/fail\"]", |base| {
        ["a", "b"].map(|name| over_http(name, base, "") + "timeout = \"120s\"\n").concat()
    })
    .await;
    let gate = server.standin().gate(Pattern::path("/mcp"));
    let opening = async {
        gate.arrived(2).await.unwrap();
        gate.open();
    };
    let (run, ()) = tokio::join!(server.chat("call echo {\"text\":\"a\"}"), opening);
    assert_eq!(told(&run), [("success".to_owned(), r#"{"text":"a"}"#.to_owned())]);
}

#[tokio::test]
async fn a_program_offers_tools_and_receives_only_its_secrets() {
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("wattle-standin-mcp");
    let missing = "run `cargo build --bin wattle-standin-mcp` first";
    assert!(program.is_file(), "{} is missing; {missing}", program.display());
    let server = server("[\"mcp:files/*\"]", |_| {
        format!(
            "[secrets]\nTOKEN = {{ env = \"SUITE_MODEL_KEY\" }}\n[mcp.files]\ncommand = \"{}\"\n\
             env = {{ API_TOKEN = \"{{{{secret:TOKEN}}}}\" }}\n",
            program.display()
        )
    })
    .await;
    let run = server.chat("call surroundings {}").await;
    let said: Value = serde_json::from_str(&told(&run)[0].1).unwrap();
    // The program has received it, and no result shows it.
    assert_eq!(said["env"]["API_TOKEN"], json!("***"));
    assert!(said["env"].get("HOME").is_none(), "{said}");
    assert!(text(&said["folder"]).ends_with("/data"), "{said}");
    let died = server.chat("call exit {}\ncall echo {\"text\":\"back\"}").await;
    assert!(told(&died).iter().any(|(_, text)| text.contains("back") || text.contains("files")));
}

/// Starts a host whose agent has called a tool of a program. Returns it with a pipe that all
/// processes of the program hold open. A shell runs `script`, in which `PROGRAM` is replaced with
/// the path of the program.
async fn with_program(script: &str) -> (Scene, Served, Receiver) {
    let scene = Scene::new(|workspace, standin| {
        let desk = Desk { granted: "[\"mcp:probe/*\"]".to_owned(), ..Desk::default() };
        desk.put(workspace);
        let program = binary::path().with_file_name("wattle-standin-mcp");
        let script = script.replace("PROGRAM", &format!("'{}'", program.display()));
        let pipe = workspace.root().join("pipe");
        let script = format!("exec 3> '{}'; echo up >&3; {script}", pipe.display());
        let probe = format!("[mcp.probe]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"{script}\"]\n");
        [workspace::base_toml(standin), desk.toml(standin.addr.port()), probe].concat()
    })
    .await;
    let pipe = scene.workspace.root().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut held = OpenOptions::new().open_receiver(&pipe).unwrap();
    let server = binary::serve(&scene.workspace).await;
    let mut start = message(None, "call echo {\"text\":\"a\"}");
    start["wait"] = true.into();
    let run = scene.post(&server, "/api/v1/apps/desk/runs", &start).await.expect(200);
    assert_eq!(tool_messages(&run)[0]["status"], "success", "{run}");
    held.read_exact(&mut [0; 3]).await.unwrap();
    (scene, server, held)
}

/// Waits until no process holds the pipe open.
async fn let_go(mut held: Receiver) {
    let mut rest = Vec::new();
    let read = timeout(SOON, held.read_to_end(&mut rest)).await;
    read.expect("all processes end").unwrap();
}

#[tokio::test]
async fn the_processes_of_a_program_end_when_the_host_stops() {
    for script in ["sleep 1000 & exec PROGRAM", "sleep 1000 & PROGRAM; true"] {
        let (_scene, mut server, held) = with_program(script).await;
        let status = server.program.terminate().await.unwrap();
        assert_eq!(status.code(), Some(0), "{}", server.program.output());
        let_go(held).await;
    }
}

/// A killed host cannot end any process. The program reads the end of its input and exits, and then
/// a shell or a package runner that waits for it also exits.
#[tokio::test]
async fn a_program_ends_when_the_host_is_killed() {
    for script in ["exec PROGRAM", "PROGRAM; true"] {
        let (_scene, mut server, held) = with_program(script).await;
        server.program.kill().await.unwrap();
        let_go(held).await;
    }
}
