//! Streams that have no end.

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::oneshot;
use wattle_graph::failure::Failure;

use crate::support::{ask, odd, routes, stream, table};

/// Bytes that a server may get rid of before a client gives up: what the client reads at most, and
/// the buffers of the connection, which Linux lets grow to 36 MiB.
const SENT_BYTES: usize = 64 << 20;

/// Bytes that the model's answer has at most.
const SAID_BYTES: usize = 8 << 20;

/// Bytes of text in each piece of an answer.
const PIECE_BYTES: usize = 20_000;

/// The head of a stream.
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

/// Asks a service that sends the same piece without end. Gives the failure, how many pieces were
/// handed on, and the bytes that were sent until the client left.
async fn endless(kind: &str, piece: &str) -> (Failure, usize, usize) {
    let (sent, bytes) = oneshot::channel();
    let pieces = piece.repeat(1 + 4_096 / piece.len());
    let base = odd(move |mut socket| async move {
        let mut count = 0;
        let _ = socket.write_all(HEAD.as_bytes()).await;
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
async fn streams_that_say_nothing_are_given_up() {
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
        assert_eq!(handed_on, 0, "nothing was said");
        assert!(sent < SENT_BYTES, "{kind} {piece}: {sent} bytes, {failure}");
        assert!(failure.message.contains("carry nothing"), "{kind} {piece}: {failure}");
    }
}

#[tokio::test]
async fn a_stream_that_says_too_much_is_given_up() {
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
