//! HTTP responses as status, headers and JSON, and server-sent events.

use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::described::Exchange;

/// A response that was read to its end.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as JSON, or as a string if it is not valid JSON.
    pub body: Value,
}

impl Answer {
    /// Sends a request and reads the whole response.
    ///
    /// # Panics
    ///
    /// If the request fails, or an application responds otherwise than it describes; see
    /// [`described`](crate::described).
    pub async fn of(request: RequestBuilder) -> Self {
        let (exchange, response) = Exchange::begin(request).await;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let text = response.text().await.expect("the body is complete");
        exchange.check(&text);
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Self { status, headers, body }
    }

    /// Returns status and body, so that one assertion compares both.
    pub fn parts(&self) -> (u16, &Value) {
        (self.status, &self.body)
    }

    /// Returns a header as text, or an empty text if the header is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the body of a response that must have this status.
    ///
    /// # Panics
    ///
    /// If the status differs.
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }
}

/// A block of an event stream, which an empty line ends: an event or a comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The comment.
    pub comment: Option<String>,
    /// The `id` field.
    pub id: Option<String>,
    /// The `event` field.
    pub event: Option<String>,
    /// The `data` field.
    pub data: Option<String>,
}

impl Block {
    fn parse(text: &str) -> Self {
        let field = |name: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix(name));
            lines.map(|line| line.trim().to_owned()).reduce(|all, line| format!("{all}\n{line}"))
        };
        Self { comment: field(":"), id: field("id:"), event: field("event:"), data: field("data:") }
    }
}

/// Splits the text of an event stream, whose lines end with LF, into blocks. The values of a field
/// that a block repeats are joined by line breaks. Spaces around a value are removed.
pub fn blocks(text: &str) -> impl Iterator<Item = Block> {
    text.split("\n\n").filter(|block| !block.is_empty()).map(Block::parse)
}

/// One server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The sequence number in the `id` field.
    pub id: u64,
    /// The event type.
    pub event: String,
    /// The parsed `data` field.
    pub data: Value,
}

/// Parses the text of an event stream.
///
/// # Panics
///
/// If an event has no numeric id, or its data is not JSON.
pub fn messages(text: &str) -> Vec<Message> {
    blocks(text).filter_map(message).collect()
}

/// Returns the event of a block, or `None` for a comment.
fn message(block: Block) -> Option<Message> {
    let data = block.data?;
    Some(Message {
        id: block.id.unwrap_or_default().parse().expect("a number"),
        event: block.event.unwrap_or_default(),
        data: serde_json::from_str(&data).expect("JSON"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_split_into_events_and_comments() {
        let text = ": a comment\n\nid: 7\nevent: added\ndata: {\ndata: }\n\n\n\ndata:x\n\n: end";
        let some = |text: &str| Some(text.to_owned());
        let found: Vec<Block> = blocks(text).collect();
        let event =
            Block { id: some("7"), event: some("added"), data: some("{\n}"), ..Block::default() };
        assert_eq!(
            found,
            [
                Block { comment: some("a comment"), ..Block::default() },
                event,
                Block { data: some("x"), ..Block::default() },
                Block { comment: some("end"), ..Block::default() },
            ]
        );
    }
}
