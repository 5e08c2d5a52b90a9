//! Calls of tools. As in [`crate::llm`], the JSON form is that of the event log.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::Write;
use crate::llm::Part;

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// Its visible name or full reference.
    pub tool: String,
    /// The model's id of the call; the host makes one if it is empty.
    pub call_id: String,
    /// The arguments.
    pub arguments: Value,
    /// Longest wait; the tool's own limit without it, and never longer than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// What the tool may see of the caller's state, an object of channels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
}

/// What a tool answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// What a model reads.
    pub content: Vec<Part>,
    /// The same as data, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Whether the tool failed in a way that the model should read about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Writes to the state of the calling graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<Write>,
}

impl ToolOutput {
    /// The content as one text, with a line break between its parts; `None` if a part of it is no
    /// text.
    pub fn text(&self) -> Option<String> {
        let texts = self.content.iter().map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        Some(texts.collect::<Option<Vec<_>>>()?.join("\n"))
    }
}
