//! JSON representations of apps and graphs.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::mermaid::xray;
use wattle_run::app::{App, GraphVersion};

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
        }
    }
}
