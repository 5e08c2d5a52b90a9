//! Weight of requests to models.

use super::{NAME_BYTES, VALUE_BYTES, named, weight};
use crate::limit::HISTORY_REPEATED_BYTES;
use crate::llm::{CompletionRequest, ImageSource, Message, Part, Role};

/// Weight of a part without its content, in bytes: the size of a [`Part`] on a 64-bit machine.
const PART_BYTES: u64 = 2 * VALUE_BYTES;

/// Returns the approximate memory that a model call with this request holds until its end, in
/// bytes: the request, the messages of its history, and the body that is made of them.
/// `repeated_bytes` are the [`History::repeated_bytes`](crate::llm::History::repeated_bytes) of the
/// request; they are 0 without a history.
pub fn call_weight(request: &CompletionRequest, repeated_bytes: u64) -> u64 {
    let own = own_weight(request);
    match &request.history {
        None => 2 * own,
        // The expanded request has copies of the request's own messages.
        Some(history) => {
            // A request with more than the limit is refused when it is expanded.
            let repeated = repeated_bytes.min(HISTORY_REPEATED_BYTES);
            3 * own + 2 * (history.listed_weight() + repeated)
        }
    }
}

/// Returns the weight of a request without the conversation to which its history refers, in bytes.
fn own_weight(request: &CompletionRequest) -> u64 {
    let messages: u64 = request.messages.iter().map(message_weight).sum();
    let tools: u64 = request
        .tools
        .iter()
        .map(|tool| named(&tool.name) + named(&tool.description) + weight(&tool.arguments_schema))
        .sum();
    let schema = request.response_schema.as_ref();
    let schema = schema.map_or(0, |schema| named(&schema.name) + weight(&schema.schema));
    let stop: u64 = request.stop.iter().map(|text| named(text)).sum();
    let history = request.history.as_ref().map_or(0, |history| {
        let append: u64 = history.append.iter().map(weight).sum();
        append + history.names.iter().map(|(own, seen)| named(own) + named(seen)).sum::<u64>()
    });
    messages + tools + schema + stop + history
}

fn message_weight(message: &Message) -> u64 {
    let role = match &message.role {
        Role::Other(name) => name.len() as u64,
        Role::System | Role::User | Role::Assistant | Role::Tool => 0,
    };
    NAME_BYTES + role + message.parts.iter().map(part_weight).sum::<u64>()
}

fn part_weight(part: &Part) -> u64 {
    let inside = match part {
        Part::Text(text) | Part::Reasoning(text) => texts(&[text]),
        Part::Image(image) => match &image.source {
            ImageSource::Blob(_) => texts(&[&image.media_type]),
            ImageSource::Url(url) => texts(&[&image.media_type, url]),
        },
        Part::ToolCall(call) => texts(&[&call.id, &call.name]) + weight(&call.arguments),
        Part::ToolResult(result) => texts(&[&result.call_id, &result.content]),
        Part::Other(value) => weight(value),
    };
    PART_BYTES + inside
}

fn texts(texts: &[&str]) -> u64 {
    texts.iter().map(|text| text.len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::checkpoint::SharedList;

    /// Bytes of a text, which outweigh the values around it.
    const TEXT_BYTES: u64 = 100_000;

    fn text() -> String {
        "x".repeat(TEXT_BYTES as usize)
    }

    fn request(text: String) -> CompletionRequest {
        let message = Message { role: Role::User, parts: vec![Part::Text(text)] };
        CompletionRequest::new("chat", vec![message])
    }

    /// Returns how many times a call holds the text.
    fn copies(request: &CompletionRequest) -> u64 {
        call_weight(request, 0) / TEXT_BYTES
    }

    #[test]
    fn a_part_takes_no_more_memory_than_its_weight() {
        assert!(size_of::<Part>() as u64 <= PART_BYTES);
        assert!(size_of::<Message>() as u64 <= NAME_BYTES);
    }

    #[test]
    fn a_call_holds_its_request_and_the_body() {
        assert_eq!(copies(&request(text())), 2);
    }

    #[test]
    fn a_call_with_a_history_holds_the_messages_and_the_body() {
        let list: SharedList = [json!({ "role": "user", "content": text() })].into_iter().collect();
        let history = |history| {
            let reference = serde_json::from_value(history).unwrap();
            request("hi".to_owned()).with_history(reference, list.clone()).unwrap()
        };
        assert_eq!(copies(&history(json!({ "channel": "m", "at": 0 }))), 2);
        assert_eq!(copies(&history(json!({ "channel": "m", "at": 0, "from": 1 }))), 0);
        let append = [json!({ "role": "user", "content": text() })];
        let appended = json!({ "channel": "m", "at": 0, "from": 1, "append": append });
        assert_eq!(copies(&history(appended)), 3);
    }
}
