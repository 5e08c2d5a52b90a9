//! Port: installs standalone plugins while the host serves.

use async_trait::async_trait;
use bytes::Bytes;
use wattle_graph::failure::Failure;
use wattle_graph::id::{Digest, PluginName};

use crate::grant::{GrantRequest, Grants};
use crate::ports::sandbox::PluginInfo;

/// Installs standalone plugins. An installer works on one plugin at a time.
#[async_trait]
pub trait PluginInstaller: Send + Sync {
    /// Loads a component without installing it, and decides what it would be granted.
    ///
    /// # Errors
    ///
    /// `invalid` for a component that cannot be loaded, with the reason of the sandbox in
    /// `details.reason`; `conflict` if the name belongs to something else; `busy` while the
    /// installer works on another plugin.
    async fn check(&self, name: &PluginName, component: Bytes) -> Result<CheckedPlugin, Failure>;

    /// Checks a component, writes it to the plugins folder and waits until it is loaded. If this
    /// fails, the plugin that was installed before remains.
    ///
    /// # Errors
    ///
    /// Those of [`PluginInstaller::check`]; `internal` if the file cannot be written.
    async fn install(&self, name: &PluginName, component: Bytes) -> Result<CheckedPlugin, Failure>;

    /// Removes a plugin that no app uses.
    ///
    /// # Errors
    ///
    /// `not-found` without such a plugin; `conflict` if an app uses it; `busy` while the installer
    /// works on another plugin; `internal` if the file cannot be removed.
    async fn remove(&self, name: &PluginName) -> Result<(), Failure>;
}

/// A component that can be loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedPlugin {
    /// What the component says of itself.
    pub info: PluginInfo,
    /// Permissions that the operator's table grants to the plugin.
    pub grants: Grants,
    /// Permissions that the plugin requests.
    pub request: GrantRequest,
    /// Digest of the standalone plugin with this name that was installed before.
    pub replaces: Option<Digest>,
}
