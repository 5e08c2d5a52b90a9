//! What a transcript consists of.

use serde_json::Value;
use wattle_graph::event::{Asked, RunStatus};
use wattle_graph::failure::Failure;
use wattle_graph::id::{NodeName, RunId, TaskId};
use wattle_graph::llm::FinishReason;

use crate::transcript::answer::Answer;

/// Something that is said in a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// The run began; always first.
    Began(RunId),
    /// A task of a node began.
    TaskBegan(TaskId, NodeName),
    /// The task ended, in whatever way.
    TaskEnded(TaskId),
    /// The model is asked.
    TurnBegan,
    /// The tools that the model asked for have answered, or it has all that it wants.
    TurnEnded,
    /// The model begins to speak or to think; the id is unique in the run.
    TextBegan(Voice, String),
    /// More of it.
    Text(Voice, String, String),
    /// The text is complete.
    TextEnded(Voice, String),
    /// The model begins to ask for a tool.
    CallBegan {
        /// Unique in the run.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of the arguments' JSON text.
    CallArguments {
        /// The call.
        id: String,
        /// The piece.
        text: String,
    },
    /// What there is of the arguments is void: they are given anew under the same id.
    CallVoid(String),
    /// The arguments are complete.
    CallMade {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The arguments.
        arguments: Value,
    },
    /// The call is none: its arguments cannot be read, or never came.
    CallBroken {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// What stands in place of arguments.
        arguments: Value,
        /// What is wrong.
        why: String,
    },
    /// A tool answers a call that was made.
    Answered(String, Answer),
    /// A guest's own event.
    Emitted {
        /// Its name for it.
        name: String,
        /// Its data.
        data: Value,
    },
    /// How far a node is.
    Progress {
        /// The node.
        node: NodeName,
        /// A sentence.
        message: String,
        /// Share done, from 0 to 1.
        fraction: Option<f64>,
    },
    /// A question to a person.
    Asked(Box<Asked>),
    /// The run ended or stands still; always last.
    Ended {
        /// How.
        status: RunStatus,
        /// Why, if it failed.
        failure: Option<Failure>,
        /// Why the model stopped.
        reason: Reason,
    },
}

/// How a model says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// As its answer.
    Words,
    /// As its reasoning.
    Thoughts,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reason {
    /// It had said all.
    #[default]
    Stop,
    /// It reached the length limit.
    Length,
    /// It wants tools called.
    ToolCalls,
    /// The provider's filter stopped it.
    ContentFilter,
    /// Something else.
    Other,
}

impl From<&FinishReason> for Reason {
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
