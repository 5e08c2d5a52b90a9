//! The archived versions of apps, and which of them are being loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use wattle_graph::id::{AppName, Digest, GraphName};

use super::app_request::AppRequest;

/// Time after which a load is repeated if it failed for a reason that may pass, and a thread still
/// needs the version. The memory of compiled code may have room by then.
const RETRY_AFTER: Duration = Duration::from_mins(1);

/// The outcome of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VersionLoad {
    /// The load is in progress.
    Running,
    /// The version is in the catalog.
    Loaded,
    /// The version cannot be loaded.
    Failed(VersionFailure),
}

/// The reason why a version cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VersionFailure {
    pub(super) message: String,
    /// True if the reason may pass by itself: the compiled code did not fit in memory.
    pub(super) may_pass: bool,
    /// The time of the failure.
    pub(super) at: Instant,
}

impl From<String> for VersionFailure {
    /// Creates a failure for a reason that does not pass by itself.
    fn from(message: String) -> Self {
        Self { message, may_pass: false, at: Instant::now() }
    }
}

impl VersionFailure {
    /// Returns whether the load failed at least [`RETRY_AFTER`] ago.
    fn is_outdated(&self) -> bool {
        self.at.elapsed() >= RETRY_AFTER
    }
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

    /// Returns true if the load failed, and is repeated because the reason may have passed.
    fn is_repeated(&self) -> bool {
        match &*self.outcome.borrow() {
            VersionLoad::Failed(failure) => failure.may_pass && failure.is_outdated(),
            VersionLoad::Running | VersionLoad::Loaded => false,
        }
    }
}

/// An archived version of a graph.
struct ArchivedGraph {
    /// The folder of the app in this version.
    folder: PathBuf,
    /// Name of the graph; `None` if an older host archived the version.
    graph: Option<GraphName>,
}

/// The archived versions of apps.
#[derive(Default)]
pub(super) struct Versions(Mutex<VersionsState>);

#[derive(Default)]
struct VersionsState {
    /// The archived graphs, by app and version.
    archived: BTreeMap<(AppName, Digest), ArchivedGraph>,
    /// What the archived versions of apps request, by folder.
    requests: BTreeMap<PathBuf, AppRequest>,
    /// Loads in progress, and failed loads. A failed load is repeated only if its reason may pass,
    /// after [`RETRY_AFTER`] at the earliest.
    loads: BTreeMap<PathBuf, PendingLoad>,
}

impl Versions {
    /// Locks the state and ignores poisoning: no code that holds the lock can panic.
    fn lock(&self) -> MutexGuard<'_, VersionsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the archived versions of the graphs of an app, which are in one folder, and what the
    /// app requests.
    pub(super) fn insert(
        &self,
        app: &AppName,
        versions: impl IntoIterator<Item = (Digest, Option<GraphName>)>,
        folder: &Path,
        request: Option<AppRequest>,
    ) {
        let versions = versions.into_iter().map(|(version, graph)| {
            ((app.clone(), version), ArchivedGraph { folder: folder.to_owned(), graph })
        });
        let mut state = self.lock();
        state.archived.extend(versions);
        state.requests.extend(request.map(|request| (folder.to_owned(), request)));
    }

    /// Returns what the archived versions of apps request.
    pub(super) fn requests(&self) -> Vec<AppRequest> {
        self.lock().requests.values().cloned().collect()
    }

    /// Returns the folder of an archived version.
    pub(super) fn folder(&self, app: &AppName, version: Digest) -> Option<PathBuf> {
        let state = self.lock();
        state.archived.get(&(app.clone(), version)).map(|archived| archived.folder.clone())
    }

    /// Returns the archived versions of a graph whose name is known.
    pub(super) fn of_graph(&self, app: &AppName, graph: &GraphName) -> BTreeSet<Digest> {
        let state = self.lock();
        let is_of_graph = |archived: &ArchivedGraph| archived.graph.as_ref() == Some(graph);
        let found = state.archived.iter().filter(|((of, _), it)| of == app && is_of_graph(it));
        found.map(|((_, version), _)| *version).collect()
    }

    /// Returns the load of a folder. If there is a sender, the caller must perform the load, and
    /// send its outcome.
    pub(super) fn begin(&self, folder: &Path) -> (PendingLoad, Option<watch::Sender<VersionLoad>>) {
        let mut state = self.lock();
        let known = state.loads.get(folder);
        if let Some(load) = known.filter(|load| !load.is_lost() && !load.is_repeated()) {
            return (load.clone(), None);
        }
        let (sender, outcome) = watch::channel(VersionLoad::Running);
        let load = PendingLoad { began: Instant::now(), outcome };
        state.loads.insert(folder.to_owned(), load.clone());
        (load, Some(sender))
    }

    /// Removes a load that succeeded, because the version can be unloaded later and then be needed
    /// again.
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
    fn versions_of_a_graph_are_found_by_its_name() {
        let [asset, other] = ["asset", "other"].map(|name| AppName::new(name).unwrap());
        let [main, side] = ["main", "side"].map(|name| GraphName::new(name).unwrap());
        let [one, two, old] = ["1", "2", "old"].map(|text| Digest::of(text.as_bytes()));
        let (versions, folder) = (Versions::default(), Path::new("versions/asset/1"));
        let graphs = [(one, Some(main.clone())), (two, Some(side.clone())), (old, None)];
        versions.insert(&asset, graphs, folder, None);
        assert_eq!(versions.of_graph(&asset, &main), BTreeSet::from([one]));
        assert_eq!(versions.of_graph(&asset, &side), BTreeSet::from([two]));
        assert!(versions.of_graph(&other, &main).is_empty());
        assert_eq!(versions.folder(&asset, old).as_deref(), Some(folder));
        assert_eq!(versions.folder(&other, one), None);
    }

    #[tokio::test(start_paused = true)]
    async fn only_one_caller_loads_a_version() {
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
        let outcome = VersionLoad::Failed("gone".to_owned().into());
        versions.end(folder, &outcome);
        sender.send_replace(outcome.clone());
        drop(sender);
        let (load, sender) = versions.begin(folder);
        assert!(sender.is_none(), "a failure is not repeated at once");
        assert_eq!((*failed.outcome.borrow()).clone(), (*load.outcome.borrow()).clone());
        assert_eq!(*load.outcome.borrow(), outcome);
    }

    #[tokio::test(start_paused = true)]
    async fn only_failures_that_may_pass_are_repeated() {
        for may_pass in [false, true] {
            let (versions, folder) = (Versions::default(), Path::new("versions/asset/1"));
            let sender = versions.begin(folder).1.unwrap();
            // The time begins at the end of a load, however long it took.
            tokio::time::advance(RETRY_AFTER).await;
            let failure = VersionFailure { may_pass, ..VersionFailure::from("full".to_owned()) };
            let outcome = VersionLoad::Failed(failure);
            versions.end(folder, &outcome);
            sender.send_replace(outcome);
            assert!(versions.begin(folder).1.is_none());
            tokio::time::advance(RETRY_AFTER).await;
            assert_eq!(versions.begin(folder).1.is_some(), may_pass);
        }
    }
}
