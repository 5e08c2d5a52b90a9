//! A streamed answer in the protocol of the AI SDK, whole or piece by piece.

use reqwest::{RequestBuilder, Response};
use serde_json::Value;

/// What ends a stream.
const DONE: &str = "[DONE]";

/// An answer that is being given. Dropping it is what a page does that goes away.
pub struct Stream {
    response: Response,
    /// What has come and is no whole event yet.
    open: Vec<u8>,
    /// The chunks so far.
    pub chunks: Vec<Value>,
    /// Whether `[DONE]` has come.
    pub is_done: bool,
}

impl Stream {
    /// Sends a request, which must be answered with a stream.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub async fn open(request: RequestBuilder) -> Self {
        Self::try_open(request).await.expect("a stream")
    }

    /// Sends a request that is answered with a stream or with 204.
    ///
    /// # Panics
    ///
    /// If it is answered with anything else.
    pub async fn try_open(request: RequestBuilder) -> Option<Self> {
        let response = request.send().await.expect("the server answers");
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

    /// Reads on until a chunk is as wanted, and gives it; `None` if the stream ends before.
    pub async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        while let Some(chunk) = self.next().await {
            if wanted(&chunk) {
                return Some(chunk);
            }
        }
        None
    }

    /// Reads on until a chunk of this type.
    ///
    /// # Panics
    ///
    /// If the stream ends before.
    pub async fn until_type(&mut self, kind: &str) -> Value {
        let found = self.until(|chunk| chunk["type"] == kind).await;
        found.unwrap_or_else(|| panic!("no `{kind}` in {:#?}", self.chunks))
    }

    /// Reads to the end.
    pub async fn rest(mut self) -> Talk {
        self.until(|_| false).await;
        Talk { chunks: self.chunks, is_done: self.is_done }
    }

    /// The next chunk.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.open.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.open.drain(..end + 2).collect();
                let event = String::from_utf8(event).expect("UTF-8");
                let data = event.lines().find_map(|line| line.strip_prefix("data:"));
                match data.map(str::trim) {
                    Some(DONE) => self.is_done = true,
                    Some(data) => {
                        let chunk: Value = serde_json::from_str(data).expect("a chunk");
                        self.chunks.push(chunk.clone());
                        return Some(chunk);
                    }
                    // A comment, which keeps the connection open.
                    None => {}
                }
                continue;
            }
            let piece = self.response.chunk().await.ok().flatten()?;
            self.open.extend(piece);
        }
    }
}

/// An answer that was read to its end.
#[derive(Clone, Debug)]
pub struct Talk {
    /// All chunks.
    pub chunks: Vec<Value>,
    /// Whether `[DONE]` came.
    pub is_done: bool,
}

impl Talk {
    /// The types of all chunks, in order.
    pub fn types(&self) -> Vec<&str> {
        self.chunks.iter().filter_map(|chunk| chunk["type"].as_str()).collect()
    }

    /// All chunks of a type.
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        self.chunks.iter().filter(|chunk| chunk["type"] == kind).collect()
    }

    /// Everything that was said.
    pub fn text(&self) -> String {
        let deltas = self.of("text-delta");
        deltas.into_iter().filter_map(|chunk| chunk["delta"].as_str()).collect()
    }

    /// The tools that were called, in order.
    pub fn tools(&self) -> Vec<&str> {
        let calls = self.of("tool-input-available");
        calls.into_iter().filter_map(|chunk| chunk["toolName"].as_str()).collect()
    }

    /// The last output of a tool.
    ///
    /// # Panics
    ///
    /// If it gave none.
    pub fn output(&self, tool: &str) -> Value {
        let answer = self.answer(tool, "tool-output-available");
        answer.unwrap_or_else(|| panic!("no output of `{tool}` in {:#?}", self.chunks))["output"]
            .clone()
    }

    /// The last error of a tool; empty if it gave none.
    pub fn tool_error(&self, tool: &str) -> String {
        let answer = self.answer(tool, "tool-output-error");
        answer.and_then(|chunk| chunk["errorText"].as_str()).unwrap_or_default().to_owned()
    }

    /// Errors of the whole answer.
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
