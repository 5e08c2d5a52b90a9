//! Documents whose parts are small and add up.

use std::cell::Cell;

use super::*;
use crate::check::DOCUMENT_LIMIT_BYTES;
use crate::limit::{DOCUMENT_PROBLEMS, DOCUMENT_TEXT_BYTES};

/// An app with the node `a`, each of whose text files has the largest size.
#[derive(Default)]
struct LargeTexts {
    reads: Cell<usize>,
}

impl PluginSchemas for LargeTexts {
    fn node(&self, _: &PluginName, _: &str) -> Option<NodeSchema> {
        Some(NodeSchema::default())
    }

    fn has_plugin(&self, _: &PluginName) -> bool {
        true
    }

    fn has_reducer(&self, _: &PluginName, _: &str) -> bool {
        true
    }

    fn default_plugin(&self) -> Option<PluginName> {
        PluginName::new("app").ok()
    }

    fn read_text(&self, _: &str) -> Result<String, String> {
        self.reads.set(self.reads.get() + 1);
        Ok("x".repeat(DOCUMENT_LIMIT_BYTES))
    }
}

/// Returns a graph with two nodes, each of which reads a text for each of its keys.
fn with_texts(keys: usize) -> String {
    let files: String = (0..keys).map(|key| format!("k{key} = \"p\"\n")).collect();
    let node = |name: &str| format!("[graphs.g.nodes.{name}.with_files]\n{files}");
    format!("[graphs.g]\nentry = [\"a\", \"b\"]\n{}{}", node("a"), node("b"))
}

#[test]
fn the_texts_of_all_nodes_are_limited_together() {
    let allowed = DOCUMENT_TEXT_BYTES / DOCUMENT_LIMIT_BYTES;
    let texts = LargeTexts::default();
    assert_eq!(problems(&with_texts(allowed / 2), &texts), "no problems");
    assert_eq!(texts.reads.take(), allowed);
    let found = problems(&with_texts(5_000), &texts);
    assert!(found.contains("more than 4194304 bytes together"), "{found}");
    assert!(found.contains("nodes.a.with_files.k"), "{found}");
    assert_eq!(texts.reads.get(), allowed + 1, "no text is read after the limit");
}

#[test]
fn the_reported_problems_are_limited() {
    let names: Vec<String> = (0..DOCUMENT_PROBLEMS + 200).map(|n| format!("\"x{n}\"")).collect();
    let text =
        format!("[graphs.g]\nentry = \"a\"\nnodes.a = {{ goto = [{}] }}\n", names.join(", "));
    let found = check_toml("graph.toml", &text, &AnyPlugin).unwrap_err();
    assert_eq!(found.len(), DOCUMENT_PROBLEMS + 1);
    let last = found.last().unwrap().to_string();
    assert!(last.contains("more than 1000 problems"), "{last}");
}
