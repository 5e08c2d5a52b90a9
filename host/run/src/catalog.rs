//! The loaded apps, and the graph versions that threads are pinned to.
//!
//! Apps are loaded while the host serves. An app that is loaded for the first time is unavailable
//! until the load is complete, see [`Catalog::check_loading`]. A version that is not the newest one
//! of its app is loaded when a thread needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, Digest, GraphName, PluginName};

use crate::app::{App, GraphVersion};
use crate::export::CodeSource;
use crate::limit::PINNED_VERSIONS;

/// Maximum number of apps that a failure names.
const NAMED_APPS: usize = 10;

/// A file or folder that could not be loaded. The plugin or app that was loaded from the path
/// before stays in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoadProblem {
    /// The file or folder.
    pub path: PathBuf,
    /// Time of the attempt, milliseconds since 1970.
    pub at_ms: i64,
    /// What is wrong, and how to fix it.
    pub message: String,
    /// The app, if it was read and cannot be used yet: its migrations were not applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<AppName>,
}

/// What is being loaded from a file or folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadingItem {
    /// An app.
    App {
        /// Its name.
        name: AppName,
        /// Path under which its endpoints will also be reachable.
        mount: Option<String>,
    },
    /// A standalone plugin.
    Plugin(PluginName),
}

/// The loaded apps. Reads are cheap; writes happen only when a file changes.
#[derive(Default)]
pub struct Catalog {
    state: Mutex<CatalogState>,
    /// Locked while versions are unloaded: an unload has references to the versions that it
    /// examines, so a concurrent one would take them for used.
    unloading: Mutex<()>,
    source: OnceLock<Arc<dyn CodeSource>>,
    /// Notified when something is loaded, or cannot be loaded.
    loaded: watch::Sender<()>,
}

#[derive(Default)]
struct CatalogState {
    apps: BTreeMap<AppName, Arc<App>>,
    /// The versions that were loaded, so that threads finish on the version they are pinned to.
    versions: BTreeMap<(AppName, GraphName, Digest), PinnedVersion>,
    /// Number of uses of versions so far.
    uses: u64,
    problems: BTreeMap<PathBuf, LoadProblem>,
    loading: BTreeMap<PathBuf, LoadingItem>,
}

/// A version of a graph that the host can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownVersion {
    /// Digest of the graph and of every component of its app.
    pub version: Digest,
    /// True if the version is in memory. Any other version is archived.
    pub is_loaded: bool,
    /// True if new runs use the version.
    pub is_current: bool,
}

struct PinnedVersion {
    app: Arc<App>,
    /// Number of the last use.
    used: u64,
}

impl CatalogState {
    /// Adds the versions of the graphs of an app. The app continues the counters that its newest
    /// version has of its plugins.
    fn add_versions(&mut self, mut app: App) -> Arc<App> {
        if let Some(newest) = self.apps.get(&app.name) {
            app.uses.continue_from(&newest.uses, app.plugins.keys());
        }
        let app = Arc::new(app);
        self.uses += 1;
        for (graph, graph_version) in &app.graphs {
            let key = (app.name.clone(), graph.clone(), graph_version.version);
            self.versions.insert(key, PinnedVersion { app: app.clone(), used: self.uses });
        }
        app
    }

    fn is_newest(&self, app: &App) -> bool {
        self.apps.get(&app.name).is_some_and(|newest| newest.digest == app.digest)
    }

    /// Returns the versions that are not the newest of their apps, least recently used first.
    fn old_versions(&self) -> Vec<Arc<App>> {
        let mut found: BTreeMap<(&AppName, Digest), (u64, &Arc<App>)> = BTreeMap::new();
        for version in self.versions.values().filter(|version| !self.is_newest(&version.app)) {
            let key = (&version.app.name, version.app.digest);
            let old = found.entry(key).or_insert((version.used, &version.app));
            old.0 = old.0.max(version.used);
        }
        let mut found: Vec<_> = found.into_values().collect();
        found.sort_by_key(|(used, _)| *used);
        found.into_iter().map(|(_, app)| app.clone()).collect()
    }

    /// Returns true if an app is being loaded for the first time.
    fn is_loading(&self, app: &AppName) -> bool {
        let is_it =
            |item: &LoadingItem| matches!(item, LoadingItem::App { name, .. } if name == app);
        !self.apps.contains_key(app) && self.loading.values().any(is_it)
    }
}

