//! What apps request.

use std::collections::BTreeSet;

use wattle_graph::id::{AppName, PluginName};
use wattle_run::grant::RequestPlace;

use crate::config::GrantSpec;

/// What a version of an app requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AppRequest {
    /// The app.
    pub(crate) app: AppName,
    /// Names of its components.
    pub(crate) components: BTreeSet<PluginName>,
    /// `[needs]` of its manifest.
    pub(crate) needs: GrantSpec,
}

impl AppRequest {
    /// Returns what the app requests for a plugin, and where. Returns `None` for a standalone
    /// plugin for which the app requests nothing.
    pub(crate) fn for_plugin(&self, plugin: &PluginName) -> Option<(RequestPlace, &GrantSpec)> {
        if self.components.contains(plugin) {
            return Some((RequestPlace::App, &self.needs));
        }
        let needs = self.needs.plugins.get(plugin)?;
        Some((RequestPlace::AppForPlugin(plugin.clone()), needs))
    }
}

/// What the apps of a host request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AppRequests {
    /// Requests of the manifests on disk.
    pub(crate) current: Vec<AppRequest>,
    /// Requests of the versions that threads may use.
    pub(crate) in_use: Vec<AppRequest>,
}
