//! Responses that never end.

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::oneshot;
use wattle_graph::failure::Failure;

use crate::support::{ask, raw_server, routes, stream, table};

/// Maximum bytes that a server may send before the client closes the connection: the limit of the
/// client, and the buffers of the connection, which Linux lets grow to 36 MiB.
const SENT_BYTES: usize = 64 << 20;

/// Maximum bytes of the output of one response.
const SAID_BYTES: usize = 8 << 20;

/// Bytes of text in each event.
const PIECE_BYTES: usize = 20_000;

/// The head of a streamed response.
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

/// The head of an error response.
const ERROR_HEAD: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n\r\n";

/// Calls a service that sends the same event without end.
async fn endless(kind: &str, piece: &str) -> (Failure, usize, usize) {
    endless_after(HEAD, kind, piece).await
}

/// Calls a service that sends a head, and then the same piece without end. Returns the failure, the
/// number of deltas, and the bytes that the server sent until the client closed the connection.
async fn endless_after(head: &'static str, kind: &str, piece: &str) -> (Failure, usize, usize) {
    let (sent, bytes) = oneshot::channel();
    let pieces = piece.repeat(1 + 4_096 / piece.len());
    let base = raw_server(move |mut socket| async move {
        let mut count = 0;
        let _ = socket.write_all(head.as_bytes()).await;
        while socket.write_all(pieces.as_bytes()).await.is_ok() {
            count += pieces.len();
        }
        let _ = sent.send(count);
    })
    .await;
    let patient = json!({ "timeout": "10m" });
    let routes = routes(table(kind, &base, &json!({ "stream": true }), &patient));
    let (answer, kept) = stream(&routes, &ask("hi")).await;
    (answer.unwrap_err(), kept.len(), bytes.await.unwrap())
}

fn event(data: &serde_json::Value) -> String {
    format!("data: {data}\n\n")
}

#[tokio::test]
async fn stream_without_output_is_closed() {
    let delta = |delta| event(&json!({ "choices": [{ "index": 0, "delta": delta }] }));
    let empty_call = json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "" } }] });
    let pieces = [
        ("openai", delta(json!({}))),
        ("openai", delta(json!({ "content": "" }))),
        ("openai", delta(json!({ "content": " ", "reasoning_content": null }))),
        ("openai", delta(empty_call)),
        ("openai", event(&json!({ "usage": { "prompt_tokens": 1 } }))),
        ("openai", ": keep-alive\n\n".to_owned()),
        ("openai", "\n".to_owned()),
        ("openai", "data: endless".to_owned()),
        ("anthropic", event(&json!({ "type": "ping" }))),
        ("gemini", event(&json!({ "candidates": [{ "content": { "parts": [{ "text": "" }] } }] }))),
    ];
    for (kind, piece) in pieces {
        let (failure, handed_on, sent) = endless(kind, &piece).await;
        assert_eq!(handed_on, 0, "no delta was emitted");
        assert!(sent < SENT_BYTES, "{kind} {piece}: {sent} bytes, {failure}");
        assert!(failure.message.contains("have no output"), "{kind} {piece}: {failure}");
    }
}

#[tokio::test]
async fn stream_with_output_above_the_limit_is_closed() {
    let text = "word ".repeat(PIECE_BYTES / 5);
    let delta = json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    let content = json!({ "parts": [{ "text": text }] });
    let candidate = json!({ "candidates": [{ "content": content }] });
    for (kind, piece) in [("openai", event(&delta)), ("gemini", event(&candidate))] {
        let (failure, handed_on, sent) = endless(kind, &piece).await;
        assert!(failure.message.contains("output has more than"), "{kind}: {failure}");
        let said = handed_on * PIECE_BYTES;
        assert!(handed_on > 0 && said <= SAID_BYTES + PIECE_BYTES, "{kind}: {handed_on} pieces");
        assert!(sent < SENT_BYTES, "{kind}: {sent} bytes");
    }
}

#[tokio::test]
async fn error_response_without_end_is_closed() {
    let (failure, handed_on, sent) = endless_after(ERROR_HEAD, "openai", "no, ").await;
    assert!(failure.message.contains("(status 400): no, no, "), "{failure}");
    assert_eq!((&*failure.code, handed_on), ("invalid", 0));
    assert!(sent < SENT_BYTES, "{sent} bytes");
}
