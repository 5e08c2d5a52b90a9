//! The plugins of an app and what they declare, for checks that need them in addition to the
//! definition.

use serde_json::Value;

use crate::check::node_reads::NodeReads;
use crate::id::PluginName;

/// The schemas and the description that a plugin declares for a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeSchema {
    /// Description of the node.
    pub doc: String,
    /// JSON Schema of the input: its `properties` name the channels that the node reads, unless
    /// `node_reads` does.
    pub input_schema: Value,
    /// JSON Schema of the updates: its `properties` name the channels that the node writes.
    pub output_schema: Value,
    /// JSON Schema of the configuration; `None` for a node that takes no configuration.
    pub config_schema: Option<Value>,
    /// The channels that the node reads, in place of the `properties` of the input schema; `None`
    /// if the plugin declares none.
    pub node_reads: Option<NodeReads>,
    /// Whether the node may pause the run by an interrupt that the node or one of its calls raises.
    pub may_pause: bool,
}

/// The plugins and files of an app. A check calls these functions a few times for each node, and
/// their results must not change during the check.
pub trait PluginCatalog {
    /// Returns the schema that a plugin declares for a node; `None` if the plugin has no such node.
    fn node(&self, plugin: &PluginName, node: &str) -> Option<NodeSchema>;

    /// Returns true if the app has the plugin.
    fn has_plugin(&self, plugin: &PluginName) -> bool;

    /// Returns true if a plugin exports a reducer.
    fn has_reducer(&self, plugin: &PluginName, reducer: &str) -> bool;

    /// Returns the plugins that the app can use, for hints.
    fn plugins(&self) -> Vec<PluginName>;

    /// Returns how a plugin is added that the app does not have, for hints. Default: `None`.
    fn how_to_add(&self, _plugin: &PluginName) -> Option<String> {
        None
    }

    /// Returns the names of a plugin's nodes, for hints.
    fn nodes(&self, plugin: &PluginName) -> Vec<String>;

    /// Returns the names of a plugin's reducers, for hints.
    fn reducers(&self, plugin: &PluginName) -> Vec<String>;

    /// Returns the plugin of nodes whose definition names no plugin: the plugin with the name of
    /// the app, or else the only plugin of the app.
    fn default_plugin(&self) -> Option<PluginName>;

    /// Reads a text file of the app's folder.
    ///
    /// # Errors
    ///
    /// A human-readable message if the file cannot be read.
    fn read_text(&self, path: &str) -> Result<String, String>;
}

/// A catalog that accepts every plugin, node and file, and declares no schemas. It serves checks
/// without components.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyPlugin;

impl PluginCatalog for AnyPlugin {
    fn node(&self, _plugin: &PluginName, _node: &str) -> Option<NodeSchema> {
        let config_schema = Some(Value::Bool(true));
        Some(NodeSchema { config_schema, may_pause: true, ..NodeSchema::default() })
    }

    fn has_plugin(&self, _plugin: &PluginName) -> bool {
        true
    }

    fn has_reducer(&self, _plugin: &PluginName, _reducer: &str) -> bool {
        true
    }

    fn plugins(&self) -> Vec<PluginName> {
        Vec::new()
    }

    fn nodes(&self, _plugin: &PluginName) -> Vec<String> {
        Vec::new()
    }

    fn reducers(&self, _plugin: &PluginName) -> Vec<String> {
        Vec::new()
    }

    fn default_plugin(&self) -> Option<PluginName> {
        PluginName::new("app").ok()
    }

    fn read_text(&self, _path: &str) -> Result<String, String> {
        Ok(String::new())
    }
}
