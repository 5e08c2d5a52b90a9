//! A loaded app: graphs, plugins, grants and settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::Graph;
use wattle_graph::id::{AppName, Digest, GraphName, PluginName};
use wattle_graph::mapping::{FileProjection, StreamProjection};
use wattle_graph::tool::ToolOutput;

use crate::gate::{Gate, HostedApp};
use crate::grant::Grants;
use crate::hostcall::tools::{PluginToolCall, ToolInfo};
use crate::page::Page;
use crate::ports::Plugin;
use crate::ports::sandbox::GuestError;

/// A checked graph with its version.
pub struct GraphVersion {
    /// The checked graph.
    pub graph: Graph,
    /// Digest of the graph and of every component of the app. Threads are pinned to this version.
    pub version: Digest,
}

impl GraphVersion {
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
    /// Name of the app.
    pub name: AppName,
    /// Description, one paragraph.
    pub doc: String,
    /// Version that the author gave the app.
    pub version: String,
    /// Digest of all files of the app.
    pub digest: Digest,
    /// Graphs by name.
    pub graphs: BTreeMap<GraphName, Arc<GraphVersion>>,
    /// Plugins by name.
    pub plugins: BTreeMap<PluginName, Arc<dyn Plugin>>,
    /// Grants of the plugins.
    pub grants: AppGrants,
    /// Non-secret settings, an object.
    pub settings: Arc<Value>,
    /// The plugin with the web handler of the app, if there is one.
    pub web: Option<PluginName>,
    /// Path under which the endpoints of the app are also reachable, such as `/`.
    pub mount: Option<String>,
    /// Projections of the event log that the app defines.
    pub projections: Projections,
    /// The page of the app, if there is one.
    pub page: Option<Page>,
}

/// Grants by plugin.
pub type PluginGrants = BTreeMap<PluginName, Arc<Grants>>;

/// The grants of the plugins of an app. The grants can be replaced while the app is in use. A guest
/// keeps the grants with which its call began.
#[derive(Default)]
pub struct AppGrants(ArcSwap<PluginGrants>);

impl AppGrants {
    /// Returns the grants of all plugins.
    pub fn all(&self) -> Arc<PluginGrants> {
        self.0.load_full()
    }

    /// Replaces the grants of all plugins.
    pub fn replace(&self, grants: PluginGrants) {
        self.0.store(Arc::new(grants));
    }
}

impl From<PluginGrants> for AppGrants {
    fn from(grants: PluginGrants) -> Self {
        Self(ArcSwap::from_pointee(grants))
    }
}

/// Projections of the event log, by name.
#[derive(Clone, Debug, Default)]
pub struct Projections {
    /// Streams for clients.
    pub streams: BTreeMap<String, Arc<StreamProjection>>,
    /// Files that the host writes.
    pub files: BTreeMap<String, Arc<FileProjection>>,
}

impl App {
    /// Creates an app without content.
    pub fn empty(name: AppName) -> Self {
        Self {
            name,
            doc: String::new(),
            version: String::new(),
            digest: Digest::of(b""),
            graphs: BTreeMap::new(),
            plugins: BTreeMap::new(),
            grants: AppGrants::default(),
            settings: Arc::new(Value::Object(serde_json::Map::new())),
            web: None,
            mount: None,
            projections: Projections::default(),
            page: None,
        }
    }

    /// Returns the grants of a plugin. A plugin without an entry has no grants.
    pub fn grants_of(&self, plugin: &PluginName) -> Arc<Grants> {
        self.grants.0.load().get(plugin).cloned().unwrap_or_default()
    }

    fn plugin(&self, name: &PluginName) -> Result<&Arc<dyn Plugin>, Failure> {
        self.plugins.get(name).ok_or_else(|| {
            let message = format!("plugin `{name}` is not loaded, so its tools are unavailable");
            Failure::new(code::NOT_FOUND, message)
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

    fn providers_of(&self, tool: &str) -> Vec<PluginName> {
        let provides = |plugin: &dyn Plugin| plugin.info().tools.iter().any(|it| it.name == tool);
        let providers = self.plugins.iter().filter(|(_, plugin)| provides(plugin.as_ref()));
        providers.map(|(name, _)| name.clone()).collect()
    }

    async fn call_tool(
        &self,
        plugin: &PluginName,
        call: PluginToolCall,
        gate: Arc<Gate>,
    ) -> Result<ToolOutput, GuestError> {
        self.plugin(plugin).map_err(GuestError::Failure)?.call_tool(call, gate).await
    }
}
