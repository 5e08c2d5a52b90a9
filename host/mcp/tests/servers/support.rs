//! Shared configurations, calls and responses.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, PluginName};
use wattle_graph::llm::Part;
use wattle_graph::tool::{ToolOutput, ToolRequest};
use wattle_kit::standin::{Config, Handle, Server};
use wattle_mcp::{HttpConfig, McpConfig, McpServers, ServerConfig, StdioConfig, TransportConfig};
use wattle_run::caller_id::CallerId;
use wattle_run::ports::lease::CallLease;
use wattle_run::ports::sandbox::ToolInfo;
use wattle_run::ports::tool_server::{ServerCall, ServerCallResult};
use wattle_run::ports::{Caller, ToolServers as _};

/// Upper bound of every wait.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// Name of the server in all tests.
pub(crate) const NAME: &str = "probe";

/// Start of the transcript of a stdio server that does not know the stateless protocol.
const HANDSHAKE: &str = r#"
>>>* server/discover
<<<

{"jsonrpc":"2.0","id":$id,"error":{"code":-32601,"message":"Method not found"}}
>>>* initialize
<<<

{"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"desk","version":"1"}}}
>>>* notifications/initialized
<<<

"#;

/// The tools in the transcript of a stdio server.
const TOOLS: &str = r#">>>* tools/list
<<<

{"jsonrpc":"2.0","id":$id,"result":{"tools":[{"name":"book","inputSchema":{"type":"object"}}]}}
"#;

/// Treats loopback as private, and nothing as forbidden.
pub(crate) fn reachable(address: IpAddr, private: bool) -> bool {
    private || !address.is_loopback()
}

pub(crate) async fn standin() -> Handle {
    Server::start(Config::default()).await.unwrap()
}

/// Returns a server over HTTP.
pub(crate) fn over_http(url: &str) -> ServerConfig {
    let headers = BTreeMap::from([("authorization".to_owned(), SecretString::from("Bearer t-1"))]);
    let url = url.parse().unwrap();
    ServerConfig::new(TransportConfig::Http(HttpConfig { url, headers, private: true }))
}

/// Returns a stdio server.
#[expect(clippy::disallowed_methods, reason = "a program of a test gets the `PATH` of the test")]
pub(crate) fn as_program(program: &str, arguments: &[&str], folder: &Path) -> ServerConfig {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = path.to_string_lossy().into_owned();
    ServerConfig::new(TransportConfig::Stdio(StdioConfig {
        program: program.to_owned(),
        arguments: arguments.iter().map(|it| (*it).to_owned()).collect(),
        env: BTreeMap::from([
            ("PATH".to_owned(), SecretString::from(path)),
            ("PROBE_TOKEN".to_owned(), SecretString::from("t-2")),
        ]),
        folder: folder.to_owned(),
    }))
}

/// Returns an [`McpServers`] with one server.
pub(crate) fn servers(config: ServerConfig) -> McpServers {
    let servers = BTreeMap::from([(NAME.to_owned(), config)]);
    McpServers::new(&McpConfig { servers }, reachable).unwrap()
}

pub(crate) fn caller() -> Caller {
    Caller {
        app: AppName::new("test").unwrap(),
        plugin: PluginName::new("test").unwrap(),
        tenant: None,
        owner: CallerId::default(),
    }
}

pub(crate) async fn list(servers: &McpServers) -> Result<Vec<ToolInfo>, Failure> {
    servers.list(&caller(), NAME).await
}

pub(crate) async fn names(servers: &McpServers) -> Vec<String> {
    list(servers).await.unwrap().into_iter().map(|tool| tool.name).collect()
}

pub(crate) async fn call(
    servers: &McpServers,
    tool: &str,
    arguments: Value,
) -> Result<ToolOutput, Failure> {
    call_within(servers, tool, arguments, None).await
}

pub(crate) async fn call_within(
    servers: &McpServers,
    tool: &str,
    arguments: Value,
    timeout_ms: Option<u32>,
) -> Result<ToolOutput, Failure> {
    make(servers, &caller(), request(tool, arguments, timeout_ms), &CallLease::default()).await
}

/// Makes a call of a caller.
pub(crate) async fn call_of(
    servers: &McpServers,
    owner: CallerId,
    tool: &str,
    arguments: Value,
) -> Result<ToolOutput, Failure> {
    let caller = Caller { owner, ..caller() };
    make(servers, &caller, request(tool, arguments, None), &CallLease::default()).await
}

/// Makes a call that requires a lease.
pub(crate) async fn call_under(
    servers: &McpServers,
    tool: &str,
    arguments: Value,
    leased: &CallLease,
) -> Result<ToolOutput, Failure> {
    make(servers, &caller(), request(tool, arguments, None), leased).await
}

fn request(tool: &str, arguments: Value, timeout_ms: Option<u32>) -> ToolRequest {
    let tool = tool.to_owned();
    ToolRequest { tool, call_id: "call-1".into(), arguments, timeout_ms, state: None }
}

async fn make(
    servers: &McpServers,
    caller: &Caller,
    request: ToolRequest,
    lease: &CallLease,
) -> Result<ToolOutput, Failure> {
    let call = ServerCall { request: &request, thread: None, lease, rounds: &[] };
    match servers.call(caller, NAME, call).await? {
        ServerCallResult::Returned(output) => Ok(output),
        other @ ServerCallResult::Elicits(_) => panic!("{other:?}"),
    }
}

/// Returns the text that a model reads.
pub(crate) fn text(output: &ToolOutput) -> String {
    let texts = output.content.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        other => format!("{other:?}"),
    });
    texts.collect::<Vec<_>>().join("|")
}

