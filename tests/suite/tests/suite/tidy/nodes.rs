//! Tests of the lengths of nodes. The design of `asset` limits a node to 50 lines, and the functions
//! of all nodes meet this limit.

use std::fs;

use super::{product, sources};

/// The maximum number of lines of a node: of its function, and in `asset` of its file.
const NODE_LINES: usize = 50;

/// The folder with one node per file.
const NODES_OF_ASSET: &str = "plugins/apps/asset/src/node";

#[test]
fn files_of_nodes_of_asset_are_short() {
    for file in sources(NODES_OF_ASSET) {
        let text = fs::read_to_string(&file).unwrap();
        let code = product(&text).trim_end();
        let (nodes, lines) = (functions(code).len(), code.lines().count());
        assert_eq!(nodes, 1, "nodes in {}", file.display());
        assert!(lines <= NODE_LINES, "{} has {lines} lines without its tests", file.display());
    }
}

#[test]
fn functions_of_nodes_are_short() {
    for file in ["plugins/apps", "plugins/std"].into_iter().flat_map(sources) {
        let text = fs::read_to_string(&file).unwrap();
        for (name, lines) in functions(&text) {
            assert!(lines <= NODE_LINES, "{}: `{name}` has {lines} lines", file.display());
        }
    }
}

#[test]
fn functions_with_the_attribute_of_nodes_are_found() {
    let text = "#[node]\npub(crate) fn one(input: Input) -> Update {\n    other()\n}\n\n\
                fn other() {\n}\n\n#[node(config = Config)]\n#[expect(clippy::x)]\nfn two(\n    \
                input: Input,\n) {\n}\n";
    assert_eq!(functions(text), [("one", 3), ("two", 4)]);
}

/// Returns the functions at the top level of a file that are nodes, each with the number of its
/// lines.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if !line.starts_with("#[node]") && !line.starts_with("#[node(") {
            continue;
        }
        let name = lines.by_ref().find_map(|line| line.split_once("fn "));
        let name = name.and_then(|(_, rest)| rest.split(['(', '<']).next()).unwrap_or_default();
        let body = lines.by_ref().take_while(|line| *line != "}").count();
        // The first and the last line.
        found.push((name, body + 2));
    }
    found
}
