//! Tools of apps and of standalone plugins: a list, and calls of one tool outside of any run.

use axum::Extension;
use axum::extract::{Path, State};
use wattle_run::engine::Engine;
use wattle_run::engine::call_once::CallToolOnce;
use wattle_run::ports::sandbox::PluginInfo;

use crate::body::JsonBody;
use crate::document::tool::{CallToolDocument, ToolCallDocument, ToolDocument};
use crate::guard::open_requests::RequestPermit;
use crate::native::apps;
use crate::native::client_call::{RequestedCall, app_of_plugin, tenant_and_caller};
use crate::native::list_scope::ListScope;
use crate::native::tenant_scope::{OperatorOnly, RequestRole};
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;
use crate::standalone::StandalonePlugins;

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
    let app = apps::find(&engine, &app)?;
    let is_operator = role.is_operator;
    let call = RequestedCall { app, function: tool, scope, permit, is_operator };
    make_call(&engine, call, request).await
}

/// Calls a tool of a standalone plugin outside of any run and any app, with what the table
/// `[grants.<plugin>]` grants. The plugin has no settings, and of other plugins it can call no tools.
/// The call has all its effects, and no thread has a record of it. It ends if the client disconnects.
/// A failure of the tool is part of the response; a call that it could not make because of a missing
/// grant names the line to add. Only for the operator.
#[utoipa::path(post, path = "/api/v1/plugins/{plugin}/tools/{tool}/call", tag = "apps",
    extensions(("x-wattle-access" = json!({ "scope": "admin", "share": "other" }))),
    params(
        ("plugin" = String, Path, description = "name of the plugin"),
        ("tool" = String, Path, description = "name of the tool in the plugin")),
    request_body = CallToolDocument,
    responses(
        (status = 200, body = ToolCallDocument, description = "the tool has ended, or failed"),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json",
            description = "an app has the name of the plugin")))]
pub async fn call_plugin_tool(
    State(engine): State<Engine>,
    State(standalone): State<StandalonePlugins>,
    _: OperatorOnly,
    scope: ListScope,
    permit: Option<Extension<RequestPermit>>,
    Path((plugin, tool)): Path<(String, String)>,
    JsonBody(request): JsonBody<CallToolDocument>,
) -> Result<Json<ToolCallDocument>, Problem> {
    let has_tool = |plugin: &PluginInfo| plugin.tools.iter().any(|known| known.name == tool);
    let app = app_of_plugin(&engine, &standalone, &plugin, ("tool", &tool), has_tool)?;
    let call = RequestedCall { app, function: tool, scope, permit, is_operator: true };
    make_call(&engine, call, request).await
}

/// Calls the tool and describes the end of the call.
async fn make_call(
    engine: &Engine,
    call: RequestedCall,
    request: CallToolDocument,
) -> Result<Json<ToolCallDocument>, Problem> {
    let RequestedCall { app, function: tool, scope, permit, is_operator } = call;
    let CallToolDocument { input, tenant } = request;
    let (tenant, caller) = tenant_and_caller(scope, permit.as_deref(), tenant.as_deref())?;
    let call = CallToolOnce { tool, arguments: input, tenant, caller };
    let end = engine.call_tool_once(&app, call).await?;
    Ok(Json(ToolCallDocument::new(end, is_operator)?))
}
