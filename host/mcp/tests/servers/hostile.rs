//! Servers whose responses are endless, nested too deeply or too large.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use wattle_kit::standin::Handle;
use wattle_mcp::McpServers;

use crate::support::{Request, SOON, call, list, over_http, read, respond, servers, standin};

/// Timeout of calls of servers with endless responses.
const BRIEFLY: Duration = Duration::from_secs(2);

/// How a server changes the responses to a method.
#[derive(Clone, Copy)]
enum Misdeed {
    /// Changes the result.
    Patch(fn(&mut Value)),
    /// Sends a notification about a new tool list before the response.
    Announce,
    /// Sends the head, and then the same chunk forever.
    Endless { head: &'static str, piece: &'static str },
}

/// A stand-in behind a hostile proxy.
struct Hostile {
    servers: McpServers,
    /// Number of requests for the method.
    asked: Arc<AtomicUsize>,
    /// Number of endless responses that the client abandoned.
    left: watch::Receiver<usize>,
    _standin: Handle,
}

async fn hostile(method: &'static str, misdeed: Misdeed, time: Duration) -> Hostile {
    let standin = standin().await;
    let upstream = format!("{}/mcp", standin.base_url);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let (gone, left) = watch::channel(0);
    let count = asked.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (upstream, gone, count) = (upstream.clone(), gone.clone(), count.clone());
            tokio::spawn(async move {
                let Request { body, mut socket, .. } = read(socket).await;
                if body["method"] != method {
                    let answer = forward(&upstream, &body).await;
                    return write(&mut socket, &answer).await;
                }
                count.fetch_add(1, Ordering::SeqCst);
                match misdeed {
                    Misdeed::Patch(patch) => {
                        let mut answer = forward(&upstream, &body).await;
                        patch(&mut answer["result"]);
                        write(&mut socket, &answer).await;
                    }
                    Misdeed::Announce => {
                        let changed = "notifications/tools/list_changed";
                        let changed = json!({ "jsonrpc": "2.0", "method": changed });
                        let answer = forward(&upstream, &body).await;
                        write(&mut socket, &json!([changed, answer])).await;
                    }
                    Misdeed::Endless { head, piece } => {
                        let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
                        let mut next = head;
                        while socket.write_all(next.as_bytes()).await.is_ok() {
                            next = &chunk;
                            tokio::task::yield_now().await;
                        }
                        gone.send_modify(|gone| *gone += 1);
                    }
                }
            });
        }
    });
    let mut config = over_http(&format!("http://{address}/mcp"));
    config.timeout = time;
    config.handshake = method == "initialize";
    Hostile { servers: servers(config), asked, left, _standin: standin }
}

/// Returns the response of the stand-in; null for a notification.
async fn forward(upstream: &str, request: &Value) -> Value {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut forwarded = client
        .post(upstream)
        .header("accept", "application/json, text/event-stream")
        .header("authorization", "Bearer t-1")
        .json(request);
    let version = &request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    if let Some(version) = version.as_str() {
        forwarded = forwarded.header("mcp-protocol-version", version);
    }
    if let Some(method) = request["method"].as_str() {
        forwarded = forwarded.header("mcp-method", method);
    }
    if let Some(name) = request["params"]["name"].as_str() {
        forwarded = forwarded.header("mcp-name", name);
    }
    forwarded.send().await.unwrap().json().await.unwrap_or_default()
}

async fn write(socket: &mut TcpStream, answer: &Value) {
    let status = if answer.is_null() { "202 Accepted" } else { "200 OK" };
    respond(socket, status, "", answer).await;
}

const JSON: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                    transfer-encoding: chunked\r\n\r\n";

const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                      transfer-encoding: chunked\r\n\r\n";

#[tokio::test]
async fn a_tool_list_with_endless_pages_is_truncated() {
    static PAGES: AtomicUsize = AtomicUsize::new(0);
    let patch = |result: &mut Value| {
        result["nextCursor"] = json!(PAGES.fetch_add(1, Ordering::SeqCst).to_string());
    };
    let hostile = hostile("tools/list", Misdeed::Patch(patch), BRIEFLY).await;
    let tools = timeout(SOON, list(&hostile.servers)).await.unwrap();
    // Either the timeout or the page limit ends the list.
    match tools {
        Ok(tools) => assert!(tools.len() <= 1_000),
        Err(failure) => assert_eq!(failure.code, "timeout", "{failure}"),
    }
    assert!(hostile.asked.load(Ordering::SeqCst) <= 100);
}

