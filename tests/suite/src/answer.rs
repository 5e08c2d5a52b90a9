//! What a server answers: status, headers, JSON; and server-sent events.

use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// An answer that was read to its end.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as JSON; a string if it is none.
    pub body: Value,
}

impl Answer {
    /// Sends a request and reads the whole answer.
    ///
    /// # Panics
    ///
    /// If there is no answer.
    pub async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.expect("the server answers");
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let text = response.text().await.expect("the answer is whole");
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Self { status, headers, body }
    }

    /// Status and body, to compare both at once.
    pub fn parts(&self) -> (u16, &Value) {
        (self.status, &self.body)
    }

    /// A header as text; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body of an answer that must have this status.
    ///
    /// # Panics
    ///
    /// If it has another one.
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }
}

/// One server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its number.
    pub id: u64,
    /// Its type.
    pub event: String,
    /// Its document.
    pub data: Value,
}

/// Reads the text of an event stream.
///
/// # Panics
///
/// If a message has no number or no JSON.
pub fn messages(text: &str) -> Vec<Message> {
    text.split("\n\n").filter(|block| block.contains("data:")).map(message).collect()
}

fn message(block: &str) -> Message {
    let field = |name: &str| {
        let mut lines = block.lines().filter_map(|line| line.strip_prefix(name));
        lines.next().map(str::trim).unwrap_or_default().to_owned()
    };
    Message {
        id: field("id:").parse().expect("a number"),
        event: field("event:"),
        data: serde_json::from_str(&field("data:")).expect("JSON"),
    }
}
