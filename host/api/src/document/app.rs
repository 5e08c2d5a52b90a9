//! Apps and graphs as documents.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::mermaid::xray;
use wattle_run::app::{App, GraphPack};

/// An app.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AppDocument {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub doc: String,
    /// The version its author gave it.
    pub version: String,
    /// Digest of everything it consists of.
    pub digest: String,
    /// Names of its graphs.
    pub graphs: Vec<String>,
    /// Names of its plugins.
    pub plugins: Vec<String>,
    /// Names of its settings; the values stay inside.
    pub settings: Vec<String>,
    /// Where its endpoints stand beside `/apps/<name>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<String>,
    /// Its endpoints.
    pub endpoints: Vec<Endpoint>,
    /// Its page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PageDocument>,
}

/// The page of an app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PageDocument {
    /// Its title.
    pub title: String,
    /// Where it is on this server.
    pub path: String,
    /// Inputs that a newcomer can try.
    pub examples: Vec<String>,
    /// Whether it was built. One that was not answers 404.
    pub built: bool,
}

/// An endpoint that an app answers itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Endpoint {
    /// Upper case.
    pub method: String,
    /// Where it can be called on this server: at its documented path if the app is mounted,
    /// else below `/apps/<name>`.
    pub path: String,
}

/// A graph.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct GraphDocument {
    /// Its app.
    pub app: String,
    /// Its name.
    pub name: String,
    /// Digest of the graph and of every component of its app.
    pub version: String,
    /// What its author wrote.
    pub definition: Value,
    /// The graph as a Mermaid flow chart, with the graphs inside of it.
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

/// Where the endpoints of an app can be called.
pub fn endpoints(app: &App) -> Vec<Endpoint> {
    let Some(web) = app.web.as_ref().and_then(|name| app.plugins.get(name)) else {
        return Vec::new();
    };
    let prefix = prefix(app);
    let endpoint = |route: &wattle_run::ports::sandbox::Route| Endpoint {
        method: route.method.clone(),
        path: format!("{prefix}{}", route.path),
    };
    web.info().routes.iter().map(endpoint).collect()
}

/// The path below which an app answers, without the `/` at its end.
fn prefix(app: &App) -> String {
    match &app.mount {
        Some(mount) => mount.trim_end_matches('/').to_owned(),
        None => format!("/apps/{}", app.name),
    }
}

fn page(app: &App) -> Option<PageDocument> {
    let page = app.page.as_ref()?;
    Some(PageDocument {
        title: page.title.clone(),
        path: format!("{}/", prefix(app)),
        examples: page.examples.clone(),
        built: page.files.is_some(),
    })
}

impl GraphDocument {
    /// The document of a graph of an app.
    pub fn new(app: &App, pack: &GraphPack) -> Self {
        Self {
            app: app.name.to_string(),
            name: pack.graph.name.to_string(),
            version: pack.version.to_string(),
            definition: serde_json::to_value(pack.graph.definition()).unwrap_or_default(),
            mermaid: xray(&pack.graph, &|name| app.graphs.get(name).map(|pack| &pack.graph)),
        }
    }
}
