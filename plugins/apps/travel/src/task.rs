//! Tasks for models: one question on one route, with the checks that its answer must pass.
//!
//! A task has the name of its route. Every model of the route is asked [`Task::retries`] times more
//! than once, whatever was wrong before: no answer, an answer of another shape, or one that the
//! caller's check refuses. Then the next model of the route gets its turn.

mod ask;
mod attempt;

use serde::de::DeserializeOwned;
use wattle_plugin::llm::FinishReason;
use wattle_plugin::prelude::{Completion, Failure, JsonSchema};

use crate::task::ask::Ask;

/// How long a model may think and speak, and how often it is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    /// Name of the task, of its route and of the schema of its answer.
    pub(crate) name: &'static str,
    /// Longest answer.
    pub(crate) max_output_tokens: u32,
    /// Longest wait for a model.
    pub(crate) timeout_ms: u32,
    /// Further attempts at each model.
    pub(crate) retries: u32,
}

/// From a video to blocks.
pub(crate) const JSON_COMPILATION: Task = Task {
    name: "json_compilation_strict",
    max_output_tokens: 8_192,
    timeout_ms: 60_000,
    retries: 2,
};

/// From spots to queries for the geocoder.
pub(crate) const SPOT_QUERIES: Task = Task {
    name: "spot_query_normalization",
    max_output_tokens: 4_096,
    timeout_ms: 30_000,
    retries: 2,
};

/// From blocks to queries and prompts for pictures.
pub(crate) const IMAGE_PLAN: Task = Task {
    name: "handbook_image_query_planning",
    max_output_tokens: 4_096,
    timeout_ms: 35_000,
    retries: 2,
};

/// From blocks and pictures to a page.
pub(crate) const HANDBOOK_HTML: Task = Task {
    name: "handbook_html_generation",
    max_output_tokens: 16_384,
    timeout_ms: 75_000,
    retries: 1,
};

/// An answer that passed all checks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Structured<T> {
    /// The answer.
    pub(crate) value: T,
    /// Who gave it, as `provider:model (attempts=n)`.
    pub(crate) model: String,
}

/// Asks for a document. `check` says what is wrong with one, a sentence each; what it says stands
/// in the next attempt's prompt.
///
/// # Errors
///
/// `task-failed` if no model of the route gave an answer that passes; `cancelled` if the run was.
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

/// Asks for a text; the rest is as for [`run_structured_task`].
///
/// # Errors
///
/// As [`run_structured_task`].
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

/// The text of an answer that was not cut off.
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
