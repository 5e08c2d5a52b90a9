//! Names of apps and plugins that scans have found, the tables that have none of them, and the
//! grants that none of the apps requests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use wattle_graph::id::{AppName, PluginName};
use wattle_graph::suggest;
use wattle_run::grant::{GrantKey, RequestPlace};

use super::grants::{GrantTables, unrequested};
use crate::config::{Config, GrantSpec};

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

/// A granted permission that has no effect, because nothing requests it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrequestedGrant {
    /// The permission, as a line of TOML.
    pub line: String,
    /// The table, as in `wattle.toml`.
    pub table: String,
    /// Where to request the permission.
    pub hint: String,
}

impl fmt::Display for UnrequestedGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, table, .. } = self;
        write!(f, "`{line}` under `{table}` has no effect, because nothing requests it")
    }
}

/// The names of all apps with their components, and of all standalone plugins.
#[derive(Clone, Debug, Default)]
pub(super) struct FoundNames {
    pub(super) apps: BTreeMap<AppName, BTreeSet<PluginName>>,
    pub(super) standalone: BTreeSet<PluginName>,
    /// What each app requests.
    pub(super) needs: BTreeMap<AppName, GrantSpec>,
}

impl FoundNames {
    /// Adds the names of a later scan, and replaces the requests of its apps.
    pub(super) fn extend(&mut self, later: Self) {
        for (app, components) in later.apps {
            self.apps.entry(app).or_default().extend(components);
        }
        self.standalone.extend(later.standalone);
        self.needs.extend(later.needs);
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

    /// Returns the granted permissions that have no effect, because the apps to which their table
    /// applies do not request them. Tables of plugins that may have a request in their component
    /// are left out: the load of the component notes what it does not request.
    pub(super) fn unrequested_grants(&self, tables: &GrantTables) -> Vec<UnrequestedGrant> {
        let mut found = Vec::new();
        for (key, granted) in tables.by_key() {
            let requests = self.requests_of(key, tables);
            if requests.is_empty() {
                continue;
            }
            let needs: Vec<&GrantSpec> = requests.iter().map(|(_, needs)| *needs).collect();
            let places: Vec<&str> = requests.iter().map(|(place, _)| place.as_str()).collect();
            let table = format!("[grants.{key}]");
            let hint = format!("add it {}, or take it out of `{table}`", places.join(" or "));
            found.extend(unrequested(granted, &needs).into_iter().map(|line| UnrequestedGrant {
                line,
                table: table.clone(),
                hint: hint.clone(),
            }));
        }
        found
    }

    /// Returns the requests to which a table applies, each with its place. Returns none if the
    /// table is that of a standalone plugin in all apps.
    fn requests_of(&self, key: &GrantKey, tables: &GrantTables) -> Vec<(String, &GrantSpec)> {
        let plugin = &key.plugin;
        let is_shared = key.app.is_none() && self.standalone.contains(plugin);
        if is_shared && tables.table_of_standalone(plugin).is_some() {
            return Vec::new();
        }
        let mut requests = Vec::new();
        for (app, needs) in &self.needs {
            let is_own = self.apps.get(app).is_some_and(|own| own.contains(plugin));
            let table = tables.table_of(app, plugin, is_own);
            if table.key != *key || table.granted.is_none() {
                continue;
            }
            let request = if is_own {
                Some((RequestPlace::App, needs))
            } else {
                let place = RequestPlace::AppForPlugin(plugin.clone());
                needs.plugins.get(plugin).map(|needs| (place, needs))
            };
            requests
                .extend(request.map(|(place, needs)| (format!("{place} of app `{app}`"), needs)));
        }
        requests
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
    use crate::config::parse;
    use crate::load::grants::KnownNames;

    fn found() -> FoundNames {
        let names = |names: &[&str]| names.iter().map(|it| it.parse().unwrap()).collect();
        let app = |app: &str, components: &[&str]| (app.parse().unwrap(), names(components));
        let apps = [app("nl2sql", &["nl2sql"]), app("shop", &["desk", "till"])];
        let apps = apps.into();
        FoundNames { apps, standalone: names(&["std"]), ..FoundNames::default() }
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
    fn grants_that_no_app_requests_are_found_with_the_place_of_the_request() {
        let mut names = found();
        let chat: GrantSpec = toml::from_str("llm = [\"chat\"]").unwrap();
        let plugins = [("std".parse().unwrap(), chat.clone())].into();
        names.needs = [
            ("nl2sql".parse().unwrap(), GrantSpec { plugins, ..chat }),
            ("shop".parse().unwrap(), GrantSpec::default()),
        ]
        .into();
        let unrequested = |text: &str| {
            let config = parse(text, Path::new("/")).unwrap();
            let tables = GrantTables::new(&config, config.grants.clone(), KnownNames::default());
            let found = names.unrequested_grants(&tables);
            found.iter().map(|it| format!("{it}: {}", it.hint)).collect::<Vec<_>>()
        };
        let reason = "has no effect, because nothing requests it: add it under";
        assert_eq!(
            unrequested("[grants.nl2sql]\nllm = [\"chat\", \"sql\"]\n"),
            [format!(
                "`llm = [\"sql\"]` under `[grants.nl2sql]` {reason} `[needs]` in app.toml of app \
                 `nl2sql`, or take it out of `[grants.nl2sql]`"
            )]
        );
        let found = unrequested("[grants.\"nl2sql/std\"]\ntools = [\"a/b\"]\nllm = [\"chat\"]\n");
        assert_eq!(found.len(), 1, "{found:?}");
        let place = "`[needs.plugins.std]` in app.toml of app `nl2sql`, or take it out";
        assert!(found[0].contains(&format!("{reason} {place}")), "{found:?}");
        assert_eq!(unrequested("[grants.\"shop/desk\"]\nllm = [\"chat\"]\n").len(), 1);
        // The component of a standalone plugin may request what its table grants.
        for table in ["[grants.std]", "[grants.\"shop/std\"]"] {
            let found = unrequested(&format!("{table}\nllm = [\"vision\"]\n"));
            assert!(found.is_empty(), "{found:?}");
        }
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
