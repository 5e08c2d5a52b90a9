//! Text files of an app's folder that its graphs name: `with_files` of a node.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path};

use wattle_graph::check::DOCUMENT_LIMIT_BYTES;

/// Longest text in bytes: it becomes a part of the graph's document.
const TEXT_LIMIT_BYTES: u64 = DOCUMENT_LIMIT_BYTES as u64;

/// Reads a text file inside of a folder.
///
/// # Errors
///
/// A sentence that names the file: it is not there, lies elsewhere, is too long, or is no text.
pub(super) fn read(folder: &Path, path: &str) -> Result<String, String> {
    let is_plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let file = folder.join(path);
    let unreadable = |error: std::io::Error| format!("`{path}` cannot be read: {error}");
    if !is_plain || path.is_empty() {
        return Err(format!("`{path}` is not the path of a file inside of the app's folder"));
    }
    let real = file.canonicalize().map_err(unreadable)?;
    if !real.starts_with(folder.canonicalize().map_err(unreadable)?) {
        return Err(format!("`{path}` leads out of the app's folder"));
    }
    let facts = fs::metadata(&real).map_err(unreadable)?;
    if !facts.is_file() || facts.len() > TEXT_LIMIT_BYTES {
        return Err(format!("`{path}` is no file of at most {TEXT_LIMIT_BYTES} bytes"));
    }
    fs::read_to_string(&real).map_err(unreadable)
}

/// The files that a document of graphs names.
pub(super) fn named(graphs: &str) -> BTreeSet<String> {
    let Ok(document) = graphs.parse::<toml::Table>() else { return BTreeSet::new() };
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
    fn only_short_texts_inside_of_the_folder_are_read() {
        let outer = tempfile::tempdir().unwrap();
        let app = outer.path().join("app");
        fs::create_dir_all(app.join("prompts")).unwrap();
        fs::write(outer.path().join("secret.md"), "secret").unwrap();
        fs::write(app.join("prompts/agent.md"), "You book.\n").unwrap();
        fs::write(app.join("long.md"), "x".repeat(DOCUMENT_LIMIT_BYTES + 1)).unwrap();
        assert_eq!(read(&app, "prompts/agent.md").unwrap(), "You book.\n");
        for (path, expected) in [
            ("../secret.md", "not the path"),
            ("/etc/passwd", "not the path"),
            ("", "not the path"),
            ("prompts", "no file of at most"),
            ("long.md", "no file of at most"),
            ("gone.md", "cannot be read"),
        ] {
            let problem = read(&app, path).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(outer.path().join("secret.md"), app.join("l.md")).unwrap();
            assert!(read(&app, "l.md").unwrap_err().contains("leads out"));
        }
    }

    #[test]
    fn the_files_of_all_nodes_are_named() {
        let text = r#"
            [graphs.a.nodes.x]
            with_files = { system = "prompts/x.md", format = "prompts/y.md" }
            [graphs.b.nodes]
            y = { with_files = { system = "prompts/x.md" } }
            z = {}
        "#;
        let named: Vec<_> = named(text).into_iter().collect();
        assert_eq!(named, ["prompts/x.md", "prompts/y.md"]);
    }
}
