//! Completions.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::json::{self, Extra};
use crate::message::{Message, PROVIDER_STATE, Part, Role, ToolCall, text_of};

/// Extension field that contains the id of a completion or message.
const ID: &str = "id";

/// Extension field of a completion that contains unique ids of its tool calls.
pub(crate) const CALL_IDS: &str = "call_ids";

/// Finish reasons with which providers report that they could not parse a tool call.
const MISREAD_CALL: [&str; 2] = ["MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE"];

/// Finish reasons with which providers report that they did not expect a tool call.
const UNEXPECTED_CALL: [&str; 2] = ["UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"];

/// Finish reason with which Anthropic reports that the model would go on in a further request.
const PAUSED: [&str; 1] = ["PAUSE_TURN"];

/// The reason why a completion ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The completion is complete.
    #[default]
    Stop,
    /// The model reached its limit of output tokens.
    Length,
    /// The model requests tool calls.
    ToolCalls,
    /// A content filter withheld the rest of the completion.
    ContentFilter,
    /// A reason unknown to this SDK version.
    Other(String),
}

impl FinishReason {
    /// Returns true if the provider could not parse the tool call at the end of the completion,
    /// which is then missing. Text before the call only announces it.
    ///
    /// ```
    /// use wattle_plugin::llm::FinishReason;
    ///
    /// assert!(FinishReason::Other("MALFORMED_FUNCTION_CALL".to_owned()).is_misread_call());
    /// assert!(!FinishReason::ToolCalls.is_misread_call());
    /// ```
    pub fn is_misread_call(&self) -> bool {
        self.contains_one_of(&MISREAD_CALL)
    }

    /// Returns true if the provider did not expect the tool call at the end of the completion,
    /// which is then missing. Text before the call may be a complete reply.
    pub fn is_unexpected_call(&self) -> bool {
        self.contains_one_of(&UNEXPECTED_CALL)
    }

    /// Returns true if the model would go on in a further request.
    pub fn is_paused(&self) -> bool {
        self.contains_one_of(&PAUSED)
    }

    /// Returns true if the provider's reason contains one of the names. Gateways write the names in
    /// lower case or with a prefix.
    fn contains_one_of(&self, names: &[&str]) -> bool {
        let Self::Other(reason) = self else { return false };
        let reason = reason.to_ascii_uppercase();
        names.iter().any(|name| reason.contains(*name))
    }
}

/// Token counts of a call. A count is `None` if the provider does not report it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Number of input tokens.
    pub input_tokens: Option<u64>,
    /// Number of output tokens.
    pub output_tokens: Option<u64>,
    /// Number of input tokens that the provider read from its cache.
    pub cached_input_tokens: Option<u64>,
    /// Number of output tokens of the reasoning.
    pub reasoning_tokens: Option<u64>,
    /// Extension fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The attempts at one candidate of a route.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Attempt {
    /// Name of the provider.
    pub provider: String,
    /// Name of the model as the route configures it.
    pub model: String,
    /// Number of requests to the model, including retries.
    #[serde(default)]
    pub tries: u32,
    /// Failure of the candidate; `None` for the candidate that succeeded.
    #[serde(default)]
    pub error: Option<Failure>,
}

