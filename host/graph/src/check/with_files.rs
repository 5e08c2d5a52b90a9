//! Inlines text files into the configurations of nodes (`with_files`).

use std::mem;

use serde_json::{Map, Value};

use crate::check::parse::ParsedDocument;
use crate::check::plugin_schemas::PluginSchemas;
use crate::check::problem::Problems;
use crate::definition::NodeDef;

/// Replaces `with_files` of all nodes by keys of `with`. The contents of the files become part of
/// the definition, and therefore of the graph's digest.
pub(super) fn inline_files(
    document: &mut ParsedDocument,
    plugins: &dyn PluginSchemas,
    problems: &mut Problems<'_>,
) {
    for (graph, parsed) in &mut document.graphs {
        for (name, node) in &mut parsed.def.nodes {
            fill_node(&format!("graphs.{graph}.nodes.{name}"), node, plugins, problems);
        }
    }
}

fn fill_node(
    path: &str,
    node: &mut NodeDef,
    plugins: &dyn PluginSchemas,
    problems: &mut Problems<'_>,
) {
    let files = mem::take(&mut node.with_files);
    if files.is_empty() {
        return;
    }
    let with = node.with.get_or_insert_with(|| Value::Object(Map::new()));
    let Some(with) = with.as_object_mut() else {
        problems.add(format!("{path}.with"), "must be a table, since `with_files` adds keys to it");
        return;
    };
    for (key, file) in files {
        let path = format!("{path}.with_files.{key}");
        if with.contains_key(&key) {
            problems.add(path, format!("`with` also has the key `{key}`: remove one of them"));
            continue;
        }
        match plugins.read_text(&file) {
            Ok(text) => drop(with.insert(key, Value::String(text))),
            Err(reason) => problems.add(path, reason),
        }
    }
}
