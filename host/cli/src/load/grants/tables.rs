//! The operator's tables of grants, and the plugins to which they apply.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use wattle_graph::id::{AppName, PluginName};
use wattle_run::grant::{FolderAccess, GrantKey};

use crate::config::{Config, GrantSpec};
use crate::files_folder::FilesFolder;
use crate::load::app_request::{AppRequest, AppRequests};
use crate::paths::leads_through;

/// Names of apps and plugins, which decide to which plugin `[grants.<plugin>]` applies.
///
/// A running host keeps all names that a scan has found. A plugin file can be missing for a moment
/// while it is being replaced. In that moment, the table of its plugin must not apply to another
/// plugin of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownNames {
    /// Names of standalone plugins.
    pub standalone: BTreeSet<PluginName>,
    /// Names that apps share with one of their components.
    pub shared: BTreeSet<PluginName>,
}

/// The tables of grants.
///
/// The table of a plugin of an app is `[grants."<app>/<plugin>"]`. If there is no such table, the
/// table is `[grants.<plugin>]`:
///
/// * for the component of an app with the same name, if the operator has a table for the app, or no
///   standalone plugin has this name;
/// * for a standalone plugin, if the operator has no table for an app of this name, and no such app
///   has a component of this name.
///
/// A folder or file therefore never gets the grants of another folder or file because of its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GrantTables {
    tables: BTreeMap<GrantKey, GrantSpec>,
    /// Apps that the operator trusts.
    apps: BTreeSet<AppName>,
    names: KnownNames,
    /// What apps request, for notes about grants without an effect.
    requests: AppRequests,
}

/// The table of a plugin of an app.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginTable<'a> {
    /// Name of the table. If the plugin has no table, this is the name of the table that the
    /// operator can add.
    pub key: GrantKey,
    /// Content of the table, if the plugin has one.
    pub granted: Option<&'a GrantSpec>,
    /// Whether the operator trusts the app, and has no table with the name of the plugin.
    pub is_trusted: bool,
    /// A table with the name of this plugin that applies to another plugin, if this plugin has no
    /// table.
    pub foreign: Option<GrantKey>,
}

impl GrantTables {
    /// Creates the tables. `tables` are the tables of grants of a configuration.
    pub fn new(config: &Config, tables: BTreeMap<GrantKey, GrantSpec>, names: KnownNames) -> Self {
        let apps = config.apps.keys().cloned().collect();
        Self { tables, apps, names, requests: AppRequests::default() }
    }

    /// Returns the same tables with the names of further apps and plugins.
    #[must_use]
    pub fn with_names(&self, names: KnownNames) -> Self {
        let mut tables = self.clone();
        tables.names.standalone.extend(names.standalone);
        tables.names.shared.extend(names.shared);
        tables
    }

    /// Returns the same tables with other requests of apps.
    #[must_use]
    pub(crate) fn with_requests(&self, requests: AppRequests) -> Self {
        Self { requests, ..self.clone() }
    }

    /// Returns what the versions of apps request that threads may use.
    pub(crate) fn versions_in_use(&self) -> &[AppRequest] {
        &self.requests.in_use
    }

    /// Returns the given tables with the names and the requests of apps in this value.
    #[must_use]
    pub fn with_tables(&self, tables: BTreeMap<GrantKey, GrantSpec>) -> Self {
        Self { tables, ..self.clone() }
    }

    /// Returns true if `others` has the same tables.
    pub fn has_same_tables(&self, others: &Self) -> bool {
        self.tables == others.tables
    }

    /// Returns the tables by name.
    pub(crate) fn by_key(&self) -> &BTreeMap<GrantKey, GrantSpec> {
        &self.tables
    }

    /// Returns true if the operator trusts an app.
    pub fn trusts(&self, app: &AppName) -> bool {
        self.apps.contains(app)
    }

    /// Returns true if a table has the name of a plugin, either for the app or for all apps.
    pub fn has_table_named(&self, app: &AppName, plugin: &PluginName) -> bool {
        let keys = [GrantKey::in_app(app, plugin), GrantKey::of_plugin(plugin)];
        keys.iter().any(|key| self.tables.contains_key(key))
    }

