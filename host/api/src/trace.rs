//! An event log as a tree: runs, steps, tasks, attempts, host calls, with times, sizes and tokens.

mod build;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::failure::Failure;
use wattle_graph::id::ThreadId;
use wattle_run::call::runs::Runs;
use wattle_run::engine::Engine;

pub use self::build::build;

/// Events read from the log at a time.
const PAGE_EVENTS: usize = 1_000;

/// What happened on a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Trace {
    /// The thread.
    pub thread: String,
    /// Its runs, oldest first.
    pub runs: Vec<RunTrace>,
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
}

/// Reads the whole log of a thread and builds its tree.
///
/// # Errors
///
/// Those of the engine.
pub async fn read(engine: &Engine, thread: &ThreadId) -> Result<Trace, Failure> {
    let mut events = Vec::new();
    loop {
        let after = events.last().map_or(0, |event: &wattle_graph::event::Event| event.seq);
        let page = engine.events(thread, after, PAGE_EVENTS).await?;
        let last = page.len() < PAGE_EVENTS;
        events.extend(page);
        if last {
            return Ok(build(thread.as_str(), &events));
        }
    }
}
