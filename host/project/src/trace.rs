//! Projection of an event log as a tree: runs, supersteps, tasks, attempts and host calls, with
//! times, sizes and tokens.

mod build;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::principal::Principal;

pub use self::build::Tracer;

/// The trace of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Trace {
    /// Id of the thread.
    pub thread: String,
    /// Equal to `thread`. Requests use the name `thread_id`.
    #[serde(default)]
    #[schema(required = true)]
    pub thread_id: String,
    /// Runs of the thread, oldest first.
    pub runs: Vec<RunTrace>,
    /// Changes of the thread between its runs, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeTrace>,
    /// Sums over all runs.
    pub totals: Totals,
    /// True if the trace omits the newest events of the thread, because it would be too large.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Sums over the runs of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Totals {
    /// Host calls, without calls whose results the journal returned.
    pub calls: u64,
    /// Model calls, without calls whose results the journal returned and without reused results of
    /// cancelled runs.
    pub model_calls: u64,
    /// Input tokens of model calls.
    pub input_tokens: u64,
    /// Output tokens of model calls.
    pub output_tokens: u64,
}

/// The trace of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunTrace {
    /// Id of the run.
    pub run: String,
    /// Name of the graph.
    pub graph: String,
    /// Why the run started: `input`, `resume`, `retry` or `fork`.
    pub reason: String,
    /// `running`, `completed`, `interrupted`, `failed` or `cancelled`.
    pub status: String,
    /// Start of the run, in milliseconds since 1970.
    pub started_ms: i64,
    /// End of the run, in milliseconds since 1970; absent while the run is active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    /// Number of recoveries after the host stopped.
    #[serde(default)]
    pub recoveries: u32,
    /// Error message of a failed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Structured details of the failure, such as the stack of an exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_details: Option<Value>,
    /// Supersteps of the root graph.
    pub steps: Vec<StepTrace>,
    /// Answers to interrupts that the run started with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AnswerTrace>,
    /// Who requested the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<PrincipalTrace>,
    /// Who cancelled the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<PrincipalTrace>,
}

/// A change of a thread between its runs: an edit, a settled call, or a migration to another
/// version of the graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangeTrace {
    /// Sequence number of the event.
    pub seq: u64,
    /// `edited`, `settled` or `migrated`.
    pub change: String,
    /// Time of the change, in milliseconds since 1970.
    pub at_ms: i64,
    /// One line for people that names the checkpoint, the call or the versions.
    pub summary: String,
    /// Who made the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<PrincipalTrace>,
}

/// Who sent a request. Unknown fields are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Principal)]
pub struct PrincipalTrace {
    /// Id of the API key, never the key itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Id of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// User that a trusted proxy named, or `uid:` and a number for a command of `wattle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// App whose web handler sent the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// True if a command of `wattle` opened the store itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
}

/// The trace of a superstep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepTrace {
    /// Number of the superstep in the thread.
    pub step: u32,
    /// Tasks of the superstep.
    pub tasks: Vec<TaskTrace>,
    /// Channels that the superstep changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// The trace of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskTrace {
    /// Id of the task.
    pub task: String,
    /// Node of the task.
    pub node: String,
    /// Attempts and re-executions of the task.
    pub attempts: Vec<AttemptTrace>,
}

/// The trace of one execution of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptTrace {
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// `running`, `finished`, `failed`, `asked`, or `cut` if the host stopped during the execution.
    pub outcome: String,
    /// Start of the execution, in milliseconds since 1970.
    pub started_ms: i64,
    /// Duration of the execution, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    /// Error message of a failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Structured details of the failure, such as the stack of an exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_details: Option<Value>,
    /// Size of the writes as JSON, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<usize>,
    /// Number of calls whose results the journal returned from an earlier execution.
    #[serde(default)]
    pub replayed: usize,
    /// Calls that the execution made.
    pub calls: Vec<CallTrace>,
    /// Ids of the interrupts that the execution raised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<String>,
    /// Log messages, progress and names of custom events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
    /// Subgraphs of the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub graphs: Vec<GraphTrace>,
}

impl AttemptTrace {
    /// The [`outcome`](Self::outcome) of an execution that has not ended.
    pub const RUNNING: &'static str = "running";
    /// The [`outcome`](Self::outcome) of an execution during which the host stopped.
    pub const CUT: &'static str = "cut";
}

/// The trace of a subgraph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GraphTrace {
    /// Namespace of the subgraph, as in events and checkpoints.
    pub namespace: String,
    /// Supersteps of the subgraph.
    pub steps: Vec<StepTrace>,
}

/// The trace of a host call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallTrace {
    /// Number of the call among the calls of the node, or of the tool that made it.
    pub call: u32,
    /// Interface and function, such as `llm.complete`.
    pub function: String,
    /// Description of the call in one line.
    pub summary: String,
    /// Start of the call, in milliseconds since 1970.
    pub started_ms: i64,
    /// Duration in microseconds; absent while the call is in progress, or if the host stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    /// Size of the request as JSON in the log, in bytes.
    pub request_bytes: usize,
    /// Size of the output as JSON, in bytes; 0 for a failed call.
    pub answer_bytes: usize,
    /// Input tokens of the model call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens of the model call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Sequence number of the journal entry whose result was reused. A cancelled run had received
    /// the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused: Option<u64>,
    /// Error message of a failed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Structured details of the failure, such as the stack of an exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_details: Option<Value>,
    /// Calls that the tool made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub calls: Vec<CallTrace>,
}

/// The answer to an interrupt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AnswerTrace {
    /// Id of the interrupt.
    pub question: String,
    /// Answer of the person.
    pub answer: Value,
    /// Who gave the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<PrincipalTrace>,
}

impl From<&Principal> for PrincipalTrace {
    fn from(principal: &Principal) -> Self {
        let Principal { key, tenant, user, app, local } = principal.clone();
        Self { key, tenant, user, app: app.map(|app| app.to_string()), local }
    }
}

impl fmt::Display for PrincipalTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, tenant, user, app, local } = self;
        let mut separator = "";
        for (name, value) in [("user", user), ("key", key), ("tenant", tenant), ("app", app)] {
            if let Some(value) = value {
                write!(f, "{separator}{name} {value}")?;
                separator = ", ";
            }
        }
        if *local { write!(f, "{separator}local command") } else { Ok(()) }
    }
}
