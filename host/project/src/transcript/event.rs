//! The events of a transcript.

use serde_json::Value;
use wattle_graph::event::{InterruptRaised, RunStatus};
use wattle_graph::failure::Failure;
use wattle_graph::id::{NodeName, RunId, TaskId};
use wattle_graph::llm::FinishReason;

use crate::transcript::result::ToolCallResult;

/// An event of a transcript.
#[derive(Clone, Debug, PartialEq)]
pub enum TranscriptEvent {
    /// The run started; always the first event.
    RunStarted(RunId),
    /// A task started.
    TaskStarted(TaskId, NodeName),
    /// The task finished or failed.
    TaskFinished(TaskId),
    /// A turn started: a node called a model.
    TurnStarted,
    /// The turn ended: the models requested no tool, or all tool calls of the turn have results.
    TurnFinished,
    /// A text or a reasoning starts, with an id that is unique in the run.
    TextStart(ContentKind, String),
    /// A delta of the text.
    TextDelta(ContentKind, String, String),
    /// The text is complete.
    TextEnd(ContentKind, String),
    /// A tool call starts.
    ToolCallStart {
        /// Id of the call, unique in the run.
        id: String,
        /// Name of the tool.
        name: String,
        /// Whether an earlier run made the call. If so, its arguments and its result follow
        /// immediately.
        is_inherited: bool,
    },
    /// A delta of the JSON text of the arguments.
    ToolCallDelta {
        /// Id of the call.
        id: String,
        /// The text to append.
        text: String,
    },
    /// The arguments so far are discarded, because the model generates them again under the same
    /// id.
    ToolCallReset(String),
    /// The arguments are complete.
    ToolCallReady {
        /// Id of the call.
        id: String,
        /// Name of the tool.
        name: String,
        /// The arguments.
        arguments: Value,
    },
    /// The call is invalid: its arguments do not parse or are incomplete, or the model did not
    /// repeat the call after a restart.
    ToolCallInvalid {
        /// Id of the call.
        id: String,
        /// Name of the tool.
        name: String,
        /// The text that was received as arguments.
        arguments: Value,
        /// The error message.
        why: String,
    },
    /// The result of a complete call.
    ToolResult(String, ToolCallResult),
    /// A custom event of a guest.
    Custom {
        /// Name of the event.
        name: String,
        /// Data of the event.
        data: Value,
    },
    /// The progress of a node.
    Progress {
        /// Node that reports the progress.
        node: NodeName,
        /// Description of the progress for people.
        message: String,
        /// Completed fraction, from 0 to 1.
        fraction: Option<f64>,
    },
    /// A task raised an interrupt.
    Interrupted(Box<InterruptRaised>),
    /// The run ended or was interrupted; always the last event.
    RunEnded {
        /// Status of the run.
        status: RunStatus,
        /// Failure of a failed run.
        failure: Option<Failure>,
        /// Why the last completion ended.
        reason: CompletionEnd,
    },
}

/// The kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentKind {
    /// Text of the completion.
    Text,
    /// Reasoning.
    Reasoning,
}

/// Why a completion ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompletionEnd {
    /// The model completed its output.
    #[default]
    Stop,
    /// The model reached the length limit.
    Length,
    /// The model requests tools.
    ToolCalls,
    /// The provider's filter ended the completion.
    ContentFilter,
    /// Any other reason.
    Other,
}

impl From<&FinishReason> for CompletionEnd {
    fn from(reason: &FinishReason) -> Self {
        match reason {
            FinishReason::Stop => Self::Stop,
            FinishReason::Length => Self::Length,
            FinishReason::ToolCalls => Self::ToolCalls,
            FinishReason::ContentFilter => Self::ContentFilter,
            FinishReason::Other(_) => Self::Other,
        }
    }
}
