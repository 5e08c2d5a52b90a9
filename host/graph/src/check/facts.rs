//! What plugins say about themselves, for checks that a definition alone does not allow.

use serde_json::Value;

use crate::id::PluginName;

/// What a plugin says of one of its nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFacts {
    /// One paragraph for people.
    pub doc: String,
    /// JSON Schema of the input: its `properties` name the channels that the node reads.
    pub input_schema: Value,
    /// JSON Schema of the updates: its `properties` name the channels that the node writes.
    pub output_schema: Value,
    /// JSON Schema of its configuration; `None` if it takes none or says nothing.
    pub config_schema: Option<Value>,
}

/// What is known about the plugins of an app. Called while a graph is checked, a few times for
/// each node; answers must not change in between.
pub trait Facts {
    /// What a plugin says of a node; `None` if it has no such node.
    fn node(&self, plugin: &PluginName, node: &str) -> Option<NodeFacts>;

    /// Whether there is such a plugin.
    fn has_plugin(&self, plugin: &PluginName) -> bool;

    /// Whether a plugin exports a reducer.
    fn has_reducer(&self, plugin: &PluginName, reducer: &str) -> bool;

    /// The plugin of nodes that name none: the app's only one, or the one named like the app.
    fn default_plugin(&self) -> Option<PluginName>;

    /// The text of a file of the app's folder.
    ///
    /// # Errors
    ///
    /// A sentence that says why there is none.
    fn text(&self, path: &str) -> Result<String, String>;
}

/// Knows every plugin and node, and says nothing of schemas: for checks without components.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFacts;

impl Facts for NoFacts {
    fn node(&self, _plugin: &PluginName, _node: &str) -> Option<NodeFacts> {
        Some(NodeFacts::default())
    }

    fn has_plugin(&self, _plugin: &PluginName) -> bool {
        true
    }

    fn has_reducer(&self, _plugin: &PluginName, _reducer: &str) -> bool {
        true
    }

    fn default_plugin(&self) -> Option<PluginName> {
        PluginName::new("app").ok()
    }

    fn text(&self, _path: &str) -> Result<String, String> {
        Ok(String::new())
    }
}
