//! Latency of model calls, compared with plain HTTP requests of the same bytes. A provider on
//! loopback responds immediately with the same bytes each time.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use wattle_graph::id::{AppName, PluginName};
use wattle_graph::llm::{CompletionRequest, Message, Part, Role, ToolDefinition};
use wattle_model::{ModelConfig, Routes};
use wattle_run::caller_id::CallerId;
use wattle_run::ports::model::DiscardDeltas;
use wattle_run::ports::{Caller, Model as _};
use wattle_store::InMemoryBlobs;

use crate::{median, print_line};

/// Number of calls before the measurement.
const WARM_UP: usize = 20;

/// Number of measured calls.
const CALLS: usize = 300;

/// Number of deltas of a streamed response.
const PIECES: usize = 500;

/// The text of a delta.
const WORDS: &str = "some words of an answer ";

/// Number of tools in a request.
const TOOLS: usize = 20;

/// Measures the calls and prints a table.
///
/// # Errors
///
/// If a completion or a response is incomplete.
pub(crate) fn table() -> Result<()> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    print_line("call                    median us   bytes alone us   ratio");
    for kind in ["openai", "gemini", "anthropic"] {
        for (name, streamed, tools) in
            [("whole", false, 0), ("whole, 20 tools", false, TOOLS), ("500 pieces", true, 0)]
        {
            let (call, bare) = runtime.block_on(measured(kind, streamed, tools))?;
            let name = format!("{kind}, {name}");
            print_line(&format!("{name:<23} {call:>9.0} {bare:>16.0} {:>7.2}", call / bare));
        }
    }
    Ok(())
}

/// Returns the median microseconds of a model call, and of a plain request for the same bytes.
async fn measured(kind: &str, streamed: bool, tools: usize) -> Result<(f64, f64)> {
    let body = if streamed { stream(kind) } else { whole(kind).to_string() };
    let form = if streamed { "text/event-stream" } else { "application/json" };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {form}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let server = tokio::spawn(serve(listener, answer));
    let routes = routes(kind, &url, streamed)?;
    let request = request(tools);
    let (app, plugin) = (AppName::new("bench")?, PluginName::new("bench")?);
    let caller = Caller { app, plugin, tenant: None, owner: CallerId::default() };
    let blobs = InMemoryBlobs::default();
    let http = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build()?;
    let (mut calls, mut bare) = (Vec::with_capacity(CALLS), Vec::with_capacity(CALLS));
    let expected = WORDS.len() * PIECES;
    // The calls alternate, so that both kinds have the same conditions.
    for number in 0..WARM_UP + CALLS {
        let started = Instant::now();
        let said = routes.complete(&caller, &request, &blobs, &DiscardDeltas).await;
        let took = started.elapsed();
        let said = said.map_err(|failure| anyhow::anyhow!("{kind}: {failure}"))?;
        ensure!(said.text().len() == expected, "{kind}: {} bytes", said.text().len());
        let started = Instant::now();
        let bytes = http.post(&url).body("{}").send().await?.bytes().await?;
        let alone = started.elapsed();
        ensure!(bytes.len() == body.len(), "{kind}: {} bytes alone", bytes.len());
        if number >= WARM_UP {
            calls.push(took.as_secs_f64() * 1e6);
            bare.push(alone.as_secs_f64() * 1e6);
        }
    }
    server.abort();
    Ok((median(&mut calls), median(&mut bare)))
}

/// Responds to every request with the same bytes.
async fn serve(listener: TcpListener, answer: String) {
    while let Ok((socket, _)) = listener.accept().await {
        let answer = answer.clone();
        tokio::spawn(async move { answer_all(socket, &answer).await });
    }
}

async fn answer_all(socket: TcpStream, answer: &str) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let mut socket = BufReader::new(socket);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if socket.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or_default();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        socket.read_exact(&mut body).await?;
        socket.get_mut().write_all(answer.as_bytes()).await?;
    }
}

fn routes(kind: &str, url: &str, streamed: bool) -> Result<Routes> {
    let config: ModelConfig = serde_json::from_value(json!({
        "providers": { "bench": {
            "kind": kind, "base_url": url, "key_env": null, "stream": streamed,
        } },
        "routes": { "chat": { "provider": "bench", "model": "m" } },
    }))?;
    Routes::new(config, &|_| None).context("cannot open the routes")
}

