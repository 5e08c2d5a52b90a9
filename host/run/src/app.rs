//! A loaded app: graphs, plugins, grants and settings, ready to run.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::Graph;
use wattle_graph::id::{AppName, Digest, GraphName, PluginName};
use wattle_graph::mapping::{FileMapping, StreamMapping};
use wattle_graph::tool::ToolOutput;

use crate::gate::{Gate, HostedApp};
use crate::grant::Grants;
use crate::hostcall::tools::{ToolCall, ToolInfo};
use crate::page::Page;
use crate::ports::Plugin;
use crate::ports::sandbox::Ended;

/// A graph together with the code it runs.
pub struct GraphPack {
    /// The checked graph.
    pub graph: Graph,
    /// Digest of the graph and of every component of the app: what threads are pinned to.
    pub version: Digest,
}

impl GraphPack {
    /// Pins a graph to the components of its app.
    pub fn new(graph: Graph, plugins: &BTreeMap<PluginName, Arc<dyn Plugin>>) -> Self {
        let mut parts = graph.digest.to_hex();
        for (name, plugin) in plugins {
            parts.push_str(&format!("\n{name} {}", plugin.info().digest));
        }
        Self { graph, version: Digest::of(parts.as_bytes()) }
    }
}

/// A loaded app.
pub struct App {
    /// Its name.
    pub name: AppName,
    /// One paragraph for people.
    pub doc: String,
    /// The version its author gave it.
    pub version: String,
    /// Digest of everything it consists of.
    pub digest: Digest,
    /// Its graphs.
    pub graphs: BTreeMap<GraphName, Arc<GraphPack>>,
    /// Its plugins.
    pub plugins: BTreeMap<PluginName, Arc<dyn Plugin>>,
    /// What each plugin may do; a plugin that is missing here may do nothing.
    pub grants: BTreeMap<PluginName, Arc<Grants>>,
    /// Non-secret settings, an object.
    pub settings: Arc<Value>,
    /// The plugin that answers its HTTP endpoints.
    pub web: Option<PluginName>,
    /// Path under which its endpoints also stand, such as `/`.
    pub mount: Option<String>,
    /// Other forms of the event log that it describes.
    pub projections: Projections,
    /// The page that its users see.
    pub page: Option<Page>,
}

/// Other forms of the event log, by name.
#[derive(Clone, Debug, Default)]
pub struct Projections {
    /// Streams for its clients.
    pub streams: BTreeMap<String, Arc<StreamMapping>>,
    /// Files.
    pub files: BTreeMap<String, Arc<FileMapping>>,
}

impl App {
    /// An app with nothing in it.
    pub fn bare(name: AppName) -> Self {
        Self {
            name,
            doc: String::new(),
            version: String::new(),
            digest: Digest::of(b""),
            graphs: BTreeMap::new(),
            plugins: BTreeMap::new(),
            grants: BTreeMap::new(),
            settings: Arc::new(Value::Object(serde_json::Map::new())),
            web: None,
            mount: None,
            projections: Projections::default(),
            page: None,
        }
    }

    /// What a plugin may do.
    pub fn grants_of(&self, plugin: &PluginName) -> Arc<Grants> {
        self.grants.get(plugin).cloned().unwrap_or_default()
    }

    fn plugin(&self, name: &PluginName) -> Result<&Arc<dyn Plugin>, Failure> {
        self.plugins.get(name).ok_or_else(|| {
            Failure::new(code::NOT_FOUND, format!("plugin `{name}` with tools is not loaded"))
        })
    }
}

#[async_trait]
impl HostedApp for App {
    fn settings(&self) -> &Value {
        &self.settings
    }

    fn grants_of(&self, plugin: &PluginName) -> Arc<Grants> {
        App::grants_of(self, plugin)
    }

    fn tools(&self, plugin: &PluginName) -> Result<&[ToolInfo], Failure> {
        Ok(&self.plugin(plugin)?.info().tools)
    }

    async fn call_tool(
        &self,
        plugin: &PluginName,
        call: ToolCall,
        gate: Arc<Gate>,
    ) -> Result<ToolOutput, Ended> {
        self.plugin(plugin).map_err(Ended::Failure)?.call_tool(call, gate).await
    }
}
