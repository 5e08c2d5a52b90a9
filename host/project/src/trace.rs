//! An event log as a tree: runs, steps, tasks, attempts, host calls, with times, sizes and tokens.

mod build;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::principal::Principal;

pub use self::build::Tracer;

/// What happened on a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Trace {
    /// The thread.
    pub thread: String,
    /// Its runs, oldest first.
    pub runs: Vec<RunTrace>,
    /// What was done to it between its runs, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeTrace>,
    /// Sums over all runs.
    pub totals: Totals,
}

/// Sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Totals {
    /// Host calls that were made; replayed ones are not.
    pub calls: u64,
    /// Model calls among them; those that a cancelled run had paid for are not.
    pub model_calls: u64,
    /// Tokens read by models.
    pub input_tokens: u64,
    /// Tokens written by models.
    pub output_tokens: u64,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunTrace {
    /// Its id.
    pub run: String,
    /// The graph.
    pub graph: String,
    /// `input`, `resume` or `retry`.
    pub reason: String,
    /// `running`, `completed`, `interrupted`, `failed` or `cancelled`.
    pub status: String,
    /// Milliseconds since 1970.
    pub started_ms: i64,
    /// Milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    /// How often it went on after a restart of the host.
    #[serde(default)]
    pub recoveries: u32,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Its supersteps.
    pub steps: Vec<StepTrace>,
    /// Answers that it brought.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AnswerTrace>,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<PrincipalTrace>,
    /// Who cancelled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<PrincipalTrace>,
}

/// What was done to a thread between its runs: an edit, a call in doubt that was settled, a move to
/// other code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangeTrace {
    /// Number of its event.
    pub seq: u64,
    /// `edited`, `settled` or `migrated`.
    pub change: String,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// One line for people: which checkpoint, or which call.
    pub summary: String,
    /// Who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<PrincipalTrace>,
}

/// Who asked for something, as far as the host knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Principal)]
pub struct PrincipalTrace {
    /// Id of the API key, never the key itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The user whom a trusted proxy named, or `uid:` and a number for a command of `wattle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The app whose handler asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Whether a command of `wattle` opened the store itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
}

/// One superstep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepTrace {
    /// Its number in the thread.
    pub step: u32,
    /// Its tasks.
    pub tasks: Vec<TaskTrace>,
    /// Channels that changed at its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// One task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskTrace {
    /// Its id.
    pub task: String,
    /// Its node.
    pub node: String,
    /// Its attempts and re-executions.
    pub attempts: Vec<AttemptTrace>,
}

/// One execution of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptTrace {
    /// From 1.
    pub attempt: u32,
    /// `running`, `finished`, `failed` or `asked`.
    pub outcome: String,
    /// Milliseconds since 1970.
    pub started_ms: i64,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Bytes of its writes as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<usize>,
    /// Calls that were answered from the journal, since an earlier execution had made them.
    #[serde(default)]
    pub replayed: usize,
    /// Calls that it made.
    pub calls: Vec<CallTrace>,
    /// Questions that it asked, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<String>,
    /// Messages for the operator, and progress.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
    /// Graphs that ran inside of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub graphs: Vec<GraphTrace>,
}

/// A graph that ran inside of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GraphTrace {
    /// Its namespace, as its events and checkpoints have it.
    pub namespace: String,
    /// Its supersteps.
    pub steps: Vec<StepTrace>,
}

/// One host call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallTrace {
    /// Number in its task, or in the tool that made it.
    pub call: u32,
    /// Interface and function, such as `llm.complete`.
    pub function: String,
    /// One line for people.
    pub summary: String,
    /// Milliseconds since 1970.
    pub started_ms: i64,
    /// How long it took; absent while it is under way, or if the host died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    /// Bytes of the request as JSON, as far as it was kept.
    pub request_bytes: usize,
    /// Bytes of the answer as JSON.
    pub answer_bytes: usize,
    /// Tokens read by the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens written by the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Sequence number of the entry whose answer it was given again: a cancelled run had paid for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused: Option<u64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Calls that the called tool made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub calls: Vec<CallTrace>,
}

/// An answer to a question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AnswerTrace {
    /// The question.
    pub question: String,
    /// The answer.
    pub answer: Value,
    /// Who answered.
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
