//! Streamed Anthropic responses: named events for the message, its blocks and their deltas.

use serde_json::{Value, json};

use super::stream::Event;

/// Number of characters of text or tool input in one event.
const PIECE_CHARACTERS: usize = 8;

/// Returns the events of a complete message.
pub(super) fn events(document: &Value) -> Vec<Event> {
    let mut message = document.clone();
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    message["usage"]["output_tokens"] = json!(1);
    let mut events =
        vec![event("message_start", json!({"message": message})), event("ping", json!({}))];
    let blocks = document.get("content").and_then(Value::as_array);
    for (index, block) in blocks.into_iter().flatten().enumerate() {
        add_block(&mut events, index, block);
    }
    let delta = json!({"stop_reason": document["stop_reason"], "stop_sequence": null});
    let usage = json!({"output_tokens": document["usage"]["output_tokens"]});
    events.push(event("message_delta", json!({"delta": delta, "usage": usage})));
    events.push(event("message_stop", json!({})));
    events
}

fn add_block(events: &mut Vec<Event>, index: usize, block: &Value) {
    let mut start = block.clone();
    let (text, kind, field) = if block["type"] == "tool_use" {
        start["input"] = json!({});
        (block["input"].to_string(), "input_json_delta", "partial_json")
    } else {
        start["text"] = json!("");
        (block["text"].as_str().unwrap_or_default().to_owned(), "text_delta", "text")
    };
    events.push(event("content_block_start", json!({"index": index, "content_block": start})));
    let letters: Vec<char> = text.chars().collect();
    for piece in letters.chunks(PIECE_CHARACTERS) {
        let delta = json!({"type": kind, field: piece.iter().collect::<String>()});
        events.push(event("content_block_delta", json!({"index": index, "delta": delta})));
    }
    events.push(event("content_block_stop", json!({"index": index})));
}

/// Creates an event. Its data repeats the name as `type`.
fn event(name: &'static str, mut data: Value) -> Event {
    data["type"] = json!(name);
    Event { name: Some(name), data: data.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_start_deltas_and_stop() {
        let content = json!([
            {"type": "text", "text": "a longer text"},
            {"type": "tool_use", "id": "x", "name": "t", "input": {"a": 1}},
        ]);
        let document = json!({"content": content, "stop_reason": "tool_use",
            "usage": {"input_tokens": 3, "output_tokens": 9}});
        let events = events(&document);
        let names: Vec<&str> = events.iter().filter_map(|event| event.name).collect();
        let expected = "message_start ping content_block_start content_block_delta \
                        content_block_delta content_block_stop content_block_start \
                        content_block_delta content_block_stop message_delta message_stop";
        assert_eq!(names.join(" "), expected);
        let data: Value = serde_json::from_str(&events[7].data).unwrap();
        assert_eq!(data["delta"]["partial_json"], "{\"a\":1}");
        let data: Value = serde_json::from_str(&events[9].data).unwrap();
        assert_eq!(
            (&data["delta"]["stop_reason"], &data["usage"]["output_tokens"]),
            (&json!("tool_use"), &json!(9))
        );
    }
}
