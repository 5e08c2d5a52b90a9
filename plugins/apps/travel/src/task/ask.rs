//! The request of a task: what to do, about what, and what was wrong with the answer before.

use wattle_plugin::Failure;
use wattle_plugin::llm::Request;
use wattle_plugin::prompt::fill;

use crate::prompt::REFUSED;
use crate::task::Task;

/// Errors of an answer that the next prompt tells: a model corrects a few at a time.
pub(super) const TOLD_ERRORS: usize = 12;

/// Characters of one error: some repeat what they are about.
const ERROR_CHARS: usize = 300;

/// What a task asks of every model.
pub(super) struct Ask<'a> {
    pub(super) task: Task,
    pub(super) system: &'a str,
    pub(super) user: &'a str,
}

impl Ask<'_> {
    /// The request for one attempt.
    pub(super) fn request(&self, errors: &[String]) -> Result<Request, Failure> {
        let Self { task, system, user } = self;
        Ok(Request::route(task.name)
            .system(*system)
            .user(format!("{user}{}", complaint(errors)?))
            .max_output_tokens(task.max_output_tokens)
            .timeout_ms(task.timeout_ms))
    }
}

/// What was wrong with the answer before; nothing if there was none.
fn complaint(errors: &[String]) -> Result<String, Failure> {
    if errors.is_empty() {
        return Ok(String::new());
    }
    let lines: Vec<String> = told(errors).iter().map(|error| format!("- {error}")).collect();
    let told = fill(REFUSED, &[("reasons", &lines.join("\n"))])?;
    Ok(format!("\n\n{told}"))
}

/// Errors within the bounds of a prompt.
pub(super) fn told(errors: &[String]) -> Vec<String> {
    let one_line = |error: &String| error.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = |error: String| error.chars().take(ERROR_CHARS).collect();
    errors.iter().take(TOLD_ERRORS).map(one_line).map(cut).collect()
}