/// Returns the path of the stand-in program, which is in the parent directory of the test binary.
pub(crate) fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("wattle-standin-mcp");
    let missing = "run `cargo build --bin wattle-standin-mcp` first";
    assert!(program.is_file(), "{} is missing; {missing}", program.display());
    program
}

/// Returns a stdio server that replays a transcript and has the tool `book`.
pub(crate) fn played(folder: &Path, transcript: &str) -> McpServers {
    played_with_lists(folder, &(TOOLS.to_owned() + transcript))
}

/// Returns a stdio server that replays a transcript with its tool lists.
pub(crate) fn played_with_lists(folder: &Path, transcript: &str) -> McpServers {
    let file = folder.join("transcript.txt");
    std::fs::write(&file, HANDSHAKE.to_owned() + transcript).unwrap();
    let arguments = ["--replay", file.to_str().unwrap()];
    servers(as_program(program().to_str().unwrap(), &arguments, folder))
}

/// An HTTP request.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Session id; empty if the request has no session id.
    pub(crate) session: String,
    /// Body of the request; null if there is no body.
    pub(crate) body: Value,
    pub(crate) socket: TcpStream,
}

/// Reads one request.
pub(crate) async fn read(socket: TcpStream) -> Request {
    let mut socket = BufReader::new(socket);
    let mut first = String::new();
    socket.read_line(&mut first).await.unwrap();
    let (mut length, mut session) = (0, String::new());
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).await.unwrap();
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if let Some(value) = line.strip_prefix("mcp-session-id:") {
            value.trim().clone_into(&mut session);
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.unwrap();
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Request { method, path, session, body, socket: socket.into_inner() }
}

/// Returns the status and the document of a response to a message, for a server that needs a
/// handshake and has the tool `book`. The document is null if the response has no body. Returns
/// `None` for calls and for messages without a method.
pub(crate) fn greeting(message: &Value) -> Option<(&'static str, Value)> {
    let id = &message["id"];
    let result = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
    Some(match message["method"].as_str()? {
        "tools/call" => return None,
        "server/discover" => {
            let error = json!({ "code": -32601, "message": "Method not found" });
            ("400 Bad Request", json!({ "jsonrpc": "2.0", "id": id, "error": error }))
        }
        "initialize" => {
            let server = json!({ "name": "desk", "version": "1" });
            let offered = json!({ "tools": {} });
            let said = json!({ "protocolVersion": "2025-11-25", "capabilities": offered,
                "serverInfo": server });
            ("200 OK", result(said))
        }
        "tools/list" => {
            let tool = json!({ "name": "book", "inputSchema": { "type": "object" } });
            ("200 OK", result(json!({ "tools": [tool] })))
        }
        _ => ("202 Accepted", Value::Null),
    })
}

/// Responds with a document, or without a body if the document is null. Each of `headers` ends with
/// CR LF.
pub(crate) async fn respond(socket: &mut TcpStream, status: &str, headers: &str, document: &Value) {
    let body = if document.is_null() { String::new() } else { document.to_string() };
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    // The client may have disconnected.
    socket.write_all(response.as_bytes()).await.ok();
}
