//! The only module that prints: data goes to stdout, and everything else goes to stderr.

mod table;

use std::io::{IsTerminal as _, Write as _};

use serde::Serialize;

pub use self::table::Table;

/// The output format of a command.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Whether data is printed as JSON.
    pub json: bool,
}

impl Output {
    /// Prints a value as JSON, or as the text that `words` returns for the value.
    pub fn data<T: Serialize>(self, document: &T, words: impl FnOnce(&T) -> String) {
        if self.json {
            self.json(document);
        } else {
            Self::line(&words(document));
        }
    }

    /// Prints a value as JSON.
    pub fn json<T: Serialize>(self, document: &T) {
        Self::line(&serde_json::to_string_pretty(document).unwrap_or_default());
    }

    /// Prints a line of data.
    pub fn line(text: &str) {
        // A closed pipe is not an error: a reader such as `head` stops reading early.
        let _ = writeln!(std::io::stdout(), "{}", text.trim_end_matches('\n'));
    }

    /// Prints bytes of data unchanged.
    pub fn raw(bytes: &[u8]) {
        let _ = std::io::stdout().write_all(bytes);
    }

    /// Prints a line to stderr.
    pub fn note(text: &str) {
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    /// Prints an error.
    pub fn error(text: &str) {
        Self::note(&format!("error: {text}"));
    }

    /// Prints a warning.
    pub fn warning(text: &str) {
        Self::note(&format!("warning: {text}"));
    }

    /// Returns true if stderr is a terminal.
    pub fn is_interactive() -> bool {
        std::io::stderr().is_terminal()
    }
}
