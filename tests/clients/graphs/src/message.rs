//! Messages of the state, and streamed messages.

use wattle_plugin::prelude::{Deserialize, Failure, JsonSchema, Serialize, Value, emit, json};

/// Input of scripted models: the conversation.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Talk {
    messages: Vec<Value>,
}

impl Talk {
    /// Returns whether the conversation has a tool result.
    pub(crate) fn has_answer(&self) -> bool {
        self.messages.iter().any(|message| message["role"] == "tool")
    }
}

/// Output of scripted models: the messages to append.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct NewMessages {
    messages: Vec<Value>,
}

impl NewMessages {
    /// Creates an output with one message.
    pub(crate) fn one(message: Value) -> Self {
        Self { messages: vec![message] }
    }
}

/// Creates a message of a person.
pub(crate) fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

/// Creates a message of a model.
pub(crate) fn assistant(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "assistant", "content": text })
}

/// Creates a message of a model and streams it word by word.
pub(crate) fn spoken(id: &str, text: &str) -> Result<Value, Failure> {
    for piece in pieces(text) {
        emit::message_delta(id, piece)?;
    }
    emit::message_end(id)?;
    Ok(assistant(id, text))
}

/// Creates a message of a model that requests a tool call.
pub(crate) fn asking(id: &str, call_id: &str, tool: &str, arguments: Value) -> Value {
    let call = json!({ "id": call_id, "name": tool, "arguments": arguments });
    json!({ "id": id, "role": "assistant", "content": "", "tool_calls": [call] })
}

/// Creates a tool result without an id, because no scenario reads the id.
pub(crate) fn tool_answer(call_id: &str, text: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": call_id, "content": text, "status": "success" })
}

/// Splits a text into words, each with the space before it.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let starts = std::iter::once(0).chain(text.match_indices(' ').map(|(index, _)| index));
    let ends = text.match_indices(' ').map(|(index, _)| index).chain([text.len()]);
    starts.zip(ends).map(|(start, end)| &text[start..end]).filter(|piece| !piece.is_empty())
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;
    use wattle_plugin::testing::FakeHost;

    use super::{pieces, spoken};

    #[test]
    fn pieces_are_words_with_the_preceding_space() {
        for (text, words) in
            [("Hello, world!", vec!["Hello,", " world!"]), ("done.", vec!["done."]), ("", vec![])]
        {
            assert_eq!(pieces(text).collect::<Vec<_>>(), words);
        }
    }

    #[test]
    fn a_streamed_message_is_emitted_before_it_is_returned() {
        let host = FakeHost::new();
        let message = host.run(|| spoken("m-1", "one two")).unwrap();
        assert_eq!(message["content"], "one two");
        let delta = |text| ("message.delta".to_owned(), json!({"id": "m-1", "text": text}));
        let end = ("message.end".to_owned(), json!({"id": "m-1"}));
        assert_eq!(host.emitted(), [delta("one"), delta(" two"), end]);
    }
}
