//! Calls of one node of an app or of a standalone plugin outside of any run.

use axum::Extension;
use axum::extract::{Path, State};
use wattle_run::engine::Engine;
use wattle_run::engine::call_node::CallNodeOnce;
use wattle_run::ports::sandbox::PluginInfo;

use crate::body::JsonBody;
use crate::document::node::{CallNodeDocument, NodeCallDocument};
use crate::guard::open_requests::RequestPermit;
use crate::native::apps;
use crate::native::client_call::{RequestedCall, app_of_plugin, tenant_and_caller};
use crate::native::list_scope::ListScope;
use crate::native::tenant_scope::{OperatorOnly, RequestRole};
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;
use crate::standalone::StandalonePlugins;

/// Calls a node of an app outside of any run, with the grants and limits of its plugin. The call has
/// all its effects, no thread has a record of it, and its outcome changes no state. It ends if the
/// client disconnects. A failure of the node is part of the response, and so are interrupts, which
/// cannot be answered; a call that the node could not make because of a missing grant names the line
/// to add for the operator. Only the operator calls a node that takes a configuration.
#[utoipa::path(post, path = "/api/v1/apps/{app}/nodes/{node}/call", tag = "apps",
    extensions(("x-wattle-access" = json!({ "scope": "write", "share": "other" }))),
    params(
        ("app" = String, Path, description = "name of the app"),
        ("node" = String, Path,
            description = "full reference of the node, or a name that one plugin of the app has")),
    request_body = CallNodeDocument,
    responses(
        (status = 200, body = NodeCallDocument,
            description = "the node has ended, raised an interrupt, or failed"),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn call_node(
    State(engine): State<Engine>,
    role: RequestRole,
    scope: ListScope,
    permit: Option<Extension<RequestPermit>>,
    Path((app, node)): Path<(String, String)>,
    JsonBody(request): JsonBody<CallNodeDocument>,
) -> Result<Json<NodeCallDocument>, Problem> {
    let app = apps::find(&engine, &app)?;
    let is_operator = role.is_operator;
    let call = RequestedCall { app, function: node, scope, permit, is_operator };
    make_call(&engine, call, request).await
}

/// Calls a node of a standalone plugin outside of any run and any app, with what the table
/// `[grants.<plugin>]` grants. The plugin has no settings, and of other plugins it can call no tools.
/// The call has all its effects, and no thread has a record of it. It ends if the client disconnects.
/// A failure of the node is part of the response, and so are interrupts, which cannot be answered; a
/// call that the node could not make because of a missing grant names the line to add. Only for the
/// operator.
#[utoipa::path(post, path = "/api/v1/plugins/{plugin}/nodes/{node}/call", tag = "apps",
    extensions(("x-wattle-access" = json!({ "scope": "admin", "share": "other" }))),
    params(
        ("plugin" = String, Path, description = "name of the plugin"),
        ("node" = String, Path, description = "name of the node in the plugin")),
    request_body = CallNodeDocument,
    responses(
        (status = 200, body = NodeCallDocument,
            description = "the node has ended, raised an interrupt, or failed"),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json",
            description = "an app has the name of the plugin")))]
pub async fn call_plugin_node(
    State(engine): State<Engine>,
    State(standalone): State<StandalonePlugins>,
    _: OperatorOnly,
    scope: ListScope,
    permit: Option<Extension<RequestPermit>>,
    Path((plugin, node)): Path<(String, String)>,
    JsonBody(request): JsonBody<CallNodeDocument>,
) -> Result<Json<NodeCallDocument>, Problem> {
    let has_node = |plugin: &PluginInfo| plugin.nodes.iter().any(|known| known.name == node);
    let app = app_of_plugin(&engine, &standalone, &plugin, ("node", &node), has_node)?;
    let call = RequestedCall { app, function: node, scope, permit, is_operator: true };
    make_call(&engine, call, request).await
}

/// Calls the node and describes the end of the call.
async fn make_call(
    engine: &Engine,
    call: RequestedCall,
    request: CallNodeDocument,
) -> Result<Json<NodeCallDocument>, Problem> {
    let RequestedCall { app, function: node, scope, permit, is_operator } = call;
    let CallNodeDocument { input, config, context, tenant } = request;
    let (tenant, caller) = tenant_and_caller(scope, permit.as_deref(), tenant.as_deref())?;
    let may_configure = is_operator;
    let call = CallNodeOnce { node, input, config, may_configure, context, tenant, caller };
    let end = engine.call_node_once(&app, call).await?;
    Ok(Json(NodeCallDocument::new(end, is_operator)?))
}
