//! The code of runs: the newest versions of apps, and the versions that threads are pinned to.

use std::sync::Arc;

use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, GraphName};
use wattle_graph::suggest;

use super::Engine;
use crate::app::{App, GraphVersion};
use crate::ports::store::{ThreadHead, ThreadRecord};

/// A version of an app and one of its graphs, if they are loaded.
pub(super) type LoadedCode = Option<(Arc<App>, Arc<GraphVersion>)>;

impl Engine {
    /// Returns the code of a run on a thread: the version that the thread is pinned to, or the
    /// newest version of the app if the thread is new or unbound.
    ///
    /// # Errors
    ///
    /// `conflict` if the thread is bound to a graph other than `graph`; `not-found` if the app or
    /// the graph does not exist; `unavailable` if the app is still being loaded, or the pinned
    /// version cannot be loaded; `invalid` if no graph is named and the app has several.
    pub(super) async fn code_for(
        &self,
        head: Option<&ThreadHead>,
        app: &AppName,
        graph: Option<&GraphName>,
    ) -> Result<(Arc<App>, Arc<GraphVersion>), Failure> {
        let Some(record) = head.map(|head| &head.record).filter(|record| !record.is_unbound())
        else {
            let app = self.app(app)?;
            let graph_version = select_graph(&app, graph)?;
            return Ok((app, graph_version));
        };
        if let Some(graph) = graph.filter(|graph| **graph != record.graph) {
            let (thread, own) = (&record.id, &record.graph);
            let text = format!(
                "thread `{thread}` is bound to graph `{own}`; run `{graph}` on another thread"
            );
            return Err(Failure::new(code::CONFLICT, text));
        }
        self.pinned_code(record).await
    }

    /// Returns the newest version of an app.
    ///
    /// # Errors
    ///
    /// `unavailable` while the app is loaded for the first time; `not-found` if it does not exist.
    pub(super) fn app(&self, name: &AppName) -> Result<Arc<App>, Failure> {
        let catalog = &self.0.catalog;
        if let Some(app) = catalog.app(name) {
            return Ok(app);
        }
        catalog.check_loading(name)?;
        let apps = catalog.apps();
        let known = apps.iter().map(|app| app.name.as_str());
        let hint = suggest::hint(name.as_str(), "loaded apps", known);
        Err(Failure::new(code::NOT_FOUND, format!("there is no app `{name}`; {hint}")))
    }

    /// Returns the code that a thread is pinned to, and loads it if it is archived.
    ///
    /// # Errors
    ///
    /// `unavailable`, which can be retried while the code is being loaded.
    pub(super) async fn pinned_code(
        &self,
        record: &ThreadRecord,
    ) -> Result<(Arc<App>, Arc<GraphVersion>), Failure> {
        let catalog = &self.0.catalog;
        let found = catalog.load_version(&record.app, &record.graph, record.version).await?;
        found.ok_or_else(|| {
            Failure::new(
                code::UNAVAILABLE,
                format!(
                    "thread `{}` is pinned to version {} of graph `{}` in app `{}`, which is not \
                     loaded; put that version back or start a new thread",
                    record.id,
                    &record.version.to_hex()[..12],
                    record.graph,
                    record.app
                ),
            )
            .with_details(json!({ "version": record.version }))
        })
    }

    /// Loads the code of a thread if it is archived, for views that use the code if it is there.
    pub async fn load_code(&self, record: &ThreadRecord) {
        drop(self.loaded_code(record).await);
    }

    /// Returns the code of a thread if it can be loaded now. A thread is readable without its code.
    pub(super) async fn loaded_code(&self, record: &ThreadRecord) -> LoadedCode {
        let catalog = &self.0.catalog;
        let found = catalog.load_version(&record.app, &record.graph, record.version).await;
        found.unwrap_or_else(|failure| {
            tracing::debug!(thread = %record.id, %failure, "a thread is shown without its code");
            None
        })
    }
}

/// Returns the graph of a run: the named one, or the only one of the app.
///
/// # Errors
///
/// `invalid` if no graph is named and the app has several; `not-found` if the graph does not exist.
pub(super) fn select_graph(
    app: &App,
    name: Option<&GraphName>,
) -> Result<Arc<GraphVersion>, Failure> {
    let names = app.graphs.keys().map(GraphName::as_str);
    let found = match name {
        Some(name) => app.graphs.get(name),
        None if app.graphs.len() == 1 => app.graphs.values().next(),
        None => {
            let details = json!({ "app": app.name, "graphs": names.clone().collect::<Vec<_>>() });
            let text = format!(
                "app `{}` has several graphs; name one of {}",
                app.name,
                suggest::quoted_names(names)
            );
            return Err(Failure::new(code::INVALID, text).with_details(details));
        }
    };
    found.cloned().ok_or_else(|| {
        let wanted = name.map(GraphName::as_str).unwrap_or_default();
        let hint = suggest::hint(wanted, "it has", names);
        let text = format!("app `{}` has no graph `{wanted}`; {hint}", app.name);
        Failure::new(code::NOT_FOUND, text)
    })
}
