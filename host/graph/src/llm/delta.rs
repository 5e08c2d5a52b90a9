//! The deltas of a streamed completion.

use serde::{Deserialize, Serialize};

/// A delta of a streamed completion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delta {
    /// Text that continues the text before it.
    Text {
        /// The added text.
        text: String,
    },
    /// Reasoning that continues the reasoning before it.
    Reasoning {
        /// The added text.
        text: String,
    },
    /// A tool call. The first delta names the tool. Further deltas continue the arguments.
    ToolCall {
        /// Index of the tool call in the completion, from 0.
        index: u32,
        /// Id of the tool call, as soon as it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Name of the tool, as soon as it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Fragment of the JSON text of the arguments.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        arguments: String,
    },
    /// The previous deltas of this call are discarded: the model restarts its output.
    Restart,
}

impl Delta {
    /// Appends `next`, the next delta of the same completion, if it continues this delta. Returns
    /// `next` otherwise.
    pub fn join(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::Text { text }, Self::Text { text: more })
            | (Self::Reasoning { text }, Self::Reasoning { text: more }) => {
                text.push_str(&more);
                None
            }
            (
                Self::ToolCall { index, arguments, .. },
                Self::ToolCall { index: same, id: None, name: None, arguments: more },
            ) if *index == same => {
                arguments.push_str(&more);
                None
            }
            (_, next) => Some(next),
        }
    }
}
