//! Model routes of tenants. Responses never contain the API keys of providers.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::Value;
use wattle_graph::failure::code;
use wattle_graph::id::{AppName, PluginName};
use wattle_run::caller_id::CallerId;
use wattle_run::engine::Engine;
use wattle_run::ports::Caller;

use crate::body::JsonBody;
use crate::guard::tenant_name::check_tenant;
use crate::native::tenant_scope::TenantScope;
use crate::problem::{Problem, ProblemDocument};

/// App and plugin name with which the API calls the model port.
const CALLER_NAME: &str = "api";

/// Sets a model of the tenant for a route. It overrides the operator's model for this route.
#[utoipa::path(put, path = "/api/v1/tenants/{tenant}/routes/{route}",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "tenants",
    params(
        ("tenant" = String, Path, description = "name of the tenant"),
        ("route" = String, Path, description = "name of the route")),
    request_body(content = Value,
        description = "the route, as the configuration reference describes it"),
    responses(
        (status = 200, body = Value, description = "the route, without its key"),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn set_tenant_route(
    State(engine): State<Engine>,
    scope: TenantScope,
    Path((tenant, route)): Path<(String, String)>,
    JsonBody(document): JsonBody<Value>,
) -> Result<Json<Value>, Problem> {
    let caller = caller(&scope, &tenant)?;
    let model = &engine.ports().model;
    model.set_route(&caller, &route, document).await?;
    Ok(Json(model.get_route(&caller, &route).await?.unwrap_or_default()))
}

/// Returns the tenant's own route without its key.
#[utoipa::path(get, path = "/api/v1/tenants/{tenant}/routes/{route}", tag = "tenants",
    params(
        ("tenant" = String, Path, description = "name of the tenant"),
        ("route" = String, Path, description = "name of the route")),
    responses(
        (status = 200, body = Value),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_tenant_route(
    State(engine): State<Engine>,
    scope: TenantScope,
    Path((tenant, route)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let caller = caller(&scope, &tenant)?;
    let found = engine.ports().model.get_route(&caller, &route).await?;
    found.map(Json).ok_or_else(|| {
        let hint = format!("tenant `{tenant}` has no route of its own; the operator's applies");
        Problem::not_found("model route", &route, &hint)
    })
}

/// Deletes the tenant's own route. The operator's route applies again. Also succeeds if the tenant
/// has no route of its own.
#[utoipa::path(delete, path = "/api/v1/tenants/{tenant}/routes/{route}",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "tenants",
    params(
        ("tenant" = String, Path, description = "name of the tenant"),
        ("route" = String, Path, description = "name of the route")),
    responses(
        (status = 204),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn remove_tenant_route(
    State(engine): State<Engine>,
    scope: TenantScope,
    Path((tenant, route)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let caller = caller(&scope, &tenant)?;
    engine.ports().model.remove_route(&caller, &route).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the tenant as a caller of the model port. A tenant can access only its own routes. A
/// request without a tenant comes from the operator and can access the routes of any tenant.
fn caller(scope: &TenantScope, tenant: &str) -> Result<Caller, Problem> {
    check_tenant(tenant)?;
    if scope.tenant.as_ref().is_some_and(|own| own != tenant) {
        let detail = format!("the request does not belong to tenant `{tenant}`");
        return Err(Problem::new(code::DENIED, detail));
    }
    let internal =
        |error: wattle_graph::id::IdError| Problem::new(code::INTERNAL, error.to_string());
    let app = AppName::new(CALLER_NAME).map_err(internal)?;
    let owner = CallerId::of_app(&app);
    let plugin = PluginName::new(CALLER_NAME).map_err(internal)?;
    Ok(Caller { app, plugin, tenant: Some(tenant.to_owned()), owner })
}
