//! Text files in an app's folder that its graphs reference in `with_files` of a node.

use std::collections::BTreeSet;
use std::path::Path;

use wattle_graph::toml_depth;

use crate::load::file::{self, DOCUMENT_BYTES};

/// Reads a text file in a folder.
///
/// # Errors
///
/// A message that names the file, if the file does not exist, is outside of the folder, is too
/// large or is not UTF-8.
pub(super) fn read(folder: &Path, path: &str) -> Result<String, String> {
    file::read_text(folder, Path::new(path), DOCUMENT_BYTES).map_err(|error| error.to_string())
}

/// Returns the text files that a graph file references.
pub(super) fn referenced_files(graphs: &str) -> BTreeSet<String> {
    let checked = toml_depth::check(graphs).ok();
    let document = checked.and_then(|()| graphs.parse::<toml::Table>().ok());
    let Some(document) = document else { return BTreeSet::new() };
    let graphs = document.get("graphs").and_then(toml::Value::as_table);
    let graphs = graphs.into_iter().flat_map(toml::Table::values);
    let nodes = graphs.filter_map(|graph| graph.get("nodes")?.as_table());
    let nodes = nodes.flat_map(toml::Table::values);
    let files = nodes.filter_map(|node| node.get("with_files")?.as_table());
    let files = files.flat_map(toml::Table::values);
    files.filter_map(|file| file.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_all_nodes_are_found() {
        let text = r#"
            [graphs.a.nodes.x]
            with_files = { system = "prompts/x.md", format = "prompts/y.md" }
            [graphs.b.nodes]
            y = { with_files = { system = "prompts/x.md" } }
            z = {}
        "#;
        let referenced_files: Vec<_> = referenced_files(text).into_iter().collect();
        assert_eq!(referenced_files, ["prompts/x.md", "prompts/y.md"]);
    }

    #[test]
    fn a_document_that_is_nested_too_deeply_has_no_files() {
        let head = "[graphs.a.nodes.x]\nwith_files = { system = 'x.md' }\n";
        let deep = format!("{head}with = {}1{}", "{ a.a = ".repeat(60), "}".repeat(60));
        assert!(!referenced_files(head).is_empty());
        assert!(referenced_files(&deep).is_empty());
    }
}
