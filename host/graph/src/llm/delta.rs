//! The deltas of a streamed completion.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};

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

    /// Joins deltas of one completion by kind: all texts, all reasoning, and all arguments of each
    /// tool call. Leaves out what a [`Self::Restart`] discards. The content stays the same; the
    /// order of deltas of different kinds is lost.
    pub fn join_by_kind(deltas: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut joined: Vec<Self> = Vec::new();
        // Positions of the last deltas in `joined`, by kind and, of tool calls, by index.
        let mut last: HashMap<(Discriminant<Self>, u32), usize> = HashMap::new();
        for delta in deltas {
            let index = match &delta {
                Self::ToolCall { index, .. } => *index,
                Self::Text { .. } | Self::Reasoning { .. } => 0,
                Self::Restart => {
                    joined.clear();
                    last.clear();
                    0
                }
            };
            let kind = (discriminant(&delta), index);
            let known = last.get(&kind).and_then(|position| joined.get_mut(*position));
            let rest = match known {
                Some(known) => known.join(delta),
                None => Some(delta),
            };
            if let Some(rest) = rest {
                last.insert(kind, joined.len());
                joined.push(rest);
            }
        }
        joined
    }
}
