//! A model's answer.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;
use crate::json::{self, Extra};
use crate::message::{Message, Part, Role, ToolCall, text_of};

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

    /// All text parts, joined.
    pub fn text(&self) -> String {
        text_of(&self.parts)
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

    /// The answer as a message, to go on with the conversation.
    pub fn into_message(self) -> Message {
        Message { role: Role::Assistant, parts: self.parts, extra: Extra::new() }
    }
}
