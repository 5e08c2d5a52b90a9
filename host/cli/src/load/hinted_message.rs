//! Messages about files, with a hint on how to fix them.

use std::fmt;
use std::path::Path;

use wattle_graph::check::Problem;
use wattle_run::ports::sandbox::LoadError;

/// What is wrong, and how to fix it. As text, the hint has a line of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintedMessage {
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl HintedMessage {
    /// Creates a message with a hint.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: Some(hint.into()) }
    }

    /// Creates a message without a hint.
    pub fn plain(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Returns the message as a problem of a whole file.
    pub fn into_problem(self, file: &Path) -> Problem {
        let Self { message, hint } = self;
        let (file, path) = (file.display().to_string(), String::new());
        Problem { file, line: None, path, message, hint }
    }
}

impl fmt::Display for HintedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, "\n  hint: {hint}"))
    }
}

impl From<LoadError> for HintedMessage {
    fn from(error: LoadError) -> Self {
        let LoadError { plugin, message, hint, .. } = error;
        Self::new(format!("plugin `{plugin}` cannot be loaded: {message}"), hint)
    }
}

#[cfg(test)]
mod tests {
    use wattle_graph::id::PluginName;

    use super::*;

    #[test]
    fn load_error_has_the_same_text_as_a_message() {
        let error = LoadError {
            plugin: PluginName::new("notes").unwrap(),
            code: "not-wasm",
            message: "it is empty".to_owned(),
            hint: "build it".to_owned(),
        };
        let text = error.to_string();
        assert_eq!(HintedMessage::from(error).to_string(), text);
    }
}
