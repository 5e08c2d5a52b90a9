//! Where the values of a configuration were set.

use std::collections::BTreeSet;

use figment::providers::Env;
use toml::de::DeTable;
use wattle_graph::toml_lines::TomlLines;

use crate::config::{ConfigProblem, LocatedProblem};

/// Prefix of the environment variables that override the file.
pub(super) const PREFIX: &str = "WATTLE_";

/// Separates the parts of a key in the name of an environment variable.
pub(super) const SEPARATOR: &str = "__";

/// The lines and the environment variables of the values of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    file: String,
    lines: TomlLines,
    /// The keys that environment variables set, such as `server.listen`.
    variables: BTreeSet<String>,
}

impl Origins {
    /// Reads the lines of a file. A file with a syntax error has none.
    pub(super) fn new(file: String, text: &str) -> Self {
        let document = DeTable::parse(text);
        let lines = document.map(|document| TomlLines::new(text, document.get_ref()));
        Self { file, lines: lines.unwrap_or_default(), variables: BTreeSet::new() }
    }

    /// Adds the variables that override the file.
    pub(super) fn with_variables(mut self, variables: &Env) -> Self {
        self.variables = variables.iter().map(|(key, _)| key.as_str().to_owned()).collect();
        self
    }

    /// Adds the line or the variable to each problem, and sorts the problems by line.
    pub(super) fn locate(&self, mut problems: Vec<ConfigProblem>) -> Vec<LocatedProblem> {
        problems.sort_by_key(|problem| self.lines.line(&path(problem)));
        let locate = |problem| LocatedProblem { origin: self.of(&problem), problem };
        problems.into_iter().map(locate).collect()
    }

    fn of(&self, problem: &ConfigProblem) -> Option<String> {
        if let Some(key) = self.variables.iter().find(|key| problem.is_within(key)) {
            return Some(format!("{PREFIX}{}", key.to_uppercase().replace('.', SEPARATOR)));
        }
        let line = self.lines.line(&path(problem))?;
        Some(format!("{}:{line}", self.file))
    }
}

/// Returns the path of a problem in the document: its key without the quotes of names.
fn path(problem: &ConfigProblem) -> String {
    problem.key.replace('"', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_have_the_line_or_the_variable_that_sets_the_value() {
        let text = "[server]\nlisten = \"x\"\nhosts = 1\n[grants.\"shop/desk\"]\nllm = 1\n";
        let origins = Origins {
            variables: ["server.listen".to_owned()].into(),
            ..Origins::new("wattle.toml".to_owned(), text)
        };
        let problem =
            |key: &str| ConfigProblem { key: key.to_owned(), message: "no".to_owned(), hint: None };
        let keys = ["grants.\"shop/desk\".llm[0]", "server.hosts", "server.listen", "clock.fixed"];
        let located = origins.locate(keys.map(problem).into());
        let texts: Vec<String> = located.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "`clock.fixed`: no",
                "WATTLE_SERVER__LISTEN: `server.listen`: no",
                "wattle.toml:3: `server.hosts`: no",
                "wattle.toml:5: `grants.\"shop/desk\".llm[0]`: no",
            ]
        );
    }
}
