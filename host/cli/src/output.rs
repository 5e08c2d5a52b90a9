//! The only module that prints: data goes to stdout, and everything else goes to stderr.
//!
//! Ids, messages, states and file names come from clients, models and plugins, and a terminal
//! executes control sequences. Therefore all text is escaped here, in `escape`.

mod escape;
mod table;

use std::io::{IsTerminal as _, Write as _};

use serde::Serialize;

pub use self::escape::{pretty_json, printable};
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
        Self::line(&pretty_json(document));
    }

    /// Prints a line of data. Its text is [`printable`].
    pub fn line(text: &str) {
        // A closed pipe is not an error: a reader such as `head` stops reading early.
        let _ = writeln!(std::io::stdout(), "{}", printable(text.trim_end_matches('\n')));
    }

    /// Prints JSON documents. Only a terminal gets them escaped; a file or a program gets every
    /// byte unchanged.
    pub fn documents(bytes: &[u8]) {
        let mut stdout = std::io::stdout();
        let _ = if stdout.is_terminal() {
            stdout.write_all(escape::escape_json(&String::from_utf8_lossy(bytes)).as_bytes())
        } else {
            stdout.write_all(bytes)
        };
    }

    /// Prints a line to stderr. Its text is [`printable`].
    pub fn note(text: &str) {
        let _ = writeln!(std::io::stderr(), "{}", printable(text));
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
