//! Runs as documents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_run::hostcall::runs::{
    EndedRun, Multitask, OnFailure, OpenQuestion, RunOutcome, RunRef,
};
use wattle_run::ports::store::RunRecord;

use crate::document::options::OptionsDocument;

/// What to run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartDocument {
    /// One of the app's graphs; without it, the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// Channel values.
    pub input: Value,
    /// The thread to go on with, or the id of a new one. A fresh id without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// What happens if runs of the thread are pending or at work: `enqueue` (default) begins the run
    /// after them, `reject` refuses it, `interrupt` cancels them, `rollback` also removes what they
    /// did.
    #[serde(default)]
    #[schema(value_type = String)]
    pub multitask_strategy: Multitask,
    /// Seconds before which the run does not begin; none without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_seconds: Option<f64>,
    /// Handed to every node.
    #[serde(default)]
    pub context: Value,
    /// Free facts about the thread, up to 64 KiB with those that it has.
    #[serde(default)]
    pub metadata: BTreeMap<String, Value>,
    /// How it runs, in place of what the graph says.
    #[serde(default, skip_serializing_if = "OptionsDocument::is_default")]
    pub options: OptionsDocument,
    /// Answer when the run has ended or stands still, not at once.
    #[serde(default)]
    pub wait: bool,
}

/// Answers to open questions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeDocument {
    /// By id of the question; the empty id stands for the only open one. No answers at all: goes
    /// on past a static interrupt, or runs failed tasks again.
    #[serde(default)]
    pub answers: BTreeMap<String, Value>,
    /// What becomes of the thread if the run fails: `keep` (default) leaves it where it failed,
    /// `reopen` goes back to the questions.
    #[serde(default)]
    #[schema(value_type = String)]
    pub on_failure: OnFailure,
    /// How it runs, in place of what the graph says.
    #[serde(default, skip_serializing_if = "OptionsDocument::is_default")]
    pub options: OptionsDocument,
    /// Answer when the run has ended or stands still, not at once.
    #[serde(default)]
    pub wait: bool,
}

/// An open question.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct QuestionDocument {
    /// Its id.
    pub id: String,
    /// The subgraph that asks; absent for the thread's own graph.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The node that asks.
    pub node: String,
    /// What a person needs to see.
    pub payload: Value,
    /// JSON Schema of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// When it was asked, milliseconds since 1970.
    pub asked_ms: i64,
    /// When the thread expires, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
}

/// Why something failed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FailureDocument {
    /// A stable word for programs.
    pub code: String,
    /// What happened, where, what to do.
    pub message: String,
    /// Whether a later try may succeed.
    #[serde(default)]
    pub retryable: bool,
    /// Structured facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunDocument {
    /// Its id.
    pub run: String,
    /// Its thread.
    pub thread: String,
    /// `pending`, `running`, `completed`, `interrupted`, `failed` or `cancelled`.
    #[schema(value_type = String)]
    pub status: RunStatus,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureDocument>,
    /// Open questions, if it waits for answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<QuestionDocument>,
    /// Nodes that run next, if it stands still.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
    /// The state of the thread, for a run that was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
    /// When it was asked for, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_ms: Option<i64>,
    /// The time before which a pending run does not begin, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_ms: Option<i64>,
    /// When it began, milliseconds since 1970; absent if it has not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<i64>,
    /// When it ended, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
}

impl From<OpenQuestion> for QuestionDocument {
    fn from(question: OpenQuestion) -> Self {
        Self {
            id: question.id,
            namespace: question.namespace.as_str().to_owned(),
            node: question.node.into(),
            payload: question.payload,
            response_schema: question.response_schema,
            asked_ms: question.asked_ms,
            expires_ms: question.expires_ms,
        }
    }
}

impl From<Failure> for FailureDocument {
    fn from(failure: Failure) -> Self {
        Self {
            code: failure.code,
            message: failure.message,
            retryable: failure.retryable,
            details: failure.details,
        }
    }
}

impl RunDocument {
    fn new(run: RunRef, status: RunStatus) -> Self {
        Self {
            run: run.run.into(),
            thread: run.thread.into(),
            status,
            failure: None,
            interrupts: Vec::new(),
            next: Vec::new(),
            state: None,
            created_ms: None,
            due_ms: None,
            started_ms: None,
            ended_ms: None,
        }
    }

    /// A run that was just started.
    pub fn started(run: RunRef) -> Self {
        Self::new(run, RunStatus::Running)
    }
}

impl From<EndedRun> for RunDocument {
    fn from(ended: EndedRun) -> Self {
        let mut document = Self::new(ended.run, RunStatus::Completed);
        document.state = Some(ended.state);
        match ended.outcome {
            RunOutcome::Completed => {}
            RunOutcome::Interrupted { interrupts, next } => {
                document.status = RunStatus::Interrupted;
                document.interrupts = interrupts.into_iter().map(Into::into).collect();
                document.next = next.into_iter().map(Into::into).collect();
            }
            RunOutcome::Failed { failure } => {
                document.status = RunStatus::Failed;
                document.failure = Some(failure.into());
            }
            RunOutcome::Cancelled => document.status = RunStatus::Cancelled,
        }
        document
    }
}

impl From<RunRecord> for RunDocument {
    fn from(record: RunRecord) -> Self {
        let is_pending = record.status == RunStatus::Pending;
        Self {
            created_ms: Some(record.created_ms()),
            due_ms: is_pending.then(|| record.due_ms()),
            started_ms: record.has_begun().then_some(record.started_ms),
            run: record.id.into(),
            thread: record.thread.into(),
            status: record.status,
            failure: record.failure.map(Into::into),
            interrupts: Vec::new(),
            next: Vec::new(),
            state: None,
            ended_ms: record.ended_ms,
        }
    }
}
