//! Server-sent events.

use serde_json::Value;

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
