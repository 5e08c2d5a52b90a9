//! Responses in OpenAI's format, as a stream of events or as one document. The result does not
//! depend on the boundaries of chunks, and the emitted deltas equal the completion.

use std::sync::OnceLock;

use bytes::Bytes;
use wattle_graph::failure::Failure;
use wattle_graph::llm::{Completion, Delta, Part};
use wattle_model::config::ProviderKind;
use wattle_model::recorded::Recorded;

/// Parses a response in OpenAI's format.
pub fn run(bytes: &[u8]) {
    static RECORDED: OnceLock<Recorded> = OnceLock::new();
    check(RECORDED.get_or_init(|| recorded(ProviderKind::Openai)), bytes);
}

/// Returns a parser for responses of one kind of provider.
pub(super) fn recorded(kind: ProviderKind) -> Recorded {
    Recorded::new(kind).expect("there is a client")
}

/// Maximum number of chunks of a response.
const CHUNKS: usize = 16 << 10;

/// Parses a response as one chunk, as two chunks and byte by byte. A response with more than
/// [`CHUNKS`] bytes has longer chunks.
pub(super) fn check(recorded: &Recorded, bytes: &[u8]) {
    let read = |pieces: &[&[u8]]| read(recorded, pieces);
    let whole = read(&[bytes]);
    let middle = bytes.len() / 2;
    let halves = [&bytes[..middle], &bytes[middle..]];
    assert_eq!(whole, read(&halves), "in two chunks");
    let singles: Vec<&[u8]> = bytes.chunks(bytes.len().div_ceil(CHUNKS).max(1)).collect();
    let single = read(&singles);
    assert_eq!(whole, single, "byte by byte");
    if let (Ok(answer), emitted) = whole {
        assert_eq!(
            content_of_completion(&answer),
            emitted,
            "the deltas differ from the completion"
        );
    }
}

/// The content of a completion or of its deltas.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CompletionContent {
    text: String,
    reasoning: String,
    calls: usize,
}

fn read(recorded: &Recorded, pieces: &[&[u8]]) -> (Result<Completion, Failure>, CompletionContent) {
    let pieces = pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect();
    let (answer, deltas) = crate::wait(recorded.read(pieces));
    (answer, content_of_deltas(&deltas))
}

pub(super) fn content_of_deltas(deltas: &[Delta]) -> CompletionContent {
    let mut content = CompletionContent::default();
    for delta in deltas {
        match delta {
            Delta::Text { text } => content.text.push_str(text),
            Delta::Reasoning { text } => content.reasoning.push_str(text),
            Delta::ToolCall { id, .. } => content.calls += usize::from(id.is_some()),
            // Text of these deltas was reasoning.
            Delta::Restart => content = CompletionContent::default(),
            other => panic!("unknown delta: {other:?}"),
        }
    }
    content
}

pub(super) fn content_of_completion(answer: &Completion) -> CompletionContent {
    let mut content = CompletionContent::default();
    for part in &answer.parts {
        match part {
            Part::Text(text) => content.text.push_str(text),
            Part::Reasoning(text) => content.reasoning.push_str(text),
            // A call without a name is not emitted.
            Part::ToolCall(call) => content.calls += usize::from(!call.name.is_empty()),
            _ => {}
        }
    }
    content
}