    /// Returns the table of a standalone plugin outside of apps. A plugin whose name is also that of
    /// an app has none, because the table then belongs to the component of the app.
    pub fn table_of_standalone(&self, plugin: &PluginName) -> Option<&GrantSpec> {
        let is_of_app = self.apps.contains(plugin.as_str()) || self.names.shared.contains(plugin);
        self.tables.get(&GrantKey::of_plugin(plugin)).filter(|_| !is_of_app)
    }

    /// Returns true if a table is that of a standalone plugin in all apps without a table of their
    /// own for it.
    pub(crate) fn is_of_standalone(&self, key: &GrantKey) -> bool {
        let GrantKey { app, plugin } = key;
        let is_standalone = app.is_none() && self.names.standalone.contains(plugin);
        is_standalone && self.table_of_standalone(plugin).is_some()
    }

    /// Returns the requests on disk of the apps to which a table applies.
    pub(crate) fn current_requests(&self, key: &GrantKey) -> impl Iterator<Item = &AppRequest> {
        self.requests.current.iter().filter(move |request| self.applies_to(key, request))
    }

    /// Returns the requests of the versions in use to which a table applies.
    pub(crate) fn requests_in_use(&self, key: &GrantKey) -> impl Iterator<Item = &AppRequest> {
        self.requests.in_use.iter().filter(move |request| self.applies_to(key, request))
    }

    /// Returns what apps request for the plugin of a table, on disk and in the versions in use.
    pub(crate) fn needs_of(&self, key: &GrantKey) -> Vec<&GrantSpec> {
        let requests = self.current_requests(key).chain(self.requests_in_use(key));
        let needs = requests.filter_map(|request| request.for_plugin(&key.plugin));
        needs.map(|(_, needs)| needs).collect()
    }

    /// Returns true if a table is that of a plugin of an app.
    fn applies_to(&self, key: &GrantKey, request: &AppRequest) -> bool {
        let is_own = request.components.contains(&key.plugin);
        let table = self.table_of(&request.app, &key.plugin, is_own);
        table.granted.is_some() && table.key == *key
    }

