//! Old and current versions of the official implementations, over both transports.

use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use wattle_kit::need;
use wattle_kit::needs::clients;
use wattle_kit::process::lasting_port;
use wattle_mcp::McpServers;

use crate::support::{as_program, call, list, names, over_http, servers, text};

#[tokio::test]
async fn servers_of_the_official_sdk_are_supported() {
    let folder = need!(clients::node("mcp"));
    for library in ["v1", "v2"] {
        let arguments = ["server.mjs", library, "stdio"];
        check(library, &servers(as_program("node", &arguments, &folder))).await;
        let (child, port) = listening(&folder, library, 0).await;
        check(library, &servers(over_http(&format!("http://127.0.0.1:{port}/mcp")))).await;
        drop(child);
    }
}

/// The sessions of a server end with its process. The next process responds to their messages with
/// status 400 and without an id.
#[tokio::test]
async fn official_server_can_be_restarted() {
    let folder = need!(clients::node("mcp"));
    let (mut child, port) = listening(&folder, "v1", lasting_port().unwrap()).await;
    let servers = servers(over_http(&format!("http://127.0.0.1:{port}/mcp")));
    assert_eq!(list(&servers).await.unwrap().len(), 2);
    child.kill().await.unwrap();
    let (_child, _) = listening(&folder, "v1", port).await;
    let sum = call(&servers, "add", json!({ "a": 1, "b": 2 })).await.unwrap();
    assert_eq!(text(&sum), "3|{\"sum\":3}");
}

/// The Python library before version 1.9 is silent at the first request of the stateless protocol,
/// and exits at the next message. The host tries the stateless protocol once; processes that start
/// later get a handshake.
#[tokio::test]
async fn silent_server_of_an_old_library_gets_a_handshake() {
    let python = need!(clients::python("mcp-py", "python"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/mcp-py/server.py");
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["-B", script.to_str().unwrap()];
    // This test uses the default connect timeout. A shorter timeout would shorten the wait for the
    // first response, but Python starts slowly on a busy machine.
    let servers = servers(as_program(python.to_str().unwrap(), &arguments, folder.path()));
    let starts = || std::fs::read_to_string(folder.path().join("starts")).unwrap().lines().count();
    assert_eq!(names(&servers).await, ["add", "end"]);
    assert_eq!(starts(), 2);
    let sum = call(&servers, "add", json!({ "a": 1, "b": 2 })).await.unwrap();
    assert_eq!(text(&sum), "3");
    let refused = call(&servers, "add", json!({ "a": "x" })).await.unwrap();
    assert!(refused.is_error, "{refused:?}");
    let failure = call(&servers, "end", json!({})).await.unwrap_err();
    assert_eq!(failure.code, "unavailable", "{failure}");
    let sum = call(&servers, "add", json!({ "a": 2, "b": 3 })).await.unwrap();
    assert_eq!((text(&sum).as_str(), starts()), ("5", 3));
    servers.close().await;
}

async fn check(library: &str, servers: &McpServers) {
    let tools = list(servers).await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["add", "fail"], "{library}");
    assert!(tools[0].hints.read_only && tools[0].hints.idempotent, "{library}");
    assert_eq!(tools[0].arguments_schema["required"], json!(["a", "b"]), "{library}");
    let sum = call(servers, "add", json!({ "a": 1, "b": 2 })).await.unwrap();
    assert_eq!(
        (text(&sum).as_str(), sum.structured),
        ("3|{\"sum\":3}", Some(json!({ "sum": 3 }))),
        "{library}"
    );
    let failed = call(servers, "fail", json!({})).await.unwrap();
    assert!(failed.is_error && text(&failed) == "out of order", "{library}");
    // The older library responds with a JSON-RPC error, the newer library with an error result.
    match call(servers, "add", json!({ "a": "x" })).await {
        Ok(output) => assert!(output.is_error, "{library}: {output:?}"),
        Err(failure) => assert_eq!(failure.code, "invalid", "{library}"),
    }
    servers.close().await;
}

/// Starts a server over HTTP and returns its port. Port 0 selects a free port.
async fn listening(folder: &Path, library: &str, port: u16) -> (Child, u16) {
    let mut command = Command::new("node");
    let port = port.to_string();
    command.args(["server.mjs", library, "http", &port]).current_dir(folder).kill_on_drop(true);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("node starts");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap();
    let port = line.strip_prefix("port ").unwrap().parse().unwrap();
    (child, port)
}
