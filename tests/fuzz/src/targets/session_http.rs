//! Responses of an MCP server over HTTP, in a session of the earlier protocols: JSON and event
//! streams, refusals, lost sessions, and the stream that the server opens itself. The list of tools
//! is clean, and notes, results and failures are limited.
//!
//! An input consists of responses, separated by lines of `====`: to `initialize`, to `tools/list`,
//! to `tools/call`, and to the GET request for a stream. The first byte of a response selects its
//! form, its status, and whether it names a session; the rest is the body.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::timeout;
use wattle_graph::tool::ToolRequest;
use wattle_mcp::{HttpConfig, McpConfig, McpServers, ServerConfig, TransportConfig};
use wattle_run::ports::lease::CallLease;
use wattle_run::ports::tool_server::{ServerCall, ServerCallResult};
use wattle_run::ports::{Caller, ToolServers as _};

use super::mcp::check_content;
use super::session::check_report;
use super::{caller, lock, serve};

/// The line between two responses.
const SEPARATOR: &[u8] = b"\n====\n";

/// Positions of the responses in an input.
const INITIALIZE: usize = 0;
const LIST: usize = 1;
const CALL: usize = 2;
const STREAM: usize = 3;

/// Bits of the first byte of a response: whether it is an event stream, whether it names a session,
/// and the position of its status.
const EVENTS: u8 = 1;
const NAMES_SESSION: u8 = 1 << 3;
const STATUS_SHIFT: u8 = 4;

/// Statuses, by the bits that follow. `j` and `b` are JSON with and without a session; `m` and `e`
/// are event streams with and without one.
const STATUSES: [StatusCode; 8] = [
    StatusCode::ACCEPTED,
    StatusCode::OK,
    StatusCode::BAD_REQUEST,
    StatusCode::NOT_FOUND,
    StatusCode::UNAUTHORIZED,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::OK,
    StatusCode::OK,
];

/// The name of the server, and its tool.
const NAME: &str = "server";
const TOOL: &str = "book";

/// Timeout of the session, of the list and of the call. Only a stream that announces more, and ends
/// without the response, takes this long.
const TIMEOUT: Duration = Duration::from_millis(250);

/// Maximum size of a result in bytes, without the notes that the host appends.
const OUTPUT_BYTES: usize = 2_000;

/// Maximum size of a request of the host in bytes.
const REQUEST_BYTES: usize = 1 << 20;

/// Opens a session, lists the tools and calls one.
pub fn run(bytes: &[u8]) {
    let world = World::get();
    *lock(&REPLIES) = split(bytes);
    crate::wait(async {
        let report = world.servers.check(NAME).await.expect("the server is configured");
        check_report(&report);
        if report.failure.is_none() {
            world.call(bytes.len()).await;
        }
        world.servers.close().await;
    });
}

/// A response of the server.
#[derive(Clone)]
struct Reply {
    first: u8,
    body: Bytes,
}

/// The responses of the current input.
static REPLIES: Mutex<Vec<Reply>> = Mutex::new(Vec::new());

fn split(mut bytes: &[u8]) -> Vec<Reply> {
    let mut replies = Vec::new();
    while replies.len() <= STREAM {
        let end = bytes.windows(SEPARATOR.len()).position(|part| part == SEPARATOR);
        let response = &bytes[..end.unwrap_or(bytes.len())];
        let Some((&first, body)) = response.split_first() else { break };
        replies.push(Reply { first, body: Bytes::copy_from_slice(body) });
        let Some(end) = end else { break };
        bytes = &bytes[end + SEPARATOR.len()..];
    }
    replies
}

/// A server that responds with the input, and the host's side of it. The state of a server that
/// outlasts a session is shared by all executions, since a client for HTTP takes long to create.
struct World {
    servers: McpServers,
    caller: Caller,
}

impl World {
    fn get() -> &'static Self {
        static WORLD: OnceLock<World> = OnceLock::new();
        WORLD.get_or_init(|| crate::wait(Self::new()))
    }

    async fn new() -> Self {
        let address = serve(Router::new().fallback(reply_to)).await;
        let url = format!("http://{address}/mcp").parse().expect("the URL is valid");
        let http = HttpConfig { url, headers: BTreeMap::new(), private: true };
        // With the stateless protocol, each session would begin with one more request.
        let server = ServerConfig {
            timeout: TIMEOUT,
            output_bytes: OUTPUT_BYTES,
            handshake: true,
            ..ServerConfig::new(TransportConfig::Http(http))
        };
        let config = McpConfig { servers: BTreeMap::from([(NAME.to_owned(), server)]) };
        let servers = McpServers::new(&config, |_, _| true).expect("the server is valid");
        Self { servers, caller: caller() }
    }

    /// Calls the tool, and checks the result, which comes from an input of `input_bytes`. A server
    /// may ask for the same call again and again, so the timeout is for all attempts.
    async fn call(&self, input_bytes: usize) {
        let request = ToolRequest {
            tool: TOOL.to_owned(),
            call_id: "call-1".to_owned(),
            arguments: json!({}),
            timeout_ms: None,
            state: None,
        };
        let lease = CallLease::default();
        let call = ServerCall { request: &request, thread: None, lease: &lease, rounds: &[] };
        match timeout(TIMEOUT, self.servers.call(&self.caller, NAME, call)).await {
            Ok(Ok(ServerCallResult::Returned(output))) => {
                check_content(&output, OUTPUT_BYTES, input_bytes);
            }
            Ok(Err(failure)) => assert!(!failure.message.is_empty()),
            Ok(Ok(ServerCallResult::Elicits(_))) | Err(_) => {}
        }
    }
}

/// Responds to a request with the response of the input. Without one, a message is accepted, and a
/// stream is refused.
async fn reply_to(request: Request) -> Response {
    let method = request.method().clone();
    let place = match method {
        Method::POST => place_of_message(request.into_body()).await,
        Method::GET => Some(STREAM),
        _ => None,
    };
    let reply = place.and_then(|place| lock(&REPLIES).get(place).cloned());
    match reply {
        Some(reply) => respond(reply),
        None if place == Some(STREAM) => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

/// Returns the position of the response to a message.
async fn place_of_message(body: Body) -> Option<usize> {
    let body = to_bytes(body, REQUEST_BYTES).await.unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    match message["method"].as_str()? {
        "initialize" => Some(INITIALIZE),
        "tools/list" => Some(LIST),
        "tools/call" => Some(CALL),
        _ => None,
    }
}

fn respond(Reply { first, body }: Reply) -> Response {
    let status = STATUSES[usize::from(first >> STATUS_SHIFT) % STATUSES.len()];
    let form = if first & EVENTS != 0 { "text/event-stream" } else { "application/json" };
    let mut response = (status, [(header::CONTENT_TYPE, form)], body).into_response();
    if first & NAMES_SESSION != 0 {
        response.headers_mut().insert("mcp-session-id", HeaderValue::from_static("s-1"));
    }
    response
}
