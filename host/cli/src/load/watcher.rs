//! Reports that files in watched folders have changed.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode};
use notify_debouncer_full::{
    DebounceEventResult, DebouncedEvent, Debouncer, RecommendedCache, new_debouncer,
};
use tokio::sync::mpsc;

use crate::error::Error;
use crate::load::file::{self, Entry};
use crate::load::scan;
use crate::paths::canonical;

/// Time without a change before a change is reported. The delay is needed because a file is
/// incomplete while it is being copied.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(300);

/// A watched folder.
struct Root {
    folder: PathBuf,
    /// How the folder is watched as a whole, without the entries that a scan skips; `None` if only
    /// `entries` are watched.
    whole: Option<RecursiveMode>,
    /// Entries of the folder whose changes are reported in any case.
    entries: BTreeSet<OsString>,
}

/// Watches folders. Changes in folders that a scan skips, such as a data folder in a hidden folder,
/// are not reported, unless the entry itself is watched. Reads of files are not reported either.
pub(crate) struct Watcher {
    debouncer: Debouncer<RecommendedWatcher, RecommendedCache>,
    roots: Arc<Mutex<Vec<Root>>>,
    changed: mpsc::Receiver<()>,
}

impl Watcher {
    /// Creates a watcher without folders.
    ///
    /// # Errors
    ///
    /// [`Error::Unusable`] if the system cannot watch files.
    pub(crate) fn new() -> Result<Self, Error> {
        // A capacity of one is sufficient, because the receiver scans all files after a change.
        let (sender, changed) = mpsc::channel(1);
        let roots = Arc::new(Mutex::new(Vec::new()));
        let watched = roots.clone();
        let report = move |events: DebounceEventResult| match events {
            Ok(events) => {
                let roots = watched.lock().unwrap_or_else(PoisonError::into_inner);
                if events.iter().any(|event| is_change(event, &roots)) {
                    // An error means that a change is already waiting, or that the receiver is
                    // dropped.
                    let _ = sender.try_send(());
                }
            }
            Err(errors) => tracing::warn!(?errors, "cannot watch for changed files"),
        };
        let debouncer = new_debouncer(DEBOUNCE, None, report).map_err(|error| Error::Unusable {
            what: "watching for changed files",
            message: error.to_string(),
        })?;
        Ok(Self { debouncer, roots, changed })
    }

    /// Watches a folder. Has no effect if the folder is already watched.
    ///
    /// # Errors
    ///
    /// Those of the system, such as too many watched folders.
    pub(crate) fn watch(&mut self, folder: &Path, mode: RecursiveMode) -> notify::Result<()> {
        let folder = canonical(folder);
        let is_watched = |root: &Root| {
            root.folder == folder
                && root.whole.is_some_and(|it| it == mode || it == RecursiveMode::Recursive)
        };
        if self.roots().iter().any(is_watched) {
            return Ok(());
        }
        self.debouncer.watch(&folder, mode)?;
        self.change_root(folder, |root| root.whole = Some(mode));
        Ok(())
    }

    /// Watches a folder for changes of one entry, which may be hidden. Editors replace files by
    /// renaming others, so a file itself cannot be watched.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn watch_entry(&mut self, folder: &Path, name: &OsStr) -> notify::Result<()> {
        let folder = canonical(folder);
        let is_watched = |root: &Root| match root.whole {
            Some(RecursiveMode::Recursive) => folder.starts_with(&root.folder),
            Some(RecursiveMode::NonRecursive) => folder == root.folder,
            None => false,
        };
        if !self.roots().iter().any(is_watched) {
            // The watch is set even if it was set before, because a folder that was removed and
            // created again is no longer watched.
            self.debouncer.watch(&folder, RecursiveMode::NonRecursive)?;
        }
        self.change_root(folder, |root| {
            root.entries.insert(name.to_owned());
        });
        Ok(())
    }

    /// Changes what is watched in a folder.
    fn change_root(&self, folder: PathBuf, change: impl FnOnce(&mut Root)) {
        let mut roots = self.roots();
        match roots.iter_mut().find(|root| root.folder == folder) {
            Some(root) => change(root),
            None => {
                let mut root = Root { folder, whole: None, entries: BTreeSet::new() };
                change(&mut root);
                roots.push(root);
            }
        }
    }

    /// Locks the watched folders and ignores poisoning: no code that holds the lock can panic.
    fn roots(&self) -> MutexGuard<'_, Vec<Root>> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches the folder of an app with its subfolders, except hidden subfolders and installed
    /// packages, which have thousands of folders. Another call also watches subfolders that are
    /// new.
    pub(crate) fn watch_app(&mut self, folder: &Path) {
        let is_watched = |entry: &Entry| {
            entry.kind.is_dir() && !is_ignored(entry.path.file_name().unwrap_or_default())
        };
        let subfolders = file::entries(folder).unwrap_or_default();
        let subfolders = subfolders.into_iter().filter(is_watched);
        let subfolders = subfolders.map(|entry| (entry.path, RecursiveMode::Recursive));
        let folders = [(folder.to_owned(), RecursiveMode::NonRecursive)].into_iter();
        for (folder, mode) in folders.chain(subfolders) {
            if let Err(error) = self.watch(&folder, mode) {
                let folder = folder.display();
                tracing::warn!(%folder, %error, "cannot watch a folder");
            }
        }
    }

    /// Waits for a change.
    pub(crate) async fn changed(&mut self) {
        if self.changed.recv().await.is_none() {
            // The sender lives as long as the watcher.
            std::future::pending::<()>().await;
        }
    }
}

