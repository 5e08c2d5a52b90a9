//! The messages of the protocol, independent of the transport.

use serde_json::{Value, json};

use super::tools::{McpAnswer, McpTool, McpTools};

/// The version of the stateless protocol.
pub(super) const CURRENT: &str = "2026-07-28";

/// The last version with a handshake.
const LEGACY: &str = "2025-11-25";

/// Time for which a client may cache a list, in the stateless protocol.
const TTL_MS: u64 = 60_000;

/// The protocols that a server supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Current,
    Both,
}

/// An MCP server without a transport.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) tools: &'static dyn McpTools,
    pub(super) era: Era,
    /// Number of tools per page of a list; `None` for one page with all tools.
    pub(super) page: Option<usize>,
}

/// The response of a server.
#[derive(Debug)]
pub(super) struct Reply {
    /// Notifications before the response, for transports that can send them.
    pub(super) before: Vec<Value>,
    pub(super) document: Value,
    /// The HTTP status.
    pub(super) status: u16,
}

impl Server {
    /// Returns the response to a request, or `None` for a notification.
    pub(super) fn answer(&self, request: &Value) -> Option<Reply> {
        let id = request.get("id")?;
        let parameters = &request["params"];
        let method = request["method"].as_str().unwrap_or_default();
        let asked = parameters["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
        let mut before = Vec::new();
        let (document, status) = match method {
            "server/discover" if self.era != Era::Legacy => (answer_to(id, discovered()), 200),
            "initialize" if self.era != Era::Current => (answer_to(id, initialized()), 200),
            "initialize" => (unsupported(id), 400),
            _ if self.era == Era::Current && asked != Some(CURRENT) => (unsupported(id), 400),
            "ping" => (answer_to(id, json!({})), 200),
            "tools/list" => (answer_to(id, self.list(parameters, asked.is_some())), 200),
            "tools/call" => (self.call(id, parameters, asked.is_some(), &mut before), 200),
            _ => (error(id, -32601, "Method not found"), 200),
        };
        Some(Reply { before, document, status })
    }

    fn list(&self, parameters: &Value, current: bool) -> Value {
        let all = self.tools.list();
        let from: usize =
            parameters["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let page = self.page.unwrap_or(usize::MAX).max(1);
        let tools: Vec<Value> = all.iter().skip(from).take(page).map(listed).collect();
        let mut result = json!({ "tools": tools });
        if from.saturating_add(page) < all.len() {
            result["nextCursor"] = json!((from + page).to_string());
        }
        if current {
            result["resultType"] = json!("complete");
            result["ttlMs"] = json!(TTL_MS);
            result["cacheScope"] = json!("public");
        }
        result
    }

    fn call(
        &self,
        id: &Value,
        parameters: &Value,
        current: bool,
        before: &mut Vec<Value>,
    ) -> Value {
        let name = parameters["name"].as_str().unwrap_or_default();
        if !self.tools.list().iter().any(|tool| tool.name == name) {
            return error(id, -32602, &format!("Unknown tool: {name}"));
        }
        let text = |text: &str| json!([{ "type": "text", "text": text }]);
        let mut result = match self.tools.call(name, &parameters["arguments"]) {
            McpAnswer::Data(data) => {
                json!({ "content": text(&data.to_string()), "structuredContent": data })
            }
            McpAnswer::Content(blocks) => json!({ "content": blocks }),
            McpAnswer::Failed(reason) => json!({ "content": text(&reason), "isError": true }),
            McpAnswer::Refused(code, reason) => return error(id, code, &reason),
            McpAnswer::Changed(said) => {
                before.push(
                    json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }),
                );
                json!({ "content": text(&said) })
            }
        };
        if current {
            result["resultType"] = json!("complete");
        }
        answer_to(id, result)
    }
}

/// Returns an error response.
pub(super) fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

fn answer_to(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn unsupported(id: &Value) -> Value {
    let mut error = error(id, -32022, "Unsupported protocol version");
    error["error"]["data"] = json!({ "supported": [CURRENT] });
    error
}

fn server_info() -> Value {
    json!({ "name": "wattle-standin", "version": "1" })
}

fn discovered() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": [CURRENT],
        "capabilities": { "tools": {} }, "ttlMs": TTL_MS, "cacheScope": "public",
        "_meta": { "io.modelcontextprotocol/serverInfo": server_info() },
    })
}

fn initialized() -> Value {
    json!({
        "protocolVersion": LEGACY, "serverInfo": server_info(),
        "capabilities": { "tools": { "listChanged": true } },
    })
}

fn listed(tool: &McpTool) -> Value {
    json!({
        "name": tool.name, "description": tool.description, "inputSchema": tool.schema,
        "annotations": { "readOnlyHint": tool.read_only },
    })
}
