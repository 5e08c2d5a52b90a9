//! Decides the grants of the plugins of an app.

use wattle_graph::id::PluginName;
use wattle_run::grant::RequestPlace;
use wattle_run::ports::sandbox::PluginInfo;

use crate::config::GrantSpec;
use crate::load::grants::{self, GrantDecision, GrantTables, unrequested};
use crate::load::manifest::Manifest;

/// Decides the grants of the plugins of an app.
#[derive(Clone, Copy)]
pub(crate) struct Policy<'a> {
    /// The tables of the operator.
    pub(crate) tables: &'a GrantTables,
    /// The manifest with the requests of the app.
    pub(crate) manifest: &'a Manifest,
}

impl Policy<'_> {
    /// Decides the grants of a plugin. A standalone plugin requests the permissions that the app
    /// requests for it, or else the permissions of its own manifest. If there is neither, the
    /// plugin gets the permissions that the operator grants.
    pub(crate) fn decide(&self, name: &PluginName, plugin: &PluginInfo) -> GrantDecision {
        let Manifest { app, components, needs: own_needs, .. } = self.manifest;
        let is_own = components.contains_key(name);
        let table = self.tables.table_of(&app.name, name, is_own);
        let by_app = if is_own { Some(own_needs) } else { own_needs.plugins.get(name) };
        let place = match by_app {
            Some(_) if is_own => Some(RequestPlace::App),
            Some(_) => Some(RequestPlace::AppForPlugin(name.clone())),
            None if plugin.manifest.is_some() => Some(RequestPlace::Component),
            // The plugin gets what the app will request for it.
            None if table.is_trusted && table.granted.is_none() => {
                Some(RequestPlace::AppForPlugin(name.clone()))
            }
            None => None,
        };
        let mut notes = Vec::new();
        let needs = match by_app {
            Some(needs) => needs.clone(),
            None => grants::requested(plugin, table.granted).unwrap_or_else(|problem| {
                notes.push(problem);
                GrantSpec::default()
            }),
        };
        if place == Some(RequestPlace::Component) && notes.is_empty() {
            let of_apps = self.tables.needs_of(&table.key);
            notes = unrequested::notes(name, &table.key, table.granted, &needs, &of_apps);
        }
        let is_trusted = table.is_trusted && (by_app.is_some() || plugin.manifest.is_none());
        let decided = grants::decide(&table.key, &needs, table.granted, is_trusted).with_sides(
            place,
            table.granted,
            is_trusted,
        );
        if let Some(foreign) = table.foreign.filter(|_| needs != GrantSpec::default()) {
            notes.push(format!(
                "plugin `{name}` of app `{}` does not get `[grants.{foreign}]`, because another \
                 file can have its name\n  hint: the table of this plugin is `[grants.{}]` in \
                 wattle.toml",
                app.name, table.key
            ));
        }
        decided.for_plugin(plugin).with_notes(notes)
    }
}
