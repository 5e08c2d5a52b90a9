//! Inlines text files into the configurations of nodes (`with_files`).

use std::mem;

use serde_json::{Map, Value};

use crate::check::parse::ParsedDocument;
use crate::check::plugin_catalog::PluginCatalog;
use crate::check::problem::Problems;
use crate::definition::NodeDef;
use crate::limit::DOCUMENT_TEXT_BYTES;

/// Replaces `with_files` of all nodes by keys of `with`. The contents of the files become part of
/// the definition, and therefore of the graph's digest. Stops reading files once the texts exceed
/// [`DOCUMENT_TEXT_BYTES`] in total.
pub(super) fn inline_files(
    document: &mut ParsedDocument,
    plugins: &dyn PluginCatalog,
    problems: &mut Problems<'_>,
) {
    let mut left = DOCUMENT_TEXT_BYTES;
    for (graph, parsed) in &mut document.graphs {
        for (name, node) in &mut parsed.def.nodes {
            let path = format!("graphs.{graph}.nodes.{name}");
            if !fill_node(&path, node, plugins, &mut left, problems) {
                return;
            }
        }
    }
}

/// Fills the configuration of a node. Returns false if its texts have more than `left` bytes.
fn fill_node(
    path: &str,
    node: &mut NodeDef,
    plugins: &dyn PluginCatalog,
    left: &mut usize,
    problems: &mut Problems<'_>,
) -> bool {
    let files = mem::take(&mut node.with_files);
    if files.is_empty() {
        return true;
    }
    let with = node.with.get_or_insert_with(|| Value::Object(Map::new()));
    let Some(with) = with.as_object_mut() else {
        problems.add(format!("{path}.with"), "must be a table, since `with_files` adds keys to it");
        return true;
    };
    for (key, file) in files {
        let path = format!("{path}.with_files.{key}");
        if with.contains_key(&key) {
            problems.add(path, format!("`with` also has the key `{key}`: remove one of them"));
            continue;
        }
        match plugins.read_text(&file) {
            Ok(text) if text.len() > *left => {
                problems.add_with_hint(
                    path,
                    format!(
                        "the texts of `with_files` have more than {DOCUMENT_TEXT_BYTES} bytes \
                         together, counted for each key"
                    ),
                    "let nodes read large texts from a database or from blobs",
                );
                return false;
            }
            Ok(text) => {
                *left -= text.len();
                with.insert(key, Value::String(text));
            }
            Err(reason) => problems.add(path, reason),
        }
    }
    true
}
