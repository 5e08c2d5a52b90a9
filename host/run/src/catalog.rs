//! The apps that are loaded right now, and the versions that running threads still need.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Serialize;
use wattle_graph::id::{AppName, Digest, GraphName};

use crate::app::{App, GraphPack};
use crate::export::CodeSource;

/// A file or folder that could not be loaded. What was loaded from it before stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoadProblem {
    /// What was to be loaded.
    pub path: PathBuf,
    /// When, milliseconds since 1970.
    pub at_ms: i64,
    /// What is wrong, and what to do.
    pub message: String,
}

/// Loaded apps. Cheap to read; written only when a file changes.
#[derive(Default)]
pub struct Catalog {
    inner: Mutex<Inner>,
    source: OnceLock<Arc<dyn CodeSource>>,
}

#[derive(Default)]
struct Inner {
    apps: BTreeMap<AppName, Arc<App>>,
    /// Every version loaded since the start, so that old threads finish on the old code.
    versions: BTreeMap<(AppName, GraphName, Digest), Arc<App>>,
    problems: BTreeMap<PathBuf, LoadProblem>,
}

impl Catalog {
    /// An empty catalog.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// No code runs under this lock, so a poisoned one still holds whole data.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says where the files of apps are, once.
    pub fn loaded_from(&self, source: Arc<dyn CodeSource>) {
        self.source.get_or_init(|| source);
    }

    /// Where the files of apps are, if that is known.
    pub fn source(&self) -> Option<Arc<dyn CodeSource>> {
        self.source.get().cloned()
    }

    /// Installs an app in place of the one with its name. New runs use it at once; threads that
    /// began on an older version stay on that.
    pub fn install(&self, app: App) -> Arc<App> {
        let app = Arc::new(app);
        let mut inner = self.lock();
        for (graph, pack) in &app.graphs {
            let key = (app.name.clone(), graph.clone(), pack.version);
            inner.versions.insert(key, app.clone());
        }
        inner.apps.insert(app.name.clone(), app.clone());
        app
    }

    /// Takes an app away from new runs.
    pub fn remove(&self, name: &AppName) {
        self.lock().apps.remove(name);
    }

    /// An app by its name.
    pub fn app(&self, name: &AppName) -> Option<Arc<App>> {
        self.lock().apps.get(name).cloned()
    }

    /// All apps, by name.
    pub fn apps(&self) -> Vec<Arc<App>> {
        self.lock().apps.values().cloned().collect()
    }

    /// The version that a thread is pinned to, if it was loaded since the start.
    pub fn version(
        &self,
        app: &AppName,
        graph: &GraphName,
        version: Digest,
    ) -> Option<(Arc<App>, Arc<GraphPack>)> {
        let inner = self.lock();
        let app = inner.versions.get(&(app.clone(), graph.clone(), version))?;
        let pack = app.graphs.get(graph)?;
        Some((app.clone(), pack.clone()))
    }

    /// Notes that something could not be loaded.
    pub fn report(&self, problem: LoadProblem) {
        self.lock().problems.insert(problem.path.clone(), problem);
    }

    /// Notes that a path is loaded well again.
    pub fn resolve(&self, path: &std::path::Path) {
        self.lock().problems.remove(path);
    }

    /// What could not be loaded, by path.
    pub fn problems(&self) -> Vec<LoadProblem> {
        self.lock().problems.values().cloned().collect()
    }
}
