//! Plugins of the plugins folder, which belong to no app.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wattle_graph::id::{AppName, PluginName};
use wattle_run::app::{App, PluginGrants};
use wattle_run::grant::{GrantRequest, Grants};
use wattle_run::meter::plugin_use::{PluginUse, PluginUses};
use wattle_run::ports::Plugin;
use wattle_run::ports::sandbox::PluginInfo;

/// Plugins by name.
type Plugins = BTreeMap<PluginName, Arc<dyn Plugin>>;

/// The permissions of a standalone plugin outside of apps.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// Permissions that the table of the plugin grants.
    pub grants: Grants,
    /// What the plugin requests, and what of it the operator does not grant.
    pub request: GrantRequest,
}

/// Returns the permissions of a standalone plugin outside of apps.
pub type PermissionReader = Arc<dyn Fn(&PluginInfo) -> Permissions + Send + Sync>;

/// Plugins of the plugins folder, which belong to no app. Clones share the set.
#[derive(Clone, Default)]
pub struct StandalonePlugins {
    shared: Arc<Mutex<Shared>>,
    permissions: Option<PermissionReader>,
}

/// What clones share.
#[derive(Default)]
struct Shared {
    plugins: Plugins,
    /// What the plugins have used outside of apps.
    uses: PluginUses,
}

impl StandalonePlugins {
    /// Locks the plugins and ignores poisoning: no other code runs under the lock, so its data is
    /// consistent.
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how the permissions of plugins are read. Without it, no plugin requests or is granted
    /// anything.
    pub fn with_permissions(self, permissions: PermissionReader) -> Self {
        Self { permissions: Some(permissions), ..self }
    }

    /// Returns the permissions of a plugin outside of apps. They are read for every request, because
    /// the operator's tables can change.
    pub fn permissions_of(&self, plugin: &PluginInfo) -> Permissions {
        self.permissions.as_ref().map(|read| read(plugin)).unwrap_or_default()
    }

    /// Returns the counters of what a plugin has used outside of apps.
    pub fn use_of(&self, plugin: &PluginName) -> Arc<PluginUse> {
        self.lock().uses.of(plugin)
    }

    /// Inserts a plugin, or replaces the plugin with the same name.
    pub fn insert(&self, plugin: Arc<dyn Plugin>) {
        self.lock().plugins.insert(plugin.info().name.clone(), plugin);
    }

    /// Removes a plugin.
    pub fn remove(&self, name: &PluginName) {
        let mut shared = self.lock();
        shared.plugins.remove(name);
        let mut uses = PluginUses::default();
        uses.continue_from(&shared.uses, shared.plugins.keys());
        shared.uses = uses;
    }

    /// Returns all plugins.
    pub fn all(&self) -> BTreeMap<PluginName, Arc<dyn Plugin>> {
        self.lock().plugins.clone()
    }

    /// Returns an app that has a plugin and nothing else, with the grants of the plugin's table and
    /// without settings. The calls of the plugin are counted. `None` if there is no such plugin.
    pub fn app_of(&self, app: AppName, name: &PluginName) -> Option<App> {
        let mut app = App::empty(app);
        let plugin = {
            let shared = self.lock();
            let plugin = shared.plugins.get(name)?.clone();
            app.uses.continue_from(&shared.uses, [name]);
            plugin
        };
        let grants = Arc::new(self.permissions_of(plugin.info()).grants);
        app.grants = PluginGrants::from([(name.clone(), grants)]).into();
        app.plugins.insert(name.clone(), plugin);
        Some(app)
    }
}
