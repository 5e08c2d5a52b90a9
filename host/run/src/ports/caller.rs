//! The app, plugin and tenant on whose behalf an adapter is called.

use wattle_graph::id::{AppName, PluginName};

use crate::caller_id::CallerId;

/// The app, plugin and tenant on whose behalf an adapter is called.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The app.
    pub app: AppName,
    /// The plugin.
    pub plugin: PluginName,
    /// The tenant of the request, if any.
    pub tenant: Option<String>,
    /// Caller for which the work of the adapter counts: the caller of the run, or of the request to
    /// a web handler.
    pub owner: CallerId,
}
