//! Loaded apps and their graphs.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use utoipa::IntoParams;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, Digest, GraphName};
use wattle_graph::suggest;
use wattle_run::app::{App, GraphVersion};
use wattle_run::engine::Engine;

use crate::document::app::{AppDocument, GraphDocument, GraphVersionDocument};
use crate::native::threads::{invalid_id, invalid_query};
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;

/// Lists the loaded apps. `GET /api/v1/ready` lists the apps that are still being loaded.
#[utoipa::path(get, path = "/api/v1/apps", tag = "apps",
    responses((status = 200, body = Vec<AppDocument>)))]
pub async fn list_apps(State(engine): State<Engine>) -> Json<Vec<AppDocument>> {
    Json(engine.catalog().apps().iter().map(|app| AppDocument::from(&**app)).collect())
}

/// Describes an app: graphs, plugins, endpoints, names of settings.
#[utoipa::path(get, path = "/api/v1/apps/{app}", tag = "apps",
    params(("app" = String, Path, description = "name of the app")),
    responses(
        (status = 200, body = AppDocument),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_app(
    State(engine): State<Engine>,
    Path(name): Path<String>,
) -> Result<Json<AppDocument>, Problem> {
    Ok(Json(AppDocument::from(&*find(&engine, &name)?)))
}

/// Selects the version of a graph.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GraphFilter {
    /// Digest of the version, as in a thread or in the list of versions. By default, it is the
    /// version that new runs use.
    version: Option<String>,
}

/// Describes a graph: its definition, its nodes with the schemas of their functions, and a Mermaid
/// flow chart. If the requested version is archived, the host loads it first. If loading takes
/// longer than a request may wait, the status is 503.
#[utoipa::path(get, path = "/api/v1/apps/{app}/graphs/{graph}", tag = "apps",
    extensions(("x-wattle-access" = json!({ "scope": "read", "share": "other" }))),
    params(
        ("app" = String, Path, description = "name of the app"),
        ("graph" = String, Path, description = "name of the graph"),
        GraphFilter),
    responses(
        (status = 200, body = GraphDocument),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_graph(
    State(engine): State<Engine>,
    Path((app, graph)): Path<(String, String)>,
    filter: Result<Query<GraphFilter>, QueryRejection>,
) -> Result<Json<GraphDocument>, Problem> {
    let Query(GraphFilter { version }) = filter.map_err(invalid_query)?;
    let (app, graph_version) = match version {
        Some(version) => {
            let version = version.parse::<Digest>().map_err(invalid_id)?;
            find_version(&engine, (&app, &graph), version).await?
        }
        None => {
            let app = find(&engine, &app)?;
            let graph_version = find_graph(&app, &graph)?.clone();
            (app, graph_version)
        }
    };
    Ok(Json(GraphDocument::new(&app, &graph_version)))
}

/// Lists the versions of a graph that this host can show: the version that new runs use, older
/// versions in memory, and archived versions. Older versions are kept for the threads that are
/// pinned to them.
#[utoipa::path(get, path = "/api/v1/apps/{app}/graphs/{graph}/versions", tag = "apps",
    extensions(("x-wattle-access" = json!({ "scope": "read", "share": "other" }))),
    params(
        ("app" = String, Path, description = "name of the app"),
        ("graph" = String, Path, description = "name of the graph")),
    responses(
        (status = 200, body = Vec<GraphVersionDocument>),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_graph_versions(
    State(engine): State<Engine>,
    Path((app, graph)): Path<(String, String)>,
) -> Result<Json<Vec<GraphVersionDocument>>, Problem> {
    let known = match (app.parse::<AppName>(), graph.parse::<GraphName>()) {
        (Ok(app), Ok(graph)) => engine.catalog().graph_versions(&app, &graph),
        _ => Vec::new(),
    };
    if known.is_empty() {
        // Each graph of a loaded app has a version, so one of the names is unknown.
        let app = find(&engine, &app)?;
        find_graph(&app, &graph)?;
    }
    Ok(Json(known.into_iter().map(Into::into).collect()))
}

/// Returns a version of a graph, and loads the version if it is archived. The app of an archived
/// version may have been removed.
///
/// # Errors
///
/// `unavailable` while the app or the version is being loaded; `not-found` if this host does not
/// have the version.
async fn find_version(
    engine: &Engine,
    (app, graph): (&str, &str),
    version: Digest,
) -> Result<(Arc<App>, Arc<GraphVersion>), Problem> {
    if let (Ok(app), Ok(graph)) = (app.parse::<AppName>(), graph.parse::<GraphName>())
        && let Some(found) = engine.catalog().load_version(&app, &graph, version).await?
    {
        return Ok(found);
    }
    let loaded = find(engine, app)?;
    find_graph(&loaded, graph)?;
    let hint =
        format!("`GET /api/v1/apps/{app}/graphs/{graph}/versions` lists those of graph `{graph}`");
    Err(Problem::not_found("version", &version.to_hex(), &hint))
}

/// Returns a loaded app.
///
/// # Errors
///
/// `unavailable` while the app is loaded for the first time, and if its migrations were not
/// applied; `not-found` if there is no such app.
pub(crate) fn find(engine: &Engine, name: &str) -> Result<Arc<App>, Problem> {
    let catalog = engine.catalog();
    if let Ok(name) = name.parse::<AppName>() {
        if let Some(app) = catalog.app(&name) {
            return Ok(app);
        }
        catalog.check_loading(&name)?;
        if catalog.is_unavailable(&name) {
            let message = format!(
                "app `{name}` is unavailable, because its migrations were not applied; the \
                 operator sees the reason at `GET /api/v1/problems`"
            );
            return Err(Failure::new(code::UNAVAILABLE, message).retryable().into());
        }
    }
    let apps = catalog.apps();
    let suggestion = suggest::did_you_mean(name, apps.iter().map(|app| app.name.as_str()));
    let suggestion = suggestion.map(|text| format!("{text} ")).unwrap_or_default();
    let hint = format!(
        "{suggestion}see `GET /api/v1/apps` for loaded apps and `GET /api/v1/problems` for those \
         that could not be loaded"
    );
    Err(Problem::not_found("app", name, &hint))
}

/// Returns a graph of an app.
///
/// # Errors
///
/// `not-found` if the app has no graph of this name.
pub(crate) fn find_graph<'a>(app: &'a App, name: &str) -> Result<&'a Arc<GraphVersion>, Problem> {
    app.graphs.get(name).ok_or_else(|| {
        let what = format!("graphs of app `{}`", app.name);
        let hint = suggest::hint(name, &what, app.graphs.keys().map(GraphName::as_str));
        Problem::not_found("graph", name, &hint)
    })
}
