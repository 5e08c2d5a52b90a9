//! Streamed Gemini responses: every event is a JSON object with the next part.

use serde_json::{Value, json};

use super::stream::Event;

/// Number of characters of text in one event.
const PIECE_CHARACTERS: usize = 8;

/// Returns the events of a complete response.
pub(super) fn events(document: &Value) -> Vec<Event> {
    let parts = document.pointer("/candidates/0/content/parts").and_then(Value::as_array);
    let pieces: Vec<Value> = parts.into_iter().flatten().flat_map(pieces).collect();
    let last = pieces.len().saturating_sub(1);
    let event = |(index, piece): (usize, Value)| {
        let mut event = document.clone();
        event["candidates"][0]["content"]["parts"] = json!([piece]);
        // Only the last event has the finish reason.
        if index < last
            && let Some(candidate) = event.pointer_mut("/candidates/0")
            && let Some(fields) = candidate.as_object_mut()
        {
            fields.shift_remove("finishReason");
        }
        Event::data(event)
    };
    pieces.into_iter().enumerate().map(event).collect()
}

fn pieces(part: &Value) -> Vec<Value> {
    let Some(text) = part.get("text").and_then(Value::as_str) else { return vec![part.clone()] };
    let letters: Vec<char> = text.chars().collect();
    let texts: Vec<Value> = letters
        .chunks(PIECE_CHARACTERS)
        .map(|piece| json!({"text": piece.iter().collect::<String>()}))
        .collect();
    if texts.is_empty() { vec![part.clone()] } else { texts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_all_parts_and_the_last_one_the_finish_reason() {
        let call = json!({"functionCall": {"name": "t", "args": {}}});
        let parts = json!([{"text": "a longer text"}, call]);
        let candidate = json!({"content": {"parts": parts}, "finishReason": "STOP"});
        let events: Vec<Value> = events(&json!({"candidates": [candidate], "modelVersion": "m"}))
            .iter()
            .map(|event| serde_json::from_str(&event.data).unwrap())
            .collect();
        let text = |event: &Value| event["candidates"][0]["content"]["parts"][0]["text"].clone();
        assert_eq!((text(&events[0]), text(&events[1])), (json!("a longer"), json!(" text")));
        assert_eq!(events[2]["candidates"][0]["content"]["parts"][0], call);
        let ends: Vec<bool> = events
            .iter()
            .map(|event| event.pointer("/candidates/0/finishReason").is_some())
            .collect();
        assert_eq!(ends, [false, false, true]);
    }
}
