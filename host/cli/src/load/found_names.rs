//! Names of apps and plugins that scans have found, and the tables that have none of them.

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::id::{AppName, PluginName};
use wattle_graph::suggest;
use wattle_run::grant::GrantKey;

use super::app_request::AppRequest;
use super::grants::GrantTables;
use crate::config::Config;

/// A table `[apps.<name>]` or `[grants.<name>]` that applies to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedTable {
    /// The table, as in `wattle.toml`.
    pub table: String,
    /// What is missing: `app` or `plugin`.
    pub what: &'static str,
    /// A similar name, if there is one, and the names that tables can have.
    pub hint: String,
}

/// The names of all apps with their components, and of all standalone plugins.
#[derive(Clone, Debug, Default)]
pub(super) struct FoundNames {
    pub(super) apps: BTreeMap<AppName, BTreeSet<PluginName>>,
    pub(super) standalone: BTreeSet<PluginName>,
}

impl FoundNames {
    /// Adds the names in a version of an app.
    pub(super) fn add_app(&mut self, request: &AppRequest) {
        let components = self.apps.entry(request.app.clone()).or_default();
        components.extend(request.components.iter().cloned());
    }

    /// Adds the names of a later scan.
    pub(super) fn extend(&mut self, later: Self) {
        for (app, components) in later.apps {
            self.apps.entry(app).or_default().extend(components);
        }
        self.standalone.extend(later.standalone);
    }

    /// Returns the tables of apps and of grants that apply to nothing with one of these names.
    pub(super) fn unused_tables(&self, config: &Config, tables: &GrantTables) -> Vec<UnusedTable> {
        let apps = config.apps.keys().filter(|app| !self.apps.contains_key(*app));
        let apps = apps.map(|app| UnusedTable {
            table: format!("[apps.{app}]"),
            what: "app",
            hint: suggest::hint(app.as_str(), "apps", self.apps.keys().map(AppName::as_str)),
        });
        let grants = tables.by_key().keys().filter(|key| !self.has_plugin(key)).map(|key| {
            let names = self.names_like(key);
            let wanted = String::from(key.clone());
            UnusedTable {
                table: format!("[grants.{key}]"),
                what: "plugin",
                hint: suggest::hint(&wanted, "plugins", names.iter().map(String::as_str)),
            }
        });
        apps.chain(grants).collect()
    }

    /// Returns true if there is a plugin with the name of a table. A table without the name of an
    /// app may have the name of any component: another note says if it applies to none of them.
    fn has_plugin(&self, key: &GrantKey) -> bool {
        let GrantKey { app, plugin } = key;
        let is_standalone = self.standalone.contains(plugin);
        match app {
            Some(app) => {
                let components = self.apps.get(app);
                components.is_some_and(|own| is_standalone || own.contains(plugin))
            }
            None => is_standalone || self.apps.values().any(|own| own.contains(plugin)),
        }
    }

    /// Returns the names that tables can have in place of a name: names of plugins in apps if the
    /// name has an app.
    fn names_like(&self, key: &GrantKey) -> Vec<String> {
        let own = self.apps.iter().flat_map(|(app, own)| own.iter().map(move |it| (app, it)));
        let in_app = key.app.is_some();
        let own = own.map(|(app, plugin)| {
            let is_shared = plugin.as_str() == app.as_str() && !in_app;
            if is_shared { plugin.to_string() } else { GrantKey::in_app(app, plugin).into() }
        });
        let mut names: Vec<String> = own.collect();
        for plugin in &self.standalone {
            if in_app {
                let in_apps = self.apps.keys().map(|app| GrantKey::in_app(app, plugin));
                names.extend(in_apps.map(String::from));
            } else {
                names.push(plugin.to_string());
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{GrantSpec, parse};
    use crate::load::grants::KnownNames;

    fn found() -> FoundNames {
        let names = |names: &[&str]| names.iter().map(|it| it.parse().unwrap()).collect();
        let app = |app: &str, components: &[&str]| (app.parse().unwrap(), names(components));
        let apps = [app("nl2sql", &["nl2sql"]), app("shop", &["desk", "till"])];
        let apps = apps.into();
        FoundNames { apps, standalone: names(&["std"]) }
    }

    fn unused(config: &str) -> Vec<(String, String)> {
        let config = parse(config, Path::new("/")).unwrap();
        let tables = GrantTables::new(&config, config.grants.clone(), KnownNames::default());
        let unused = found().unused_tables(&config, &tables);
        unused.into_iter().map(|unused| (unused.table, unused.hint)).collect()
    }

    #[test]
    fn tables_of_plugins_and_apps_that_exist_are_used() {
        let config = "[apps.nl2sql]\n[apps.shop]\n[grants.nl2sql]\n[grants.std]\n[grants.desk]\n\
                      [grants.\"shop/desk\"]\n[grants.\"shop/std\"]\n[grants.\"nl2sql/nl2sql\"]\n";
        assert!(unused(config).is_empty(), "{:?}", unused(config));
    }

    #[test]
    fn the_table_of_a_former_component_is_used_while_its_version_is() {
        let config = parse("[apps.bank]\n[grants.\"bank/vault\"]\n", Path::new("/")).unwrap();
        let tables = GrantTables::new(&config, config.grants.clone(), KnownNames::default());
        let mut names = found();
        assert_eq!(names.unused_tables(&config, &tables).len(), 2);
        names.add_app(&AppRequest {
            app: "bank".parse().unwrap(),
            components: ["vault".parse().unwrap()].into(),
            needs: GrantSpec::default(),
        });
        assert!(names.unused_tables(&config, &tables).is_empty());
    }

    #[test]
    fn misspelled_tables_are_unused_and_have_a_suggestion() {
        for (table, expected) in [
            ("[apps.shpo]", "did you mean `shop`? apps: `nl2sql`, `shop`"),
            ("[grants.nl2sq]", "did you mean `nl2sql`? plugins: `nl2sql`, `shop/desk`"),
            ("[grants.sdt]", "did you mean `std`? plugins:"),
            ("[grants.\"shop/dsek\"]", "did you mean `shop/desk`? plugins: `nl2sql/nl2sql`"),
            ("[grants.\"shpo/desk\"]", "did you mean `shop/desk`? plugins:"),
            ("[grants.\"shop/sdt\"]", "did you mean `shop/std`? plugins:"),
            ("[grants.\"bank/vault\"]", "plugins: `nl2sql/nl2sql`"),
        ] {
            let unused = unused(table);
            let [(found, hint)] = &unused[..] else { panic!("{table}: {unused:?}") };
            assert_eq!(found, table);
            assert!(hint.starts_with(expected), "{hint}");
        }
    }
}
