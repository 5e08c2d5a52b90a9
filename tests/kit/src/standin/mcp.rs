//! An MCP server over streamable HTTP, in both generations of the protocol.
//!
//! `/mcp` offers the probe tools, `/mcp/{set}` the tools of another [set](sets). The query selects
//! the behavior of the server: `era=legacy` supports only handshake and session, `era=current` only
//! the stateless protocol; the default is both. `sse=1` responds with event streams, and `page=2`
//! lists two tools per page.

mod probe;
mod protocol;
mod session;
mod sets;
mod tools;

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

pub(super) use session::Sessions;
pub use tools::{McpAnswer, McpTool, McpTools};

use self::{
    protocol::{CURRENT, Era, Reply as Answer, Server},
    sets::set,
};
use super::{call::Call, reply::Reply, shared::Shared};

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// Returns a server over lines: a function from a message to its responses. `None` for an unknown
/// tool set.
pub fn stdio_server(tools: &str, legacy: bool) -> Option<impl Fn(&Value) -> Vec<Value>> {
    let era = if legacy { Era::Legacy } else { Era::Both };
    let server = Server { tools: set(tools)?, era, page: None };
    Some(move |message: &Value| match server.answer(message) {
        Some(answer) => answer.before.into_iter().chain([answer.document]).collect(),
        None => Vec::new(),
    })
}

/// Responds to a request to the endpoint.
pub(super) fn answer(shared: &Shared, call: &Call, segments: &[&str]) -> Reply {
    let Some(tools) = set(segments.first().copied().unwrap_or("probe")) else {
        let error = format!("no MCP server at `{}`", call.path);
        let response = (StatusCode::NOT_FOUND, Json(json!({ "error": error }))).into_response();
        return Reply { rule: "mcp", response };
    };
    let era = match call.parameter("era") {
        Some("legacy") => Era::Legacy,
        Some("current") => Era::Current,
        _ => Era::Both,
    };
    let page = call.parameter("page").and_then(|page| page.parse().ok());
    let server = Server { tools, era, page };
    let response = match call.method.as_str() {
        "POST" => post(shared, &server, call),
        "DELETE" => {
            shared.mcp_sessions.end(call.header(SESSION).unwrap_or_default());
            StatusCode::NO_CONTENT.into_response()
        }
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    };
    Reply { rule: "mcp", response }
}

fn post(shared: &Shared, server: &Server, call: &Call) -> Response {
    let Some(request) = &call.json else {
        return refuse(StatusCode::BAD_REQUEST, &Value::Null, -32700, "Parse error");
    };
    let method = request["method"].as_str().unwrap_or_default();
    let current = call.header(VERSION) == Some(CURRENT);
    if current && server.era == Era::Legacy {
        // The message of servers on version 1 of the official library.
        let message = "Bad Request: Unsupported protocol version (supported versions: 2025-11-25)";
        return refuse(StatusCode::BAD_REQUEST, &Value::Null, -32000, message);
    }
    if current && let Some(mismatch) = mismatched(call, request) {
        return refuse(StatusCode::BAD_REQUEST, &request["id"], -32020, &mismatch);
    }
    if !current && method != "initialize" {
        match call.header(SESSION) {
            Some(id) if shared.mcp_sessions.is_open(id) => {}
            Some(_) => {
                return refuse(StatusCode::NOT_FOUND, &request["id"], -32001, "Session not found");
            }
            None => {
                let message = "Bad Request: Mcp-Session-Id header is required";
                return refuse(StatusCode::BAD_REQUEST, &request["id"], -32000, message);
            }
        }
    }
    let Some(answer) = server.answer(request) else {
        return StatusCode::ACCEPTED.into_response();
    };
    let mut response = written(call.parameter("sse").is_some(), &answer);
    if method == "initialize" && answer.document.get("result").is_some() {
        let id = shared.mcp_sessions.begin();
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(SESSION, id);
        }
    }
    response
}

/// Returns the difference between headers and body, in the stateless protocol.
fn mismatched(call: &Call, request: &Value) -> Option<String> {
    let method = request["method"].as_str();
    if call.header("mcp-method") != method {
        return Some("Mcp-Method does not match the body".to_owned());
    }
    let name = request.pointer("/params/name").and_then(Value::as_str);
    if method == Some("tools/call") && call.header("mcp-name") != name {
        return Some("Mcp-Name does not match the body".to_owned());
    }
    let version = request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    let notification = request.get("id").is_none();
    (version != Some(CURRENT) && !notification)
        .then(|| "the protocol version is missing in _meta".to_owned())
}

fn written(sse: bool, answer: &Answer) -> Response {
    if !sse {
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
        return (status, Json(&answer.document)).into_response();
    }
    let documents = answer.before.iter().chain([&answer.document]);
    let body: String =
        documents.map(|document| format!("event: message\ndata: {document}\n\n")).collect();
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn refuse(status: StatusCode, id: &Value, code: i32, message: &str) -> Response {
    (status, Json(protocol::error(id, code, message))).into_response()
}
