//! The results of the last loads of apps and plugins, and the loads in progress.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tokio::task::AbortHandle;
use wattle_graph::id::{AppName, PluginName};

use crate::config::Config;
use crate::load::file::FileLocation;
use crate::load::found_names::FoundNames;
use crate::load::scan::{self, Fingerprint};

/// The kind of item at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    /// A standalone plugin.
    Plugin,
    /// An app.
    App,
}

/// The load of a file or folder. A newer load of the same path replaces an older load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) path: PathBuf,
    pub(super) kind: ItemKind,
    /// True if only a dependency of the path has changed since the last load, and not the path
    /// itself.
    pub(super) is_reload: bool,
    number: u64,
}

/// The reason why an app is not loaded.
pub(super) struct NotLoaded {
    pub(super) message: String,
    /// The app, if it was read but its migrations could not be applied.
    pub(super) unavailable: Option<AppName>,
}

impl From<String> for NotLoaded {
    fn from(message: String) -> Self {
        Self { message, unavailable: None }
    }
}

/// A load in progress.
struct RunningLoad {
    load: Load,
    /// Aborts the current task of the load; `None` before the first task.
    task: Option<AbortHandle>,
}

impl Drop for RunningLoad {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// The state of all files and folders.
#[derive(Default)]
pub(super) struct LoadState {
    fingerprints: BTreeMap<PathBuf, Fingerprint>,
    /// Installed apps by folder.
    pub(super) apps: BTreeMap<PathBuf, AppName>,
    /// Installed standalone plugins by file.
    pub(super) plugins: BTreeMap<PathBuf, PluginName>,
    /// Folders of all apps, with the names in their manifests.
    pub(super) folders: BTreeMap<PathBuf, Option<AppName>>,
    /// Files of all standalone plugins, with the plugin names, which are derived from the file
    /// names.
    pub(super) standalone: BTreeMap<PathBuf, PluginName>,
    /// Files and folders that are not loaded because other files or folders have the same name.
    pub(super) duplicates: BTreeSet<PathBuf>,
    /// Folders whose last load failed.
    pub(super) failed: BTreeSet<PathBuf>,
    /// Folders whose last load failed while plugins were being loaded. The apps may depend on these
    /// plugins.
    pub(super) awaiting_plugins: BTreeSet<PathBuf>,
    /// Number of changes of the standalone plugins so far.
    pub(super) plugin_changes: u64,
    /// All names that scans have found.
    pub(super) names: FoundNames,
    /// Tables of the configuration that apply to nothing, and grants that nothing requests.
    pub(super) unused: BTreeSet<String>,
    loads: BTreeMap<PathBuf, RunningLoad>,
    last_number: u64,
}

impl LoadState {
    /// Records the fingerprint of a path. Returns true if the fingerprint has changed.
    pub(super) fn record_fingerprint(&mut self, path: &Path, fingerprint: Fingerprint) -> bool {
        let has_changed = self.fingerprints.get(path) != Some(&fingerprint);
        self.fingerprints.insert(path.to_owned(), fingerprint);
        has_changed
    }

    /// Removes and returns the paths that are no longer found.
    pub(super) fn remove_missing(&mut self, is_found: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let missing = self.fingerprints.keys().filter(|path| !is_found(path));
        let missing: Vec<PathBuf> = missing.cloned().collect();
        for path in &missing {
            self.fingerprints.remove(path);
            self.failed.remove(path);
            self.duplicates.remove(path);
            self.awaiting_plugins.remove(path);
            self.loads.remove(path);
        }
        missing
    }

    /// Begins a load, and aborts an earlier load of the same path.
    pub(super) fn begin(&mut self, path: &Path, kind: ItemKind) -> Load {
        self.awaiting_plugins.remove(path);
        self.duplicates.remove(path);
        self.last_number += 1;
        let load = Load { path: path.to_owned(), kind, is_reload: false, number: self.last_number };
        self.loads.insert(path.to_owned(), RunningLoad { load: load.clone(), task: None });
        load
    }

