//! Begins and ends loads of apps and plugins.

use std::path::{Path, PathBuf};

use wattle_graph::id::PluginName;
use wattle_run::catalog::LoadingItem;

use super::load_state::{ItemKind, Load, LoadState};
use super::{LoaderInner, claims, scan};

impl LoaderInner {
    /// Begins the loads of files and folders that were not loaded because another file or folder
    /// had the same name, if their name is unique now.
    pub(super) fn begin_former_duplicates(&self, state: &mut LoadState) -> Vec<Load> {
        let former = self.former_duplicates(state);
        let begin = |path: PathBuf| {
            let is_plugin = state.standalone.contains_key(&path);
            let kind = if is_plugin { ItemKind::Plugin } else { ItemKind::App };
            self.begin_load(state, &path, kind)
        };
        former.into_iter().map(begin).collect()
    }

    fn former_duplicates(&self, state: &LoadState) -> Vec<PathBuf> {
        let is_duplicate = |path: &PathBuf| {
            let app = state.folders.get(path).and_then(Option::as_ref);
            let of_app = app.and_then(|app| claims::duplicate_app(&self.config, app, path, state));
            let plugin = state.standalone.get(path);
            let of_plugin = plugin.and_then(|it| claims::duplicate_plugin(it, path, state));
            of_app.or(of_plugin).is_some()
        };
        let is_found = |path: &PathBuf| {
            state.folders.contains_key(path) || state.standalone.contains_key(path)
        };
        let former = state.duplicates.iter().filter(|path| is_found(path) && !is_duplicate(path));
        former.cloned().collect()
    }

    /// Returns the folders of the apps that a change of a standalone plugin may affect, except
    /// those that are being loaded.
    pub(super) fn apps_to_read(&self, state: &LoadState, plugin: &PluginName) -> Vec<PathBuf> {
        let uses = |folder: &PathBuf| {
            let app = state.apps.get(folder).and_then(|name| self.catalog.app(name));
            app.is_some_and(|app| app.plugins.contains_key(plugin))
        };
        let is_affected = |folder: &&PathBuf| {
            !state.is_loading(folder) && (state.failed.contains(*folder) || uses(folder))
        };
        state.folders.keys().filter(is_affected).cloned().collect()
    }

    /// Begins the load of a changed path. The load replaces an earlier load of the same path.
    pub(super) fn begin_load(&self, state: &mut LoadState, path: &Path, kind: ItemKind) -> Load {
        self.note_loading(state, path, kind);
        state.begin(path, kind)
    }

    /// Begins the load of a path whose dependencies have changed.
    pub(super) fn begin_reload(&self, state: &mut LoadState, path: &Path, kind: ItemKind) -> Load {
        self.note_loading(state, path, kind);
        state.begin_reload(path, kind)
    }

    /// Records a load in the catalog.
    fn note_loading(&self, state: &LoadState, path: &Path, kind: ItemKind) {
        let item = match kind {
            ItemKind::App => state.folders.get(path).cloned().flatten().map(|name| {
                let mount = self.config.apps.get(&name).and_then(|app| app.mount.clone());
                LoadingItem::App { name, mount }
            }),
            ItemKind::Plugin => scan::name_of_plugin(path).map(LoadingItem::Plugin),
        };
        // A path without a valid name cannot be loaded. Its load reports the problem.
        if let Some(item) = item {
            self.catalog.begin_loading(path, item);
        }
    }

    /// Ends the load of a path.
    pub(super) fn end_load(&self, state: &mut LoadState, path: &Path) {
        state.end(path);
        self.catalog.end_loading(path);
    }
}
