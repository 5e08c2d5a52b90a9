//! The record of a run, from the request to the end.
//!
//! A run has one record. Its status is *pending* until a host starts it, *running* until it stops,
//! and then *interrupted*, *completed*, *failed* or *cancelled*. A run that never started has no
//! events.

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
use crate::caller_id::CallerId;
use crate::meter::model_usage::ModelUsage;

/// What a store keeps of a run: its status, its times, its options and the request for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run.
    pub id: RunId,
    /// Thread of the run.
    pub thread: ThreadId,
    /// Sequence number of the first event; 0 without events.
    #[serde(default)]
    pub first_seq: u64,
    /// Status of the run.
    pub status: RunStatus,
    /// Failure, if the run failed.
    pub failure: Option<Failure>,
    /// Time of the request, milliseconds since 1970; `None` if a host before store format 4 wrote
    /// the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_ms: Option<i64>,
    /// Time of the start, milliseconds since 1970. For a run that has not started, the time of the
    /// request.
    pub started_ms: i64,
    /// Time of the end, milliseconds since 1970; `None` before the end.
    pub ended_ms: Option<i64>,
    /// Checkpoint of the root graph at which the run ended or was interrupted; `None` before the
    /// end, and in records of runs that never started or that an older host ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_checkpoint: Option<CheckpointId>,
    /// Checkpoint to which the thread returns if the run fails; `None` if the thread stays at the
    /// failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopen: Option<CheckpointId>,
    /// Options of the run, which also apply after a restart of the host.
    #[serde(default, skip_serializing_if = "RunOptions::is_default")]
    pub options: RunOptions,
    /// Superstep at which the run started, from which its supersteps are counted; `None` if the run
    /// has not started, or if an older host started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_step: Option<u32>,
    /// The original of this run in the thread that was copied first, if this run is a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<RunId>,
    /// Tokens that the model calls of the run used; empty before the end, and if an older host
    /// ended the run.
    #[serde(default, skip_serializing_if = "ModelUsage::is_empty")]
    pub usage: ModelUsage,
    /// Recoveries of the run without progress; zero if an older host wrote the record.
    #[serde(default, skip_serializing_if = "RecoveryCount::is_zero")]
    pub recovery_count: RecoveryCount,
    /// The request; `None` if the run started at once and its request is not needed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Box<RunSpec>>,
}

impl RunRecord {
    /// Returns the original of this run, or the run itself if it is not a copy.
    pub fn origin(&self) -> &RunId {
        self.origin.as_ref().unwrap_or(&self.id)
    }

    /// Returns true if the run has started and therefore has events. A run that was removed from
    /// the queue has ended without events.
    pub fn has_started(&self) -> bool {
        self.first_seq > 0
    }

    /// Returns the time before which the run does not start, milliseconds since 1970.
    pub fn due_ms(&self) -> i64 {
        self.spec.as_ref().map_or(self.started_ms, |spec| spec.due_ms)
    }

    /// Returns the caller that the run counts for.
    pub fn caller(&self) -> CallerId {
        let of_spec = |spec: &RunSpec| CallerId::of_run(spec.principal.as_ref(), &spec.app);
        self.spec.as_deref().map(of_spec).unwrap_or_default()
    }

    /// Returns the time of the request, milliseconds since 1970.
    pub fn created_ms(&self) -> i64 {
        self.created_ms.unwrap_or(self.started_ms)
    }
}

/// The number of recoveries of a run since its last progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryCount {
    /// Number of recoveries that followed the end of a process, since the last progress of the run.
    #[serde(default)]
    pub without_progress: u32,
    /// True if the host that executed the run has stopped it and handed it over. The next recovery
    /// of the run does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_handed_over: bool,
}

