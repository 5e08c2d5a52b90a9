//! Installs standalone plugins over the API, if the operator allows it.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use tokio::sync::watch;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::PluginName;
use wattle_run::engine::Engine;
use wattle_run::free_disk::DiskUse;
use wattle_run::ports::PluginInstaller;

use crate::body;
use crate::config::ApiConfig;
use crate::detached;
use crate::document::plugin_install::CheckedPluginDocument;
use crate::guard::limits::INSTALL_BYTES;
use crate::guard::request_key;
use crate::native::tenant_scope::{Operator, OperatorOnly};
use crate::native::threads::invalid_id;
use crate::problem::{Problem, ProblemDocument, api_code};
use crate::response::Json;

/// Media type of a component.
const WASM: &str = "application/wasm";

/// The installer, for a request that may use it: on a host that installs plugins, a request of the
/// operator with a key or from the same process. Over HTTP, a host without keys installs nothing,
/// because a page of an app on the same address can send any request without a key, and a plugin
/// gets the grants of its name.
pub(crate) struct Installer(Arc<dyn PluginInstaller>);

impl<S> FromRequestParts<S> for Installer
where
    Arc<ApiConfig>: FromRef<S>,
    Option<Arc<dyn PluginInstaller>>: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        OperatorOnly::from_request_parts(parts, state).await?;
        let denied = |text: &str| Problem::new(code::DENIED, text).with_instance(parts.uri.path());
        let Some(installer) = Option::<Arc<dyn PluginInstaller>>::from_ref(state) else {
            return Err(denied(
                "this host installs no plugins over the API; add `install = true` under `[server]` \
                 in wattle.toml and restart it",
            ));
        };
        let config = Arc::<ApiConfig>::from_ref(state);
        let key = request_key::find(&config, &parts.headers, &parts.extensions);
        if key.is_none() && parts.extensions.get::<Operator>().is_none() {
            return Err(denied(
                "installing plugins needs an API key, and this host has none; add `keys_env` under \
                 `[auth]` in wattle.toml",
            ));
        }
        Ok(Self(installer))
    }
}

/// Checks a component without installing it: returns what the plugin exports, imports and requests,
/// what it would be granted, and for each request that is not granted the line to add. Needs
/// `server.install` and an operator key.
#[utoipa::path(post, path = "/api/v1/plugins/{plugin}/check",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "apps",
    params(("plugin" = String, Path, description = "name of the plugin")),
    request_body(content = String, content_type = "application/wasm"),
    responses(
        (status = 200, body = CheckedPluginDocument),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub(crate) async fn check_plugin(
    Installer(installer): Installer,
    Path(name): Path<String>,
    request: Request,
) -> Result<Json<CheckedPluginDocument>, Problem> {
    let name = name.parse::<PluginName>().map_err(invalid_id)?;
    let component = read_component(request).await?;
    let checked = installer.check(&name, component).await?;
    Ok(Json(checked.into()))
}

/// Installs a component as a standalone plugin, or replaces the one with this name, and waits until
/// it is loaded. A component that cannot be loaded changes nothing. The plugin gets what its table
/// `[grants.<plugin>]` grants. Needs `server.install` and an operator key.
#[utoipa::path(put, path = "/api/v1/plugins/{plugin}",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "apps",
    params(("plugin" = String, Path, description = "name of the plugin")),
    request_body(content = String, content_type = "application/wasm"),
    responses(
        (status = 200, body = CheckedPluginDocument),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub(crate) async fn install_plugin(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    Installer(installer): Installer,
    Path(name): Path<String>,
    request: Request,
) -> Result<Json<CheckedPluginDocument>, Problem> {
    let name = name.parse::<PluginName>().map_err(invalid_id)?;
    engine.check_free_disk(DiskUse::New).await?;
    let component = read_component(request).await?;
    // Free space can fall below the floor while a large body arrives.
    engine.check_free_disk(DiskUse::New).await?;
    // The plugin is also loaded if the client disconnects after its file was written.
    let work = async move { installer.install(&name, component).await };
    let installed = detached::run(stopping, work).await.ok_or_else(aborted)?;
    Ok(Json(installed?.into()))
}

/// Removes a standalone plugin that no app uses. Needs `server.install` and an operator key.
#[utoipa::path(delete, path = "/api/v1/plugins/{plugin}",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "apps",
    params(("plugin" = String, Path, description = "name of the plugin")),
    responses(
        (status = 204),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub(crate) async fn remove_plugin(
    State(stopping): State<watch::Receiver<bool>>,
    Installer(installer): Installer,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let name = name.parse::<PluginName>().map_err(invalid_id)?;
    let work = async move { installer.remove(&name).await };
    detached::run(stopping, work).await.ok_or_else(aborted)??;
    Ok(StatusCode::NO_CONTENT)
}

fn aborted() -> Failure {
    Failure::internal("the work on the plugin was aborted")
}

async fn read_component(request: Request) -> Result<bytes::Bytes, Problem> {
    check_media_type(request.headers())?;
    let hint = "the host loads no larger component";
    Ok(body::read_up_to(request, INSTALL_BYTES, hint).await?.into_bytes())
}

/// Checks that a body is a component as it is. The host decompresses no body.
fn check_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    let value = |name: header::HeaderName| {
        headers.get(name).map(|value| value.to_str().unwrap_or_default())
    };
    let media_type = value(header::CONTENT_TYPE).and_then(|it| it.split(';').next());
    let is_plain = value(header::CONTENT_ENCODING).is_none_or(|it| it == "identity");
    if is_plain && media_type.is_some_and(|it| it.trim().eq_ignore_ascii_case(WASM)) {
        return Ok(());
    }
    let text = "send the component as it is, with the header `content-type: application/wasm` and \
                without `content-encoding`";
    Err(Problem::new(api_code::MEDIA_TYPE, text))
}
