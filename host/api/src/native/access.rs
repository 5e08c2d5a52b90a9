//! The access of a request: its key, scope, tenant and user.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::request::Parts;
use wattle_run::engine::Engine;

use crate::config::ApiConfig;
use crate::document::access::{AccessDocument, KeyName};
use crate::guard::authenticated_key::AuthenticatedKey;
use crate::guard::request_key;
use crate::guard::scope::KeyScope;
use crate::guard::user::User;
use crate::native::plugin_install::Installer;
use crate::native::tenant_scope::RequestRole;
use crate::problem::Problem;
use crate::state::ServedParts;

/// Describes the access of the request: its key, scope, tenant and user. Clients offer their users
/// only what the scope permits.
#[utoipa::path(get, path = "/api/v1/access",
    extensions(("x-wattle-access" = json!({ "scope": "read", "share": "control" }))), tag = "host",
    responses((status = 200, body = AccessDocument)))]
pub(crate) async fn get_access(
    State(engine): State<Engine>,
    State(config): State<Arc<ApiConfig>>,
    State(instance): State<Arc<str>>,
    State(served): State<ServedParts>,
    role: RequestRole,
    installer: Result<Installer, Problem>,
    Parts { headers, extensions, .. }: Parts,
) -> Json<AccessDocument> {
    let key = request_key::find(&config, &headers, &extensions);
    let scope = key.as_ref().map_or(KeyScope::Admin, AuthenticatedKey::scope);
    Json(AccessDocument {
        // The guards admit a request without a key only if the host needs none.
        needs_key: key.is_some(),
        scope,
        key: key.as_ref().map(key_name),
        tenant: role.tenant,
        tenant_header: config.tenant_header.as_ref().map(ToString::to_string),
        user: extensions.get::<User>().map(|user| user.0.clone()),
        is_operator: role.is_operator,
        version: env!("CARGO_PKG_VERSION").into(),
        instance: instance.to_string(),
        time_zone: engine.ports().clock.time_zone().into(),
        agent_server: served.agent_server,
        apps: served.apps,
        studio: served.studio,
        install: installer.is_ok(),
    })
}

fn key_name(key: &AuthenticatedKey) -> KeyName {
    KeyName { id: key.public_id(), name: key.record().map(|record| record.name.clone()) }
}