#[tokio::test]
async fn tool_list_with_a_large_cursor_has_one_page() {
    let patch = |result: &mut Value| result["nextCursor"] = json!("x".repeat(4097));
    let hostile = hostile("tools/list", Misdeed::Patch(patch), SOON).await;
    assert!(!list(&hostile.servers).await.unwrap().is_empty());
    assert_eq!(hostile.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn large_tool_lists_are_truncated() {
    static PAGES: AtomicUsize = AtomicUsize::new(0);
    let patch = |result: &mut Value| {
        let schema = json!({ "type": "object", "description": "x".repeat(200_000) });
        let tool = |index| json!({ "name": format!("t{index}"), "inputSchema": schema });
        result["tools"] = (0..10).map(tool).collect();
        result["nextCursor"] = json!(PAGES.fetch_add(1, Ordering::SeqCst).to_string());
    };
    let hostile = hostile("tools/list", Misdeed::Patch(patch), SOON).await;
    let tools = list(&hostile.servers).await.unwrap();
    assert_eq!(tools.len(), (4 << 20) / 200_000);
    assert_eq!(hostile.asked.load(Ordering::SeqCst), 3);
}

/// The text of a schema with many numbers is short.
#[tokio::test]
async fn tool_list_that_takes_much_memory_is_truncated() {
    static PAGES: AtomicUsize = AtomicUsize::new(0);
    let patch = |result: &mut Value| {
        let number = PAGES.fetch_add(1, Ordering::SeqCst);
        let schema = json!({ "type": "object", "enum": vec![0; 60_000] });
        result["tools"] = json!([{ "name": format!("t{number}"), "inputSchema": schema }]);
        result["nextCursor"] = json!(number.to_string());
    };
    let hostile = hostile("tools/list", Misdeed::Patch(patch), SOON).await;
    let tools = list(&hostile.servers).await.unwrap();
    let pages = hostile.asked.load(Ordering::SeqCst);
    assert_eq!((tools.len(), pages), (4, 4));
}

/// The first changes are believed; after them the list is requested every five seconds.
#[tokio::test]
async fn tool_list_that_changes_with_every_request_is_cached() {
    let hostile = hostile("tools/list", Misdeed::Announce, SOON).await;
    for _ in 0..50 {
        assert!(!list(&hostile.servers).await.unwrap().is_empty());
    }
    let asked = hostile.asked.load(Ordering::SeqCst);
    assert!((2..25).contains(&asked), "{asked} requests");
}

#[tokio::test]
async fn results_that_are_nested_too_deeply_are_rejected() {
    let patch = |result: &mut Value| {
        let deep = (0..110).fold(json!([]), |inner, _| json!([inner]));
        result["structuredContent"] = json!({ "deep": deep });
    };
    let hostile = hostile("tools/call", Misdeed::Patch(patch), SOON).await;
    let failure = call(&hostile.servers, "echo", json!({ "text": "a" })).await.unwrap_err();
    assert_eq!(failure.code, "invalid", "{failure}");
    assert!(failure.message.contains("deeper than 100 levels"), "{failure}");
}

#[tokio::test]
async fn response_above_a_limit_of_messages_names_the_limit() {
    let patch = |result: &mut Value| {
        let deep = (0..120).fold(json!([]), |inner, _| json!([inner]));
        result["structuredContent"] = json!({ "deep": deep });
    };
    let hostile = hostile("tools/call", Misdeed::Patch(patch), SOON).await;
    let failure = call(&hostile.servers, "echo", json!({ "text": "a" })).await.unwrap_err();
    assert_eq!((&*failure.code, failure.retryable), ("invalid", false), "{failure}");
    assert!(failure.message.contains("deeper than 116 levels"), "{failure}");
    assert_eq!(hostile.asked.load(Ordering::SeqCst), 1, "it is not called again");
    assert!(!list(&hostile.servers).await.unwrap().is_empty(), "the server can still be used");
}

#[tokio::test]
async fn endless_responses_are_abandoned() {
    for (head, piece) in [
        (JSON, "                                                                "),
        (EVENTS, ": nothing\n\n"),
        (EVENTS, "data: nothing that ends the line "),
        (
            EVENTS,
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":\
             {\"level\":\"info\",\"data\":1}}\n\n",
        ),
    ] {
        let mut hostile = hostile("tools/call", Misdeed::Endless { head, piece }, BRIEFLY).await;
        let called = call(&hostile.servers, "echo", json!({ "text": "a" }));
        let failure = timeout(SOON, called).await.unwrap().unwrap_err();
        assert!(["timeout", "unavailable", "limit"].contains(&&*failure.code), "{failure}");
        let left = hostile.left.wait_for(|left| *left == 1);
        assert!(timeout(SOON, left).await.is_ok(), "{piece:?} is read on");
        // The server can still be used.
        assert!(!list(&hostile.servers).await.unwrap().is_empty());
    }
}

/// `rmcp` reads the response to the first request in a task that outlives the attempt to open the
/// session.
#[tokio::test]
async fn endless_responses_to_the_first_request_are_abandoned() {
    let notification = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":\
         {\"level\":\"info\",\"data\":1}}\n\n";
    for method in ["server/discover", "initialize"] {
        for piece in [": nothing\n\n", notification] {
            let misdeed = Misdeed::Endless { head: EVENTS, piece };
            let mut hostile = hostile(method, misdeed, BRIEFLY).await;
            let listed = timeout(SOON, list(&hostile.servers)).await.unwrap();
            assert_eq!(listed.unwrap_err().code, "timeout", "{method}");
            let left = hostile.left.wait_for(|left| *left > 0);
            assert!(timeout(SOON, left).await.is_ok(), "{method}: {piece:?} is read on");
        }
    }
}