impl Catalog {
    /// Creates an empty catalog.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// No code that can panic runs under this lock, so the data of a poisoned lock is complete.
    fn lock(&self) -> MutexGuard<'_, CatalogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the source of the code of apps. Only the first call has an effect.
    pub fn set_source(&self, source: Arc<dyn CodeSource>) {
        self.source.get_or_init(|| source);
    }

    /// Returns the source of the code of apps, or `None` if it was not set.
    pub fn source(&self) -> Option<Arc<dyn CodeSource>> {
        self.source.get().cloned()
    }

    /// Installs an app and replaces the app with the same name. New runs use the installed app at
    /// once; threads that are pinned to an older version keep that version.
    pub fn install(&self, app: App) -> Arc<App> {
        let app = {
            let mut inner = self.lock();
            let app = inner.add_versions(app);
            inner.apps.insert(app.name.clone(), app.clone());
            app
        };
        self.unload_versions();
        app
    }

    /// Adds an older version of an app for the threads that are pinned to it. New runs do not use
    /// this version.
    pub fn install_version(&self, app: App) -> Arc<App> {
        let app = self.lock().add_versions(app);
        self.unload_versions();
        app
    }

    /// Removes the least recently used of the older versions that can be loaded again, if there are
    /// more than [`PINNED_VERSIONS`]. Runs keep the versions that they use.
    fn unload_versions(&self) {
        let Some(source) = self.source() else { return };
        let _alone = self.unloading.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.lock().old_versions();
        let surplus = old.len().saturating_sub(PINNED_VERSIONS);
        for app in old.iter().filter(|app| source.is_archived(app)).take(surplus) {
            self.lock().versions.retain(|_, version| !Arc::ptr_eq(&version.app, app));
        }
    }

    /// Removes the least recently used of the older versions that can be loaded again and that
    /// nothing uses, so that their memory is free. Returns false if there is no such version.
    pub fn unload_unused_version(&self) -> bool {
        let Some(source) = self.source() else { return false };
        let _alone = self.unloading.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.lock().old_versions();
        old.iter().filter(|app| source.is_archived(app)).any(|app| {
            let mut inner = self.lock();
            let is_of_app = |version: &PinnedVersion| Arc::ptr_eq(&version.app, app);
            let known = inner.versions.values().filter(|version| is_of_app(version)).count();
            // `old` has a reference to the app, and each of its graphs has one.
            let is_unused = known > 0 && Arc::strong_count(app) == known + 1;
            if is_unused {
                inner.versions.retain(|_, version| !is_of_app(version));
            }
            is_unused
        })
    }

    /// Removes an app, so that no new run uses it. Its versions stay for the threads that are
    /// pinned to them.
    pub fn remove(&self, name: &AppName) {
        self.lock().apps.remove(name);
    }

    /// Returns an app by name.
    pub fn app(&self, name: &AppName) -> Option<Arc<App>> {
        self.lock().apps.get(name).cloned()
    }

    /// Returns all apps, ordered by name.
    pub fn apps(&self) -> Vec<Arc<App>> {
        self.lock().apps.values().cloned().collect()
    }

    /// Returns the version that a thread is pinned to, or `None` if the version is not in memory.
    pub fn pinned_version(
        &self,
        app: &AppName,
        graph: &GraphName,
        version: Digest,
    ) -> Option<(Arc<App>, Arc<GraphVersion>)> {
        let mut inner = self.lock();
        inner.uses += 1;
        let uses = inner.uses;
        let pinned = inner.versions.get_mut(&(app.clone(), graph.clone(), version))?;
        pinned.used = uses;
        let graph_version = pinned.app.graphs.get(graph)?;
        Some((pinned.app.clone(), graph_version.clone()))
    }

    /// Returns the versions of a graph that are in memory or archived: first the version that new
    /// runs use, if there is one, and then the other versions by digest.
    pub fn graph_versions(&self, app: &AppName, graph: &GraphName) -> Vec<KnownVersion> {
        let archived = self.source().map(|source| source.archived_versions(app, graph));
        let inner = self.lock();
        let newest = inner.apps.get(app).and_then(|app| app.graphs.get(graph));
        let current = newest.map(|graph_version| graph_version.version);
        let loaded = inner.versions.keys().filter(|(of, name, _)| of == app && name == graph);
        let loaded: BTreeSet<Digest> = loaded.map(|(.., version)| *version).collect();
        let all = archived.unwrap_or_default().into_iter().chain(loaded.iter().copied());
        let all: BTreeSet<Digest> = all.collect();
        let known = all.into_iter().map(|version| KnownVersion {
            version,
            is_loaded: loaded.contains(&version),
            is_current: current == Some(version),
        });
        let mut known: Vec<KnownVersion> = known.collect();
        known.sort_by_key(|known| !known.is_current);
        known
    }

