//! Turns a definition into a checked [`Graph`], and reports all problems at once.

mod build;
mod facts;
mod nested;
mod nodes;
mod policies;
mod problem;
mod reach;
mod routes;
mod schemas;
mod shape;
mod source;
mod texts;

pub use self::facts::{Facts, NoFacts, NodeFacts};
pub use self::problem::Problem;

use crate::check::source::Source;
use crate::graph::Graph;

/// Maximum length of a document in bytes. Typical documents have a few kilobytes, and some checks
/// compare every node with every edge.
pub const DOCUMENT_LIMIT_BYTES: usize = 256 * 1024;

/// Checks the graphs of a TOML file.
///
/// # Errors
///
/// All problems, by line.
pub fn check_toml(file: &str, text: &str, facts: &dyn Facts) -> Result<Vec<Graph>, Vec<Problem>> {
    check(file, Source::toml(text), facts)
}

/// Checks the graphs of a JSON file, which has the same structure as a TOML file.
///
/// # Errors
///
/// All problems. Only a syntax error has a line.
pub fn check_json(file: &str, text: &str, facts: &dyn Facts) -> Result<Vec<Graph>, Vec<Problem>> {
    check(file, Source::json(text), facts)
}

fn check(
    file: &str,
    source: Result<Source, (Option<u32>, String)>,
    facts: &dyn Facts,
) -> Result<Vec<Graph>, Vec<Problem>> {
    let source = source.map_err(|(line, message)| {
        vec![Problem { file: file.to_owned(), line, path: String::new(), message, hint: None }]
    })?;
    let mut problems = problem::Problems::new(file, &source);
    let mut document = shape::read(&source, &mut problems);
    texts::fill(&mut document, facts, &mut problems);
    let graphs = build::graphs(&document, facts, &mut problems);
    problems.finish().map(|()| graphs)
}

#[cfg(test)]
mod tests;
