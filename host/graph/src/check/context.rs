//! The context that the checks of a graph share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::check::declaration::Declaration;
use crate::check::parse::ParsedGraph;
use crate::check::plugin_catalog::PluginCatalog;
use crate::check::problem::Problems;
use crate::definition::GraphDef;
use crate::id::{ChannelName, GraphName, NodeName, PluginName};
use crate::suggest;

/// Which checks apply to a document.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// All checks.
    New,
    /// Only the checks that already existed when the oldest versions were archived.
    Archived,
}

/// A graph under construction: the definition with the context of its checks.
pub(super) struct CheckContext<'d> {
    pub(super) path: String,
    pub(super) def: &'d GraphDef,
    pub(super) parsed: &'d ParsedGraph,
    pub(super) age: Age,
    /// Whether a node of the document runs the graph.
    pub(super) is_subgraph: bool,
    /// All graphs of the document.
    pub(super) graphs: &'d BTreeSet<&'d GraphName>,
    /// Channels whose schemas cannot be compiled. Nothing is compared with these schemas.
    pub(super) bad_schemas: BTreeSet<ChannelName>,
    /// The declarations of the nodes, by node.
    pub(super) declarations: BTreeMap<NodeName, Arc<Declaration>>,
}

impl CheckContext<'_> {
    /// Returns true if the definition has a node of that name, valid or not.
    pub(super) fn has_node(&self, name: &str) -> bool {
        self.def.nodes.contains_key(name) || self.parsed.invalid_nodes.contains(name)
    }

    /// Returns true if the definition has a channel of that name, valid or not.
    pub(super) fn has_channel(&self, name: &str) -> bool {
        self.def.channels.contains_key(name) || self.parsed.invalid_channels.contains(name)
    }

    /// Reports a problem if no node has the name.
    pub(super) fn require_node(&self, path: &str, name: &NodeName, problems: &mut Problems<'_>) {
        if self.has_node(name.as_str()) || problems.is_full() {
            return;
        }
        let valid = self.def.nodes.keys().map(NodeName::as_str);
        let known = all_names(valid, &self.parsed.invalid_nodes);
        let hint = suggest::hint(name.as_str(), "nodes of this graph", known.iter().copied());
        problems.add_with_hint(path, format!("there is no node `{name}`"), hint);
    }

    /// Returns the hint for an unknown channel.
    pub(super) fn channel_hint(&self, wanted: &str) -> String {
        let valid = self.def.channels.keys().map(ChannelName::as_str);
        let known = all_names(valid, &self.parsed.invalid_channels);
        suggest::hint(wanted, "channels of this graph", known.iter().copied())
    }
}

/// Returns the names of all nodes or channels that the document has, for hints.
fn all_names<'n>(
    valid: impl Iterator<Item = &'n str>,
    invalid: &'n BTreeSet<String>,
) -> BTreeSet<&'n str> {
    valid.chain(invalid.iter().map(String::as_str)).collect()
}

/// Reports a plugin that does not exist.
pub(super) fn unknown_plugin(
    path: &str,
    plugin: &PluginName,
    plugins: &dyn PluginCatalog,
    problems: &mut Problems<'_>,
) {
    if problems.is_full() {
        return;
    }
    let known = plugins.plugins();
    let known = known.iter().map(PluginName::as_str);
    let mut hint = suggest::hint(plugin.as_str(), "plugins that the app can use", known.clone());
    // A plugin with a similar name is misspelled rather than missing.
    if suggest::closest(plugin.as_str(), known).is_none()
        && let Some(how) = plugins.how_to_add(plugin)
    {
        hint = format!("{hint}; {how}");
    }
    problems.add_with_hint(path, format!("there is no plugin `{plugin}`"), hint);
}
