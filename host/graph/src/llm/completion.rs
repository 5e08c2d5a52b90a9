//! A model's whole answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::llm::delta::Delta;
use crate::llm::message::{Part, ToolCall};

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It had said all.
    Stop,
    /// It reached the length limit.
    Length,
    /// It wants tools called.
    ToolCalls,
    /// The provider's filter stopped it.
    ContentFilter,
    /// Something else.
    Other(String),
}

impl FinishReason {
    /// The word for it; the provider's own if it is another.
    pub fn name(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Other(word) => word,
        }
    }
}

/// Tokens that a call used, as far as the provider said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Read.
    pub input_tokens: Option<u64>,
    /// Written.
    pub output_tokens: Option<u64>,
    /// Read from a cache.
    pub cached_input_tokens: Option<u64>,
    /// Written while reasoning.
    pub reasoning_tokens: Option<u64>,
}

/// A model's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// The id of the message that it becomes; its pieces were streamed under the same id. The gate gives it to
    /// answers of tasks; it is part of the journal, so an answer that is taken over keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What it said.
    pub parts: Vec<Part>,
    /// The validated document, if a response schema was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Why it stopped.
    pub finish_reason: FinishReason,
    /// What it used, repair turns included.
    pub usage: Usage,
    /// The model that answered.
    pub model: String,
    /// The models that were asked, in order; the last one answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
}

/// One model that was asked for an answer, with all its retries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its provider.
    pub provider: String,
    /// The model, as the route names it.
    pub model: String,
    /// How often it was asked.
    #[serde(default = "once")]
    pub tries: u32,
    /// Why it gave no answer; `None` for the one that did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

fn once() -> u32 {
    1
}

impl Completion {
    /// The requests for tools, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The text of all text parts.
    pub fn text(&self) -> String {
        let text = |part: &Part| match part {
            Part::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.parts.iter().filter_map(text).collect()
    }

    /// The whole answer as the pieces that a model that streams it hands on.
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
