//! Streams that a test reads while they are open.

use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use futures::StreamExt as _;
use serde_json::Value;

use crate::host::{Host, request};

/// A server-sent event: kind, data, id.
pub(crate) type Frame = (String, Value, String);

/// An open stream of server-sent events.
pub(crate) struct LiveStream {
    body: BodyDataStream,
    text: String,
}

impl LiveStream {
    pub(crate) async fn open(host: &Host, request: Request<Body>) -> Self {
        let response = host.raw(request).await;
        assert_eq!(response.status(), 200);
        let kind = response.headers()["content-type"].to_str().unwrap();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        Self { body: response.into_body().into_data_stream(), text: String::new() }
    }

    /// Opens the stream of the typed events of a thread.
    pub(crate) async fn events(host: &Host, thread: &str, wanted: Value) -> Self {
        let path = format!("/threads/{thread}/stream/events");
        Self::open(host, request("POST", &path, Some(wanted))).await
    }

    /// Returns the next server-sent event; `None` at the end of the stream. Skips heartbeats.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\r\n\r\n") {
                let (frame, rest) = (frame(block), rest.to_owned());
                self.text = rest;
                match frame {
                    Some(frame) => return Some(frame),
                    None => continue,
                }
            }
            let chunk = self.body.next().await?.unwrap();
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Returns the server-sent events up to and including the first event for which `is_last`
    /// returns true.
    pub(crate) async fn until(&mut self, is_last: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let frame =
                self.next().await.unwrap_or_else(|| panic!("the stream ended after {frames:?}"));
            let ends = is_last(&frame);
            frames.push(frame);
            if ends {
                return frames;
            }
        }
    }

    /// Returns the server-sent events up to and including the end of a run.
    pub(crate) async fn run(&mut self) -> Vec<Frame> {
        self.until(|(kind, data, _)| kind == "lifecycle" && is_run_end(data)).await
    }
}

/// Returns whether an event ends a run.
pub(crate) fn is_run_end(event: &Value) -> bool {
    let params = &event["params"];
    let words = ["completed", "failed", "interrupted"];
    let is_end = params["data"]["event"].as_str().is_some_and(|word| words.contains(&word));
    is_end && params["namespace"].as_array().is_some_and(Vec::is_empty)
}

fn frame(block: &str) -> Option<Frame> {
    let field = |name: &str| block.split("\r\n").find_map(|line| line.strip_prefix(name));
    let kind = field("event: ")?.to_owned();
    let data = serde_json::from_str(field("data: ")?).unwrap();
    Some((kind, data, field("id: ").unwrap_or_default().to_owned()))
}
