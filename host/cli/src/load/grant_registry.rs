//! The registry of apps in use, whose grants change with the operator's tables.

use std::sync::{Arc, Weak};

use wattle_graph::id::PluginName;
use wattle_run::app::{App, PluginGrants, PluginRequests};

use crate::load::app_request::AppRequest;
use crate::load::grants::{GrantTables, Policy};
use crate::load::manifest::Manifest;

/// The tables of grants, and the apps whose grants they decide.
pub(super) struct GrantRegistry {
    tables: Arc<GrantTables>,
    /// All versions of apps that are in use.
    apps: Vec<GrantedApp>,
}

struct GrantedApp {
    app: Weak<App>,
    manifest: Manifest,
}

/// An app whose grants were replaced, or about whose tables there are notes.
pub(super) struct Regranted {
    pub(super) app: Arc<App>,
    /// The plugins whose permissions have changed.
    pub(super) plugins: Vec<PluginName>,
    /// Notes about these plugins for the operator.
    pub(super) notes: Vec<String>,
}

impl GrantRegistry {
    pub(super) fn new(tables: GrantTables) -> Self {
        Self { tables: Arc::new(tables), apps: Vec::new() }
    }

    pub(super) fn tables(&self) -> Arc<GrantTables> {
        self.tables.clone()
    }

    /// Returns what the versions of apps in use request.
    pub(super) fn requests(&self) -> Vec<AppRequest> {
        let in_use = self.apps.iter().filter(|granted| granted.app.strong_count() > 0);
        in_use.map(|granted| granted.manifest.request()).collect()
    }

    /// Adds an app whose grants were decided by `tables`. Decides the grants of the app again if
    /// the registry has other tables by now.
    pub(super) fn add(
        &mut self,
        app: &Arc<App>,
        manifest: &Manifest,
        tables: &Arc<GrantTables>,
    ) -> Option<Regranted> {
        self.apps.retain(|granted| granted.app.strong_count() > 0);
        self.apps.push(GrantedApp { app: Arc::downgrade(app), manifest: manifest.clone() });
        let is_current = Arc::ptr_eq(tables, &self.tables);
        if is_current { None } else { regrant(app.clone(), manifest, &self.tables) }
    }

    /// Replaces the tables, and the grants of the apps that change with them.
    pub(super) fn set_tables(&mut self, tables: GrantTables) -> Vec<Regranted> {
        if tables == *self.tables {
            return Vec::new();
        }
        self.tables = Arc::new(tables);
        let apps = self.apps.iter().filter_map(|GrantedApp { app, manifest }| {
            regrant(app.upgrade()?, manifest, &self.tables)
        });
        apps.collect()
    }
}

/// Decides the grants of an app again. Returns `None` if the permissions are the same as before, and
/// there is nothing to note.
fn regrant(app: Arc<App>, manifest: &Manifest, tables: &GrantTables) -> Option<Regranted> {
    let policy = Policy { tables, manifest };
    let old = app.grants.all();
    let (mut new, mut requests) = (PluginGrants::new(), PluginRequests::new());
    let (mut plugins, mut notes) = (Vec::new(), Vec::new());
    for (name, plugin) in &app.plugins {
        let decision = policy.decide(name, plugin.info());
        if old.get(name).is_none_or(|old| !old.has_same_permissions(&decision.grants)) {
            plugins.push(name.clone());
            notes.extend(decision.messages(name));
        } else if old.get(name).is_some_and(|old| **old != decision.grants) {
            // The table has changed without an effect, which the notes may explain.
            notes.extend(decision.notes_in_app().iter().cloned());
        }
        new.insert(name.clone(), Arc::new(decision.grants));
        requests.insert(name.clone(), Arc::new(decision.request));
    }
    app.grants.replace_requests(requests);
    // Messages about denied calls name the sides, which can change without the permissions.
    app.grants.replace(new);
    let is_noted = !plugins.is_empty() || !notes.is_empty();
    is_noted.then_some(Regranted { app, plugins, notes })
}
