//! A streamed reply in the protocol of the AI SDK, read as a whole or chunk by chunk.

use reqwest::{RequestBuilder, Response};
use serde_json::Value;

use crate::described::Exchange;
use crate::event_stream::blocks;

/// The data of the last event of a stream.
const DONE: &str = "[DONE]";

/// A reply in progress. Dropping it closes the connection, like a page that is closed.
pub struct Stream {
    response: Response,
    /// The bytes of an incomplete event.
    open: Vec<u8>,
    /// The chunks that have arrived.
    pub chunks: Vec<Value>,
    /// True after `[DONE]`.
    pub is_done: bool,
}

impl Stream {
    /// Sends a request whose response must be a stream.
    ///
    /// # Panics
    ///
    /// If the response is not a stream.
    pub async fn open(request: RequestBuilder) -> Self {
        Self::try_open(request).await.expect("a stream")
    }

    /// Sends a request whose response is a stream, or 204 for `None`.
    ///
    /// # Panics
    ///
    /// If the response is neither.
    pub async fn try_open(request: RequestBuilder) -> Option<Self> {
        let (exchange, response) = Exchange::begin(request).await;
        exchange.check_head();
        let status = response.status().as_u16();
        if status == 204 {
            return None;
        }
        if status != 200 {
            let text = response.text().await.unwrap_or_default();
            panic!("{status}: {text}");
        }
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        assert!(kind.is_some_and(|kind| kind.starts_with("text/event-stream")), "{kind:?}");
        let version = response.headers().get("x-vercel-ai-ui-message-stream");
        assert_eq!(version.and_then(|version| version.to_str().ok()), Some("v1"));
        Some(Self { response, open: Vec::new(), chunks: Vec::new(), is_done: false })
    }

    /// Reads until a chunk is as wanted and returns it, or returns `None` at the end of the stream.
    pub async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        while let Some(chunk) = self.next().await {
            if wanted(&chunk) {
                return Some(chunk);
            }
        }
        None
    }

    /// Reads until a chunk of this type.
    ///
    /// # Panics
    ///
    /// If the stream ends before.
    pub async fn until_type(&mut self, kind: &str) -> Value {
        let found = self.until(|chunk| chunk["type"] == kind).await;
        found.unwrap_or_else(|| panic!("no `{kind}` in {:#?}", self.chunks))
    }

    /// Reads to the end of the stream.
    pub async fn rest(mut self) -> Talk {
        self.until(|_| false).await;
        Talk { chunks: self.chunks, is_done: self.is_done }
    }

    /// Reads the next chunk.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.open.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.open.drain(..end + 2).collect();
                let event = String::from_utf8(event).expect("UTF-8");
                let data = blocks(&event).find_map(|block| block.data);
                match data.as_deref() {
                    Some(DONE) => self.is_done = true,
                    Some(data) => {
                        let chunk: Value = serde_json::from_str(data).expect("a chunk");
                        self.chunks.push(chunk.clone());
                        return Some(chunk);
                    }
                    // A comment keeps the connection open.
                    None => {}
                }
                continue;
            }
            let piece = self.response.chunk().await.ok().flatten()?;
            self.open.extend(piece);
        }
    }
}

/// A reply that was read to its end.
#[derive(Clone, Debug)]
pub struct Talk {
    /// All chunks.
    pub chunks: Vec<Value>,
    /// True if `[DONE]` arrived.
    pub is_done: bool,
}

impl Talk {
    /// Returns the types of all chunks, in order.
    pub fn types(&self) -> Vec<&str> {
        self.chunks.iter().filter_map(|chunk| chunk["type"].as_str()).collect()
    }

    /// Returns all chunks of a type.
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        self.chunks.iter().filter(|chunk| chunk["type"] == kind).collect()
    }

    /// Returns the text of the reply.
    pub fn text(&self) -> String {
        let deltas = self.of("text-delta");
        deltas.into_iter().filter_map(|chunk| chunk["delta"].as_str()).collect()
    }

    /// Returns the names of the called tools, in order.
    pub fn tools(&self) -> Vec<&str> {
        let calls = self.of("tool-input-available");
        calls.into_iter().filter_map(|chunk| chunk["toolName"].as_str()).collect()
    }

    /// Returns the last output of a tool.
    ///
    /// # Panics
    ///
    /// If it has none.
    pub fn output(&self, tool: &str) -> Value {
        let answer = self.answer(tool, "tool-output-available");
        answer.unwrap_or_else(|| panic!("no output of `{tool}` in {:#?}", self.chunks))["output"]
            .clone()
    }

    /// Returns the last error of a tool, or an empty text if it has none.
    pub fn tool_error(&self, tool: &str) -> String {
        let answer = self.answer(tool, "tool-output-error");
        answer.and_then(|chunk| chunk["errorText"].as_str()).unwrap_or_default().to_owned()
    }

    /// Returns the errors of the reply itself.
    pub fn errors(&self) -> Vec<&str> {
        self.of("error").into_iter().filter_map(|chunk| chunk["errorText"].as_str()).collect()
    }

    fn answer(&self, tool: &str, kind: &str) -> Option<&Value> {
        let calls = self.of("tool-input-available");
        let of_tool = |id: &Value| {
            calls.iter().any(|call| call["toolName"] == tool && call["toolCallId"] == *id)
        };
        self.of(kind).into_iter().rev().find(|chunk| of_tool(&chunk["toolCallId"]))
    }
}
