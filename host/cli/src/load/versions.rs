//! The archived versions of apps, and which of them are being loaded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;
use wattle_graph::id::{AppName, Digest};

/// The outcome of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VersionLoad {
    /// The load is in progress.
    Running,
    /// The version is in the catalog.
    Loaded,
    /// The version cannot be loaded, with the reason.
    Failed(String),
}

/// A load that callers can wait for.
#[derive(Clone)]
pub(super) struct PendingLoad {
    pub(super) began: Instant,
    pub(super) outcome: watch::Receiver<VersionLoad>,
}

impl PendingLoad {
    /// Returns true if the load ended without an outcome, because its task panicked.
    fn is_lost(&self) -> bool {
        self.outcome.has_changed().is_err() && *self.outcome.borrow() == VersionLoad::Running
    }
}

/// The archived versions of apps.
#[derive(Default)]
pub(super) struct Versions(Mutex<VersionsState>);

#[derive(Default)]
struct VersionsState {
    /// The folders of versions, by app and version of a graph.
    folders: BTreeMap<(AppName, Digest), PathBuf>,
    /// Loads in progress, and failed loads. Failed loads are not repeated.
    loads: BTreeMap<PathBuf, PendingLoad>,
}

impl Versions {
    /// Locks the state and ignores poisoning: no code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, VersionsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the folder of archived versions.
    pub(super) fn insert(
        &self,
        versions: impl IntoIterator<Item = (AppName, Digest)>,
        folder: &Path,
    ) {
        let versions = versions.into_iter().map(|version| (version, folder.to_owned()));
        self.lock().folders.extend(versions);
    }

    /// Returns the folder of an archived version.
    pub(super) fn folder(&self, app: &AppName, version: Digest) -> Option<PathBuf> {
        self.lock().folders.get(&(app.clone(), version)).cloned()
    }

    /// Returns the load of a folder. If there is a sender, the caller must perform the load, and
    /// send its outcome.
    pub(super) fn begin(&self, folder: &Path) -> (PendingLoad, Option<watch::Sender<VersionLoad>>) {
        let mut state = self.lock();
        if let Some(load) = state.loads.get(folder).filter(|load| !load.is_lost()) {
            return (load.clone(), None);
        }
        let (sender, outcome) = watch::channel(VersionLoad::Running);
        let load = PendingLoad { began: Instant::now(), outcome };
        state.loads.insert(folder.to_owned(), load.clone());
        (load, Some(sender))
    }

    /// Removes a load that succeeded, because the version can be unloaded and needed again.
    pub(super) fn end(&self, folder: &Path, outcome: &VersionLoad) {
        if *outcome == VersionLoad::Loaded {
            self.lock().loads.remove(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_loaded_by_one_caller() {
        let (versions, folder) = (Versions::default(), Path::new("versions/asset/1"));
        let (first, sender) = versions.begin(folder);
        let sender = sender.unwrap();
        assert!(versions.begin(folder).1.is_none());
        versions.end(folder, &VersionLoad::Loaded);
        sender.send_replace(VersionLoad::Loaded);
        assert_eq!(*first.outcome.borrow(), VersionLoad::Loaded);
        let (_, again) = versions.begin(folder);
        assert!(again.is_some(), "it can be loaded again");
        drop(again);
        let (failed, sender) = versions.begin(folder);
        let sender = sender.expect("the load that was lost is repeated");
        let outcome = VersionLoad::Failed("gone".to_owned());
        versions.end(folder, &outcome);
        sender.send_replace(outcome.clone());
        drop(sender);
        let (load, sender) = versions.begin(folder);
        assert!(sender.is_none(), "a failure is not repeated");
        assert_eq!((*failed.outcome.borrow()).clone(), (*load.outcome.borrow()).clone());
        assert_eq!(*load.outcome.borrow(), outcome);
    }
}
