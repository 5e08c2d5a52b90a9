//! Loaded apps and their graphs.

use std::sync::Arc;

use axum::extract::{Path, State};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, GraphName};
use wattle_graph::suggest;
use wattle_run::app::{App, GraphVersion};
use wattle_run::engine::Engine;

use crate::document::app::{AppDocument, GraphDocument};
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;

/// Lists the loaded apps. `GET /api/v1/ready` lists those that are still being loaded.
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

/// Describes a graph: its definition, and a Mermaid flow chart.
#[utoipa::path(get, path = "/api/v1/apps/{app}/graphs/{graph}", tag = "apps",
    params(
        ("app" = String, Path, description = "name of the app"),
        ("graph" = String, Path, description = "name of the graph")),
    responses(
        (status = 200, body = GraphDocument),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_graph(
    State(engine): State<Engine>,
    Path((app, graph)): Path<(String, String)>,
) -> Result<Json<GraphDocument>, Problem> {
    let app = find(&engine, &app)?;
    let graph_version = find_graph(&app, &graph)?;
    Ok(Json(GraphDocument::new(&app, graph_version)))
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