impl RecoveryCount {
    fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// The request for a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// What the run does.
    pub kind: RunKind,
    /// What happens to the answers of the run whose interrupts are not pending.
    #[serde(default, skip_serializing_if = "StaleAnswers::is_reject")]
    pub stale_answers: StaleAnswers,
    /// The app. The thread of the run belongs to this app, or is unbound.
    pub app: AppName,
    /// The graph to which an unbound thread is bound. Default: the only graph of the app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphName>,
    /// Run context, passed to every node. Default: the context of the thread.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub context: Value,
    /// Metadata that the run merges into the metadata of its thread.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Value>,
    /// The time before which the run does not start, milliseconds since 1970.
    pub due_ms: i64,
    /// Retention of the thread after the run. `None` keeps the current retention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<ThreadTtl>,
    /// Data of the API that received the request. The engine does not read it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub client: Value,
    /// Who sent the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

impl RunSpec {
    /// Returns the request without input, answers and writes. These may be large and are not
    /// cloned.
    pub fn without_input(&self) -> Self {
        Self {
            kind: self.kind.without_input(),
            stale_answers: self.stale_answers,
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
    /// Applies an input: channel values.
    Start {
        /// Channel values by name.
        input: Value,
    },
    /// Continues from the current checkpoint without an answer.
    Continue,
    /// Answers pending interrupts.
    Answer {
        /// The answers.
        answer: RunAnswers,
    },
    /// Continues from the current checkpoint or an earlier one, with additional writes and nodes.
    Command {
        /// Writes and nodes.
        command: Command,
        /// Answers to pending interrupts.
        answer: Option<RunAnswers>,
        /// The earlier checkpoint; `None` for the current one.
        checkpoint: Option<CheckpointId>,
    },
    /// Continues from an earlier checkpoint.
    Fork {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// Channel values that are applied to the checkpoint.
        input: Option<Value>,
    },
    /// Continues from an earlier input, with another input in its place.
    Redo {
        /// The checkpoint that the earlier input created.
        checkpoint: CheckpointId,
        /// The new input.
        input: Value,
    },
}

impl RunKind {
    /// Returns the kind without input, answers and writes.
    fn without_input(&self) -> Self {
        match self {
            Self::Start { .. } => Self::Start { input: Value::Null },
            Self::Continue => Self::Continue,
            Self::Answer { .. } => Self::Answer { answer: RunAnswers::Matched(Value::Null) },
            Self::Command { checkpoint, .. } => {
                Self::Command { command: Command::default(), answer: None, checkpoint: *checkpoint }
            }
            Self::Fork { checkpoint, .. } => Self::Fork { checkpoint: *checkpoint, input: None },
            Self::Redo { checkpoint, .. } => {
                Self::Redo { checkpoint: *checkpoint, input: Value::Null }
            }
        }
    }

    /// Returns the answers, if the run answers interrupts.
    pub fn answers(&self) -> Option<&RunAnswers> {
        match self {
            Self::Answer { answer } | Self::Command { answer: Some(answer), .. } => Some(answer),
            _ => None,
        }
    }

    /// Returns the input, if the run takes one and has not started.
    pub fn input(&self) -> Option<&Value> {
        match self {
            Self::Start { input } | Self::Redo { input, .. } => Some(input),
            Self::Fork { input, .. } => input.as_ref(),
            Self::Continue | Self::Answer { .. } | Self::Command { .. } => None,
        }
    }
}

/// Answers to interrupts that are pending when the run starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunAnswers {
    /// Answers by interrupt id. An empty id means the only pending interrupt.
    ById(BTreeMap<String, Value>),
    /// An object that names interrupts answers each of them, see
    /// [`named_answers`](wattle_graph::interrupt::named_answers). Any other value answers the only
    /// pending interrupt, or continues a thread that stopped at a breakpoint.
    Matched(Value),
}

/// What happens to the answers of a run whose interrupts are not pending when the run starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StaleAnswers {
    /// The start of the run fails, and nothing is answered.
    #[default]
    Reject,
    /// Answers whose interrupts are not pending are ignored.
    Ignore,
}

impl StaleAnswers {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    fn is_reject(&self) -> bool {
        *self == Self::Reject
    }
}

/// A query of pending runs, in the order of their requests.
#[derive(Clone, Debug, Default)]
pub struct PendingQuery {
    /// Only runs of this thread.
    pub thread: Option<ThreadId>,
    /// Only runs whose due time is at or before this time, in milliseconds since 1970.
    pub due_by_ms: Option<i64>,
    /// Only runs after this position.
    pub after: Option<u64>,
    /// Maximum number of runs.
    pub limit: usize,
}

/// A pending run and its position in the order of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRun {
    /// Position of the run. A later request has a higher position.
    pub position: u64,
    /// The run.
    pub run: RunId,
    /// Thread of the run.
    pub thread: ThreadId,
    /// The time before which the run does not start, milliseconds since 1970.
    pub due_ms: i64,
    /// The caller that the run counts for; unknown if a host of an earlier version enqueued the run
    /// in a store that many hosts share.
    pub caller: CallerId,
}

/// The condition of a batch that starts a run on the pending runs of its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueCondition {
    /// No condition: the batch starts no run.
    #[default]
    Unchecked,
    /// The run is pending.
    Pending,
    /// No run of the thread is pending and due when the run starts, and the run id is new.
    Free,
}
