//! The declarations of plugins for the nodes of a document.
//!
//! Thousands of nodes can run one export, whose schemas can have megabytes. All of them share one
//! [`Declaration`], and its configuration schema is compiled once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use crate::check::node_reads::ChannelRef;
use crate::check::plugin_catalog::{NodeSchema, PluginCatalog};
use crate::definition::is_any_schema;
use crate::graph::NodeConversation;
use crate::id::{ChannelName, PluginName};
use crate::schema::Schema;

/// The declaration of a node: the schemas of its plugin or of its subgraph.
pub(super) struct Declaration {
    schema: NodeSchema,
    /// The channels that the node reads without a configuration; `None` for the whole state.
    reads: Option<Arc<BTreeSet<ChannelName>>>,
    config: OnceLock<Result<Schema, String>>,
}

impl Declaration {
    pub(super) fn new(schema: NodeSchema) -> Self {
        let reads = match declared_channels(&schema) {
            Some(channels) => Some(channels_of(channels, None)),
            None => channels_of_properties(&schema.input_schema),
        };
        let reads = reads.map(Arc::new);
        Self { schema, reads, config: OnceLock::new() }
    }

    /// Returns the description of the node.
    pub(super) fn doc(&self) -> &str {
        &self.schema.doc
    }

    /// Returns the schemas of the channels that the node reads, by name. Empty if the node declares
    /// its channels apart from the schema: the properties are then not names of channels.
    pub(super) fn inputs(&self) -> &Map<String, Value> {
        match declared_channels(&self.schema) {
            Some(_) => properties(&Value::Null),
            None => properties(&self.schema.input_schema),
        }
    }

    /// Returns the schemas of the channels that the node writes, by name.
    pub(super) fn outputs(&self) -> &Map<String, Value> {
        properties(&self.schema.output_schema)
    }

    /// Returns the channels that the node reads with this configuration; `None` for the whole state.
    /// Nodes whose configurations name no channel share the set.
    pub(super) fn reads(&self, config: Option<&Value>) -> Option<Arc<BTreeSet<ChannelName>>> {
        let is_configured = |channel: &ChannelRef| channel.configured(config).is_some();
        match declared_channels(&self.schema) {
            Some(channels) if channels.iter().any(is_configured) => {
                Some(Arc::new(channels_of(channels, config)))
            }
            _ => self.reads.clone(),
        }
    }

    /// Returns the conversation of the node; see `NodeReads::conversation_for`.
    pub(super) fn conversation(&self, config: Option<&Value>) -> Option<NodeConversation> {
        self.schema.node_reads.as_ref()?.conversation_for(config)
    }

    /// Returns true if the node may pause the run.
    pub(super) fn may_pause(&self) -> bool {
        self.schema.may_pause
    }

    /// Returns true if the node takes a configuration.
    pub(super) fn takes_config(&self) -> bool {
        self.schema.config_schema.is_some()
    }

    /// Returns the compiled schema of the configuration, or the reason why it cannot be compiled.
    /// `None` if the plugin declares no schema, or a schema that accepts every value.
    pub(super) fn config(&self) -> Option<&Result<Schema, String>> {
        let schema = self.schema.config_schema.as_ref().filter(|it| !is_any_schema(it))?;
        let compile = || Schema::compile(schema).map_err(|error| error.to_string());
        Some(self.config.get_or_init(compile))
    }
}

fn declared_channels(schema: &NodeSchema) -> Option<&[ChannelRef]> {
    schema.node_reads.as_ref()?.channels.as_deref()
}

fn channels_of(references: &[ChannelRef], config: Option<&Value>) -> BTreeSet<ChannelName> {
    references.iter().flat_map(|reference| reference.channels(config)).collect()
}

fn channels_of_properties(input_schema: &Value) -> Option<BTreeSet<ChannelName>> {
    let properties = input_schema.get("properties")?.as_object()?;
    Some(properties.keys().filter_map(|name| ChannelName::new(name).ok()).collect())
}

fn properties(schema: &Value) -> &Map<String, Value> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    schema.get("properties").and_then(Value::as_object).unwrap_or(&NONE)
}

/// The declarations of the exports that the nodes of a document run.
pub(super) struct Declarations<'p> {
    pub(super) plugins: &'p dyn PluginCatalog,
    known: BTreeMap<(PluginName, String), Option<Arc<Declaration>>>,
}

impl<'p> Declarations<'p> {
    pub(super) fn new(plugins: &'p dyn PluginCatalog) -> Self {
        Self { plugins, known: BTreeMap::new() }
    }

    /// Returns the declaration of a plugin for a node; `None` if the plugin has no such node.
    pub(super) fn node(&mut self, plugin: &PluginName, export: &str) -> Option<Arc<Declaration>> {
        let plugins = self.plugins;
        let known = self.known.entry((plugin.clone(), export.to_owned()));
        let declare = || plugins.node(plugin, export).map(|it| Arc::new(Declaration::new(it)));
        known.or_insert_with(declare).clone()
    }
}

/// Returns each declaration once, with the nodes that share it.
pub(super) fn distinct<'d, N>(
    all: impl IntoIterator<Item = (N, &'d Arc<Declaration>)>,
) -> Vec<(&'d Declaration, Vec<N>)> {
    let mut found: Vec<(&'d Declaration, Vec<N>)> = Vec::new();
    let mut places: BTreeMap<*const Declaration, usize> = BTreeMap::new();
    for (node, declaration) in all {
        let declared: &'d Declaration = declaration;
        let place = *places.entry(Arc::as_ptr(declaration)).or_insert_with(|| {
            found.push((declared, Vec::new()));
            found.len() - 1
        });
        found[place].1.push(node);
    }
    found
}
