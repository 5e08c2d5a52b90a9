//! A run as the store knows it, from the moment that it is asked for.
//!
//! A run has one record. It is *pending* until a host begins it, *running* until it stands still,
//! and *interrupted*, *completed*, *failed* or *cancelled* after that. A run that never began has no
//! event.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, CheckpointId, GraphName, RunId, ThreadId};
use wattle_graph::principal::Principal;
use wattle_graph::step::Command;

use super::ThreadTtl;
use super::options::RunOptions;

/// Facts about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run.
    pub id: RunId,
    /// Its thread.
    pub thread: ThreadId,
    /// Sequence number of its first event; 0 if it has none.
    #[serde(default)]
    pub first_seq: u64,
    /// How it stands.
    pub status: RunStatus,
    /// Why, if it failed.
    pub failure: Option<Failure>,
    /// When it was asked for, milliseconds since 1970; `None` if a host before format 4 wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_ms: Option<i64>,
    /// When it began, milliseconds since 1970. Of a run that has not begun: when it was asked for.
    pub started_ms: i64,
    /// When it ended, milliseconds since 1970; `None` before that.
    pub ended_ms: Option<i64>,
    /// Where the thread goes back to if the run fails; `None` if it stays where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopen: Option<CheckpointId>,
    /// How it runs: it holds also after a restart of the host.
    #[serde(default, skip_serializing_if = "RunOptions::is_default")]
    pub options: RunOptions,
    /// The superstep that it began with, from which its supersteps are counted; `None` if it has not
    /// begun, or if an older host began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_step: Option<u32>,
    /// The run that it is a copy of, in the thread that was copied first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<RunId>,
    /// What was asked for; `None` if the run began at once and nobody asks for it later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Box<RunSpec>>,
}

impl RunRecord {
    /// The run that this one is a copy of; itself if it is none.
    pub fn origin(&self) -> &RunId {
        self.origin.as_ref().unwrap_or(&self.id)
    }

    /// Whether it has an event. A run that was taken out before it began has ended without one.
    pub fn has_begun(&self) -> bool {
        self.first_seq > 0
    }

    /// The time before which it does not begin, milliseconds since 1970.
    pub fn due_ms(&self) -> i64 {
        self.spec.as_ref().map_or(self.started_ms, |spec| spec.due_ms)
    }

    /// When it was asked for, milliseconds since 1970.
    pub fn created_ms(&self) -> i64 {
        self.created_ms.unwrap_or(self.started_ms)
    }
}

/// What was asked for when a run was created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// What the run does.
    pub kind: RunKind,
    /// The app. The thread of the run is of this app, or blank.
    pub app: AppName,
    /// The graph that a blank thread is bound to; without it, the only one of the app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphName>,
    /// The run context, handed to every node; that of the thread without it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub context: Value,
    /// Facts that the run adds to those of its thread.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Value>,
    /// The time before which it does not begin, milliseconds since 1970.
    pub due_ms: i64,
    /// How long the thread is kept after the run; as it is set already without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<ThreadTtl>,
    /// What the interface that took the request keeps of it. The engine does not read it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub client: Value,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

impl RunSpec {
    /// The same without what the run takes, which is not copied: it may be large.
    pub fn emptied(&self) -> Self {
        Self {
            kind: self.kind.emptied(),
            app: self.app.clone(),
            graph: self.graph.clone(),
            context: self.context.clone(),
            metadata: self.metadata.clone(),
            due_ms: self.due_ms,
            ttl: self.ttl,
            client: self.client.clone(),
            principal: self.principal.clone(),
        }
    }
}

/// What a run does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RunKind {
    /// Takes an input: channel values.
    Start {
        /// The values.
        input: Value,
    },
    /// Goes on where the thread stands still, without an answer.
    Continue,
    /// Answers open questions.
    Answer {
        /// The answers.
        answer: Answer,
    },
    /// Goes on where the thread stands, or from an earlier checkpoint, with further values and nodes.
    Command {
        /// Values and nodes.
        command: Command,
        /// Answers that come with it.
        answer: Option<Answer>,
        /// The earlier checkpoint.
        checkpoint: Option<CheckpointId>,
    },
    /// Goes on from an earlier checkpoint.
    Fork {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// Channel values that are taken there.
        input: Option<Value>,
    },
    /// Goes on from an earlier input, with another one in its place.
    Redo {
        /// The checkpoint that the input made.
        checkpoint: CheckpointId,
        /// The input in its place.
        input: Value,
    },
}

impl RunKind {
    /// The same without what the run takes: input, answers, values.
    fn emptied(&self) -> Self {
        match self {
            Self::Start { .. } => Self::Start { input: Value::Null },
            Self::Continue => Self::Continue,
            Self::Answer { .. } => Self::Answer { answer: Answer::Matched(Value::Null) },
            Self::Command { checkpoint, .. } => {
                Self::Command { command: Command::default(), answer: None, checkpoint: *checkpoint }
            }
            Self::Fork { checkpoint, .. } => Self::Fork { checkpoint: *checkpoint, input: None },
            Self::Redo { checkpoint, .. } => {
                Self::Redo { checkpoint: *checkpoint, input: Value::Null }
            }
        }
    }

    /// The input, if the run takes one and has not begun.
    pub fn input(&self) -> Option<&Value> {
        match self {
            Self::Start { input } | Self::Redo { input, .. } => Some(input),
            Self::Fork { input, .. } => input.as_ref(),
            Self::Continue | Self::Answer { .. } | Self::Command { .. } => None,
        }
    }
}

/// Answers to questions that are open when the run begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Answers by the id of their question. An empty id means the only open question.
    ById(BTreeMap<String, Value>),
    /// An object that names questions, see [`named_answers`](wattle_graph::interrupt::named_answers),
    /// answers each of these; any other value answers the only open question.
    Matched(Value),
}

/// Which pending runs to list, in the order in which they were asked for.
#[derive(Clone, Debug, Default)]
pub struct PendingQuery {
    /// Only of this thread.
    pub thread: Option<ThreadId>,
    /// Only those that are due at this time, milliseconds since 1970.
    pub due_by_ms: Option<i64>,
    /// Only those behind this place.
    pub after: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

/// A pending run in the order of its thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRun {
    /// Its place: runs that were asked for later have higher ones.
    pub place: u64,
    /// The run.
    pub run: RunId,
    /// Its thread.
    pub thread: ThreadId,
    /// The time before which it does not begin, milliseconds since 1970.
    pub due_ms: i64,
}

/// What a batch that begins a run asks of the pending runs of its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// Nothing: it begins no run.
    #[default]
    Any,
    /// Its run is pending.
    Own,
    /// No run of the thread is pending and due when the run begins, and the run is not known yet.
    Free,
}
