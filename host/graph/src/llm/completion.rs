//! The completion of a model call.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::llm::delta::Delta;
use crate::llm::message::{Part, ToolCall};

/// Finish reasons with which providers report that they could not parse a tool call.
const MISREAD_CALL: [&str; 2] = ["MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE"];

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The output is complete.
    Stop,
    /// The output reached the length limit.
    Length,
    /// The model requests tool calls.
    ToolCalls,
    /// The content filter of the provider stopped the output.
    ContentFilter,
    /// Another reason, as the provider names it.
    Other(String),
}

impl FinishReason {
    /// Returns the name of the reason; for [`Self::Other`] the name that the provider uses.
    pub fn name(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Other(word) => word,
        }
    }

    /// Returns true if the provider could not parse the tool call at the end of the output. Text
    /// before the call only announces it. Gateways write the name of such a reason in lower case or
    /// with a prefix.
    pub fn is_misread_call(&self) -> bool {
        let Self::Other(reason) = self else { return false };
        let reason = reason.to_ascii_uppercase();
        MISREAD_CALL.iter().any(|name| reason.contains(*name))
    }
}

/// Token usage of a model call. A field is `None` if the provider does not report it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the input.
    pub input_tokens: Option<u64>,
    /// Tokens of the output.
    pub output_tokens: Option<u64>,
    /// Tokens of the input that the provider read from its cache.
    pub cached_input_tokens: Option<u64>,
    /// Tokens of reasoning.
    pub reasoning_tokens: Option<u64>,
}

/// The completion of a model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// Id of the message that the completion becomes. The deltas of the completion are streamed
    /// under the same id. The gate assigns an id to completions that tasks request. The journal
    /// contains the id, so a reused completion keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Parts of the output, in order.
    pub parts: Vec<Part>,
    /// The validated document, if the request has a response schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Why the model stopped.
    pub finish_reason: FinishReason,
    /// Tokens of the call, including repair turns.
    pub usage: Usage,
    /// The model that produced the completion.
    pub model: String,
    /// The models that were called, in order. The last one produced the completion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
}

/// The requests to one candidate of the route, including all retries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Provider of the model.
    pub provider: String,
    /// Name of the model in the route.
    pub model: String,
    /// Number of requests to the model.
    #[serde(default = "once")]
    pub tries: u32,
    /// Why the model failed; `None` for the model that produced the completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

fn once() -> u32 {
    1
}

impl Completion {
    /// Returns the tool calls in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the text of all text parts.
    pub fn text(&self) -> String {
        let text = |part: &Part| match part {
            Part::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.parts.iter().filter_map(text).collect()
    }

    /// Returns the text if it can be the answer of the model, as agents decide. Returns `None` for
    /// text of white space, and for text before a tool call that the provider could not parse.
    pub fn answer_text(&self) -> Option<String> {
        let text = self.text();
        let is_answer = !text.trim().is_empty() && !self.finish_reason.is_misread_call();
        is_answer.then_some(text)
    }

    /// Returns the completion as the deltas that a streaming model sends.
    pub fn deltas(&self) -> Vec<Delta> {
        let mut calls = 0..;
        let pieces = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(Delta::Text { text: text.clone() }),
            Part::Reasoning(text) => Some(Delta::Reasoning { text: text.clone() }),
            Part::ToolCall(call) => Some(Delta::ToolCall {
                index: calls.next().unwrap_or_default(),
                id: Some(call.id.clone()),
                name: Some(call.name.clone()),
                arguments: call.arguments.to_string(),
            }),
            Part::Image(_) | Part::ToolResult(_) | Part::Other(_) => None,
        });
        pieces.collect()
    }
}
