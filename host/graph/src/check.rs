//! Turns a definition into a checked [`Graph`], and reports all problems at once.

mod build;
mod context;
mod declaration;
mod edges;
mod node_reads;
mod nodes;
mod parse;
mod plugin_catalog;
mod policies;
mod problem;
mod reachability;
mod schemas;
mod source;
mod subgraphs;
mod with_files;

pub use self::node_reads::{ChannelRef, NodeReads};
pub use self::plugin_catalog::{AnyPlugin, NodeSchema, PluginCatalog};
pub use self::problem::Problem;
pub use crate::limit::DOCUMENT_LIMIT_BYTES;

use crate::check::context::Age;
use crate::check::source::SourceDocument;
use crate::graph::Graph;

/// Checks the graphs of a TOML file.
///
/// # Errors
///
/// All problems, by line.
pub fn check_toml(
    file: &str,
    text: &str,
    plugins: &dyn PluginCatalog,
) -> Result<Vec<Graph>, Vec<Problem>> {
    check(file, SourceDocument::toml(text), plugins, Age::New)
}

/// Checks the graphs of an archived version, in a TOML file. Omits the checks that were added after
/// the first archived version, so that a thread that is pinned to an archived version can continue.
///
/// # Errors
///
/// All problems, by line.
pub fn check_archived_toml(
    file: &str,
    text: &str,
    plugins: &dyn PluginCatalog,
) -> Result<Vec<Graph>, Vec<Problem>> {
    check(file, SourceDocument::toml(text), plugins, Age::Archived)
}

/// Checks the graphs of a JSON file, which has the same structure as a TOML file.
///
/// # Errors
///
/// All problems. Only a syntax error has a line.
pub fn check_json(
    file: &str,
    text: &str,
    plugins: &dyn PluginCatalog,
) -> Result<Vec<Graph>, Vec<Problem>> {
    check(file, SourceDocument::json(text), plugins, Age::New)
}

fn check(
    file: &str,
    source: Result<SourceDocument, (Option<u32>, String)>,
    plugins: &dyn PluginCatalog,
    age: Age,
) -> Result<Vec<Graph>, Vec<Problem>> {
    let source = source.map_err(|(line, message)| {
        vec![Problem { file: file.to_owned(), line, path: String::new(), message, hint: None }]
    })?;
    let mut problems = problem::Problems::new(file, &source);
    let mut document = parse::read(&source, &mut problems);
    with_files::inline_files(&mut document, plugins, &mut problems);
    let graphs = build::graphs(&document, plugins, age, &mut problems);
    problems.finish().map(|()| graphs)
}

#[cfg(test)]
mod tests;
