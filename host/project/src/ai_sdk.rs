//! A run as one assistant message of the AI SDK, in the chunks of its UI message stream.
//!
//! Only chunks that every version of the SDK since its fifth major knows: a client ends the stream
//! at a chunk that it does not know. A guest's own events are `data-<name>` parts for that reason.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};
use wattle_graph::event::{Asked, Event, RunStatus};
use wattle_graph::failure::Failure;
use wattle_graph::id::NodeName;

use crate::time::utc;
use crate::transcript::{Answer, Reason, Said, Transcript, Voice};

/// Data parts that are the host's own; a guest's event of such a name gets `event-` before it.
const OWN_PARTS: &[&str] = &["interrupt", "progress"];

/// Longest name of a data part in characters: more is no name.
const NAME_LIMIT: usize = 64;

/// What a failure without a sentence of its own is called.
const UNKNOWN_FAILURE: &str = "the run failed";

/// One chunk of the stream.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Chunk {
    /// The message begins.
    Start {
        /// Its id.
        message_id: String,
    },
    /// A model call begins.
    StartStep,
    /// The model call is answered, and so are its tool calls.
    FinishStep,
    /// A text begins.
    TextStart {
        /// Its id.
        id: String,
    },
    /// More of a text.
    TextDelta {
        /// The text.
        id: String,
        /// The piece.
        delta: String,
    },
    /// A text is complete.
    TextEnd {
        /// The text.
        id: String,
    },
    /// Reasoning begins.
    ReasoningStart {
        /// Its id.
        id: String,
    },
    /// More of some reasoning.
    ReasoningDelta {
        /// The reasoning.
        id: String,
        /// The piece.
        delta: String,
    },
    /// Reasoning is complete.
    ReasoningEnd {
        /// The reasoning.
        id: String,
    },
    /// A tool call begins.
    ToolInputStart {
        /// Its id.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
    },
    /// More of a tool call's arguments.
    ToolInputDelta {
        /// The call.
        tool_call_id: String,
        /// The piece.
        input_text_delta: String,
    },
    /// The arguments of a tool call are complete.
    ToolInputAvailable {
        /// The call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// The arguments.
        input: Value,
    },
    /// The arguments of a tool call cannot be read, or never came.
    ToolInputError {
        /// The call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// What stands in place of arguments.
        input: Value,
        /// What is wrong.
        error_text: String,
    },
    /// A tool answered.
    ToolOutputAvailable {
        /// The call.
        tool_call_id: String,
        /// The answer.
        output: Value,
    },
    /// A tool failed, or was not asked.
    ToolOutputError {
        /// The call.
        tool_call_id: String,
        /// Why.
        error_text: String,
    },
    /// The message is complete.
    Finish {
        /// Why the model stopped.
        finish_reason: FinishReason,
    },
    /// The run was cancelled.
    Abort,
    /// The run failed.
    Error {
        /// A sentence for people.
        error_text: String,
    },
    /// Data of the app or of the host.
    #[serde(untagged)]
    Data(DataPart),
}

/// A `data-<name>` part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DataPart {
    /// `data-` and a name.
    #[serde(rename = "type")]
    pub kind: String,
    /// A later part of the same id takes its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The data.
    pub data: Value,
    /// Whether it is not kept in the message.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub transient: bool,
}

/// Why a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    /// The model had said all.
    Stop,
    /// It reached the length limit.
    Length,
    /// It wants tools called.
    ToolCalls,
    /// The provider's filter stopped it.
    ContentFilter,
    /// Something else, such as a question to a person.
    Other,
}

/// The stream of one run. Events must come in order from the first of the run.
#[derive(Clone, Debug)]
pub struct MessageStream {
    transcript: Transcript,
    /// Calls whose arguments are given once more: their pieces would go on from void ones.
    void: BTreeSet<String>,
}

impl MessageStream {
    /// A stream that has sent nothing yet. Model calls of these nodes are the conversation; of all
    /// if there are none.
    pub fn new(nodes: impl IntoIterator<Item = NodeName>) -> Self {
        Self { transcript: Transcript::new(nodes), void: BTreeSet::new() }
    }

    /// Whether all was sent.
    pub fn is_over(&self) -> bool {
        self.transcript.is_over()
    }

    /// What comes of an event.
    pub fn apply(&mut self, event: &Event) -> Vec<Chunk> {
        let said = self.transcript.apply(event);
        said.into_iter().filter_map(|said| self.chunk(said)).collect()
    }

