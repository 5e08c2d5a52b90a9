//! What the endpoints that call one tool or one node share.

use std::sync::Arc;

use axum::Extension;
use wattle_graph::failure::code;
use wattle_graph::id::{AppName, PluginName};
use wattle_run::app::App;
use wattle_run::caller_id::CallerId;
use wattle_run::engine::Engine;
use wattle_run::ports::sandbox::PluginInfo;

use crate::guard::open_requests::RequestPermit;
use crate::guard::tenant_name::check_tenant;
use crate::native::list_scope::ListScope;
use crate::native::threads::invalid_id;
use crate::problem::Problem;
use crate::standalone::StandalonePlugins;

/// A tool or a node of an app, and who calls it.
pub(super) struct RequestedCall {
    pub(super) app: Arc<App>,
    /// Name of the tool or of the node, which may name its plugin.
    pub(super) function: String,
    pub(super) scope: ListScope,
    pub(super) permit: Option<Extension<RequestPermit>>,
    pub(super) is_operator: bool,
}

/// Returns the tenant and the caller of a call. `named` is the tenant that the body of the request
/// names.
pub(super) fn tenant_and_caller(
    scope: ListScope,
    permit: Option<&RequestPermit>,
    named: Option<&str>,
) -> Result<(Option<String>, CallerId), Problem> {
    // A list may name all tenants, a call only one.
    named.map(check_tenant).transpose()?;
    let tenant = scope.tenant(named)?;
    Ok((tenant, RequestPermit::caller_of(permit)))
}

/// Returns the app in which a function of a standalone plugin is called. The app has the name of
/// the plugin. `kind` and `function` name the function, and `has_function` returns whether the
/// plugin has it.
pub(super) fn app_of_plugin(
    engine: &Engine,
    standalone: &StandalonePlugins,
    plugin: &str,
    (kind, function): (&str, &str),
    has_function: impl Fn(&PluginInfo) -> bool,
) -> Result<Arc<App>, Problem> {
    let name = plugin.parse::<PluginName>().map_err(invalid_id)?;
    let app_name = plugin.parse::<AppName>().map_err(invalid_id)?;
    // The call would count as one of that app, and the plugin could start its runs and read its
    // memory. An app that is not loaded has memory as well.
    let catalog = engine.catalog();
    let is_app = catalog.app(&app_name).is_some()
        || catalog.is_loading(&app_name)
        || catalog.is_unavailable(&app_name);
    if is_app {
        let text = format!("an app is called `{plugin}`, so only plugins of apps can be called");
        return Err(Problem::new(code::CONFLICT, text));
    }
    let Some(app) = standalone.app_of(app_name, &name) else {
        catalog.check_loading_plugin(&name)?;
        let hint = "see `GET /api/v1/plugins`";
        return Err(Problem::not_found("standalone plugin", plugin, hint));
    };
    if !app.plugins.values().any(|plugin| has_function(plugin.info())) {
        let hint = format!("see `GET /api/v1/plugins/{plugin}`");
        return Err(Problem::not_found(kind, function, &hint));
    }
    Ok(Arc::new(app))
}
