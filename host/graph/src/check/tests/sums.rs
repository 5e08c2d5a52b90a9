//! Tests of documents that exceed limits only by the sum of many small parts.

use std::cell::Cell;
use std::sync::Arc;

use super::*;
use crate::limit::{DOCUMENT_LIMIT_BYTES, DOCUMENT_PROBLEMS, DOCUMENT_TEXT_BYTES};

/// An app whose nodes all read the channel `c`, and whose text files all have the maximum size.
#[derive(Default)]
struct LargeTexts {
    reads: Cell<usize>,
    /// Number of times that the declaration of a node was read.
    declared: Cell<usize>,
}

impl PluginCatalog for LargeTexts {
    fn node(&self, _: &PluginName, _: &str) -> Option<NodeSchema> {
        self.declared.set(self.declared.get() + 1);
        let input_schema = json!({ "properties": { "c": {} } });
        let config_schema = Some(json!({ "type": "object" }));
        Some(NodeSchema { input_schema, config_schema, ..NodeSchema::default() })
    }

    fn has_plugin(&self, _: &PluginName) -> bool {
        true
    }

    fn has_reducer(&self, _: &PluginName, _: &str) -> bool {
        true
    }

    fn plugins(&self) -> Vec<PluginName> {
        Vec::new()
    }

    fn nodes(&self, _: &PluginName) -> Vec<String> {
        Vec::new()
    }

    fn reducers(&self, _: &PluginName) -> Vec<String> {
        Vec::new()
    }

    fn default_plugin(&self) -> Option<PluginName> {
        PluginName::new("app").ok()
    }

    fn read_text(&self, _: &str) -> Result<String, String> {
        self.reads.set(self.reads.get() + 1);
        Ok("x".repeat(DOCUMENT_LIMIT_BYTES))
    }
}

/// Returns a graph with two nodes, each of which has `keys` keys whose values are texts of files.
fn with_texts(keys: usize) -> String {
    let files: String = (0..keys).map(|key| format!("k{key} = \"p\"\n")).collect();
    let node = |name: &str| format!("[graphs.g.nodes.{name}.with_files]\n{files}");
    format!("[graphs.g]\nentry = [\"a\", \"b\"]\nchannels.c = {{}}\n{}{}", node("a"), node("b"))
}

/// Returns a graph with nodes `n00`, `n01` and so on, which run in one superstep.
fn with_nodes(count: usize) -> String {
    let names: Vec<String> = (0..count).map(|number| format!("n{number:02}")).collect();
    let entry: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let nodes: String = names.iter().map(|name| format!("{name}.node = \"a\"\n")).collect();
    let entry = entry.join(", ");
    format!("[graphs.g]\nentry = [{entry}]\nchannels.c = {{}}\n[graphs.g.nodes]\n{nodes}")
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

#[test]
fn nodes_of_one_export_share_its_declaration() {
    const NODES: usize = 1_000;
    let text = with_nodes(NODES);
    let app = LargeTexts::default();
    let graph = check_toml("graph.toml", &text, &app).unwrap().remove(0);
    assert_eq!((graph.nodes().len(), app.declared.get()), (NODES, 1));
    let mut reads = graph.nodes().values().map(|node| node.reads.as_ref().unwrap());
    let first = reads.next().unwrap();
    assert!(reads.all(|others| Arc::ptr_eq(first, others)));
}

#[test]
fn a_problem_about_many_nodes_names_some_of_them() {
    let output = json!({ "properties": { "c": {} } });
    let app = App::default().with("a", json!({}), output);
    let text = with_nodes(12);
    let found = problems(&text, &app);
    assert!(found.contains("nodes `n00` and `n01` and"), "{found}");
    assert!(found.contains("and `n09` and 2 more run in the same superstep"), "{found}");
}