    fn chunk(&mut self, said: Said) -> Option<Chunk> {
        Some(match said {
            Said::Began(run) => Chunk::Start { message_id: format!("msg_{run}") },
            Said::TaskBegan(..) | Said::TaskEnded(_) => return None,
            Said::TurnBegan => Chunk::StartStep,
            Said::TurnEnded => Chunk::FinishStep,
            Said::TextBegan(Voice::Words, id) => Chunk::TextStart { id },
            Said::Text(Voice::Words, id, delta) => Chunk::TextDelta { id, delta },
            Said::TextEnded(Voice::Words, id) => Chunk::TextEnd { id },
            Said::TextBegan(Voice::Thoughts, id) => Chunk::ReasoningStart { id },
            Said::Text(Voice::Thoughts, id, delta) => Chunk::ReasoningDelta { id, delta },
            Said::TextEnded(Voice::Thoughts, id) => Chunk::ReasoningEnd { id },
            Said::CallBegan { id, name } => {
                Chunk::ToolInputStart { tool_call_id: id, tool_name: name }
            }
            Said::CallArguments { id, .. } if self.void.contains(&id) => return None,
            Said::CallArguments { id, text } => {
                Chunk::ToolInputDelta { tool_call_id: id, input_text_delta: text }
            }
            Said::CallVoid(id) => {
                self.void.insert(id);
                return None;
            }
            Said::CallMade { id, name, arguments } => {
                Chunk::ToolInputAvailable { tool_call_id: id, tool_name: name, input: arguments }
            }
            Said::CallBroken { id, name, arguments, why } => Chunk::ToolInputError {
                tool_call_id: id,
                tool_name: name,
                input: arguments,
                error_text: why,
            },
            Said::Answered(id, Answer::Output(output)) => {
                Chunk::ToolOutputAvailable { tool_call_id: id, output }
            }
            Said::Answered(id, Answer::Error(text)) => {
                Chunk::ToolOutputError { tool_call_id: id, error_text: text }
            }
            Said::Emitted { name, data } => emitted(&name, data),
            Said::Progress { node, message, fraction } => Chunk::Data(DataPart {
                kind: "data-progress".to_owned(),
                id: None,
                data: json!({ "node": node, "message": message, "fraction": fraction }),
                transient: true,
            }),
            Said::Asked(asked) => question(&asked),
            Said::Ended { status, failure, reason } => ended(status, failure, reason),
        })
    }
}

/// A guest's event. One with an `id` of its own replaces an earlier one with that id.
fn emitted(name: &str, data: Value) -> Chunk {
    let id = data.get("id").and_then(Value::as_str).map(str::to_owned);
    Chunk::Data(DataPart { kind: part_name(name), id, data, transient: false })
}

fn part_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String =
        name.chars().take(NAME_LIMIT).map(|c| if plain(c) { c } else { '-' }).collect();
    if name.is_empty() {
        return "data-event".to_owned();
    }
    let own = if OWN_PARTS.contains(&name.as_str()) { "event-" } else { "" };
    format!("data-{own}{name}")
}

fn question(asked: &Asked) -> Chunk {
    let id = asked.interrupt.to_string();
    let data = json!({
        "id": id,
        "node": asked.node,
        "payload": asked.payload,
        "responseSchema": asked.response_schema,
        "expiresAt": asked.expires_ms.map(utc),
    });
    let kind = "data-interrupt".to_owned();
    Chunk::Data(DataPart { kind, id: Some(id), data, transient: false })
}

fn ended(status: RunStatus, failure: Option<Failure>, reason: Reason) -> Chunk {
    match status {
        RunStatus::Cancelled => Chunk::Abort,
        RunStatus::Failed => {
            let text = failure.map(|failure| failure.message).filter(|text| !text.is_empty());
            Chunk::Error { error_text: text.unwrap_or_else(|| UNKNOWN_FAILURE.to_owned()) }
        }
        RunStatus::Pending | RunStatus::Running | RunStatus::Completed | RunStatus::Interrupted => {
            Chunk::Finish { finish_reason: reason.into() }
        }
    }
}

impl From<Reason> for FinishReason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Stop => Self::Stop,
            Reason::Length => Self::Length,
            Reason::ToolCalls => Self::ToolCalls,
            Reason::ContentFilter => Self::ContentFilter,
            Reason::Other => Self::Other,
        }
    }
}
