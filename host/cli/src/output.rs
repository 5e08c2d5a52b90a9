//! The only place that prints: data to stdout, everything else to stderr.

mod table;

use std::io::{IsTerminal as _, Write as _};

use serde::Serialize;

pub use self::table::Table;

/// Where a command's results go, and in which form.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Data as JSON.
    pub json: bool,
}

impl Output {
    /// Prints a document: as JSON, or in words.
    pub fn data<T: Serialize>(self, document: &T, words: impl FnOnce(&T) -> String) {
        if self.json {
            self.json(document);
        } else {
            Self::line(&words(document));
        }
    }

    /// Prints a document as JSON.
    pub fn json<T: Serialize>(self, document: &T) {
        Self::line(&serde_json::to_string_pretty(document).unwrap_or_default());
    }

    /// Prints a line of data.
    pub fn line(text: &str) {
        // A reader that is gone, such as `head`, has seen enough.
        let _ = writeln!(std::io::stdout(), "{}", text.trim_end_matches('\n'));
    }

    /// Prints data as it is.
    pub fn raw(bytes: &[u8]) {
        let _ = std::io::stdout().write_all(bytes);
    }

    /// Prints a line for the person, not for programs.
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

    /// Whether somebody looks at stderr while the command runs.
    pub fn is_watched() -> bool {
        std::io::stderr().is_terminal()
    }
}
