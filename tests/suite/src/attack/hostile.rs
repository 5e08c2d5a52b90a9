//! Services whose responses are endless, too large, too deep or too many values: model providers,
//! MCP servers and HTTP services.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Bytes of a completion that is too large, more than the host reads.
const LARGE_BYTES: usize = 80 << 20;

/// Bytes of numbers in a completion, fewer than the host reads. Their values take 36 times as much
/// memory.
const MODEL_NUMBERS_BYTES: usize = 24 << 20;

/// Bytes of numbers in the output of a tool, fewer than the host reads.
const TOOL_NUMBERS_BYTES: usize = 15 << 20;

/// Bytes of one delta of an endless completion.
const PIECE_BYTES: usize = 4_000;

/// Nesting levels of a tool output that is too deep.
const LEVELS: usize = 2_000;

/// Number of levels of definitions, each of which refers to the next level twice.
const DOUBLINGS: u32 = 30;

/// Time between two bytes of a response that is sent a byte at a time.
const DRIP_INTERVAL: Duration = Duration::from_millis(50);

/// Time after which a connection without a reader is closed. The host may have been killed.
const PATIENCE: Duration = Duration::from_mins(1);

const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

const OPEN: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";

/// The services on one loopback port. Dropping this value stops them.
pub struct Hostile {
    /// The address on which the services listen.
    pub address: SocketAddr,
    /// Number of the last page of the endless tool list that was requested.
    pages: Arc<AtomicU64>,
    listening: JoinHandle<()>,
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Hostile {
    /// Starts the services.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let pages = Arc::new(AtomicU64::new(0));
        let count = pages.clone();
        let listening = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let pages = count.clone();
                // An error is expected: the client closes the connection.
                tokio::spawn(async move { answer(socket, &pages).await.unwrap_or_default() });
            }
        });
        Self { address, pages, listening }
    }

    /// Returns the number of pages of the endless tool list that were requested.
    pub fn pages(&self) -> u64 {
        self.pages.load(Ordering::SeqCst)
    }
}

async fn answer(socket: TcpStream, pages: &AtomicU64) -> std::io::Result<()> {
    let mut socket = BufReader::new(socket);
    let (path, request) = read(&mut socket).await?;
    let delta = |delta: Value| {
        format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta }] }))
    };
    match path.trim_matches('/').split('/').collect::<Vec<_>>().as_slice() {
        ["comments", ..] => endless(&mut socket, EVENTS, ": still here\n\n").await,
        ["deltas", ..] => endless(&mut socket, EVENTS, &delta(json!({ "content": "" }))).await,
        ["endless", ..] => {
            endless(&mut socket, EVENTS, &delta(json!({ "content": "x".repeat(PIECE_BYTES) })))
                .await
        }
        ["large", ..] => large(&mut socket).await,
        ["numbers", ..] => {
            let numbers = numbers(MODEL_NUMBERS_BYTES);
            let completion = format!(
                "{{\"choices\":[{{\"message\":{{\"content\":\"x\"}},\"logprobs\":{numbers}}}]}}"
            );
            say(&mut socket, "200 OK", &completion).await
        }
        ["http", "body"] => endless(&mut socket, OPEN, "more ").await,
        ["http", "headers"] => {
            endless(&mut socket, "HTTP/1.1 200 OK\r\n", "more: and more\r\n").await
        }
        ["http", "drip"] => drip(&mut socket).await,
        ["mcp", server] => tools(&mut socket, server, &request, pages).await,
        _ => say(&mut socket, "404 Not Found", "{}").await,
    }
}

