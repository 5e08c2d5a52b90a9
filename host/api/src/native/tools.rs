//! Tools of apps: a list, and calls of one tool outside of any run.

use axum::Extension;
use axum::extract::{Path, State};
use wattle_run::engine::Engine;
use wattle_run::engine::call_once::CallToolOnce;

use crate::body::JsonBody;
use crate::document::tool::{CallToolDocument, ToolCallDocument, ToolDocument};
use crate::guard::open_requests::RequestPermit;
use crate::guard::tenant_name::check_tenant;
use crate::native::apps;
use crate::native::list_scope::ListScope;
use crate::native::tenant_scope::RequestRole;
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;

/// Lists the tools of the plugins of an app, with the schemas of their inputs.
#[utoipa::path(get, path = "/api/v1/apps/{app}/tools", tag = "apps",
    extensions(("x-wattle-access" = json!({ "scope": "read", "share": "other" }))),
    params(("app" = String, Path, description = "name of the app")),
    responses(
        (status = 200, body = Vec<ToolDocument>),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_tools(
    State(engine): State<Engine>,
    Path(app): Path<String>,
) -> Result<Json<Vec<ToolDocument>>, Problem> {
    let app = apps::find(&engine, &app)?;
    let tools = app.plugins.iter().flat_map(|(plugin, loaded)| {
        let tools = loaded.info().tools.iter();
        tools.map(move |tool| ToolDocument::new(plugin, tool))
    });
    Ok(Json(tools.collect()))
}

/// Calls a tool of an app outside of any run, with the grants and limits of its plugin. The call
/// has all its effects, and no thread has a record of it. It ends if the client disconnects. A
/// failure of the tool is part of the response; a call that it could not make because of a missing
/// grant names the line to add for the operator.
#[utoipa::path(post, path = "/api/v1/apps/{app}/tools/{tool}/call", tag = "apps",
    extensions(("x-wattle-access" = json!({ "scope": "write", "share": "other" }))),
    params(
        ("app" = String, Path, description = "name of the app"),
        ("tool" = String, Path,
            description = "full reference of the tool, or a name that one plugin of the app has")),
    request_body = CallToolDocument,
    responses(
        (status = 200, body = ToolCallDocument, description = "the tool has ended, or failed"),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn call_tool(
    State(engine): State<Engine>,
    role: RequestRole,
    scope: ListScope,
    permit: Option<Extension<RequestPermit>>,
    Path((app, tool)): Path<(String, String)>,
    JsonBody(request): JsonBody<CallToolDocument>,
) -> Result<Json<ToolCallDocument>, Problem> {
    let CallToolDocument { input, tenant } = request;
    // A list may name all tenants, a call only one.
    tenant.as_deref().map(check_tenant).transpose()?;
    let tenant = scope.tenant(tenant.as_deref())?;
    let app = apps::find(&engine, &app)?;
    let caller = permit.map(|Extension(permit)| permit.caller()).unwrap_or_default();
    let call = CallToolOnce { tool, arguments: input, tenant, caller };
    let end = engine.call_tool_once(&app, call).await?;
    Ok(Json(ToolCallDocument::new(end, role.is_operator)?))
}
