//! Applies the operator's grants to the apps that are in use.

use std::path::PathBuf;
use std::sync::{Arc, MutexGuard, PoisonError};

use wattle_run::app::App;
use wattle_run::catalog::LoadProblem;
use wattle_run::grant::{GrantKey, ToolGrant, ToolSource};
use wattle_run::ports::sandbox::PluginInfo;

use super::app_request::AppRequests;
use super::config_file::{ConfigFile, Reread};
use super::grant_registry::{GrantRegistry, Regranted};
use super::grants::{self, GrantDecision, GrantTables};
use super::load_state::LoadState;
use super::scan::Snapshot;
use super::{Change, LoaderInner};

impl LoaderInner {
    /// Locks the grants and ignores poisoning: each change leaves the grants consistent.
    pub(super) fn grant_registry(&self) -> MutexGuard<'_, GrantRegistry> {
        self.grant_registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides about a standalone plugin that no app uses, by the tables of grants that apply now.
    pub(super) fn decide_standalone(&self, plugin: &PluginInfo) -> GrantDecision {
        let tables = self.grant_registry().tables();
        decide_by(&tables, plugin)
    }

    /// Records that the configuration file was read again, and reports problems and changes that
    /// apply after a restart. Returns the tables of grants of a valid file.
    pub(super) fn apply_file(
        &self,
        file: &mut ConfigFile,
        reread: Reread,
        send: impl Fn(Change),
    ) -> Option<GrantTables> {
        let path = self.config.file.clone().unwrap_or_default();
        if let Some(sections) = file.record(&self.config, &reread) {
            send(Change::Restart { path: path.clone(), sections });
        }
        match reread.config {
            Ok(config) => {
                self.catalog.clear_problem(&path);
                Some(self.grant_registry().tables().with_tables(config.grants))
            }
            Err(message) => {
                let (at_ms, shown) = (self.clock.now_ms(), message.clone());
                let problem = LoadProblem { path: path.clone(), at_ms, message: shown, app: None };
                self.catalog.report_problem(problem);
                send(Change::Problem { path, message, keeps_old: true });
                None
            }
        }
    }

    /// Replaces the tables of grants, adds the names of apps and plugins that a scan has found, and
    /// replaces the grants of all apps in use. Returns the folders of the apps that must be read
    /// again, because new grants can make an app loadable, or can give an app tools of further
    /// plugins.
    pub(super) fn regrant(
        &self,
        state: &mut LoadState,
        tables: Option<GrantTables>,
        found: &Snapshot,
        send: impl Fn(Change),
    ) -> Vec<PathBuf> {
        let (old, new, regranted) = {
            let mut grant_registry = self.grant_registry();
            let old = grant_registry.tables();
            let mut in_use = grant_registry.requests();
            in_use.extend(self.versions.requests());
            let requests = AppRequests { current: found.requests(), in_use };
            let tables = tables.unwrap_or_else(|| GrantTables::clone(&old));
            let tables = tables.with_names(found.names()).with_requests(requests);
            let regranted = grant_registry.set_tables(tables);
            (old, grant_registry.tables(), regranted)
        };
        let is_newest = |app: &Arc<App>| {
            self.catalog.app(&app.name).is_some_and(|newest| Arc::ptr_eq(&newest, app))
        };
        let mut folders: Vec<PathBuf> = Vec::new();
        for Regranted { app, plugins, notes, .. } in regranted {
            if !is_newest(&app) {
                continue;
            }
            if self.lacks_tools(&app) {
                let of_app = state.apps.iter().filter(|(_, name)| **name == app.name);
                folders.extend(of_app.map(|(folder, _)| folder.clone()));
            }
            send(Change::Grants { name: app.name.clone(), plugins, notes });
        }
        self.note_plugins(&old, &new, send);
        if !new.has_same_tables(&old) {
            // Apps that are being read are read again, because the old tables decided their grants.
            state.plugin_changes += 1;
            folders.extend(state.failed.iter().cloned());
        }
        folders.retain(|folder| !state.is_loading(folder));
        folders.sort();
        folders.dedup();
        folders
    }

    /// Sends the notes about standalone plugins that new tables have caused.
    fn note_plugins(&self, old: &GrantTables, new: &GrantTables, send: impl Fn(Change)) {
        if old == new {
            return;
        }
        for (name, plugin) in self.standalone.all() {
            let known = decide_by(old, plugin.info()).request.notes;
            let mut notes = decide_by(new, plugin.info()).request.notes;
            notes.retain(|note| !known.contains(note));
            if !notes.is_empty() {
                send(Change::PluginNotes { name, notes });
            }
        }
    }

    /// Returns true if an app is granted tools that neither its plugins nor the configured servers
    /// provide.
    fn lacks_tools(&self, app: &App) -> bool {
        let is_lacking = |tool: &ToolGrant| match &tool.source {
            ToolSource::Server(server) => !self.config.mcp.contains_key(server),
            ToolSource::Plugin(name) => {
                let tools = app.plugins.get(name).map(|plugin| &plugin.info().tools);
                !tools.into_iter().flatten().any(|info| tool.covers(&info.name))
            }
        };
        let grants = app.grants.all();
        grants.values().flat_map(|grants| &grants.tools).any(is_lacking)
    }
}

/// Decides about a standalone plugin that no app uses.
fn decide_by(tables: &GrantTables, plugin: &PluginInfo) -> GrantDecision {
    let of_apps = tables.needs_of(&GrantKey::of_plugin(&plugin.name));
    grants::decide_standalone(plugin, tables.table_of_standalone(&plugin.name), &of_apps)
}
