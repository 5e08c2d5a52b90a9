//! Tool calls. The event log stores these types as JSON; see [`crate::llm`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::Write;
use crate::llm::Part;

/// A tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// Visible name or full reference of the tool.
    pub tool: String,
    /// The model's id of the call. If this id is empty, the host assigns an id.
    pub call_id: String,
    /// Arguments of the call.
    pub arguments: Value,
    /// Maximum duration of the call, in milliseconds. The limit of the tool is the default and the
    /// upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// The part of the caller's state that the tool may read, as an object of channels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
}

/// The output of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// Content that a model reads.
    pub content: Vec<Part>,
    /// The output as data, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Whether the content describes a failure that the model should read about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Writes to the state of the calling graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<Write>,
}

impl ToolOutput {
    /// Returns the content as one text, with a line break between its parts; `None` if a part is
    /// not text.
    pub fn text(&self) -> Option<String> {
        let texts = self.content.iter().map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        Some(texts.collect::<Option<Vec<_>>>()?.join("\n"))
    }
}