    /// Returns the version that a thread is pinned to. Loads the version if it is archived. Returns
    /// `None` if the version is neither in memory nor archived.
    ///
    /// # Errors
    ///
    /// `unavailable` while the app is loaded for the first time, and if the version takes long to
    /// load or cannot be loaded.
    pub async fn load_version(
        &self,
        app: &AppName,
        graph: &GraphName,
        version: Digest,
    ) -> Result<Option<(Arc<App>, Arc<GraphVersion>)>, Failure> {
        if let Some(found) = self.pinned_version(app, graph, version) {
            return Ok(Some(found));
        }
        // The version that is being loaded may be the wanted one.
        self.check_loading(app)?;
        let Some(source) = self.source() else { return Ok(None) };
        if !source.load_version(app, version).await? {
            return Ok(None);
        }
        Ok(self.pinned_version(app, graph, version))
    }

    /// Records that a path could not be loaded.
    pub fn report_problem(&self, problem: LoadProblem) {
        self.lock().problems.insert(problem.path.clone(), problem);
    }

    /// Removes the problem of a path that was loaded successfully.
    pub fn clear_problem(&self, path: &Path) {
        self.lock().problems.remove(path);
    }

    /// Returns the number of problems.
    pub fn problem_count(&self) -> usize {
        self.lock().problems.len()
    }

    /// Returns true if an app was read and no version of it can be used.
    pub fn is_unavailable(&self, name: &AppName) -> bool {
        let inner = self.lock();
        let has_problem = inner.problems.values().any(|it| it.app.as_ref() == Some(name));
        has_problem && !inner.apps.contains_key(name)
    }

    /// Returns the problems, ordered by path.
    pub fn problems(&self) -> Vec<LoadProblem> {
        self.lock().problems.values().cloned().collect()
    }

    /// Records what is being loaded from a path.
    pub fn begin_loading(&self, path: &Path, item: LoadingItem) {
        self.lock().loading.insert(path.to_owned(), item);
    }

    /// Records that nothing is being loaded from a path any more.
    pub fn end_loading(&self, path: &Path) {
        if self.lock().loading.remove(path).is_some() {
            self.loaded.send_replace(());
        }
    }

    /// Returns everything that is being loaded: first apps, then plugins, by name.
    pub fn loading(&self) -> BTreeSet<LoadingItem> {
        self.lock().loading.values().cloned().collect()
    }

    /// Returns true if an app is being loaded for the first time.
    pub fn is_loading(&self, app: &AppName) -> bool {
        self.lock().is_loading(app)
    }

    /// Returns the apps that are being loaded for the first time.
    pub fn loading_apps(&self) -> BTreeSet<AppName> {
        let inner = self.lock();
        let apps = inner.loading.values().filter_map(|item| match item {
            LoadingItem::App { name, .. } if !inner.apps.contains_key(name) => Some(name.clone()),
            _ => None,
        });
        apps.collect()
    }

    /// Returns the mounts of the apps that are being loaded for the first time.
    pub fn loading_mounts(&self) -> Vec<(AppName, String)> {
        let inner = self.lock();
        let mounts = inner.loading.values().filter_map(|item| match item {
            LoadingItem::App { name, mount } if !inner.apps.contains_key(name) => {
                Some((name.clone(), mount.clone()?))
            }
            _ => None,
        });
        mounts.collect()
    }

    /// Returns a receiver that is notified when something is loaded, or cannot be loaded.
    pub fn watch_loaded(&self) -> watch::Receiver<()> {
        self.loaded.subscribe()
    }

    /// Checks that an app is not being loaded for the first time.
    ///
    /// # Errors
    ///
    /// `unavailable`, which can be retried, with the app in `details.loading`.
    pub fn check_loading(&self, app: &AppName) -> Result<(), Failure> {
        if self.is_loading(app) { Err(still_loading([app])) } else { Ok(()) }
    }

    /// Checks that no standalone plugin of this name is being loaded.
    ///
    /// # Errors
    ///
    /// `unavailable`, which can be retried, with the plugin in `details.loading`.
    pub fn check_loading_plugin(&self, plugin: &PluginName) -> Result<(), Failure> {
        if !self.lock().loading.values().any(|item| *item == LoadingItem::Plugin(plugin.clone())) {
            return Ok(());
        }
        let text = format!("the host is still loading plugin `{plugin}`; try again");
        Err(unavailable(text, json!([plugin])))
    }

