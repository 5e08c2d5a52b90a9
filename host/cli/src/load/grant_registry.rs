//! The registry of apps in use, whose grants change with the operator's tables.

use std::sync::{Arc, Weak};

use wattle_graph::id::PluginName;
use wattle_run::app::{App, PluginGrants, PluginRequests};
use wattle_run::grant::{GrantRequest, Grants};

use crate::load::app_request::AppRequest;
use crate::load::grants::{GrantDecision, GrantTables, Policy};
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

/// An app whose grants were decided again.
pub(super) struct Regranted {
    pub(super) app: Arc<App>,
    /// The plugins whose permissions have changed.
    pub(super) plugins: Vec<PluginName>,
    /// Notes for the operator about these plugins, and about tables that have changed without an
    /// effect.
    pub(super) notes: Vec<String>,
    /// Notes about the former grants that are no longer true.
    outdated: Vec<String>,
}

impl Regranted {
    /// Returns true if permissions have changed, or if there are notes.
    fn is_noted(&self) -> bool {
        !self.plugins.is_empty() || !self.notes.is_empty()
    }

    /// Returns the notes of a load that had decided the former grants: without those that are no
    /// longer true, and with the new ones.
    pub(super) fn renew(self, mut notes: Vec<String>) -> Vec<String> {
        notes.retain(|note| !self.outdated.contains(note));
        for note in self.notes {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }
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
        (!is_current).then(|| regrant(app.clone(), manifest, &self.tables))
    }

    /// Replaces the tables, and the grants of the apps that change with them.
    pub(super) fn set_tables(&mut self, tables: GrantTables) -> Vec<Regranted> {
        if tables == *self.tables {
            return Vec::new();
        }
        self.tables = Arc::new(tables);
        let apps = self.apps.iter().filter_map(|GrantedApp { app, manifest }| {
            let regranted = regrant(app.upgrade()?, manifest, &self.tables);
            regranted.is_noted().then_some(regranted)
        });
        apps.collect()
    }
}

/// Decides the grants of an app again.
fn regrant(app: Arc<App>, manifest: &Manifest, tables: &GrantTables) -> Regranted {
    let policy = Policy { tables, manifest };
    let old = app.grants.all();
    let (mut new, mut requests) = (PluginGrants::new(), PluginRequests::new());
    let (mut plugins, mut notes, mut outdated) = (Vec::new(), Vec::new(), Vec::new());
    for (name, plugin) in &app.plugins {
        let decision = policy.decide(name, plugin.info());
        let former = GrantDecision {
            grants: old.get(name).map(|old| Grants::clone(old)).unwrap_or_default(),
            request: GrantRequest::clone(&app.grants.request_of(name)),
        };
        let messages = decision.messages(name);
        outdated.extend(former.messages(name).into_iter().filter(|it| !messages.contains(it)));
        if old.get(name).is_none_or(|old| !old.has_same_permissions(&decision.grants)) {
            plugins.push(name.clone());
            notes.extend(messages);
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
    Regranted { app, plugins, notes, outdated }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notes_of_a_load_stay_unless_the_new_tables_have_changed_them() {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let regranted = Regranted {
            app: Arc::new(App::empty("shop".parse().unwrap())),
            plugins: Vec::new(),
            notes: texts(&["desk: no effect", "till: no effect"]),
            outdated: texts(&["till: requests more"]),
        };
        let loaded = texts(&["desk: requests more", "desk: no effect", "till: requests more"]);
        let renewed = regranted.renew(loaded);
        assert_eq!(renewed, ["desk: requests more", "desk: no effect", "till: no effect"]);
    }
}
