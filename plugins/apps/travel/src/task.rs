//! Tasks for models: one request on one route, with the checks that its completion must pass.
//!
//! A task has the name of its route. Every model of the route gets [`Task::retries`] retries,
//! whatever failed before: no completion, one that violates the schema, or one that the caller's
//! check refuses. Then the next model of the route follows.

mod ask;
mod attempt;
mod spec;

use serde::de::DeserializeOwned;
use wattle_plugin::llm::FinishReason;
use wattle_plugin::prelude::{Completion, Failure, JsonSchema};

use self::ask::Ask;
pub(crate) use self::attempt::Structured;
pub(crate) use self::spec::{HANDBOOK_HTML, IMAGE_PLAN, JSON_COMPILATION, SPOT_QUERIES, Task};

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
