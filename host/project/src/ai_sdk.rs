//! Projection of a run as one assistant message of the AI SDK, as chunks of the UI message stream
//! of the SDK.
//!
//! The stream has only chunks that every major version of the SDK since 5 knows, because a client
//! ends the stream at an unknown chunk. A custom event of a guest is therefore a `data-<name>`
//! part.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};
use wattle_graph::event::{Event, InterruptRaised, RunStatus};
use wattle_graph::failure::Failure;
use wattle_graph::id::NodeName;

use crate::projection::{EventState, Projection};
use crate::time::format_time_with_millis;
use crate::transcript::{CompletionEnd, ContentKind, ToolCallResult, Transcript, TranscriptEvent};

/// Names of the data parts of the host. A custom event with such a name gets the prefix `event-`.
const RESERVED_PARTS: &[&str] = &["interrupt", "progress"];

/// Maximum length of the name of a data part, in characters.
const NAME_LIMIT: usize = 64;

/// Text of a failed run whose failure has no message.
const UNKNOWN_FAILURE: &str = "the run failed";

/// One chunk of the stream.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Chunk {
    /// The message starts.
    Start {
        /// Id of the message.
        message_id: String,
    },
    /// A model call starts.
    StartStep,
    /// The model call ended, and all its tool calls have results.
    FinishStep,
    /// A text starts.
    TextStart {
        /// Id of the text.
        id: String,
    },
    /// A delta of a text.
    TextDelta {
        /// Id of the text.
        id: String,
        /// The text to append.
        delta: String,
    },
    /// A text is complete.
    TextEnd {
        /// Id of the text.
        id: String,
    },
    /// Reasoning starts.
    ReasoningStart {
        /// Id of the reasoning.
        id: String,
    },
    /// A delta of some reasoning.
    ReasoningDelta {
        /// Id of the reasoning.
        id: String,
        /// The text to append.
        delta: String,
    },
    /// Reasoning is complete.
    ReasoningEnd {
        /// Id of the reasoning.
        id: String,
    },
    /// A tool call starts.
    ToolInputStart {
        /// Id of the tool call.
        tool_call_id: String,
        /// Name of the tool.
        tool_name: String,
    },
    /// A delta of a tool call's arguments.
    ToolInputDelta {
        /// Id of the tool call.
        tool_call_id: String,
        /// The part of the JSON text to append.
        input_text_delta: String,
    },
    /// The arguments of a tool call are complete.
    ToolInputAvailable {
        /// Id of the tool call.
        tool_call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// The arguments.
        input: Value,
    },
    /// The arguments of a tool call are invalid or incomplete.
    ToolInputError {
        /// Id of the tool call.
        tool_call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// The text that was received as arguments.
        input: Value,
        /// The error message.
        error_text: String,
    },
    /// A tool call succeeded.
    ToolOutputAvailable {
        /// Id of the tool call.
        tool_call_id: String,
        /// Output of the tool.
        output: Value,
    },
    /// A tool call failed, or it was rejected before it reached its tool.
    ToolOutputError {
        /// Id of the tool call.
        tool_call_id: String,
        /// The error message.
        error_text: String,
    },
    /// The message is complete.
    Finish {
        /// Why the last completion ended.
        finish_reason: FinishReason,
    },
    /// The run was cancelled.
    Abort,
    /// The run failed.
    Error {
        /// Message of the failure.
        error_text: String,
    },
    /// A data part: a custom event of a guest, or an interrupt or progress that the host reports.
    #[serde(untagged)]
    Data(DataPart),
}

/// A `data-<name>` part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DataPart {
    /// `data-`, followed by the name.
    #[serde(rename = "type")]
    pub kind: String,
    /// Id of the part. A later part with the same id replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The data.
    pub data: Value,
    /// Whether clients omit the part from the message.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub transient: bool,
}

/// Why the last completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    /// The model completed its output.
    Stop,
    /// The model reached the length limit.
    Length,
    /// The model requests tools.
    ToolCalls,
    /// The provider's filter ended the completion.
    ContentFilter,
    /// Any other reason, such as an interrupt.
    Other,
}

/// The projection of one run. It takes the events of the run in order, from the first.
#[derive(Clone, Debug)]
pub struct AiSdkProjection {
    transcript: Transcript,
    /// Tool calls whose arguments were discarded. The stream omits their further deltas, because a
    /// client would append them to the discarded arguments.
    restarted_calls: BTreeSet<String>,
}

impl AiSdkProjection {
    /// Creates the stream of a run before its first event. The stream contains only model calls of
    /// `nodes`, or of all nodes if `nodes` is empty.
    pub fn new(nodes: impl IntoIterator<Item = NodeName>) -> Self {
        Self { transcript: Transcript::new(nodes), restarted_calls: BTreeSet::new() }
    }

