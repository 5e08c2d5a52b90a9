//! What was loaded last from the files of apps and plugins, and what is being loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tokio::task::AbortHandle;
use wattle_graph::id::{AppName, PluginName};

use crate::config::Config;
use crate::load::file::FilePlace;
use crate::load::scan::{self, Print};

/// What a path contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A standalone plugin.
    Plugin,
    /// An app.
    App,
}

/// The load of a file or folder. A newer load of the same path replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// Whether nothing of the path itself has changed since its last load, but something that it
    /// may use.
    pub(super) is_again: bool,
    number: u64,
}

/// A load in progress.
struct RunningLoad {
    load: Load,
    /// Aborts its current task; `None` before the first one.
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
pub(super) struct Seen {
    prints: BTreeMap<PathBuf, Print>,
    /// Installed apps by folder.
    pub(super) apps: BTreeMap<PathBuf, AppName>,
    /// Installed standalone plugins by file.
    pub(super) plugins: BTreeMap<PathBuf, PluginName>,
    /// Folders of all apps, with the names in their manifests.
    pub(super) folders: BTreeMap<PathBuf, Option<AppName>>,
    /// Files of all standalone plugins, with the names that the files give them.
    pub(super) standalone: BTreeMap<PathBuf, PluginName>,
    /// Files and folders that are not loaded because others have the same name.
    pub(super) twins: BTreeSet<PathBuf>,
    /// Folders whose last load failed.
    pub(super) failed: BTreeSet<PathBuf>,
    /// Folders whose last load failed while plugins were being loaded, which may be missing.
    pub(super) awaiting_plugins: BTreeSet<PathBuf>,
    /// Number of changes of the standalone plugins so far.
    pub(super) plugin_changes: u64,
    loads: BTreeMap<PathBuf, RunningLoad>,
    last_number: u64,
}

impl Seen {
    /// Records the fingerprint of a path. Returns true if the fingerprint has changed.
    pub(super) fn is_other(&mut self, path: &Path, print: Print) -> bool {
        let is_other = self.prints.get(path) != Some(&print);
        self.prints.insert(path.to_owned(), print);
        is_other
    }

    /// Removes and returns the paths that are no longer found.
    pub(super) fn forget_missing(&mut self, is_found: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let gone = self.prints.keys().filter(|path| !is_found(path));
        let gone: Vec<PathBuf> = gone.cloned().collect();
        for path in &gone {
            self.prints.remove(path);
            self.failed.remove(path);
            self.twins.remove(path);
            self.awaiting_plugins.remove(path);
            self.loads.remove(path);
        }
        gone
    }

    /// Begins a load, and aborts a former load of the path.
    pub(super) fn begin(&mut self, path: &Path, kind: Kind) -> Load {
        self.awaiting_plugins.remove(path);
        self.twins.remove(path);
        self.last_number += 1;
        let load = Load { path: path.to_owned(), kind, is_again: false, number: self.last_number };
        self.loads.insert(path.to_owned(), RunningLoad { load: load.clone(), task: None });
        load
    }

    /// Begins the load of a path that has not changed itself. A change of it that was not loaded
    /// yet is loaded with it.
    pub(super) fn begin_again(&mut self, path: &Path, kind: Kind) -> Load {
        let is_known = self.loads.get(path).is_none_or(|running| running.load.is_again);
        let is_again = is_known && !self.failed.contains(path);
        let mut load = self.begin(path, kind);
        load.is_again = is_again;
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

    /// Returns the names of the files of standalone plugins that are being loaded.
    pub(super) fn loading_plugins(&self) -> impl Iterator<Item = String> {
        let plugins = self.loads.values().filter(|running| running.load.kind == Kind::Plugin);
        plugins.filter_map(|running| {
            let name = running.load.path.file_stem()?.to_string_lossy();
            Some(name.escape_debug().to_string())
        })
    }

    /// Returns the files of the installed standalone plugins.
    pub(super) fn plugin_files(
        &self,
        config: &Config,
    ) -> impl Iterator<Item = (PluginName, FilePlace)> {
        let place = |path| scan::place_of_plugin(config, path);
        self.plugins.iter().map(move |(path, name)| (name.clone(), place(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_load_replaces_an_older_one() {
        let (mut seen, path) = (Seen::default(), Path::new("plugins/slow.wasm"));
        let old = seen.begin(path, Kind::Plugin);
        assert!(seen.is_current(&old));
        let new = seen.begin_again(path, Kind::Plugin);
        assert!(!seen.is_current(&old) && seen.is_current(&new));
        assert!(!new.is_again, "the change was not loaded yet");
        assert_eq!(seen.loading_plugins().collect::<Vec<_>>(), ["slow"]);
        seen.is_other(path, Print::new());
        assert_eq!(seen.forget_missing(|_| false), [path]);
        assert!(!seen.is_current(&new) && !seen.is_loading(path));
    }
}
