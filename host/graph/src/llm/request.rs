//! Requests for completions.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checkpoint::SharedList;
use crate::failure::Failure;
use crate::llm::history::{History, HistoryReference};
use crate::llm::message::Message;

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// Name of the tool.
    pub name: String,
    /// Description of the tool, for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub arguments_schema: Value,
}

/// Whether the model must, may or must not call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model may call a tool.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call a tool.
    Required,
    /// The model must call this tool.
    Tool(String),
}

/// The JSON Schema that the output must match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResponseSchema {
    /// Name of the schema: 1 to 64 characters of `[a-zA-Z0-9_-]`.
    pub name: String,
    /// The JSON Schema. Its root is an object.
    pub schema: Value,
}

/// A request for a completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompletionRequest {
    /// Name of the model route.
    pub route: String,
    /// Messages that the host takes from a channel. The field is before the messages, so that it is
    /// at the beginning of a request that the log has only in part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Arc<History>>,
    /// The conversation, or the messages around the history.
    pub messages: Vec<Message>,
    /// Tools that the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolDefinition>,
    /// Whether the model must, may or must not call a tool.
    #[serde(default)]
    pub tool_choice: ToolChoice,
    /// Schema of the output; `None` for text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<ResponseSchema>,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Maximum length of the output, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Sampling seed, for providers that accept a seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Stop sequences: the model stops before it would write one of these texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Overrides of the models and attempts of the route.
    #[serde(default, skip_serializing_if = "Tries::is_empty")]
    pub tries: Tries,
}

impl CompletionRequest {
    /// Creates a request without tools that leaves all other settings to the route.
    pub fn new(route: impl Into<String>, messages: Vec<Message>) -> Self {
        Self {
            route: route.into(),
            history: None,
            messages,
            tools: Vec::new(),
            tool_choice: ToolChoice::default(),
            response_schema: None,
            temperature: None,
            max_output_tokens: None,
            seed: None,
            stop: Vec::new(),
            tries: Tries::default(),
        }
    }

    /// Adds the history that a guest refers to. `list` is the conversation in the channel. An index
    /// of the list is computed if there is none.
    ///
    /// # Errors
    ///
    /// `invalid` for a position after the end of the conversation or of the messages of the
    /// request, or for a long name of a tool; `not-found` for the id of a message that is not in the
    /// conversation.
    pub fn with_history(
        self,
        reference: HistoryReference,
        list: SharedList,
    ) -> Result<Self, Failure> {
        let history = History::resolve(reference, list, self.messages.len())?;
        Ok(Self { history: Some(Arc::new(history)), ..self })
    }

    /// Returns the request with the messages of the history among its messages.
    ///
    /// # Errors
    ///
    /// `invalid` if an item of the conversation is not a message; `internal` for a request from the
    /// log, which does not have the messages of the history.
    pub fn expanded(&self) -> Result<Cow<'_, Self>, Failure> {
        let Some(history) = &self.history else { return Ok(Cow::Borrowed(self)) };
        let shown = history.messages()?;
        let (before, after) = self.messages.split_at(history.at);
        let mut messages = Vec::with_capacity(self.messages.len() + shown.len());
        messages.extend_from_slice(before);
        messages.extend(shown);
        messages.extend_from_slice(after);
        Ok(Cow::Owned(self.with_messages(messages)))
    }

    /// Returns the request with other messages and without a history.
    fn with_messages(&self, messages: Vec<Message>) -> Self {
        Self {
            route: self.route.clone(),
            history: None,
            messages,
            tools: self.tools.clone(),
            tool_choice: self.tool_choice.clone(),
            response_schema: self.response_schema.clone(),
            temperature: self.temperature,
            max_output_tokens: self.max_output_tokens,
            seed: self.seed,
            stop: self.stop.clone(),
            tries: self.tries,
        }
    }
}

/// Overrides of the models and attempts of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tries {
    /// Index, from 0, of the only candidate of the route that the host calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<u32>,
    /// Maximum number of retries per model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Maximum time without data from the model, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// Whether the model gets one repair turn for output that does not match the schema; true by
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<bool>,
}

impl Tries {
    /// Returns true if nothing is overridden.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
