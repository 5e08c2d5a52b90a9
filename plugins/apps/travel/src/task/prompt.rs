//! The words of a task: what to do, about what, and what was wrong with the answer before.

use wattle_plugin::llm::Request;

use crate::task::Task;

/// Errors of an answer that the next prompt tells: a model corrects a few at a time.
pub(super) const TOLD_ERRORS: usize = 12;

/// Characters of one error: some repeat what they are about.
const ERROR_CHARS: usize = 300;

/// What a task says to every model.
pub(super) struct Prompt<'a> {
    pub(super) task: Task,
    pub(super) system: &'a str,
    pub(super) user: &'a str,
}

impl Prompt<'_> {
    /// The request for one attempt. The first line names the task, for who reads logs of models.
    pub(super) fn request(&self, errors: &[String]) -> Request {
        let Self { task, system, user } = self;
        Request::route(task.name)
            .system(format!("Task: {}\n\n{system}", task.name))
            .user(format!("{user}{}", complaint(errors)))
            .max_output_tokens(task.max_output_tokens)
            .timeout_ms(task.timeout_ms)
    }
}

/// What was wrong with the answer before; nothing if there was none.
fn complaint(errors: &[String]) -> String {
    if errors.is_empty() {
        return String::new();
    }
    let lines: String = told(errors).iter().map(|error| format!("- {error}\n")).collect();
    format!(
        "\n\nAn earlier answer was refused for these reasons:\n{lines}Answer again, whole, with \
         all of them corrected."
    )
}

/// Errors within the bounds of a prompt.
pub(super) fn told(errors: &[String]) -> Vec<String> {
    let one_line = |error: &String| error.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = |error: String| error.chars().take(ERROR_CHARS).collect();
    errors.iter().take(TOLD_ERRORS).map(one_line).map(cut).collect()
}
