//! Reports tables of the configuration that apply to nothing, such as misspelled ones, and grants
//! that nothing requests.

use super::app_request::AppRequests;
use super::archive::{self, ArchivedVersion};
use super::found_names::{FoundNames, UnusedTable};
use super::grants::{GrantTables, UnrequestedGrant, unrequested_grants};
use super::load_state::LoadState;
use super::scan::{Snapshot, snapshot};
use super::{Change, LoaderInner};
use crate::config::Config;

/// What in a configuration has no effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unused {
    /// Tables that apply to no app and no plugin.
    pub tables: Vec<UnusedTable>,
    /// Granted permissions that no app requests.
    pub grants: Vec<UnrequestedGrant>,
}

impl Unused {
    /// Compares the configuration with the names of apps and plugins, to which it adds those of the
    /// versions in use.
    fn new(config: &Config, names: &mut FoundNames, tables: &GrantTables) -> Self {
        tables.versions_in_use().iter().for_each(|version| names.add_app(version));
        let grants = unrequested_grants(tables);
        Self { tables: names.unused_tables(config, tables), grants }
    }
}

/// Compares the configuration with the apps and plugins on disk, and with the archived versions of
/// apps. Components are not loaded, so grants of standalone plugins that may have a request of
/// their own are left out. Returns nothing if some names are unknown.
pub fn find_unused(config: &Config) -> Unused {
    let found = snapshot(config);
    let Some(mut names) = found.all_names() else { return Unused::default() };
    let tables = GrantTables::new(config, config.grants.clone(), found.names());
    let in_use = archive::all(config).iter().filter_map(ArchivedVersion::request).collect();
    let tables = tables.with_requests(AppRequests { current: found.requests(), in_use });
    Unused::new(config, &mut names, &tables)
}

impl LoaderInner {
    /// Sends a change for each table that applies to nothing, and for each grant that nothing
    /// requests, that the last comparison did not have. A file that is missing while it is replaced
    /// has been found by an earlier scan. If a manifest is invalid, or a folder is not searched,
    /// then names are unknown, and nothing is sent.
    pub(super) fn report_unused(
        &self,
        state: &mut LoadState,
        found: &Snapshot,
        send: impl Fn(Change),
    ) {
        let Some(names) = found.all_names().filter(|_| !self.is_replay) else { return };
        state.names.extend(names);
        let tables = self.grant_registry().tables();
        let unused = Unused::new(&self.config, &mut state.names, &tables);
        let tables = unused.tables.into_iter().map(|it| (it.table.clone(), Change::Unused(it)));
        let grants = unused.grants.into_iter().map(|it| (it.to_string(), Change::Unrequested(it)));
        let changes: Vec<(String, Change)> = tables.chain(grants).collect();
        let current = changes.iter().map(|(name, _)| name.clone()).collect();
        let reported = std::mem::replace(&mut state.unused, current);
        let new = changes.into_iter().filter(|(name, _)| !reported.contains(name));
        new.for_each(|(_, change)| send(change));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::config::{GrantSpec, parse};

    #[test]
    fn unused_tables_and_grants_are_found_unless_a_manifest_is_invalid() {
        let base = tempfile::tempdir().unwrap();
        let app = base.path().join("plugins/shop");
        fs::create_dir_all(&app).unwrap();
        let manifest = "[app]\nname = \"shop\"\nversion = \"1\"\n\
                        [components]\nshop = \"shop.wasm\"\n";
        fs::write(app.join("app.toml"), manifest).unwrap();
        let mut config = Config::in_folder(base.path());
        let chat: GrantSpec = toml::from_str("llm = [\"chat\"]").unwrap();
        config.grants = ["shop", "shpo"].map(|key| (key.parse().unwrap(), chat.clone())).into();
        let Unused { tables, grants } = find_unused(&config);
        let tables: Vec<&str> = tables.iter().map(|it| it.table.as_str()).collect();
        let grants: Vec<&str> = grants.iter().map(|it| it.table.as_str()).collect();
        assert_eq!((tables, grants), (vec!["[grants.shpo]"], vec!["[grants.shop]"]));
        fs::write(app.join("app.toml"), "[app]\n").unwrap();
        assert_eq!(find_unused(&config), Unused::default());
    }

    #[test]
    fn an_app_without_a_folder_hides_no_unused_table() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("plugins")).unwrap();
        fs::write(base.path().join("plugins/meddler.wasm"), "").unwrap();
        let unused = |base: &Path| {
            let text = "[apps.joter]\npath = \"nowhere\"\n[grants.medler]\n";
            let tables = find_unused(&parse(text, base).unwrap()).tables;
            tables.into_iter().map(|it| (it.table, it.hint)).collect::<Vec<_>>()
        };
        let app = ("[apps.joter]".to_owned(), "apps: none".to_owned());
        let hint = "did you mean `meddler`? plugins: `meddler`";
        let grants = ("[grants.medler]".to_owned(), hint.to_owned());
        assert_eq!(unused(base.path()), [app.clone(), grants]);
        let grants = ("[grants.medler]".to_owned(), "plugins: none".to_owned());
        assert_eq!(unused(Path::new("/does/not/exist")), [app, grants]);
    }
}
