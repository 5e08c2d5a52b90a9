//! What must be loaded, and what is being loaded.

use std::path::{Path, PathBuf};

use wattle_graph::id::PluginName;
use wattle_run::catalog::LoadingItem;

use super::seen::{Kind, Load, Seen};
use super::{Inner, claims, scan};

impl Inner {
    /// Begins the loads of the files and folders that were not loaded because others had the same
    /// name, and now have a name of their own.
    pub(super) fn begin_former_twins(&self, seen: &mut Seen) -> Vec<Load> {
        let former = self.former_twins(seen);
        let begin = |path: PathBuf| {
            let is_plugin = seen.standalone.contains_key(&path);
            let kind = if is_plugin { Kind::Plugin } else { Kind::App };
            self.begin_load(seen, &path, kind)
        };
        former.into_iter().map(begin).collect()
    }

    fn former_twins(&self, seen: &Seen) -> Vec<PathBuf> {
        let is_twin = |path: &PathBuf| {
            let app = seen.folders.get(path).and_then(Option::as_ref);
            let of_app = app.and_then(|app| claims::twin_of_app(&self.config, app, path, seen));
            let plugin = seen.standalone.get(path);
            let of_plugin = plugin.and_then(|it| claims::twin_of_plugin(it, path, seen));
            of_app.or(of_plugin).is_some()
        };
        let is_found =
            |path: &PathBuf| seen.folders.contains_key(path) || seen.standalone.contains_key(path);
        let former = seen.twins.iter().filter(|path| is_found(path) && !is_twin(path));
        former.cloned().collect()
    }

    /// Returns the folders of the apps that a change of a standalone plugin may affect, without
    /// those that are being loaded.
    pub(super) fn apps_to_read(&self, seen: &Seen, plugin: &PluginName) -> Vec<PathBuf> {
        let uses = |folder: &PathBuf| {
            let app = seen.apps.get(folder).and_then(|name| self.catalog.app(name));
            app.is_some_and(|app| app.plugins.contains_key(plugin))
        };
        let is_affected = |folder: &&PathBuf| {
            !seen.is_loading(folder) && (seen.failed.contains(*folder) || uses(folder))
        };
        seen.folders.keys().filter(is_affected).cloned().collect()
    }

    /// Begins the load of a path that has changed, which replaces a former one.
    pub(super) fn begin_load(&self, seen: &mut Seen, path: &Path, kind: Kind) -> Load {
        self.note_loading(seen, path, kind);
        seen.begin(path, kind)
    }

    /// Begins the load of a path that may use something that has changed.
    pub(super) fn begin_load_again(&self, seen: &mut Seen, path: &Path, kind: Kind) -> Load {
        self.note_loading(seen, path, kind);
        seen.begin_again(path, kind)
    }

    /// Notes in the catalog what is being loaded.
    fn note_loading(&self, seen: &Seen, path: &Path, kind: Kind) {
        let item = match kind {
            Kind::App => seen.folders.get(path).cloned().flatten().map(|name| {
                let mount = self.config.apps.get(&name).and_then(|app| app.mount.clone());
                LoadingItem::App { name, mount }
            }),
            Kind::Plugin => scan::name_of_plugin(path).map(LoadingItem::Plugin),
        };
        // A path without a name cannot be loaded, and reports that soon.
        if let Some(item) = item {
            self.catalog.begin_loading(path, item);
        }
    }

    /// Ends the load of a path.
    pub(super) fn end_load(&self, seen: &mut Seen, path: &Path) {
        seen.end(path);
        self.catalog.end_loading(path);
    }
}