/// Reads one request and returns its path and body.
async fn read(socket: &mut BufReader<TcpStream>) -> std::io::Result<(String, Value)> {
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).await?;
        let line = line.trim();
        if path.is_empty() {
            path = line.split(' ').nth(1).unwrap_or("/").to_owned();
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await?;
    Ok((path, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Sends a chunk repeatedly until the client stops reading.
async fn endless(
    socket: &mut BufReader<TcpStream>,
    head: &str,
    piece: &str,
) -> std::io::Result<()> {
    socket.write_all(head.as_bytes()).await?;
    let pieces = piece.repeat(1 + 4_096 / piece.len());
    loop {
        let sent = tokio::time::timeout(PATIENCE, socket.write_all(pieces.as_bytes())).await;
        sent.map_err(std::io::Error::other)??;
    }
}

/// Sends a byte at a time until the client closes the connection.
async fn drip(socket: &mut BufReader<TcpStream>) -> std::io::Result<()> {
    socket.write_all(OPEN.as_bytes()).await?;
    loop {
        socket.write_all(b" ").await?;
        tokio::time::sleep(DRIP_INTERVAL).await;
    }
}

/// Sends one large completion without streaming.
async fn large(socket: &mut BufReader<TcpStream>) -> std::io::Result<()> {
    let head = format!("{OPEN}{{\"choices\":[{{\"message\":{{\"content\":\"");
    socket.write_all(head.as_bytes()).await?;
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..LARGE_BYTES / piece.len() {
        socket.write_all(&piece).await?;
    }
    socket.write_all(b"\"}}]}").await
}

/// Returns a list of numbers with this many bytes of text.
pub fn numbers(bytes: usize) -> String {
    format!("[{}0]", "0,".repeat(bytes / 2))
}

/// Responds as an MCP server of the protocol version with a handshake.
async fn tools(
    socket: &mut BufReader<TcpStream>,
    server: &str,
    request: &Value,
    pages: &AtomicU64,
) -> std::io::Result<()> {
    let text = json!([{ "type": "text", "text": "well" }]);
    let result = match (request["method"].as_str().unwrap_or_default(), server) {
        ("initialize", _) => json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "hostile", "version": "1" },
        }),
        ("tools/list", "shape") => json!({ "tools": [
            { "name": "plain", "inputSchema": { "type": "object" } },
            { "name": "doubling", "inputSchema": doubling(DOUBLINGS, "allOf") },
        ] }),
        // Each page names another next page.
        ("tools/list", "pages") => {
            let cursor = request["params"]["cursor"].as_str().and_then(|it| it.parse().ok());
            let page: u64 = cursor.unwrap_or(1);
            pages.fetch_max(page, Ordering::SeqCst);
            json!({
                "tools": [{ "name": "plain", "inputSchema": { "type": "object" } }],
                "nextCursor": (page + 1).to_string(),
            })
        }
        ("tools/list", _) => {
            json!({ "tools": [{ "name": "plain", "inputSchema": { "type": "object" } }] })
        }
        ("tools/call", "endless") => return endless(socket, EVENTS, ": still here\n\n").await,
        ("tools/call", "deep") => {
            let deep = format!("{}{}", "[".repeat(LEVELS), "]".repeat(LEVELS));
            let answer = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"content\":{text},\
                 \"structuredContent\":{{\"deep\":{deep}}}}}}}",
                request["id"]
            );
            return say(socket, "200 OK", &answer).await;
        }
        ("tools/call", "numbers") => {
            let numbers = numbers(TOOL_NUMBERS_BYTES);
            let answer = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"content\":{text},\
                 \"structuredContent\":{{\"numbers\":{numbers}}}}}}}",
                request["id"]
            );
            return say(socket, "200 OK", &answer).await;
        }
        ("tools/call", _) => json!({ "content": text }),
        _ if request.get("id").is_none() => return say(socket, "202 Accepted", "").await,
        _ => {
            let error = json!({ "code": -32601, "message": "Method not found" });
            let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
            return say(socket, "200 OK", &answer.to_string()).await;
        }
    };
    let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
    say(socket, "200 OK", &answer.to_string()).await
}

async fn say(socket: &mut BufReader<TcpStream>, status: &str, body: &str) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).await
}

/// Returns a schema with `levels` levels of definitions, each of which refers to the next level
/// twice: the schema expands to `2^levels` schemas.
pub fn doubling(levels: u32, keyword: &str) -> Value {
    let mut schema = json!({ "$defs": { "d0": { "type": "object" } } });
    for level in 1..=levels {
        let below = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
        schema["$defs"][format!("d{level}")] = json!({ keyword: [below, below] });
    }
    schema["$ref"] = json!(format!("#/$defs/d{levels}"));
    schema
}