    fn chunk(&mut self, said: TranscriptEvent) -> Option<Chunk> {
        Some(match said {
            TranscriptEvent::RunStarted(run) => Chunk::Start { message_id: format!("msg_{run}") },
            TranscriptEvent::TaskStarted(..) | TranscriptEvent::TaskFinished(_) => return None,
            TranscriptEvent::TurnStarted => Chunk::StartStep,
            TranscriptEvent::TurnFinished => Chunk::FinishStep,
            TranscriptEvent::TextStart(ContentKind::Text, id) => Chunk::TextStart { id },
            TranscriptEvent::TextDelta(ContentKind::Text, id, delta) => {
                Chunk::TextDelta { id, delta }
            }
            TranscriptEvent::TextEnd(ContentKind::Text, id) => Chunk::TextEnd { id },
            TranscriptEvent::TextStart(ContentKind::Reasoning, id) => Chunk::ReasoningStart { id },
            TranscriptEvent::TextDelta(ContentKind::Reasoning, id, delta) => {
                Chunk::ReasoningDelta { id, delta }
            }
            TranscriptEvent::TextEnd(ContentKind::Reasoning, id) => Chunk::ReasoningEnd { id },
            TranscriptEvent::ToolCallStart { id, name, .. } => {
                Chunk::ToolInputStart { tool_call_id: id, tool_name: name }
            }
            TranscriptEvent::ToolCallDelta { id, .. } if self.restarted_calls.contains(&id) => {
                return None;
            }
            TranscriptEvent::ToolCallDelta { id, text } => {
                Chunk::ToolInputDelta { tool_call_id: id, input_text_delta: text }
            }
            TranscriptEvent::ToolCallReset(id) => {
                self.restarted_calls.insert(id);
                return None;
            }
            TranscriptEvent::ToolCallReady { id, name, arguments } => {
                Chunk::ToolInputAvailable { tool_call_id: id, tool_name: name, input: arguments }
            }
            TranscriptEvent::ToolCallInvalid { id, name, arguments, why } => {
                Chunk::ToolInputError {
                    tool_call_id: id,
                    tool_name: name,
                    input: arguments,
                    error_text: why,
                }
            }
            TranscriptEvent::ToolResult(id, ToolCallResult::Output(output)) => {
                Chunk::ToolOutputAvailable { tool_call_id: id, output }
            }
            TranscriptEvent::ToolResult(id, ToolCallResult::Error(text)) => {
                Chunk::ToolOutputError { tool_call_id: id, error_text: text }
            }
            TranscriptEvent::Custom { name, data } => custom_part(&name, data),
            TranscriptEvent::Progress { node, message, fraction } => Chunk::Data(DataPart {
                kind: "data-progress".to_owned(),
                id: None,
                data: json!({ "node": node, "message": message, "fraction": fraction }),
                transient: true,
            }),
            TranscriptEvent::Interrupted(raised) => interrupt_part(&raised),
            TranscriptEvent::RunEnded { status, failure, reason } => {
                finish_chunk(status, failure, reason)
            }
        })
    }
}

impl Projection for AiSdkProjection {
    type Output = Vec<Chunk>;

    fn apply(&mut self, event: &Event, _state: &EventState) -> Vec<Chunk> {
        let said = self.transcript.apply(event);
        said.into_iter().filter_map(|said| self.chunk(said)).collect()
    }

    fn is_over(&self) -> bool {
        self.transcript.is_finished()
    }
}

/// Returns the data part of a custom event. If the data has an `id`, the part replaces an earlier
/// part with the same id.
fn custom_part(name: &str, data: Value) -> Chunk {
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
    let own = if RESERVED_PARTS.contains(&name.as_str()) { "event-" } else { "" };
    format!("data-{own}{name}")
}

fn interrupt_part(raised: &InterruptRaised) -> Chunk {
    let id = raised.interrupt.to_string();
    let data = json!({
        "id": id,
        "node": raised.node,
        "payload": raised.payload,
        "responseSchema": raised.response_schema,
        "expiresAt": raised.expires_ms.map(format_time_with_millis),
    });
    let kind = "data-interrupt".to_owned();
    Chunk::Data(DataPart { kind, id: Some(id), data, transient: false })
}

/// Returns the last chunk of a run that ended before it started: a pending run that could not start,
/// or that was cancelled. The stream has no other chunk, because a client would show the start of a
/// message as an empty message.
pub fn unstarted(failure: Option<Failure>) -> Chunk {
    let status = if failure.is_some() { RunStatus::Failed } else { RunStatus::Cancelled };
    finish_chunk(status, failure, CompletionEnd::default())
}

fn finish_chunk(status: RunStatus, failure: Option<Failure>, reason: CompletionEnd) -> Chunk {
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

impl From<CompletionEnd> for FinishReason {
    fn from(reason: CompletionEnd) -> Self {
        match reason {
            CompletionEnd::Stop => Self::Stop,
            CompletionEnd::Length => Self::Length,
            CompletionEnd::ToolCalls => Self::ToolCalls,
            CompletionEnd::ContentFilter => Self::ContentFilter,
            CompletionEnd::Other => Self::Other,
        }
    }
}
