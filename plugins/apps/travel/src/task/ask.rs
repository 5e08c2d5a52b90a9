//! The request of a task: instructions, material, and the errors of the last completion.

use wattle_plugin::Failure;
use wattle_plugin::llm::Request;
use wattle_plugin::prompt::fill;

use crate::prompt::REFUSED;
use crate::task::spec::Task;

/// Maximum number of errors in the next prompt. A model corrects a few at a time.
pub(super) const TOLD_ERRORS: usize = 12;

/// Maximum number of characters of one error. Some repeat the text that they are about.
const ERROR_CHARS: usize = 300;

/// The request that every model of a task gets.
pub(super) struct Ask<'a> {
    pub(super) task: Task,
    pub(super) system: &'a str,
    pub(super) user: &'a str,
}

impl Ask<'_> {
    /// Returns the request of one attempt.
    pub(super) fn request(&self, errors: &[String]) -> Result<Request, Failure> {
        let Self { task, system, user } = self;
        Ok(Request::route(task.name)
            .system(*system)
            .user(format!("{user}{}", complaint(errors)?))
            .max_output_tokens(task.max_output_tokens)
            .timeout_ms(task.timeout_ms))
    }
}

/// Returns the errors of the last completion as text; empty if there are none.
fn complaint(errors: &[String]) -> Result<String, Failure> {
    if errors.is_empty() {
        return Ok(String::new());
    }
    let lines: Vec<String> = told(errors).iter().map(|error| format!("- {error}")).collect();
    let told = fill(REFUSED, &[("reasons", &lines.join("\n"))])?;
    Ok(format!("\n\n{told}"))
}

/// Limits errors to the bounds of a prompt.
pub(super) fn told(errors: &[String]) -> Vec<String> {
    let one_line = |error: &String| error.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = |error: String| error.chars().take(ERROR_CHARS).collect();
    errors.iter().take(TOLD_ERRORS).map(one_line).map(cut).collect()
}
