//! JSON bodies of the installation of plugins.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_run::ports::installer::CheckedPlugin;

use crate::document::plugin::PluginDocument;

/// A component that can be installed, or was installed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CheckedPluginDocument {
    /// The plugin as one that no app uses. `grants` contains what the table of the plugin grants.
    pub plugin: PluginDocument,
    /// Digest of the standalone plugin with the same name that was installed before; absent if
    /// there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
}

impl From<CheckedPlugin> for CheckedPluginDocument {
    fn from(CheckedPlugin { info, grants, request, replaces }: CheckedPlugin) -> Self {
        Self {
            plugin: PluginDocument::new(None, &info, &grants, &request),
            replaces: replaces.map(|digest| digest.to_string()),
        }
    }
}