fn request(tools: usize) -> CompletionRequest {
    let tool = |number| ToolDefinition {
        name: format!("tool_{number}"),
        description: "Looks something up.".to_owned(),
        arguments_schema: json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "What to look for." },
                "limit": { "type": "integer", "minimum": 1, "maximum": 100 },
                "tags": { "type": "array", "items": { "type": "string" } },
            },
            "required": ["query"],
        }),
    };
    let message = |role, text: &str| Message { role, parts: vec![Part::Text(text.to_owned())] };
    let messages = vec![message(Role::System, "You answer."), message(Role::User, "What is it?")];
    let mut request = CompletionRequest::new("chat", messages);
    request.tools = (0..tools).map(tool).collect();
    request
}

/// Returns a response as one document.
fn whole(kind: &str) -> Value {
    let text = WORDS.repeat(PIECES);
    match kind {
        "openai" => json!({ "id": "a", "object": "chat.completion", "model": "m",
            "choices": [{ "index": 0, "finish_reason": "stop",
                "message": { "role": "assistant", "content": text } }],
            "usage": { "prompt_tokens": 9, "completion_tokens": 2000, "total_tokens": 2009 } }),
        "gemini" => json!({ "modelVersion": "m",
            "candidates": [{ "content": { "role": "model", "parts": [{ "text": text }] },
                "finishReason": "STOP", "index": 0 }],
            "usageMetadata": { "promptTokenCount": 9, "candidatesTokenCount": 2000 } }),
        _ => json!({ "id": "a", "type": "message", "role": "assistant", "model": "m",
            "content": [{ "type": "text", "text": text }], "stop_reason": "end_turn",
            "usage": { "input_tokens": 9, "output_tokens": 2000 } }),
    }
}

/// Returns the same response as a stream.
fn stream(kind: &str) -> String {
    let mut events = Vec::with_capacity(PIECES + 4);
    match kind {
        "openai" => {
            let piece = |delta: Value, reason: Value| {
                json!({ "id": "a", "object": "chat.completion.chunk", "model": "m",
                    "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] })
            };
            let text = |_| piece(json!({ "content": WORDS }), Value::Null);
            events.extend((0..PIECES).map(text));
            events.push(piece(json!({}), json!("stop")));
            let usage = json!({ "prompt_tokens": 9, "completion_tokens": 2000 });
            events.push(json!({ "id": "a", "choices": [], "usage": usage }));
        }
        "gemini" => {
            let piece = |text: &str| {
                json!({ "modelVersion": "m",
                    "candidates": [{ "content": { "role": "model", "parts": [{ "text": text }] } }],
                    "usageMetadata": { "promptTokenCount": 9 } })
            };
            events.extend((0..PIECES).map(|_| piece(WORDS)));
            events.push(json!({ "candidates": [{ "finishReason": "STOP" }],
                "usageMetadata": { "promptTokenCount": 9, "candidatesTokenCount": 2000 } }));
        }
        _ => {
            let message = json!({ "id": "a", "type": "message", "role": "assistant", "model": "m",
                "content": [], "usage": { "input_tokens": 9 } });
            events.push(json!({ "type": "message_start", "message": message }));
            events.push(json!({ "type": "content_block_start", "index": 0,
                "content_block": { "type": "text", "text": "" } }));
            let text = |_| {
                json!({ "type": "content_block_delta", "index": 0,
                    "delta": { "type": "text_delta", "text": WORDS } })
            };
            events.extend((0..PIECES).map(text));
            events.push(json!({ "type": "content_block_stop", "index": 0 }));
            events.push(json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
                "usage": { "output_tokens": 2000 } }));
            events.push(json!({ "type": "message_stop" }));
        }
    }
    let mut body: String = events
        .iter()
        .map(|event| match event["type"].as_str() {
            Some(name) => format!("event: {name}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        })
        .collect();
    if kind == "openai" {
        body.push_str("data: [DONE]\n\n");
    }
    body
}