/// The output of a model call. Its JSON is that of the log.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Completion {
    /// Content in order.
    pub parts: Vec<Part>,
    /// Output that matches the requested schema, if the request has a schema.
    pub structured: Option<Value>,
    /// Why the completion ended.
    pub finish_reason: FinishReason,
    /// Token counts.
    pub usage: Usage,
    /// Name of the model that wrote the completion.
    pub model: String,
    /// Extension fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Completion {
    /// Builds a text completion, for tests.
    pub fn of_text(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Text(text.into())], ..Self::default() }
    }

    /// Builds a completion with structured output, for tests.
    pub fn of_json(document: Value) -> Self {
        Self { structured: Some(document.clone()), ..Self::of_text(document.to_string()) }
    }

    /// Builds a completion with a tool call, for tests.
    pub fn of_tool_call(id: &str, name: &str, arguments: Value) -> Self {
        let call =
            ToolCall { id: id.to_owned(), name: name.to_owned(), arguments, extra: Extra::new() };
        Self {
            parts: vec![Part::ToolCall(call)],
            finish_reason: FinishReason::ToolCalls,
            ..Self::default()
        }
    }

    /// Sets the id, for tests.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.extra.insert(ID.to_owned(), Value::String(id.into()));
        self
    }

    /// Returns the id of the message that the completion becomes. The node should write the message
    /// with this id, because clients receive the deltas under it. Returns `None` if the host
    /// assigns no id, as in a web handler.
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

    /// Returns all text parts, joined.
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }

    /// Returns all parts of reasoning, joined.
    pub fn reasoning(&self) -> String {
        let reasoning = |part: &Part| match part {
            Part::Reasoning(text) => Some(text.clone()),
            _ => None,
        };
        self.parts.iter().filter_map(reasoning).collect()
    }

    /// Returns true if the completion contains text or a tool call. A provider can return a
    /// completion without either for many reasons, even with [`FinishReason::Stop`]. Reasoning
    /// alone does not count.
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

    /// Returns the structured output as a type.
    ///
    /// # Errors
    ///
    /// `invalid` if the request had no schema, or if the output does not fit the type.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let document = self.structured.as_ref().ok_or_else(|| {
            Failure::invalid("the completion has no structured output; use `Request::schema`")
        })?;
        json::from_value("the structured output of the completion", document)
    }

    /// Returns the tool calls that the model requests.
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

    /// Returns the candidates that the host called, in order. The last one succeeded. Empty if the
    /// host does not report candidates.
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

    /// Returns an id for each tool call, in order, that no other call of the conversation has. A
    /// node that writes the calls to the conversation gives them these ids, as
    /// [`to_stored`](Self::to_stored) does, because some models use an id again. Returns `None` for
    /// a completion without tool calls, and for a request without a
    /// [history](crate::llm::Request::history).
    ///
    /// [`FakeHost`](crate::testing::FakeHost) does not know the whole conversation, and returns the
    /// ids of the calls unless the script sets `call_ids` in [`Completion::extra`].
    ///
    /// ```
    /// use serde_json::json;
    /// use wattle_plugin::llm::Completion;
    ///
    /// let mut answer = Completion::of_tool_call("call-1", "add", json!({"a": 1}));
    /// assert_eq!(answer.call_ids(), None);
    /// answer.extra.insert("call_ids".to_owned(), json!(["call-1-7"]));
    /// assert_eq!(answer.call_ids(), Some(vec!["call-1-7".to_owned()]));
    /// ```
    pub fn call_ids(&self) -> Option<Vec<String>> {
        Vec::deserialize(self.extra.get(CALL_IDS)?).ok()
    }

    /// Returns the opaque data of the provider, such as signatures of reasoning and of tool calls.
    /// Some providers refuse a tool call that comes back without it.
    pub fn provider_state(&self) -> Option<&Value> {
        self.parts.iter().find_map(|part| match part {
            Part::Other(value) if value["type"] == PROVIDER_STATE => Some(value),
            _ => None,
        })
    }

    /// Converts the completion to a message, with which the conversation can continue. The
    /// extension fields of the message contain the id of the completion.
    pub fn into_message(mut self) -> Message {
        let extra = self.extra.remove_entry(ID).into_iter().collect();
        Message { role: Role::Assistant, parts: self.parts, extra }
    }

    /// Converts the completion to a message in the format of the reducer `messages`. It contains
    /// the id, by which clients recognize the message whose deltas they received, and the
    /// [provider state](Self::provider_state). Tool calls have the ids of
    /// [`call_ids`](Self::call_ids), or else those of the model.
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
        let ids = self.call_ids().unwrap_or_default();
        let call = |(index, call): (usize, &ToolCall)| {
            let ToolCall { id, name, arguments, .. } = call;
            json!({ "id": ids.get(index).unwrap_or(id), "name": name, "arguments": arguments })
        };
        let calls: Vec<Value> = self.tool_calls().enumerate().map(call).collect();
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), calls.into());
        }
        let reasoning = self.reasoning();
        if !reasoning.is_empty() {
            message.insert("reasoning".to_owned(), reasoning.into());
        }
        if let Some(state) = self.provider_state() {
            message.insert(PROVIDER_STATE.to_owned(), state.clone());
        }
        Value::Object(message)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Completion;
    use crate::message::Part;
    use crate::vectors::vectors;

    #[test]
    fn text_of_whitespace_is_no_answer() {
        for (text, expected) in vectors::<Vec<(String, bool)>>("is_answer") {
            assert_eq!(Completion::of_text(text.as_str()).is_answer(), expected, "{text:?}");
        }
    }

    #[test]
    fn completion_becomes_a_message_with_its_id() {
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

    #[test]
    fn stored_calls_have_unique_ids_and_the_state_of_the_provider() {
        let mut answer = Completion::of_tool_call("c", "add", json!({"a": 1}));
        let state = json!({"type": "provider_state", "data": "x"});
        answer.parts.extend([Part::Other(json!({"type": "audio"})), Part::Other(state.clone())]);
        answer.extra.insert("call_ids".to_owned(), json!(["c-2"]));
        let stored = answer.to_stored();
        assert_eq!(stored["tool_calls"][0]["id"], "c-2");
        assert_eq!(stored["provider_state"], state);
    }
}
