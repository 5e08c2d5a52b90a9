//! A loaded app: graphs, plugins, grants and settings.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::Graph;
use wattle_graph::id::{AppName, Digest, GraphName, PluginName};
use wattle_graph::mapping::{FileProjection, StreamProjection};
use wattle_graph::tool::ToolOutput;

use crate::gate::tool_timeout::ToolTimeout;
use crate::gate::unwind::Unwind;
use crate::gate::{Gate, HostedApp};
use crate::grant::{GrantRequest, Grants};
use crate::hostcall::tools::{PluginToolCall, ToolInfo};
use crate::meter::plugin_use::{PluginUse, PluginUses};
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
    /// What the plugins have used.
    pub uses: PluginUses,
}

/// Grants by plugin.
pub type PluginGrants = BTreeMap<PluginName, Arc<Grants>>;

/// Requested permissions by plugin.
pub type PluginRequests = BTreeMap<PluginName, Arc<GrantRequest>>;

/// The grants of the plugins of an app. The grants can be replaced while the app is in use. A guest
/// keeps the grants with which its call began.
#[derive(Default)]
pub struct AppGrants {
    granted: ArcSwap<PluginGrants>,
    requests: ArcSwap<PluginRequests>,
}

impl AppGrants {
    /// Creates the grants of plugins that have requested permissions.
    pub fn new(granted: PluginGrants, requests: PluginRequests) -> Self {
        Self { granted: ArcSwap::from_pointee(granted), requests: ArcSwap::from_pointee(requests) }
    }

    /// Returns the grants of all plugins.
    pub fn all(&self) -> Arc<PluginGrants> {
        self.granted.load_full()
    }

    /// Replaces the grants of all plugins.
    pub fn replace(&self, granted: PluginGrants) {
        self.granted.store(Arc::new(granted));
    }

    /// Replaces what the plugins request.
    pub fn replace_requests(&self, requests: PluginRequests) {
        self.requests.store(Arc::new(requests));
    }

    /// Returns what a plugin requests. A plugin without an entry requests nothing.
    pub fn request_of(&self, plugin: &PluginName) -> Arc<GrantRequest> {
        self.requests.load().get(plugin).cloned().unwrap_or_default()
    }
}

impl From<PluginGrants> for AppGrants {
    fn from(granted: PluginGrants) -> Self {
        Self::new(granted, PluginRequests::new())
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
            uses: PluginUses::default(),
        }
    }

    /// Returns the grants of a plugin. A plugin without an entry has no grants.
    pub fn grants_of(&self, plugin: &PluginName) -> Arc<Grants> {
        static NONE: LazyLock<Arc<Grants>> = LazyLock::new(Arc::default);
        let granted = self.grants.granted.load();
        Arc::clone(granted.get(plugin).unwrap_or(&NONE))
    }

    /// Counts a call of a function of a plugin, and its failure.
    pub(crate) async fn count<T>(
        &self,
        plugin: &PluginName,
        call: impl Future<Output = Result<T, GuestError>>,
    ) -> Result<T, GuestError> {
        let uses = self.uses.of(plugin);
        uses.count_call();
        let ended = call.await;
        if ended.as_ref().is_err_and(has_failed) {
            uses.count_failure();
        }
        ended
    }

    fn plugin(&self, name: &PluginName) -> Result<&Arc<dyn Plugin>, Failure> {
        self.plugins.get(name).ok_or_else(|| {
            let message = format!("plugin `{name}` is not loaded, so its tools are unavailable");
            Failure::new(code::NOT_FOUND, message)
        })
    }
}

/// Returns true for the error of a guest that failed, and not of one that was cancelled or waits.
fn has_failed(error: &GuestError) -> bool {
    match error {
        GuestError::Unwound(unwind) => matches!(unwind, Unwind::Limit(_)),
        _ => true,
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

    fn use_of(&self, plugin: &PluginName) -> Arc<PluginUse> {
        self.uses.of(plugin)
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
        timeout: ToolTimeout<'_>,
    ) -> Result<ToolOutput, GuestError> {
        let code = self.plugin(plugin)?;
        self.count(plugin, timeout.limit(code.call_tool(call, gate))).await
    }
}