    /// Checks that no app is being loaded for the first time, for a request whose app is unknown.
    ///
    /// # Errors
    ///
    /// `unavailable`, which can be retried, with the apps in `details.loading`.
    pub fn check_all_loaded(&self) -> Result<(), Failure> {
        let apps = self.loading_apps();
        if apps.is_empty() { Ok(()) } else { Err(still_loading(&apps)) }
    }
}

/// Returns the failure of a request for an app that is being loaded.
fn still_loading<'a>(apps: impl IntoIterator<Item = &'a AppName>) -> Failure {
    let named: Vec<&AppName> = apps.into_iter().take(NAMED_APPS).collect();
    let quoted: Vec<String> = named.iter().map(|app| format!("`{app}`")).collect();
    let text = format!("the host is still loading app {}; try again", quoted.join(", "));
    unavailable(text, json!(named))
}

fn unavailable(text: String, names: Value) -> Failure {
    Failure::new(code::UNAVAILABLE, text).retryable().with_details(json!({ "loading": names }))
}

/// Returns true if a request failed because an app is being loaded.
pub fn is_still_loading(failure: &Failure) -> bool {
    let details = failure.details.as_ref();
    failure.code == code::UNAVAILABLE
        && details.is_some_and(|details| details.get("loading").is_some())
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use async_trait::async_trait;

    use super::*;
    use crate::export::CodeFile;

    fn name(text: &str) -> AppName {
        AppName::new(text).unwrap()
    }

    fn app(text: &str, digest: usize) -> App {
        let graph = wattle_graph::check::check_toml(
            "graph.toml",
            "[graphs.g]\nentry = 'a'\nnodes.a = {}",
            &wattle_graph::check::AnyPlugin,
        );
        let graph = graph.unwrap().remove(0);
        let (digest, name) = (Digest::of(&digest.to_le_bytes()), name(text));
        let graph_version = Arc::new(GraphVersion { graph, version: digest });
        let graphs = BTreeMap::from([(graph_version.graph.name.clone(), graph_version)]);
        App { digest, graphs, ..App::empty(name) }
    }

    fn version(digest: usize) -> Digest {
        Digest::of(&digest.to_le_bytes())
    }

    fn has(catalog: &Catalog, digest: usize) -> bool {
        let graph = GraphName::new("g").unwrap();
        catalog.pinned_version(&name("asset"), &graph, version(digest)).is_some()
    }

    /// An archive of all versions but the first. Lets another thread run when it is asked.
    struct Archive;

    #[async_trait]
    impl CodeSource for Archive {
        async fn files(&self, _: &Arc<App>) -> Result<Vec<CodeFile>, Failure> {
            Ok(Vec::new())
        }

        fn is_archived(&self, app: &App) -> bool {
            thread::yield_now();
            app.digest != version(0)
        }

        fn archived_versions(&self, _: &AppName, graph: &GraphName) -> BTreeSet<Digest> {
            let archived: &[usize] = if graph.as_str() == "g" { &[1, 2] } else { &[] };
            archived.iter().map(|digest| version(*digest)).collect()
        }

        async fn load_version(&self, _: &AppName, _: Digest) -> Result<bool, Failure> {
            Ok(false)
        }
    }

    #[test]
    fn the_least_recently_used_archived_versions_are_unloaded() {
        let catalog = Catalog::new();
        catalog.set_source(Arc::new(Archive));
        for digest in 0..=PINNED_VERSIONS {
            catalog.install(app("asset", digest));
        }
        assert!(has(&catalog, 1), "the last use of version 1");
        catalog.install(app("asset", PINNED_VERSIONS + 1));
        assert!(has(&catalog, 0), "version 0 cannot be loaded again");
        assert!(has(&catalog, 1));
        assert!(!has(&catalog, 2));
        assert!((3..=PINNED_VERSIONS + 1).all(|digest| has(&catalog, digest)));
        catalog.install_version(app("asset", 2));
        assert!(has(&catalog, 2) && !has(&catalog, 1));
        let newest = catalog.app(&name("asset")).unwrap();
        assert_eq!(newest.digest, Digest::of(&(PINNED_VERSIONS + 1).to_le_bytes()));
    }

    #[test]
    fn unused_versions_are_unloaded_one_by_one() {
        let catalog = Catalog::new();
        catalog.install(app("asset", 0));
        assert!(!catalog.unload_unused_version(), "nothing is archived");
        catalog.set_source(Arc::new(Archive));
        for digest in 1..=4 {
            catalog.install(app("asset", digest));
        }
        let graph = GraphName::new("g").unwrap();
        let used = catalog.pinned_version(&name("asset"), &graph, version(1));
        assert!(catalog.unload_unused_version());
        assert!(!has(&catalog, 2), "the least recently used one");
        assert!(catalog.unload_unused_version());
        assert!(!has(&catalog, 3));
        assert!(!catalog.unload_unused_version());
        assert!([0, 1, 4].iter().all(|digest| has(&catalog, *digest)));
        drop(used);
        assert!(catalog.unload_unused_version());
        assert!(!has(&catalog, 1) && has(&catalog, 4), "new runs need version 4");
    }

    #[test]
    fn concurrent_unloads_find_a_version_each() {
        let catalog = Catalog::new();
        catalog.set_source(Arc::new(Archive));
        catalog.install(app("asset", 0));
        for round in 0..300 {
            for digest in [1, 2] {
                catalog.install_version(app("asset", digest));
            }
            let start = Barrier::new(2);
            let unload = || {
                start.wait();
                catalog.unload_unused_version()
            };
            let unloaded = thread::scope(|scope| {
                let threads = [scope.spawn(unload), scope.spawn(unload)];
                threads.map(|thread| thread.join().unwrap())
            });
            assert_eq!(unloaded, [true; 2], "round {round}");
        }
    }

    #[test]
    fn versions_of_a_graph_are_those_in_memory_and_in_the_archive() {
        let (catalog, graph) = (Catalog::new(), GraphName::new("g").unwrap());
        let versions = |graph: &GraphName| catalog.graph_versions(&name("asset"), graph);
        assert!(versions(&graph).is_empty());
        catalog.set_source(Arc::new(Archive));
        for digest in [0, 1] {
            catalog.install(app("asset", digest));
        }
        let found = versions(&graph);
        let current = KnownVersion { version: version(1), is_loaded: true, is_current: true };
        assert_eq!((found.len(), found[0]), (3, current));
        for (digest, is_loaded) in [(0, true), (2, false)] {
            let older = KnownVersion { version: version(digest), is_loaded, is_current: false };
            assert!(found.contains(&older), "{digest}: {found:?}");
        }
        catalog.remove(&name("asset"));
        assert!(versions(&graph).iter().all(|known| !known.is_current));
        assert!(versions(&GraphName::new("other").unwrap()).is_empty());
    }

    #[test]
    fn an_app_is_unavailable_until_it_is_loaded_for_the_first_time() {
        let (catalog, path) = (Catalog::new(), Path::new("plugins/asset"));
        let loaded = catalog.watch_loaded();
        let mount = Some("/".to_owned());
        catalog.begin_loading(path, LoadingItem::App { name: name("asset"), mount });
        assert_eq!(catalog.loading_mounts(), [(name("asset"), "/".to_owned())]);
        let failure = catalog.check_loading(&name("asset")).unwrap_err();
        assert!(failure.retryable && is_still_loading(&failure), "{failure:?}");
        assert_eq!(failure.details, Some(json!({ "loading": ["asset"] })));
        assert!(catalog.check_all_loaded().is_err());
        assert!(catalog.check_loading(&name("other")).is_ok());
        catalog.install(app("asset", 1));
        assert!(catalog.check_all_loaded().is_ok(), "a newer version is being loaded");
        assert!(!loaded.has_changed().unwrap());
        catalog.end_loading(path);
        assert!(loaded.has_changed().unwrap() && catalog.loading().is_empty());
    }

    #[test]
    fn an_app_with_a_problem_is_unavailable_until_the_problem_is_cleared() {
        let catalog = Catalog::new();
        let [notes, other] = ["notes", "other"].map(|name| AppName::new(name).unwrap());
        let (path, message) = (PathBuf::from("plugins/notes"), "still at work".to_owned());
        let problem = LoadProblem { path: path.clone(), at_ms: 1, message, app: None };
        catalog.report_problem(problem.clone());
        assert!(!catalog.is_unavailable(&notes));
        catalog.report_problem(LoadProblem { app: Some(notes.clone()), ..problem });
        assert!(catalog.is_unavailable(&notes) && !catalog.is_unavailable(&other));
        assert_eq!(catalog.problem_count(), 1);
        catalog.clear_problem(&path);
        assert!(!catalog.is_unavailable(&notes));
    }
}
