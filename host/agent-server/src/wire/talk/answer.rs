//! What a model answered, read from the journal.

use serde::Serialize;
use serde_json::Value;
use wattle_graph::event::Tokens;

/// Tokens of an answer, as clients know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Read by the model.
    pub input_tokens: u64,
    /// Written by the model.
    pub output_tokens: u64,
    /// Both.
    pub total_tokens: u64,
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        Self {
            input_tokens: tokens.input,
            output_tokens: tokens.output,
            total_tokens: tokens.input.saturating_add(tokens.output),
        }
    }
}

/// A whole answer.
pub(super) struct Answer {
    parts: Vec<Value>,
    /// Why the model stopped.
    pub(super) reason: Option<String>,
}

impl Answer {
    /// Reads a journaled answer; what cannot be read is left out.
    pub(super) fn read(document: &Value) -> Self {
        let parts = document.get("parts").and_then(Value::as_array).cloned();
        let reason = document.get("finish_reason").and_then(Value::as_str).map(str::to_owned);
        Self { parts: parts.unwrap_or_default(), reason }
    }

    /// All of its text.
    pub(super) fn text(&self) -> String {
        self.all("text")
    }

    /// All of its reasoning.
    pub(super) fn reasoning(&self) -> String {
        self.all("reasoning")
    }

    fn all(&self, kind: &str) -> String {
        self.parts.iter().filter_map(|part| part.get(kind)?.as_str()).collect()
    }

    /// Its requests for tools.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Value> {
        self.parts.iter().filter_map(|part| part.get("tool_call"))
    }
}

/// The text of a message's content.
pub(super) fn text_of(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()
        }
        _ => String::new(),
    }
}

/// Whether two messages are the same but for their ids.
pub(super) fn same(named: &Value, nameless: &Value) -> bool {
    let (Some(one), Some(other)) = (named.as_object(), nameless.as_object()) else { return false };
    let fields = |message: &serde_json::Map<String, Value>| {
        message.iter().filter(|(name, _)| *name != "id").count()
    };
    fields(one) == fields(other)
        && other.iter().all(|(name, value)| name == "id" || one.get(name) == Some(value))
}
