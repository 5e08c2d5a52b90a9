//! A model's answer.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::json::{self, Extra};
use crate::message::{Message, Part, Role, ToolCall, text_of};

/// Name of the id among what stands beside the fixed fields, of an answer and of a message.
const ID: &str = "id";

/// Why the model stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FinishReason {
    /// It was done.
    #[default]
    Stop,
    /// The limit of tokens.
    Length,
    /// It wants tools called.
    ToolCalls,
    /// The provider withheld the rest.
    ContentFilter,
    /// A reason this version has no case for.
    Other(String),
}

/// Tokens that a call used, as far as the provider said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    /// Read.
    pub input_tokens: Option<u64>,
    /// Written.
    pub output_tokens: Option<u64>,
    /// Read from the provider's cache.
    pub cached_input_tokens: Option<u64>,
    /// Written while reasoning.
    pub reasoning_tokens: Option<u64>,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

/// One model that was asked for an answer, with all its retries.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Attempt {
    /// Its provider.
    pub provider: String,
    /// The model, as the route names it.
    pub model: String,
    /// How often it was asked.
    #[serde(default)]
    pub tries: u32,
    /// Why it gave no answer; `None` for the one that did.
    #[serde(default)]
    pub error: Option<Failure>,
}

/// A model's answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Completion {
    /// What it says, in order.
    pub parts: Vec<Part>,
    /// The validated document, if a schema was asked for.
    pub structured: Option<Value>,
    /// Why it stopped.
    pub finish_reason: FinishReason,
    /// Tokens used.
    pub usage: Usage,
    /// The model that answered.
    pub model: String,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl Completion {
    /// An answer in words, as tests make it.
    pub fn of_text(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Text(text.into())], ..Self::default() }
    }

    /// An answer to a request with a schema, as tests make it.
    pub fn of_json(document: Value) -> Self {
        Self { structured: Some(document.clone()), ..Self::of_text(document.to_string()) }
    }

    /// An answer that wants a tool called, as tests make it.
    pub fn of_tool_call(id: &str, name: &str, arguments: Value) -> Self {
        let call =
            ToolCall { id: id.to_owned(), name: name.to_owned(), arguments, extra: Extra::new() };
        Self {
            parts: vec![Part::ToolCall(call)],
            finish_reason: FinishReason::ToolCalls,
            ..Self::default()
        }
    }

    /// The same under an id, as tests make it.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.extra.insert(ID.to_owned(), Value::String(id.into()));
        self
    }

    /// The id of the message that the answer becomes. Clients that follow the run have seen it grow
    /// under this id, so the message that the node writes should have it. `None` if the host does not
    /// say, as in a web handler.
    ///
    /// ```
    /// use wattle_plugin::llm::Completion;
    ///
    /// let answer = Completion::of_text("hello");
    /// assert_eq!(answer.id(), None);
    /// assert_eq!(answer.with_id("run--1-0").id(), Some("run--1-0"));
    /// ```
    pub fn id(&self) -> Option<&str> {
        self.extra.get(ID).and_then(Value::as_str)
    }

    /// All text parts, joined.
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }

    /// Whether this is an answer: it says something, or calls a tool. Providers end with anything else for
    /// reasons of many kinds, also under [`FinishReason::Stop`]; reasoning alone is no answer.
    ///
    /// ```
    /// use wattle_plugin::llm::Completion;
    /// use wattle_plugin::message::Part;
    ///
    /// assert!(Completion::of_text("hello").is_answer());
    /// let thought = Completion { parts: vec![Part::Reasoning("hm".into())], ..Completion::default() };
    /// assert!(!thought.is_answer());
    /// ```
    pub fn is_answer(&self) -> bool {
        self.tool_calls().next().is_some() || !self.text().trim().is_empty()
    }

    /// The validated document as a type.
    ///
    /// # Errors
    ///
    /// `invalid` if no schema was asked for, or if the document does not fit the type.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let document = self.structured.as_ref().ok_or_else(|| {
            Failure::invalid("the answer has no document; ask for one with `Request::schema`")
        })?;
        json::from_value("the model's answer", document)
    }

    /// The tools that the model wants called.
    ///
    /// ```
    /// use serde_json::json;
    /// use wattle_plugin::llm::Completion;
    ///
    /// let answer = Completion::of_tool_call("call-1", "add", json!({"a": 1}));
    /// assert_eq!(answer.tool_calls().next().map(|call| &*call.name), Some("add"));
    /// ```
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The models that were asked, in order; the last one answered. Empty if the host does not say.
    ///
    /// ```
    /// use serde_json::json;
    /// use wattle_plugin::llm::Completion;
    ///
    /// let mut answer = Completion::of_text("hello");
    /// assert!(answer.attempts().is_empty());
    /// let away = json!({"code": "unavailable", "message": "away", "retryable": true});
    /// let attempts = json!([
    ///     {"provider": "openai", "model": "large", "error": away},
    ///     {"provider": "openai", "model": "small"},
    /// ]);
    /// answer.extra.insert("attempts".to_owned(), attempts);
    /// let attempts = answer.attempts();
    /// assert_eq!(attempts[0].error.as_ref().map(|failure| &*failure.code), Some("unavailable"));
    /// assert_eq!((&*attempts[1].model, &attempts[1].error), ("small", &None));
    /// ```
    pub fn attempts(&self) -> Vec<Attempt> {
        let attempts = self.extra.get("attempts").map(Vec::<Attempt>::deserialize);
        attempts.and_then(Result::ok).unwrap_or_default()
    }

    /// The answer as a message, to go on with the conversation. Its id is among what stands beside the
    /// fixed fields.
    pub fn into_message(mut self) -> Message {
        let extra = self.extra.remove_entry(ID).into_iter().collect();
        Message { role: Role::Assistant, parts: self.parts, extra }
    }

    /// The answer as a node writes it to a channel with the reducer `messages`: with its id, so that
    /// clients do not take it for another message than the one that they have seen grow.
    ///
    /// ```
    /// use serde_json::json;
    /// use wattle_plugin::llm::Completion;
    ///
    /// let answer = Completion::of_text("hello").with_id("run--1-0");
    /// let message = json!({"id": "run--1-0", "role": "assistant", "content": "hello"});
    /// assert_eq!(answer.to_stored(), message);
    /// let answer = Completion::of_tool_call("call-1", "add", json!({"a": 1}));
    /// assert_eq!(answer.to_stored()["tool_calls"][0]["name"], "add");
    /// ```
    pub fn to_stored(&self) -> Value {
        let mut message = Map::new();
        if let Some(id) = self.id() {
            message.insert(ID.to_owned(), id.into());
        }
        message.insert("role".to_owned(), "assistant".into());
        message.insert("content".to_owned(), self.text().into());
        let call = |call: &ToolCall| {
            let ToolCall { id, name, arguments, .. } = call;
            json!({ "id": id, "name": name, "arguments": arguments })
        };
        let calls: Vec<Value> = self.tool_calls().map(call).collect();
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), calls.into());
        }
        let reasoning: String = self.parts.iter().filter_map(reasoning).collect();
        if !reasoning.is_empty() {
            message.insert("reasoning".to_owned(), reasoning.into());
        }
        Value::Object(message)
    }
}

fn reasoning(part: &Part) -> Option<&str> {
    match part {
        Part::Reasoning(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Completion;
    use crate::message::Part;

    #[test]
    fn an_answer_becomes_a_message_under_its_id() {
        let mut answer = Completion::of_tool_call("c", "add", json!({"a": 1})).with_id("m");
        answer.parts.insert(0, Part::Reasoning("hm".to_owned()));
        answer.parts.insert(1, Part::Text("so".to_owned()));
        answer.extra.insert("attempts".to_owned(), json!([]));
        let stored = json!({
            "id": "m", "role": "assistant", "content": "so", "reasoning": "hm",
            "tool_calls": [{"id": "c", "name": "add", "arguments": {"a": 1}}],
        });
        assert_eq!(answer.to_stored(), stored);
        let message = answer.into_message();
        assert_eq!(json!(message.extra), json!({"id": "m"}));
        assert!(Completion::of_text("a").into_message().extra.is_empty());
    }
}