    /// Returns the table of a plugin of an app. `is_own` is true for a component of the app, and
    /// false for a standalone plugin.
    pub fn table_of(&self, app: &AppName, plugin: &PluginName, is_own: bool) -> PluginTable<'_> {
        let (own, shared) = (GrantKey::in_app(app, plugin), GrantKey::of_plugin(plugin));
        let found = |key: GrantKey, granted| {
            let (is_trusted, foreign) = (self.trusts(app), None);
            PluginTable { key, granted: Some(granted), is_trusted, foreign }
        };
        let is_for = self.is_shared_table_for(app, plugin, is_own);
        match (self.tables.get(&own), self.tables.get(&shared)) {
            (Some(granted), _) => found(own, granted),
            (None, Some(granted)) if is_for => found(shared, granted),
            (None, Some(_)) => {
                let foreign = Some(shared);
                PluginTable { key: own, granted: None, is_trusted: false, foreign }
            }
            (None, None) => {
                let key = if is_own && is_for { shared } else { own };
                let is_trusted = self.trusts(app);
                PluginTable { key, granted: None, is_trusted, foreign: None }
            }
        }
    }

    /// Returns a granted folder to which a component may write and through which the path of a
    /// folder of projected files leads, if there is such a folder.
    pub(crate) fn writable_folder_on_path(&self, files: &FilesFolder) -> Option<&Path> {
        let granted = self.tables.values().flat_map(|needs| &needs.folders);
        let writable = granted.filter(|folder| folder.access == FolderAccess::ReadWrite);
        let mut paths = writable.map(|folder| folder.path.as_path());
        paths.find(|folder| leads_through(files.root(), folder))
    }

    /// Returns true if `[grants.<plugin>]` is the table of a plugin of an app.
    fn is_shared_table_for(&self, app: &AppName, plugin: &PluginName, is_own: bool) -> bool {
        let is_trusted_app = self.apps.contains(plugin.as_str());
        if is_own {
            let is_alone = is_trusted_app || !self.names.standalone.contains(plugin);
            app.as_str() == plugin.as_str() && is_alone
        } else {
            !is_trusted_app && !self.names.shared.contains(plugin)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn tables(config: &str, standalone: &[&str], shared: &[&str]) -> GrantTables {
        let config = parse(config, Path::new("/")).unwrap();
        let names = KnownNames { standalone: names(standalone), shared: names(shared) };
        GrantTables::new(&config, config.grants.clone(), names)
    }

    fn names(names: &[&str]) -> BTreeSet<PluginName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    /// Returns the name of the table of a plugin. For a plugin without a table, returns the name of
    /// the table to add as an error.
    fn table(
        tables: &GrantTables,
        app: &str,
        plugin: &str,
        is_own: bool,
    ) -> Result<String, String> {
        let table = tables.table_of(&app.parse().unwrap(), &plugin.parse().unwrap(), is_own);
        let key = table.key.to_string();
        if table.granted.is_some() { Ok(key) } else { Err(key) }
    }

    const ASSET: &str = "[grants.asset]\nllm = [\"chat\"]\n";

    #[test]
    fn a_component_gets_the_table_with_its_name_only_in_the_app_with_this_name() {
        let tables = tables(ASSET, &[], &["asset"]);
        assert_eq!(table(&tables, "asset", "asset", true), Ok("asset".to_owned()));
        let evil = Err("\"evil/asset\"".to_owned());
        assert_eq!(table(&tables, "evil", "asset", true), evil);
        assert_eq!(table(&tables, "evil", "asset", false), evil);
        assert_eq!(table(&tables, "asset", "other", true), Err("\"asset/other\"".to_owned()));
        assert_eq!(table(&tables, "shop", "shop", true), Err("shop".to_owned()));
    }

    #[test]
    fn a_standalone_plugin_has_one_table_for_all_apps() {
        let text = format!("{ASSET}[grants.\"shop/asset\"]\n");
        let tables = tables(&text, &["asset", "std"], &[]);
        assert_eq!(table(&tables, "desk", "asset", false), Ok("asset".to_owned()));
        assert_eq!(table(&tables, "shop", "asset", false), Ok("\"shop/asset\"".to_owned()));
        assert_eq!(table(&tables, "desk", "std", false), Err("\"desk/std\"".to_owned()));
    }

    #[test]
    fn a_table_named_like_two_plugins_applies_only_to_the_component_of_a_configured_app() {
        let both = |config: &str| {
            let tables = tables(config, &["asset"], &["asset"]);
            ["asset", "desk"].map(|app| table(&tables, app, "asset", app == "asset"))
        };
        let in_app = |app: &str| format!("\"{app}/asset\"");
        assert_eq!(both(ASSET), [Err(in_app("asset")), Err(in_app("desk"))]);
        let named = format!("{ASSET}[apps.asset]\n");
        assert_eq!(both(&named), [Ok("asset".to_owned()), Err(in_app("desk"))]);
    }

    #[test]
    fn a_standalone_plugin_outside_of_apps_never_has_the_table_of_an_app() {
        let has_table = |config: &str, shared: &[&str]| {
            let tables = tables(config, &["asset"], shared);
            tables.table_of_standalone(&"asset".parse().unwrap()).is_some()
        };
        assert!(has_table(ASSET, &[]));
        assert!(!has_table(ASSET, &["asset"]));
        assert!(!has_table(&format!("{ASSET}[apps.asset]\n"), &[]));
    }

    #[test]
    fn the_table_of_a_missing_plugin_does_not_apply_to_another_plugin_with_its_name() {
        let (none, asset): (&[&str], &[&str]) = (&[], &["asset"]);
        for (standalone, shared, is_own) in [(asset, none, true), (none, asset, false)] {
            let tables = tables(ASSET, standalone, shared).with_names(KnownNames::default());
            let missing = Err("\"asset/asset\"".to_owned());
            assert_eq!(table(&tables, "asset", "asset", is_own), missing);
        }
    }

    #[test]
    fn a_plugin_with_a_table_of_its_name_is_not_trusted() {
        let tables = tables(&format!("{ASSET}[apps.shop]\n"), &[], &[]);
        let of = |plugin: &str| {
            let table = tables.table_of(&"shop".parse().unwrap(), &plugin.parse().unwrap(), true);
            (table.is_trusted, table.foreign.map(|key| key.to_string()))
        };
        assert_eq!(of("desk"), (true, None));
        assert_eq!(of("asset"), (false, Some("asset".to_owned())));
        let app = "shop".parse().unwrap();
        let has_table = |plugin: &str| tables.has_table_named(&app, &plugin.parse().unwrap());
        assert!(tables.trusts(&app) && has_table("asset") && !has_table("desk"));
    }
}
