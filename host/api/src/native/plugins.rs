//! Plugins of loaded apps, and standalone plugins.

use axum::extract::{Path, State};
use wattle_run::app::App;
use wattle_run::engine::Engine;
use wattle_run::ports::Plugin;

use crate::document::plugin::PluginDocument;
use crate::native::tenant_scope::OperatorOnly;
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;
use crate::standalone::{Permissions, StandalonePlugins};

/// Lists the plugins of all apps: what each exports, imports, requests, is granted and has used, and
/// for each request that is not granted the line to add to the configuration. A plugin that several
/// apps use is listed once for each app, because its grants can differ. A plugin that no app uses
/// has no app, and the grants of its own table. Only for the operator: grants contain names of
/// secrets, databases and hosts.
#[utoipa::path(get, path = "/api/v1/plugins",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "apps",
    responses(
        (status = 200, body = Vec<PluginDocument>),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_plugins(
    State(engine): State<Engine>,
    State(standalone): State<StandalonePlugins>,
    _: OperatorOnly,
) -> Json<Vec<PluginDocument>> {
    Json(plugin_documents(&engine, &standalone))
}

/// Describes a plugin: exports, imports, requests, grants, use, digest. Only for the operator.
#[utoipa::path(get, path = "/api/v1/plugins/{plugin}",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "apps",
    params(("plugin" = String, Path, description = "name of the plugin")),
    responses(
        (status = 200, body = Vec<PluginDocument>, description = "one for each app that uses it"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_plugin(
    State(engine): State<Engine>,
    State(standalone): State<StandalonePlugins>,
    _: OperatorOnly,
    Path(name): Path<String>,
) -> Result<Json<Vec<PluginDocument>>, Problem> {
    let found: Vec<_> = plugin_documents(&engine, &standalone)
        .into_iter()
        .filter(|plugin| plugin.name == name)
        .collect();
    if found.is_empty() {
        let catalog = engine.catalog();
        if let Ok(plugin) = name.parse() {
            catalog.check_loading_plugin(&plugin)?;
        }
        // The plugin may belong to an app that is being loaded.
        catalog.check_all_loaded()?;
        return Err(Problem::not_found("plugin", &name, "see `GET /api/v1/plugins`"));
    }
    Ok(Json(found))
}

fn plugin_documents(engine: &Engine, standalone: &StandalonePlugins) -> Vec<PluginDocument> {
    let apps = engine.catalog().apps();
    let mut plugins: Vec<PluginDocument> = apps.iter().flat_map(|app| app_plugins(app)).collect();
    for (name, plugin) in standalone.all() {
        if plugins.iter().all(|known| known.name != name.as_str()) {
            let info = plugin.info();
            let Permissions { grants, request } = standalone.permissions_of(info);
            let document = PluginDocument::new(None, info, &grants, &request);
            plugins.push(document.with_use(&standalone.use_of(&name)));
        }
    }
    plugins
}

fn app_plugins(app: &App) -> Vec<PluginDocument> {
    let document = |plugin: &dyn Plugin| {
        let info = plugin.info();
        let (grants, request) = (app.grants_of(&info.name), app.grants.request_of(&info.name));
        PluginDocument::new(Some(app.name.as_str()), info, &grants, &request)
            .with_use(&app.uses.of(&info.name))
    };
    app.plugins.values().map(|plugin| document(plugin.as_ref())).collect()
}