/// Returns true if a folder or file with this name is hidden, or contains installed packages.
pub(crate) fn is_ignored(name: &OsStr) -> bool {
    scan::is_skipped(name)
}

fn is_change(event: &DebouncedEvent, roots: &[Root]) -> bool {
    let is_seen = |path: &PathBuf| !is_below_ignored(path, roots);
    !event.kind.is_access() && (event.need_rescan() || event.paths.iter().any(is_seen))
}

/// Returns true if the path is below at least one watched folder, and none of these folders reports
/// changes of the path. A folder reports changes of its watched entries. A folder that is watched
/// as a whole also reports changes of other paths, unless they are in a hidden folder or an
/// installed package.
fn is_below_ignored(path: &Path, roots: &[Root]) -> bool {
    let below: Vec<_> = roots
        .iter()
        .filter_map(|root| Some((root, path.strip_prefix(&root.folder).ok()?)))
        .collect();
    let is_skipped = |(root, rest): &(&Root, &Path)| {
        let is_entry = root.entries.iter().any(|entry| *rest == Path::new(entry));
        let is_of_whole = root.whole.is_some() && !rest.iter().any(is_ignored);
        !is_entry && !is_of_whole
    };
    !below.is_empty() && below.iter().all(is_skipped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(folder: &str, whole: Option<RecursiveMode>, entries: &[&str]) -> Root {
        let entries = entries.iter().map(OsString::from).collect();
        Root { folder: folder.into(), whole, entries }
    }

    #[test]
    fn changes_in_hidden_folders_and_packages_are_left_out() {
        let roots = ["/tmp/.x/app", "/tmp/.x/app/.wattle/build"]
            .map(|folder| root(folder, Some(RecursiveMode::Recursive), &[]));
        let is_ignored = |path: &str| is_below_ignored(Path::new(path), &roots);
        assert!(is_ignored("/tmp/.x/app/.wattle/data/wattle.redb"));
        assert!(is_ignored("/tmp/.x/app/node_modules/zod/index.js"));
        assert!(!is_ignored("/tmp/.x/app/src/app.py"));
        assert!(!is_ignored("/tmp/.x/app/.wattle/build/app.wasm"), "the operator names it");
        assert!(!is_ignored("/private/tmp/app.toml"), "a path in another form");
    }

    #[test]
    fn changes_of_files_beside_a_watched_entry_are_not_reported() {
        let roots = [
            root("/etc/wattle", None, &["wattle.toml"]),
            root("/etc/wattle/plugins", Some(RecursiveMode::Recursive), &[]),
        ];
        let is_ignored = |path: &str| is_below_ignored(Path::new(path), &roots);
        assert!(is_ignored("/etc/wattle/wattle.toml.swp"));
        assert!(!is_ignored("/etc/wattle/wattle.toml"));
        assert!(!is_ignored("/etc/wattle/plugins/a.wasm"));
    }

    #[test]
    fn a_hidden_entry_that_is_watched_is_reported() {
        for whole in [None, Some(RecursiveMode::NonRecursive)] {
            let roots = [root("/etc/wattle", whole, &["wattle.toml", "..data"])];
            let is_ignored = |path: &str| is_below_ignored(Path::new(path), &roots);
            assert!(!is_ignored("/etc/wattle/..data") && !is_ignored("/etc/wattle/wattle.toml"));
            assert!(is_ignored("/etc/wattle/..2026"), "nothing leads there");
            assert_eq!(is_ignored("/etc/wattle/a.wasm"), whole.is_none());
        }
    }
}
