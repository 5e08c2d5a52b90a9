//! Events of host calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::id::{Digest, NodeName, TaskId, completion_message_id};
use crate::llm::Delta;
use crate::omit::is_zero;

/// See [`EventKind::CallStarted`](super::EventKind::CallStarted).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallStarted {
    /// The task.
    pub task: TaskId,
    /// Numbers of the enclosing tool calls: empty for a call of the node itself, `[n]` for a call
    /// of the tool that the node called in its call `n`, and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<u32>,
    /// Number of the call in its scope, from 0, the same in every re-execution.
    pub call: u32,
    /// Interface and function, such as `llm.complete`.
    pub function: String,
    /// Description of the call in one line, such as `chat (gpt-4o-mini)`.
    pub summary: String,
    /// True if the call requests structured output of a model, which is not text for a person.
    #[serde(rename = "document", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_structured: bool,
    /// 0 for the first start of the call by the task, and a greater number for each later start.
    #[serde(rename = "again", default, skip_serializing_if = "is_zero")]
    pub start_number: u64,
    /// The request of a tool call, or only its first bytes if the request is large. Clients show it
    /// while the run waits for the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
}

impl CallStarted {
    /// Returns the message id of the completion after `restarts` restarts of its stream.
    pub fn message_id(&self, restarts: u32) -> String {
        completion_message_id(&self.task, &self.scope, self.call, self.start_number, restarts)
    }
}

/// See [`EventKind::Streamed`](super::EventKind::Streamed).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streamed {
    /// The task.
    pub task: TaskId,
    /// Node of the task.
    pub node: NodeName,
    /// Numbers of the enclosing tool calls: empty for a call of the node itself, `[n]` for a call
    /// of the tool that the node called in its call `n`, and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<u32>,
    /// Number of the streaming call in its scope, from 0.
    pub call: u32,
    /// The deltas, in order.
    pub deltas: Vec<Delta>,
}

/// See [`EventKind::Called`](super::EventKind::Called): one journal entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Called {
    /// The task.
    pub task: TaskId,
    /// Node of the task.
    pub node: NodeName,
    /// Numbers of the enclosing tool calls: empty for a call of the node itself, `[n]` for a call
    /// of the tool that the node called in its call `n`, and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<u32>,
    /// Number of the call in its scope, from 0, the same in every re-execution.
    pub call: u32,
    /// Interface and function, such as `llm.complete`.
    pub function: String,
    /// Digest of the request. The call of a re-execution must have the same digest.
    pub digest: Digest,
    /// The request, or only its first bytes if the request is large.
    pub request: Value,
    /// Output of the call, or its failure.
    pub result: Result<Value, Failure>,
    /// Start of the call, in milliseconds since 1970.
    pub started_ms: i64,
    /// Duration of the call, in microseconds.
    pub duration_us: u64,
    /// Time for which the call waited for the store before its start, in microseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub store_us: u64,
    /// Description of the call in one line, such as `chat (gpt-4o-mini)`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Token usage of a model call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Sequence number of the reused journal entry, which a cancelled run has recorded; `None` for
    /// a call that was executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused: Option<u64>,
    /// Number of the first call of the call batch; equal to [`Called::call`] outside of a batch.
    pub batch: u32,
}

/// Token usage of a model call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the completion.
    pub output: u64,
}
