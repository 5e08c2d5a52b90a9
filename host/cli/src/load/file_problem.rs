//! Problems of whole files, as `wattle graph check` reports them.

use std::path::Path;

use wattle_graph::check::Problem;

/// What separates a message from its hint.
const HINT: &str = "\n  hint: ";

/// Returns the problem of a file. The text may end with a hint.
pub fn file_problem(file: &Path, text: &str) -> Problem {
    let (message, hint) = match text.split_once(HINT) {
        Some((message, hint)) => (message, Some(hint.to_owned())),
        None => (text, None),
    };
    Problem {
        file: file.display().to_string(),
        line: None,
        path: String::new(),
        message: message.to_owned(),
        hint,
    }
}
