//! The tables of `app.toml`. Each table, and each key of a table, is parsed separately, so that one
//! problem does not hide other problems.

use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error, ValueDeserializer};
use wattle_graph::{expectation, suggest, toml_depth};

use crate::load::hinted_message::HintedMessage;

/// Maximum number of problems of a manifest that are reported. Nobody reads more problems at once.
const PROBLEMS: usize = 100;

/// A problem of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestProblem {
    /// Line in the file, from 1; `None` for the whole file.
    pub line: Option<usize>,
    /// What is wrong, and how to fix it.
    pub reason: HintedMessage,
}

impl ManifestProblem {
    pub(super) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { line: None, reason: HintedMessage::new(message, hint) }
    }

    /// Returns the problem as text with the path of the file.
    #[must_use]
    pub fn of_file(&self, file: &Path) -> String {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{}{line}: {}", file.display(), self.reason)
    }
}

/// The tables of a manifest that were not taken yet, and the problems of the tables that were
/// taken.
pub(super) struct Tables<'t> {
    text: &'t str,
    left: DeTable<'t>,
    problems: Vec<ManifestProblem>,
}

impl<'t> Tables<'t> {
    /// Parses the text as TOML.
    pub(super) fn parse(text: &'t str) -> Result<Self, ManifestProblem> {
        toml_depth::check(text).map_err(|error| ManifestProblem {
            line: Some(error.line as usize),
            reason: HintedMessage::plain(error.to_string()),
        })?;
        let (left, problems) = (DeTable::new(), Vec::new());
        let mut tables = Self { text, left, problems };
        match DeTable::parse(text) {
            Ok(parsed) => tables.left = parsed.into_inner(),
            Err(error) => return Err(tables.problem(&error)),
        }
        Ok(tables)
    }

    /// Takes a table that must exist. `keys` are the keys that the table must have.
    pub(super) fn take_required<T: DeserializeOwned>(
        &mut self,
        name: &str,
        keys: &[&str],
    ) -> Option<T> {
        if !self.left.contains_key(name) {
            let (message, hint) =
                (format!("the table `{name}` is missing"), format!("add `[{name}]`"));
            self.add(ManifestProblem::new(message, hint));
        }
        self.take(name, keys)
    }

    /// Takes a table. `keys` are the keys that the table must have. Returns `None` if there is no
    /// such table, or if the table has a problem.
    pub(super) fn take<T: DeserializeOwned>(&mut self, name: &str, keys: &[&str]) -> Option<T> {
        let (header, value) = self.left.remove_entry(name)?;
        // A position that does not occur in the text. It is the position of the tables with a
        // single key that are made below.
        let nowhere = usize::MAX..usize::MAX;
        let DeValue::Table(table) = value.get_ref() else {
            let message = format!("`{name}` must be a table, not {}", value.get_ref().type_str());
            self.add_at(&header.span(), message, None);
            return None;
        };
        let before = self.problems.len();
        for (key, value) in table {
            if self.problems.len() >= PROBLEMS {
                return None;
            }
            let alone = DeTable::from_iter([(key.clone(), value.clone())]);
            let alone = Spanned::new(nowhere.clone(), DeValue::Table(alone));
            match T::deserialize(ValueDeserializer::from(alone)) {
                Err(error) if !misses_other_key(&error, &nowhere) => {
                    let problem = self.problem(&error);
                    self.add(problem);
                }
                _ => {}
            }
        }
        for key in keys.iter().filter(|key| !table.contains_key(**key)) {
            // A missing key is not reported if a similar key exists, because the similar key is
            // already reported.
            let similar = suggest::closest(key, table.keys().map(|it| it.get_ref().as_ref()));
            if similar.is_none() {
                self.add_at(&header.span(), format!("`[{name}]` has no key `{key}`"), None);
            }
        }
        if self.problems.len() > before {
            return None;
        }
        match T::deserialize(ValueDeserializer::from(value)) {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                let problem = self.problem(&error);
                self.add(problem);
                None
            }
        }
    }

    /// Reports the tables that were not taken. Returns all problems by line.
    pub(super) fn finish(mut self, known: &[&str]) -> Vec<ManifestProblem> {
        for (key, _) in std::mem::take(&mut self.left) {
            let name = key.get_ref();
            let hint = suggest::hint(name, "the tables are", known.iter().copied());
            self.add_at(&key.span(), format!("unknown field `{name}`"), Some(hint));
        }
        self.problems.sort_by_key(|problem| problem.line);
        self.problems
    }

    /// Adds a problem, unless there are already [`PROBLEMS`] problems.
    pub(super) fn add(&mut self, problem: ManifestProblem) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(problem);
        }
    }

    fn add_at(&mut self, span: &Range<usize>, message: String, hint: Option<String>) {
        let line = Some(self.line(span));
        self.add(ManifestProblem { line, reason: HintedMessage { message, hint } });
    }

    fn problem(&self, error: &Error) -> ManifestProblem {
        let message = expectation::of_message(&error.message().replace('\n', ", "));
        let hint = suggest::of_message(&message);
        let line = error.span().map(|span| self.line(&span));
        ManifestProblem { line, reason: HintedMessage { message, hint } }
    }

    fn line(&self, span: &Range<usize>) -> usize {
        self.text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1
    }
}

/// Returns true if a key of a table was rejected only because it was parsed without another key.
fn misses_other_key(error: &Error, table: &Range<usize>) -> bool {
    error.message().starts_with("missing field `") && error.span().as_ref() == Some(table)
}
