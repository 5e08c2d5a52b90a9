//! Stdio servers that write without end, or more than a message may have.

#![cfg(unix)]

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use wattle_kit::log::Log;
use wattle_mcp::McpServers;

use crate::support::{
    SOON, as_program, call, list, names, played, played_with_lists, program, servers, text,
};

/// Timeout of servers that never respond. It is longer than the start of a script.
const BRIEFLY: Duration = Duration::from_secs(3);

/// A list with a tool, and notifications about a new list and about a call.
const LISTED: &str = r#"{"jsonrpc":"2.0","id":$id,"result":{"tools":[{"name":"book","inputSchema":{"type":"object"}}]}}"#;
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const CALLED: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"called"}}"#;

/// Starts a server with a script. The script must open the file `fifo` for writing. The task ends
/// once no process of the script has the file open.
fn scripted(folder: &Path, script: &str, time: Duration) -> (McpServers, JoinHandle<()>) {
    let fifo = folder.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut config = as_program("sh", &["-c", script], folder);
    config.timeout = time;
    // With the stateless protocol, the script may start twice.
    config.handshake = true;
    let gone = spawn_blocking(move || {
        assert_eq!(File::open(fifo).unwrap().read(&mut [0]).unwrap(), 0);
    });
    (servers(config), gone)
}

#[tokio::test]
async fn program_that_floods_its_standard_output_is_ended() {
    for flood in [
        "yes",
        r#"yes '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}'"#,
        r#"yes '{"jsonrpc":"2.0","id":7,"result":{}}'"#,
        r#"yes '{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}'"#,
        "tr '\\0' x < /dev/zero",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("exec 3> fifo; exec {flood}");
        let (servers, gone) = scripted(folder.path(), &script, BRIEFLY);
        let failure = timeout(SOON, list(&servers)).await.unwrap().unwrap_err();
        assert!(["timeout", "unavailable"].contains(&&*failure.code), "{flood}: {failure}");
        timeout(SOON, gone).await.expect(flood).unwrap();
        servers.close().await;
    }
}

#[tokio::test]
async fn program_that_floods_its_standard_error_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    // The file is open before the program starts, and only the writer of the flood keeps it open.
    let program = program();
    let script = format!("exec 3> fifo; yes >&2 & exec 3>&-; exec '{}'", program.display());
    let (servers, gone) = scripted(folder.path(), &script, SOON);
    names(&servers).await;
    let said = call(&servers, "echo", json!({ "text": "a" })).await.unwrap();
    assert_eq!(text(&said), r#"{"text":"a"}"#);
    servers.close().await;
    timeout(SOON, gone).await.unwrap().unwrap();
}

/// Returns a result that is larger than a message may be.
fn too_large(id: &str) -> String {
    let text = "x".repeat(17 << 20);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

#[tokio::test]
async fn program_that_sends_too_large_a_message_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let result = too_large("$id");
    let servers = played(folder.path(), &format!(">>> tools/call\n<<<\n\n{result}\n"));
    let failure = timeout(SOON, call(&servers, "book", json!({}))).await.unwrap().unwrap_err();
    // The tool has run, so the call must not be repeated.
    assert_eq!((&*failure.code, failure.retryable), ("limit", false), "{failure}");
    assert_eq!(failure.details.unwrap()["limit"], "mcp_output");
    assert_eq!(names(&servers).await, ["book"]);
    servers.close().await;
}

#[tokio::test]
async fn too_large_message_after_a_cancelled_call_leaves_the_next_call_in_doubt() {
    let (log, _guard) = Log::start();
    let folder = tempfile::tempdir().unwrap();
    let result = too_large("$id");
    let transcript = format!(">>> tools/call\n<<<\n\n{CALLED}\n>>> tools/call\n<<<\n\n{result}\n");
    let servers = played(folder.path(), &transcript);
    tokio::select! {
        ended = call(&servers, "book", json!({})) => panic!("{ended:?}"),
        _ = log.line("message=called") => {}
    }
    let failure = timeout(SOON, call(&servers, "book", json!({}))).await.unwrap().unwrap_err();
    assert_eq!(failure.code, "in-doubt", "{failure}");
    servers.close().await;
}

/// The message may be the list as well as the result.
#[tokio::test]
async fn too_large_message_during_a_list_and_a_call_keeps_the_tools() {
    let (log, _guard) = Log::start();
    let folder = tempfile::tempdir().unwrap();
    let result = too_large("$call");
    let transcript = format!(
        ">>> tools/list\n<<<\n\n{LISTED}\n>>> tools/call\n<<<\n\n{CHANGED}\n{CALLED}\n\
         >>> tools/list\n<<<\n\n{result}\n"
    );
    let servers = played_with_lists(folder.path(), &transcript);
    assert_eq!(names(&servers).await, ["book"]);
    let listed = async {
        log.line("message=called").await;
        names(&servers).await
    };
    let both = async { tokio::join!(call(&servers, "book", json!({})), listed) };
    let (called, listed) = timeout(SOON, both).await.unwrap();
    assert_eq!((&*called.unwrap_err().code, listed), ("in-doubt", vec!["book".to_owned()]));
    servers.close().await;
}
