//! JSON representations of apps and graphs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::graph::{Node, NodeKind};
use wattle_graph::mermaid::xray;
use wattle_run::app::{App, GraphVersion};
use wattle_run::catalog::KnownVersion;

/// An app.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AppDocument {
    /// Name of the app.
    pub name: String,
    /// Description of the app.
    pub doc: String,
    /// Version of the app, from its manifest.
    pub version: String,
    /// Digest over all parts of the app.
    pub digest: String,
    /// Names of the app's graphs.
    pub graphs: Vec<String>,
    /// Names of the app's plugins.
    pub plugins: Vec<String>,
    /// Names of the app's settings, without their values.
    pub settings: Vec<String>,
    /// Path at which the endpoints are mounted, in addition to `/apps/<name>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<String>,
    /// Endpoints of the app.
    pub endpoints: Vec<Endpoint>,
    /// Page of the app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PageDocument>,
}

/// The page of an app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PageDocument {
    /// Title of the page.
    pub title: String,
    /// Path of the page on this server.
    pub path: String,
    /// Example inputs.
    pub examples: Vec<String>,
    /// True if the page was built. A page that was not built responds with 404.
    pub built: bool,
}

/// An endpoint of an app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Endpoint {
    /// HTTP method in upper case.
    pub method: String,
    /// Path of the endpoint on this server: below `mount` if the app is mounted, else below
    /// `/apps/<name>`.
    pub path: String,
}

/// A graph.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct GraphDocument {
    /// App of the graph.
    pub app: String,
    /// Name of the graph.
    pub name: String,
    /// Digest of the graph and of all components of its app.
    pub version: String,
    /// Definition of the graph, as its author wrote it.
    pub definition: Value,
    /// The graph with its subgraphs as a Mermaid flow chart.
    pub mermaid: String,
    /// Nodes by name, with the descriptions and schemas that their plugins give.
    #[serde(default)]
    #[schema(required = true)]
    pub nodes: BTreeMap<String, GraphNodeDocument>,
}

/// A node of a graph: a function of a plugin, or a subgraph.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct GraphNodeDocument {
    /// Plugin that exports the function; absent for a subgraph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// Name of the function in the plugin; absent for a subgraph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Digest of the component of the plugin in this version of the app; absent for a subgraph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Graph of the same app that runs as the node; absent for a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subgraph: Option<String>,
    /// Version of the subgraph in this version of the app; absent for a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subgraph_version: Option<String>,
    /// Description of the node, from the graph or else from the plugin.
    pub doc: String,
    /// JSON Schema of the input of the function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// JSON Schema of the output of the function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

/// A version of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GraphVersionDocument {
    /// Digest of the graph and of all components of its app, to which threads are pinned.
    pub version: String,
    /// True if the version is in memory. Any other version is loaded when it is requested.
    pub is_loaded: bool,
    /// True if new runs use the version.
    pub is_current: bool,
}

impl From<&App> for AppDocument {
    fn from(app: &App) -> Self {
        Self {
            name: app.name.to_string(),
            doc: app.doc.clone(),
            version: app.version.clone(),
            digest: app.digest.to_string(),
            graphs: app.graphs.keys().map(ToString::to_string).collect(),
            plugins: app.plugins.keys().map(ToString::to_string).collect(),
            settings: setting_names(&app.settings),
            mount: app.mount.clone(),
            endpoints: endpoints(app),
            page: page(app),
        }
    }
}

fn setting_names(settings: &Value) -> Vec<String> {
    settings.as_object().map(|map| map.keys().cloned().collect()).unwrap_or_default()
}

/// Returns the endpoints of an app with their paths on this server.
pub fn endpoints(app: &App) -> Vec<Endpoint> {
    let Some(web) = app.web.as_ref().and_then(|name| app.plugins.get(name)) else {
        return Vec::new();
    };
    let mount_path = mount_path(app);
    let endpoint = |route: &wattle_run::ports::sandbox::WebRoute| Endpoint {
        method: route.method.clone(),
        path: format!("{mount_path}{}", route.path),
    };
    web.info().routes.iter().map(endpoint).collect()
}

/// Returns the path at which an app is mounted, without a trailing `/`.
fn mount_path(app: &App) -> String {
    match &app.mount {
        Some(mount) => mount.trim_end_matches('/').to_owned(),
        None => format!("/apps/{}", app.name),
    }
}

fn page(app: &App) -> Option<PageDocument> {
    let page = app.page.as_ref()?;
    Some(PageDocument {
        title: page.title.clone(),
        path: format!("{}/", mount_path(app)),
        examples: page.examples.clone(),
        built: page.files.is_some(),
    })
}

impl GraphDocument {
    /// Describes a graph of an app.
    pub fn new(app: &App, graph_version: &GraphVersion) -> Self {
        Self {
            app: app.name.to_string(),
            name: graph_version.graph.name.to_string(),
            version: graph_version.version.to_string(),
            definition: serde_json::to_value(graph_version.graph.definition()).unwrap_or_default(),
            mermaid: xray(&graph_version.graph, &|name| {
                app.graphs.get(name).map(|graph_version| &graph_version.graph)
            }),
            nodes: graph_version
                .graph
                .nodes()
                .values()
                .map(|node| (node.name.to_string(), GraphNodeDocument::new(app, node)))
                .collect(),
        }
    }
}

impl GraphNodeDocument {
    /// Describes a node of a graph of an app.
    fn new(app: &App, node: &Node) -> Self {
        let doc = node.doc.clone();
        match &node.body {
            NodeKind::Graph { graph, .. } => Self {
                plugin: None,
                function: None,
                digest: None,
                subgraph: Some(graph.to_string()),
                subgraph_version: app.graphs.get(graph).map(|inner| inner.version.to_string()),
                doc,
                input_schema: None,
                output_schema: None,
            },
            NodeKind::Plugin { plugin, export } => {
                let info = app.plugins.get(plugin).map(|plugin| plugin.info());
                let exported =
                    info.and_then(|info| info.nodes.iter().find(|it| it.name == *export));
                Self {
                    plugin: Some(plugin.to_string()),
                    function: Some(export.clone()),
                    digest: info.map(|info| info.digest.to_string()),
                    subgraph: None,
                    subgraph_version: None,
                    doc,
                    input_schema: exported.map(|node| node.input_schema.clone()),
                    output_schema: exported.map(|node| node.output_schema.clone()),
                }
            }
        }
    }
}

impl From<KnownVersion> for GraphVersionDocument {
    fn from(known: KnownVersion) -> Self {
        let KnownVersion { version, is_loaded, is_current } = known;
        Self { version: version.to_string(), is_loaded, is_current }
    }
}
