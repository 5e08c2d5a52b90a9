//! Model routes that tenants bring along. Keys in them go in and never come out.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::Value;
use wattle_graph::failure::code;
use wattle_graph::id::{AppName, PluginName};
use wattle_run::ports::Caller;

use crate::body::JsonBody;
use crate::native::scope::{Scope, check_tenant};
use crate::problem::{Problem, ProblemDocument};
use crate::state::ApiState;

/// Under which name the API calls the model port.
const API: &str = "api";

/// Puts a model of the tenant's own behind a route, in place of the operator's.
#[utoipa::path(put, path = "/api/v1/tenants/{tenant}/routes/{route}",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "tenants",
    params(
        ("tenant" = String, Path, description = "name of the tenant"),
        ("route" = String, Path, description = "name of the route")),
    request_body(content = Value, description = "the route's document; see the documentation"),
    responses(
        (status = 200, body = Value, description = "what is there now, without the key"),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn set_tenant_route(
    State(state): State<ApiState>,
    scope: Scope,
    Path((tenant, route)): Path<(String, String)>,
    JsonBody(document): JsonBody<Value>,
) -> Result<Json<Value>, Problem> {
    let caller = caller(&scope, &tenant)?;
    let model = &state.engine.ports().model;
    model.set_route(&caller, &route, document).await?;
    Ok(Json(model.get_route(&caller, &route).await?.unwrap_or_default()))
}

/// What the tenant put behind a route, without the key.
#[utoipa::path(get, path = "/api/v1/tenants/{tenant}/routes/{route}", tag = "tenants",
    params(
        ("tenant" = String, Path, description = "name of the tenant"),
        ("route" = String, Path, description = "name of the route")),
    responses(
        (status = 200, body = Value),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_tenant_route(
    State(state): State<ApiState>,
    scope: Scope,
    Path((tenant, route)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let caller = caller(&scope, &tenant)?;
    let found = state.engine.ports().model.get_route(&caller, &route).await?;
    found.map(Json).ok_or_else(|| {
        let hint = format!("the tenant `{tenant}` has none of its own; the operator's holds");
        Problem::not_found("model route", &route, &hint)
    })
}

/// Goes back to the operator's route. Not an error if there is nothing to go back from.
#[utoipa::path(delete, path = "/api/v1/tenants/{tenant}/routes/{route}",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "tenants",
    params(
        ("tenant" = String, Path, description = "name of the tenant"),
        ("route" = String, Path, description = "name of the route")),
    responses(
        (status = 204),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn remove_tenant_route(
    State(state): State<ApiState>,
    scope: Scope,
    Path((tenant, route)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let caller = caller(&scope, &tenant)?;
    state.engine.ports().model.remove_route(&caller, &route).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A tenant may only touch what is its own; a request without a tenant is the operator's.
fn caller(scope: &Scope, tenant: &str) -> Result<Caller, Problem> {
    check_tenant(tenant)?;
    if scope.tenant.as_ref().is_some_and(|own| own != tenant) {
        let detail = format!("the request does not come from the tenant `{tenant}`");
        return Err(Problem::new(code::DENIED, detail));
    }
    let broken = |error: wattle_graph::id::IdError| Problem::new(code::INTERNAL, error.to_string());
    Ok(Caller {
        app: AppName::new(API).map_err(broken)?,
        plugin: PluginName::new(API).map_err(broken)?,
        tenant: Some(tenant.to_owned()),
    })
}
