//! The loaded apps, and the graph versions that threads are pinned to.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Serialize;
use wattle_graph::id::{AppName, Digest, GraphName};

use crate::app::{App, GraphVersion};
use crate::export::CodeSource;

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

/// The loaded apps. Reads are cheap; writes happen only when a file changes.
#[derive(Default)]
pub struct Catalog {
    state: Mutex<CatalogState>,
    source: OnceLock<Arc<dyn CodeSource>>,
}

#[derive(Default)]
struct CatalogState {
    apps: BTreeMap<AppName, Arc<App>>,
    /// Every graph version that was loaded since the process started, so that threads finish on the
    /// version they are pinned to.
    versions: BTreeMap<(AppName, GraphName, Digest), Arc<App>>,
    problems: BTreeMap<PathBuf, LoadProblem>,
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

    /// Sets the source of the files of apps. Only the first call has an effect.
    pub fn set_source(&self, source: Arc<dyn CodeSource>) {
        self.source.get_or_init(|| source);
    }

    /// Returns the source of the files of apps, or `None` if it was not set.
    pub fn source(&self) -> Option<Arc<dyn CodeSource>> {
        self.source.get().cloned()
    }

    /// Installs an app and replaces the app with the same name. New runs use it at once; threads
    /// that are pinned to an older version keep that version.
    pub fn install(&self, app: App) -> Arc<App> {
        let app = Arc::new(app);
        let mut inner = self.lock();
        for (graph, graph_version) in &app.graphs {
            let key = (app.name.clone(), graph.clone(), graph_version.version);
            inner.versions.insert(key, app.clone());
        }
        inner.apps.insert(app.name.clone(), app.clone());
        app
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

    /// Returns the version that a thread is pinned to, or `None` if it was not loaded since the
    /// process started.
    pub fn pinned_version(
        &self,
        app: &AppName,
        graph: &GraphName,
        version: Digest,
    ) -> Option<(Arc<App>, Arc<GraphVersion>)> {
        let inner = self.lock();
        let app = inner.versions.get(&(app.clone(), graph.clone(), version))?;
        let graph_version = app.graphs.get(graph)?;
        Some((app.clone(), graph_version.clone()))
    }

    /// Records that a path could not be loaded.
    pub fn report_problem(&self, problem: LoadProblem) {
        self.lock().problems.insert(problem.path.clone(), problem);
    }

    /// Removes the problem of a path that was loaded successfully.
    pub fn clear_problem(&self, path: &std::path::Path) {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_with_a_problem_is_unavailable_until_it_is_cleared() {
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
