//! A request for a model's answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::llm::message::Message;

/// A tool the model may ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub arguments_schema: Value,
}

/// Whether the model must, may or must not call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// May.
    #[default]
    Auto,
    /// Must not.
    None,
    /// Must.
    Required,
    /// Must call this one.
    Tool(String),
}

/// The shape that the answer must have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResponseSchema {
    /// 1 to 64 of `[a-zA-Z0-9_-]`.
    pub name: String,
    /// JSON Schema; the root is an object.
    pub schema: Value,
}

/// One model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompletionRequest {
    /// The route.
    pub route: String,
    /// The conversation.
    pub messages: Vec<Message>,
    /// Tools the model may ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolDefinition>,
    /// Whether it may.
    #[serde(default)]
    pub tool_choice: ToolChoice,
    /// The shape of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<ResponseSchema>,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Longest answer in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Seed, where the provider takes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Texts that end the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// What the caller says of models and attempts in place of the route.
    #[serde(default, skip_serializing_if = "Tries::is_empty")]
    pub tries: Tries,
}

impl CompletionRequest {
    /// A call without tools that leaves everything else to the route.
    pub fn new(route: impl Into<String>, messages: Vec<Message>) -> Self {
        Self {
            route: route.into(),
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
}

/// What a caller says of models and attempts in place of the route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tries {
    /// Ask only this model of the route, 0 for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<u32>,
    /// At most so many further attempts at each model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Longest wait for a sign of life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// Whether the model may correct an answer of the wrong shape once; it may unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<bool>,
}

impl Tries {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
