//! Tasks for models: one request on one route, with the checks that its completion must pass.
//!
//! A task has the name of its route. Every model of the route gets [`Task::retries`] retries,
//! whatever failed before: no completion, one that violates the schema, or one that the caller's
//! check refuses. Then the next model of the route follows.

mod ask;
mod attempt;

use serde::de::DeserializeOwned;
use wattle_plugin::llm::FinishReason;
use wattle_plugin::prelude::{Completion, Failure, JsonSchema};

use crate::task::ask::Ask;

/// Limits of the models of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    /// Name of the task, of its route and of its response schema.
    pub(crate) name: &'static str,
    /// Maximum length of a completion.
    pub(crate) max_output_tokens: u32,
    /// Timeout of one attempt.
    pub(crate) timeout_ms: u32,
    /// Retries of each model.
    pub(crate) retries: u32,
}

/// Makes blocks from a video.
pub(crate) const JSON_COMPILATION: Task = Task {
    name: "json_compilation_strict",
    max_output_tokens: 8_192,
    timeout_ms: 60_000,
    retries: 2,
};

/// Makes queries for the geocoder from spots.
pub(crate) const SPOT_QUERIES: Task = Task {
    name: "spot_query_normalization",
    max_output_tokens: 4_096,
    timeout_ms: 30_000,
    retries: 2,
};

/// Makes queries and prompts for images from blocks.
pub(crate) const IMAGE_PLAN: Task = Task {
    name: "handbook_image_query_planning",
    max_output_tokens: 4_096,
    timeout_ms: 35_000,
    retries: 2,
};

/// Makes a page from blocks and images.
pub(crate) const HANDBOOK_HTML: Task = Task {
    name: "handbook_html_generation",
    max_output_tokens: 16_384,
    timeout_ms: 75_000,
    retries: 1,
};

/// A completion that passed all checks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Structured<T> {
    pub(crate) value: T,
    /// Model of the completion, as `provider:model (attempts=n)`.
    pub(crate) model: String,
}

/// Requests a document. `check` returns the errors of a document, one sentence each. The prompt of
/// the next attempt has these errors.
///
/// # Errors
///
/// Returns `task-failed` if no model of the route returns a document that passes, and `cancelled`
/// if the run was cancelled.
pub(crate) fn run_structured_task<T>(
    task: Task,
    system: &str,
    user: &str,
    check: impl Fn(&T) -> Vec<String>,
) -> Result<Structured<T>, Failure>
where
    T: DeserializeOwned + JsonSchema,
{
    let question = Ask { task, system, user };
    let ask = |errors: &[String]| Ok(question.request(errors)?.schema::<T>(task.name));
    attempt::run(task, ask, |completion| {
        let value = completion.structured::<T>().map_err(|failure| vec![failure.message])?;
        accept(value, &check)
    })
}

/// Requests a text; otherwise like [`run_structured_task`].
///
/// # Errors
///
/// Returns the failures of [`run_structured_task`].
pub(crate) fn run_text_task(
    task: Task,
    system: &str,
    user: &str,
    check: impl Fn(&str) -> Vec<String>,
) -> Result<Structured<String>, Failure> {
    let question = Ask { task, system, user };
    let ask = |errors: &[String]| question.request(errors);
    attempt::run(task, ask, |completion| {
        let text = whole(completion)?;
        accept(text, |text| check(text))
    })
}

fn accept<T>(value: T, check: impl Fn(&T) -> Vec<String>) -> Result<T, Vec<String>> {
    let errors = check(&value);
    if errors.is_empty() { Ok(value) } else { Err(errors) }
}

/// Returns the text of a completion that is complete and not empty.
fn whole(completion: &Completion) -> Result<String, Vec<String>> {
    let text = completion.text();
    let wrong = match completion.finish_reason {
        FinishReason::Length => "the answer was cut off at its length limit; be shorter",
        FinishReason::ContentFilter => "the answer was withheld by the provider",
        _ if !completion.is_answer() => "the answer is empty",
        _ => return Ok(text),
    };
    Err(vec![wrong.to_owned()])
}

#[cfg(test)]
mod tests;
