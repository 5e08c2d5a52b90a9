//! The app, plugin and tenant on whose behalf an adapter is called.

use wattle_graph::id::{AppName, PluginName};

/// The app, plugin and tenant on whose behalf an adapter is called.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The app.
    pub app: AppName,
    /// The plugin.
    pub plugin: PluginName,
    /// The tenant of the request, if any.
    pub tenant: Option<String>,
}
