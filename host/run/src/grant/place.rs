//! Places in which permissions are requested.

use std::fmt;

use wattle_graph::id::PluginName;

use crate::grant::GrantKey;

/// The place in which the permissions of a plugin are requested.
///
/// [`Display`](fmt::Display) writes the place with its preposition, such as "under `[needs]` in
/// app.toml".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestPlace {
    /// The app requests the permissions for its own components.
    App,
    /// The app requests the permissions for a standalone plugin.
    AppForPlugin(PluginName),
    /// The manifest in the component of a standalone plugin.
    Component,
}

impl fmt::Display for RequestPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::App => f.write_str("under `[needs]` in app.toml"),
            Self::AppForPlugin(plugin) => {
                let key = GrantKey::of_plugin(plugin);
                write!(f, "under `[needs.plugins.{key}]` in app.toml")
            }
            Self::Component => f.write_str("in the plugin's own manifest"),
        }
    }
}