    /// Begins the load of a path whose dependencies have changed. If a change of the path itself is
    /// not loaded yet, the load includes that change.
    pub(super) fn begin_reload(&mut self, path: &Path, kind: ItemKind) -> Load {
        let is_known = self.loads.get(path).is_none_or(|running| running.load.is_reload);
        let is_reload = is_known && !self.failed.contains(path);
        let mut load = self.begin(path, kind);
        load.is_reload = is_reload;
        if let Some(running) = self.loads.get_mut(path) {
            running.load = load.clone();
        }
        load
    }

    /// Records the task of a load.
    pub(super) fn set_task(&mut self, load: &Load, task: AbortHandle) {
        match self.loads.get_mut(&load.path).filter(|running| running.load == *load) {
            Some(running) => running.task = Some(task),
            None => task.abort(),
        }
    }

    /// Returns true if no newer load has replaced a load.
    pub(super) fn is_current(&self, load: &Load) -> bool {
        self.loads.get(&load.path).is_some_and(|running| running.load == *load)
    }

    /// Ends the load of a path.
    pub(super) fn end(&mut self, path: &Path) {
        self.loads.remove(path);
    }

    /// Returns true if something that was loaded from a path is in use.
    pub(super) fn has_version(&self, path: &Path) -> bool {
        self.apps.contains_key(path) || self.plugins.contains_key(path)
    }

    /// Returns true if a path is being loaded.
    pub(super) fn is_loading(&self, path: &Path) -> bool {
        self.loads.contains_key(path)
    }

    /// Returns the files that have a standalone plugin. The file from which the plugin was loaded
    /// comes first.
    pub(super) fn files_of_plugin(&self, plugin: &PluginName) -> impl Iterator<Item = &Path> {
        let found = self.standalone.iter();
        let others = found.filter(move |&(file, name)| self.plugins.get(file) != Some(name));
        let files = self.plugins.iter().chain(others);
        files.filter(move |(_, name)| *name == plugin).map(|(file, _)| file.as_path())
    }

    /// Returns the file names of the standalone plugins that are being loaded.
    pub(super) fn loading_plugins(&self) -> impl Iterator<Item = String> {
        let plugins = self.loads.values().filter(|running| running.load.kind == ItemKind::Plugin);
        plugins.filter_map(|running| {
            let name = running.load.path.file_stem()?.to_string_lossy();
            Some(name.escape_debug().to_string())
        })
    }

    /// Returns the files of the installed standalone plugins.
    pub(super) fn plugin_files(
        &self,
        config: &Config,
    ) -> impl Iterator<Item = (PluginName, FileLocation)> {
        let location = |path| scan::plugin_location(config, path);
        self.plugins.iter().map(move |(path, name)| (name.clone(), location(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_plugin_begin_with_the_loaded_one() {
        let mut state = LoadState::default();
        let plugin = PluginName::new("tools").unwrap();
        let [loaded, found] = ["b.wasm", "a.wasm"].map(PathBuf::from);
        state.plugins.insert(loaded.clone(), plugin.clone());
        for file in [&loaded, &found] {
            state.standalone.insert(file.clone(), plugin.clone());
        }
        assert_eq!(state.files_of_plugin(&plugin).collect::<Vec<_>>(), [&loaded, &found]);
    }

    #[test]
    fn a_newer_load_replaces_an_older_one() {
        let (mut state, path) = (LoadState::default(), Path::new("plugins/slow.wasm"));
        let old = state.begin(path, ItemKind::Plugin);
        assert!(state.is_current(&old));
        let new = state.begin_reload(path, ItemKind::Plugin);
        assert!(!state.is_current(&old) && state.is_current(&new));
        assert!(!new.is_reload, "the change was not loaded yet");
        assert_eq!(state.loading_plugins().collect::<Vec<_>>(), ["slow"]);
        state.record_fingerprint(path, Fingerprint::new());
        assert_eq!(state.remove_missing(|_| false), [path]);
        assert!(!state.is_current(&new) && !state.is_loading(path));
    }
}
