//! Parts of messages as the SDK writes them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::chat::ui::client::TOOL;
use crate::message::ToolCall;

/// A part of a message of the AI SDK: the start of a model turn, a text, or a tool call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::chat) struct UiPart {
    /// `step-start`, `text`, `reasoning`, or `tool-` and the name of the tool.
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<UiState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_text: Option<String>,
}

/// The state of a text of the assistant, or of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum UiState {
    Done,
    InputAvailable,
    OutputAvailable,
    OutputError,
}

/// What became of a tool call.
pub(in crate::chat) enum CallState {
    /// The call has no result yet.
    Pending,
    /// The output of the tool.
    Output(Value),
    /// The error of the call, for users.
    Error(String),
}

impl UiPart {
    /// Creates the start of a model turn.
    pub(in crate::chat) fn step_start() -> Value {
        Self::new("step-start").into_json()
    }

    /// Creates the text of a message of the user.
    pub(in crate::chat) fn user_text(text: String) -> Value {
        Self { text: Some(text), ..Self::new("text") }.into_json()
    }

    /// Creates a text of the assistant: `text` or `reasoning`.
    pub(in crate::chat) fn assistant_text(kind: &str, text: String) -> Value {
        Self { text: Some(text), state: Some(UiState::Done), ..Self::new(kind) }.into_json()
    }

    /// Creates a tool call.
    pub(in crate::chat) fn tool(call: &ToolCall, state: CallState) -> Value {
        let part = Self {
            tool_call_id: Some(call.id.clone()),
            input: Some(call.arguments.clone()),
            ..Self::new(format!("{TOOL}{}", call.name))
        };
        let part = match state {
            CallState::Pending => Self { state: Some(UiState::InputAvailable), ..part },
            CallState::Output(output) => {
                Self { state: Some(UiState::OutputAvailable), output: Some(output), ..part }
            }
            CallState::Error(error) => {
                Self { state: Some(UiState::OutputError), error_text: Some(error), ..part }
            }
        };
        part.into_json()
    }

    fn new(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), ..Self::default() }
    }

    /// Returns the part as JSON. Parts have nothing that JSON cannot have.
    fn into_json(self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}
