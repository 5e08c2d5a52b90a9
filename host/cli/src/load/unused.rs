//! Reports tables of the configuration that apply to nothing, such as misspelled ones, and grants
//! that nothing requests.

use super::found_names::{FoundNames, UnrequestedGrant, UnusedTable};
use super::load_state::LoadState;
use super::manifest::Manifest;
use super::scan::{DiscoveredFiles, Snapshot, name_of_plugin, scan};
use super::{Change, LoaderInner, grant_tables};
use crate::config::Config;

/// Returns the tables of the configuration that apply to no app and no plugin on disk.
pub fn unused_tables(config: &Config) -> Vec<UnusedTable> {
    let found = names_on_disk(config);
    found.map(|it| it.unused_tables(config, &grant_tables(config))).unwrap_or_default()
}

/// Returns the granted permissions of the configuration that no app on disk requests. Components
/// are not loaded, so tables of standalone plugins that may have a request of their own are left
/// out.
pub fn unrequested_grants(config: &Config) -> Vec<UnrequestedGrant> {
    let found = names_on_disk(config);
    found.map(|it| it.unrequested_grants(&grant_tables(config))).unwrap_or_default()
}

/// Returns the names of all apps and plugins on disk; `None` if some of them are unknown.
fn names_on_disk(config: &Config) -> Option<FoundNames> {
    let DiscoveredFiles { apps, plugins, unusable, .. } = scan(config);
    if !unusable.is_empty() {
        return None;
    }
    let standalone = plugins.iter().filter_map(|path| name_of_plugin(path)).collect();
    let mut found = FoundNames { standalone, ..FoundNames::default() };
    for folder in &apps {
        // The names in an invalid manifest are unknown.
        let Manifest { app, components, needs, .. } = Manifest::read(folder).ok()?;
        found.needs.insert(app.name.clone(), needs);
        found.apps.entry(app.name).or_default().extend(components.into_keys());
    }
    Some(found)
}

impl LoaderInner {
    /// Sends a change for each table that applies to nothing, and for each grant that nothing
    /// requests, for which none was sent yet. A file that is missing while it is replaced has been
    /// found by an earlier scan. If a manifest is invalid, or a folder is not searched, then names
    /// are unknown, and nothing is sent.
    pub(super) fn report_unused(
        &self,
        state: &mut LoadState,
        found: &Snapshot,
        send: impl Fn(Change),
    ) {
        let Some(names) = found.all_names().filter(|_| !self.is_replay) else { return };
        state.names.extend(names);
        let tables = self.grant_registry().tables();
        let unused = state.names.unused_tables(&self.config, &tables).into_iter();
        let unused = unused.map(|it| (it.table.clone(), Change::Unused(it)));
        let unrequested = state.names.unrequested_grants(&tables).into_iter();
        let unrequested = unrequested.map(|it| (it.to_string(), Change::Unrequested(it)));
        let changes: Vec<(String, Change)> = unused.chain(unrequested).collect();
        let current = changes.iter().map(|(name, _)| name.clone()).collect();
        let reported = std::mem::replace(&mut state.unused, current);
        let new = changes.into_iter().filter(|(name, _)| !reported.contains(name));
        new.for_each(|(_, change)| send(change));
    }
}
