//! Problems of a definition, with their position and a hint.

use std::fmt;

use crate::check::source::SourceDocument;
use crate::limit::DOCUMENT_PROBLEMS;

/// One problem of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the file, as given by the caller.
    pub file: String,
    /// Line in the file, from 1; `None` if it is unknown.
    pub line: Option<u32>,
    /// Path in the document, such as `graphs.X.nodes.y`; empty for the whole document.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, "\n  hint: {hint}"))
    }
}

impl std::error::Error for Problem {}

/// Collects the problems of one file, up to [`DOCUMENT_PROBLEMS`].
pub(super) struct Problems<'s> {
    file: &'s str,
    source: &'s SourceDocument,
    found: Vec<Problem>,
    /// True if a problem was left out.
    has_more: bool,
}

impl<'s> Problems<'s> {
    pub(super) fn new(file: &'s str, source: &'s SourceDocument) -> Self {
        Self { file, source, found: Vec::new(), has_more: false }
    }

    /// Returns true if further problems are left out. A check that compares many pairs can then
    /// stop early.
    pub(super) fn is_full(&self) -> bool {
        self.has_more
    }

    /// Adds a problem at `path`. Equal problems are reported once.
    pub(super) fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.report(path, message, None);
    }

    /// Adds a problem at `path`, with a hint that says how to fix it.
    pub(super) fn add_with_hint(
        &mut self,
        path: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.report(path, message, Some(hint.into()));
    }

    /// Adds a problem at `path`, with a hint if there is one.
    pub(super) fn report(
        &mut self,
        path: impl Into<String>,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        if self.has_more {
            return;
        }
        let (path, message) = (path.into(), message.into());
        let line = self.source.line(&path);
        let problem = Problem { file: self.file.to_owned(), line, path, message, hint };
        if self.found.contains(&problem) {
            return;
        }
        if self.found.len() < DOCUMENT_PROBLEMS {
            self.found.push(problem);
        } else {
            self.has_more = true;
        }
    }

    /// Returns all problems, sorted by line, as an error; `Ok` if there are none.
    pub(super) fn finish(mut self) -> Result<(), Vec<Problem>> {
        self.found.sort_by_key(|problem| problem.line);
        if self.has_more {
            self.found.push(Problem {
                file: self.file.to_owned(),
                line: None,
                path: String::new(),
                message: format!("more than {DOCUMENT_PROBLEMS} problems; the rest is omitted"),
                hint: Some("correct these first".to_owned()),
            });
        }
        if self.found.is_empty() { Ok(()) } else { Err(self.found) }
    }
}
