//! A model's answer piece by piece.

use serde::{Deserialize, Serialize};

/// A piece of a model's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delta {
    /// Text that goes on from the text before.
    Text {
        /// The piece.
        text: String,
    },
    /// Reasoning that goes on from the reasoning before.
    Reasoning {
        /// The piece.
        text: String,
    },
    /// A request for a tool: the first piece names the tool, further ones go on with its arguments.
    ToolCall {
        /// Which of the answer's tool calls, from 0.
        index: u32,
        /// Its id, as soon as it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The tool, as soon as it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// A piece of the arguments' JSON text.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        arguments: String,
    },
    /// The pieces of this call so far are void: the model begins its answer again.
    Restart,
}

impl Delta {
    /// Appends the next piece of the same answer if it goes on from this one. Returns it if not.
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
