//! Log lines about a server.

use serde_json::json;
use tokio::time::timeout;
use wattle_kit::log::Log;

use crate::support::{SOON, call, played, text};

/// A stdio server that sends log messages.
const TALKING: &str = r#">>> tools/call
<<<

{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"desk","data":"the book is\nfull"}}
{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"room":1}}}
{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"booked"}]}}
"#;

/// A stdio server that requests a completion and then ends its call, whatever the response to the
/// request is.
const SAMPLING: &str = r#">>> tools/call
<<<

{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}],"maxTokens":10}}
>>> answer
<<<

{"jsonrpc":"2.0","id":$call,"result":{"content":[{"type":"text","text":"booked"}]}}
"#;

#[tokio::test]
async fn log_messages_of_a_server_are_logged() {
    let (log, _guard) = Log::start();
    let folder = tempfile::tempdir().unwrap();
    let servers = played(folder.path(), TALKING);
    assert_eq!(text(&call(&servers, "book", json!({})).await.unwrap()), "booked");
    for line in [
        r#"WARN message=the book is full server="probe""#,
        r#"INFO message={"room":1} server="probe""#,
    ] {
        assert_eq!(timeout(SOON, log.line(line)).await.as_deref(), Ok(line));
    }
    servers.close().await;
}

#[tokio::test]
async fn refused_requests_are_logged() {
    let (log, _guard) = Log::start();
    let folder = tempfile::tempdir().unwrap();
    let servers = played(folder.path(), SAMPLING);
    assert_eq!(text(&call(&servers, "book", json!({})).await.unwrap()), "booked");
    let line = "WARN message=an MCP server asks for sampling, which this host does not offer \
                server=\"probe\"";
    assert!(log.lines().iter().any(|it| it == line), "{:?}", log.lines());
    servers.close().await;
}
