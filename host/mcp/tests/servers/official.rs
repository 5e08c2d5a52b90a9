//! The official implementations, old and current, over both carriers.

use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use wattle_kit::need;
use wattle_kit::needs::clients;
use wattle_kit::process::lasting_port;
use wattle_mcp::McpServers;

use crate::support::{as_program, call, list, over_http, servers, text};

#[tokio::test]
async fn the_official_servers_are_understood() {
    let folder = need!(clients::node("mcp"));
    for library in ["v1", "v2"] {
        let arguments = ["server.mjs", library, "stdio"];
        check(library, &servers(as_program("node", &arguments, &folder))).await;
        let (child, port) = listening(&folder, library, 0).await;
        check(library, &servers(over_http(&format!("http://127.0.0.1:{port}/mcp")))).await;
        drop(child);
    }
}

/// The sessions of a server end with it. It says so with 400 and no id.
#[tokio::test]
async fn an_official_server_may_be_started_again() {
    let folder = need!(clients::node("mcp"));
    let (mut child, port) = listening(&folder, "v1", lasting_port().unwrap()).await;
    let servers = servers(over_http(&format!("http://127.0.0.1:{port}/mcp")));
    assert_eq!(list(&servers).await.unwrap().len(), 2);
    child.kill().await.unwrap();
    let (_child, _) = listening(&folder, "v1", port).await;
    let sum = call(&servers, "add", json!({ "a": 1, "b": 2 })).await.unwrap();
    assert_eq!(text(&sum), "3");
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
        ("3", Some(json!({ "sum": 3 }))),
        "{library}"
    );
    let failed = call(servers, "fail", json!({})).await.unwrap();
    assert!(failed.is_error && text(&failed) == "out of order", "{library}");
    // The first library answers with the protocol's error or with a result; both are a refusal.
    match call(servers, "add", json!({ "a": "x" })).await {
        Ok(output) => assert!(output.is_error, "{library}: {output:?}"),
        Err(failure) => assert_eq!(failure.code, "invalid", "{library}"),
    }
    servers.close().await;
}

/// The server over HTTP and its port; 0 takes a free one.
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
