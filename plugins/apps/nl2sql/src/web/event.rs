//! The events of the stream of a question, which `streams/chat.toml` makes.

use wattle_plugin::prelude::JsonSchema;

use crate::state::{
    HiddenContextResult, IntentResult, ParseResult, ResultReturnResult, SqlGenerationResult,
};

/// An event of the stream: its name, and the document in its data.
#[expect(dead_code, reason = "only its schema is used: the host makes the events")]
#[derive(JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
pub(super) enum StreamEvent {
    WorkflowStart(Progress),
    StepStart(Progress),
    StepEnd(Progress),
    WorkflowEnd(Progress),
    WorkflowError(Progress),
}

/// The start or the end of a step, or of the workflow.
#[expect(dead_code, reason = "only its schema is used: the host makes the events")]
#[derive(JsonSchema)]
pub(super) struct Progress {
    session_id: String,
    step: StepName,
    status: StepStatus,
    /// Progress for users, or the reason of an error.
    message: String,
    timestamp: String,
    seq: u64,
    /// The outcome of a step, without the rows of a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<Detail>,
    /// The answer, at the end of the workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<ResultReturnResult>,
}

/// A step of the workflow, or the workflow itself.
#[expect(dead_code, reason = "only its schema is used: the host makes the events")]
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StepName {
    IntentRecognition,
    TaskParse,
    SqlGeneration,
    SqlValidate,
    HiddenContext,
    ResultReturn,
    Workflow,
}

/// The status of a step.
#[expect(dead_code, reason = "only its schema is used: the host makes the events")]
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StepStatus {
    Start,
    End,
    Error,
}

/// The outcome of a step.
#[expect(dead_code, reason = "only its schema is used: the host makes the events")]
#[derive(JsonSchema)]
#[serde(untagged)]
pub(super) enum Detail {
    Intent(IntentResult),
    Task(ParseResult),
    Generation(SqlGenerationResult),
    Validation(Execution),
    HiddenContext(HiddenContextResult),
}

/// The outcome of an execution, without its rows.
#[expect(dead_code, reason = "only its schema is used: the host makes the events")]
#[derive(JsonSchema)]
pub(super) struct Execution {
    is_valid: bool,
    error: Option<String>,
    rows: usize,
    executed_sql: String,
    empty_result: bool,
    zero_metric_result: bool,
}
