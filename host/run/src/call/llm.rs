//! Model calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::event::{Delta, Tokens};
use wattle_graph::failure::{Failure, code};

use crate::call::HostCall;
use crate::gate::Site;
use crate::gate::unwind::Stop;
use crate::grant::Grants;
use crate::ports::Caller;
use crate::ports::blob::BlobRef;

/// Who speaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// One this version does not know.
    Other(String),
}

/// Where the bytes of a picture are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    /// In the blob store.
    Blob(BlobRef),
    /// At an address the provider fetches, or a data URL.
    Url(String),
}

/// A picture in a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Where.
    pub source: ImageSource,
    /// Such as `image/png`.
    pub media_type: String,
}

/// A model's request to call a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that the result must carry.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Value,
}

/// The answer to a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call_id: String,
    /// What the model reads.
    pub content: String,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text(String),
    /// A picture.
    Image(Image),
    /// A request for a tool.
    ToolCall(ToolCall),
    /// A tool's answer.
    ToolResult(ToolResult),
    /// Reasoning text.
    Reasoning(String),
    /// Something this version does not know.
    Other(Value),
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub parts: Vec<Part>,
}

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
    /// The id of the message that it becomes, under which its pieces were told. The gate gives it to
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
    /// The whole answer as pieces, for those who follow a model's words as they arrive.
    pub(crate) fn pieces(&self) -> Vec<Delta> {
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

/// Checks that a route may be used.
///
/// # Errors
///
/// `denied` with the line to add.
pub(crate) fn granted(grants: &Grants, caller: &Caller, route: &str) -> Result<(), Failure> {
    if grants.llm.contains(route) {
        return Ok(());
    }
    Err(Failure::new(
        code::DENIED,
        format!(
            "plugin `{p}` may not use the model route `{route}`; add it to `llm` under \
             `[grants.{p}]` in wattle.toml",
            p = caller.plugin
        ),
    ))
}

impl HostCall for CompletionRequest {
    type Answer = Completion;
    const FUNCTION: &'static str = "llm.complete";
    const SLOW: bool = true;

    fn summary(&self) -> String {
        match &self.response_schema {
            Some(schema) => format!("{} -> {}", self.route, schema.name),
            None => self.route.clone(),
        }
    }

    fn allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        granted(grants, caller, &self.route)
    }

    fn is_document(&self) -> bool {
        self.response_schema.is_some()
    }

    fn tokens(answer: &Completion) -> Option<Tokens> {
        Some(Tokens {
            input: answer.usage.input_tokens.unwrap_or(0),
            output: answer.usage.output_tokens.unwrap_or(0),
        })
    }

    fn name(answer: &mut Completion, id: String) {
        answer.id = Some(id);
    }

    fn pieces(answer: &Completion) -> Vec<Delta> {
        answer.pieces()
    }

    async fn perform(&self, site: &Site<'_>) -> Result<Completion, Stop> {
        site.streaming(self, |_| {}).await
    }
}
