//! Migrations of apps. They may do anything to a database, so they need the operator's permission.

use wattle_graph::id::{AppName, PluginName};
use wattle_run::grant::SqlAccess;
use wattle_sql::Script;

use crate::config::{Config, MigrateRule, Needs};
use crate::load::grants;

/// The migrations of an app for one database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseMigrations {
    /// Name of the database.
    pub database: String,
    /// Content of the migration files.
    pub scripts: Vec<Script>,
}

/// The migrations of an app may not change a database.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "app `{app}` may not change database `{database}` by its migrations, because it is not granted \
     write access to it\n  hint: {hint}"
)]
pub struct NotPermitted {
    /// Name of the app.
    pub app: AppName,
    /// Name of the database.
    pub database: String,
    /// The entry to add to the configuration.
    pub hint: String,
}

/// The parts of an app on which it depends whether its migrations are permitted.
pub struct MigrationRequest<'a> {
    /// Name of the app.
    pub app: &'a AppName,
    /// The app's own plugins.
    pub plugins: Vec<&'a PluginName>,
    /// Permissions that the app requests for its own plugins.
    pub needs: &'a Needs,
}

impl MigrationRequest<'_> {
    /// Returns the refusal if the app may not change a database. A database that is not configured
    /// is a problem of another kind.
    pub fn refusal(&self, database: &str, config: &Config) -> Option<NotPermitted> {
        let app = self.app;
        let hint = match &config.sql.get(database)?.migrate {
            MigrateRule::Nobody => return None,
            MigrateRule::Writers if self.is_trusted(config) => return None,
            MigrateRule::Writers if self.has_writer(database, config) => return None,
            MigrateRule::Writers => self.missing_entry(database),
            MigrateRule::Apps(apps) if apps.contains(app) => return None,
            MigrateRule::Apps(_) => {
                format!("add `\"{app}\"` to `migrate` under `[sql.{database}]` in wattle.toml")
            }
        };
        Some(NotPermitted { app: app.clone(), database: database.to_owned(), hint })
    }

    /// Returns true if the operator trusts the app and says nothing about its plugins. It is
    /// granted what it requests, and it requests its migrations.
    fn is_trusted(&self, config: &Config) -> bool {
        config.apps.contains_key(self.app)
            && !self.plugins.iter().any(|plugin| config.grants.contains_key(*plugin))
    }

    /// Returns true if a plugin of the app itself is granted write access to a database.
    fn has_writer(&self, database: &str, config: &Config) -> bool {
        let is_vouched = config.apps.contains_key(self.app);
        self.plugins.iter().any(|plugin| {
            let granted = config.grants.get(*plugin);
            let decision = grants::decide(plugin, self.needs, granted, is_vouched);
            let rule = decision.grants.sql.get(database);
            rule.is_some_and(|rule| rule.access == SqlAccess::ReadWrite)
        })
    }

    /// Returns the grant that the app requests, if it would permit the migrations.
    fn missing_entry(&self, database: &str) -> String {
        let needs = self.needs.databases();
        let requests = needs.get(database).is_some_and(|rule| rule.access == SqlAccess::ReadWrite);
        match self.plugins.first() {
            Some(plugin) if requests => format!(
                "add `sql = [{{ database = \"{database}\", access = \"read-write\" }}]` under \
                 `[grants.{plugin}]` in wattle.toml"
            ),
            _ => format!(
                "add `migrate = [\"{}\"]` under `[sql.{database}]` in wattle.toml",
                self.app
            ),
        }
    }
}

/// Formats an error with its causes, because the message of an error does not contain them.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::parse;
    use crate::load::manifest::Manifest;

    const MANIFEST: &str = r#"
        [app]
        name = "shop"
        version = "1"
        [components]
        desk = "desk.wasm"
        [needs]
        sql = [{ database = "notes", access = "read-write" }, { database = "sales" }]
        [migrations.notes]
        sqlite = "notes"
        [migrations.sales]
        sqlite = "sales"
        [migrations.nowhere]
        sqlite = "nowhere"
    "#;

    /// Returns the databases that the app may not change, with the hints.
    fn refused(config: &str) -> Vec<(String, String)> {
        let urls = "[sql.notes]\nurl = \"sqlite:notes.db\"\n\
                    [sql.sales]\nurl = \"sqlite:sales.db\"\n";
        let config = parse(&format!("{urls}{config}"), Path::new("/")).unwrap();
        let refused = Manifest::parse(MANIFEST).unwrap().refused_migrations(&config);
        refused.into_iter().map(|it| (it.database, it.hint)).collect()
    }

    fn databases(config: &str) -> Vec<String> {
        refused(config).into_iter().map(|(database, _)| database).collect()
    }

    #[test]
    fn migrations_need_write_access() {
        let all = refused("");
        let hint = "`sql = [{ database = \"notes\", access = \"read-write\" }]` under \
                    `[grants.desk]`";
        assert!(all[0].1.contains(hint), "{all:?}");
        assert!(all[1].1.contains("`migrate = [\"shop\"]` under `[sql.sales]`"), "{all:?}");

        let grant = |access: &str| {
            format!("[grants.desk]\nsql = [{{ database = \"notes\", access = \"{access}\" }}]\n")
        };
        assert_eq!(databases(&grant("read-only")), ["notes", "sales"]);
        assert_eq!(databases(&grant("read-write")), ["sales"]);
        // A grant for a plugin of others is none for this app.
        assert_eq!(databases(&grant("read-write").replace("desk", "std")), ["notes", "sales"]);
        assert!(databases("[apps.shop]\n").is_empty(), "a trusted app gets what it requests");
        let limited = format!("[apps.shop]\n{}", grant("read-write"));
        assert_eq!(databases(&limited), ["sales"], "the operator listed what it gets");
    }

    #[test]
    fn a_database_can_name_the_apps_that_change_it() {
        let named = |rule: &str| {
            let text = "[sql.sales]\nurl = \"sqlite:sales.db\"\n";
            let config = parse(&format!("{text}migrate = {rule}\n[apps.shop]\n"), Path::new("/"));
            Manifest::parse(MANIFEST).unwrap().refused_migrations(&config.unwrap())
        };
        assert!(named("[\"shop\", \"other\"]").is_empty());
        assert!(named("false").is_empty());
        let refused = named("[\"other\"]");
        let hint = "add `\"shop\"` to `migrate` under `[sql.sales]`";
        assert!(refused[0].to_string().contains(hint), "{refused:?}");
    }
}
