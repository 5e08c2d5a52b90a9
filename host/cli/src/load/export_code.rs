//! Code of loaded apps and of exports: collects the files of a loaded app, and loads an app from
//! files.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, Digest, GraphName};
use wattle_run::app::App;
use wattle_run::export::{CodeFile, CodeSource, Export};

use super::turns::Turn;
use super::{ArchivedApp, Loader, LoaderInner, archive};
use crate::output::Output;

#[async_trait]
impl CodeSource for Loader {
    async fn files(&self, app: &Arc<App>) -> Result<Vec<CodeFile>, Failure> {
        let source = self.inner.sources().get(&app.digest).cloned();
        let (config, pinned) = (self.inner.config.clone(), app.clone());
        let read = blocking(move || {
            let loaded = source.as_ref().map(|it| (&it.manifest, it.folder.as_path(), &it.files));
            archive::files(&config, &pinned, loaded)
        });
        read.await.map_err(|message| {
            Failure::new(
                code::UNAVAILABLE,
                format!(
                    "the code of app `{}` cannot be exported: {message}; export the thread \
                     without its code",
                    app.name
                ),
            )
        })
    }

    fn is_archived(&self, app: &App) -> bool {
        let versions = &self.inner.versions;
        app.graphs.values().any(|graph| versions.folder(&app.name, graph.version).is_some())
    }

    fn archived_versions(&self, app: &AppName, graph: &GraphName) -> BTreeSet<Digest> {
        self.inner.versions.of_graph(app, graph)
    }

    async fn load_version(&self, app: &AppName, version: Digest) -> Result<bool, Failure> {
        self.inner.load_for_request(app, version).await
    }
}

impl Loader {
    /// Loads the code of an export, with the grants of the host that wrote the export. The limits
    /// in the file are reduced to the allowed maximum.
    ///
    /// # Errors
    ///
    /// A message if the code cannot be loaded, or differs from what the export declares.
    pub async fn load_exported(&self, export: &Export) -> Result<Arc<App>, String> {
        let code = export.code.clone();
        // `_folder` must live until the code is loaded, because dropping it deletes the folder.
        let (_folder, archived) = blocking(move || {
            let folder = tempfile::tempdir()?;
            archive::unpack(&code, folder.path())?;
            let archived = archive::read(folder.path().to_owned());
            Ok((folder, archived))
        })
        .await?;
        let archived = archived.ok_or("the code in the export has no index")?;
        let loaded =
            self.inner.load_archived_version(&archived, &mut Turn::unlimited(Output::note)).await;
        let loaded = loaded.map_err(|messages| messages.join("\n"))?;
        // A turn without limits compiles every component.
        let ArchivedApp { mut app, .. } = loaded.ok_or("a component was not compiled")?;
        if let Some(rules) = &export.policy {
            app.grants = rules.bounded_grants().into();
            app.settings = Arc::new(rules.settings.clone());
        }
        check(&app, export)?;
        Ok(Arc::new(app))
    }
}

/// Runs blocking file operations on the blocking pool.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// Checks that the code has the digests that the export declares.
fn check(app: &App, export: &Export) -> Result<(), String> {
    let thread = &export.header.thread;
    let names = export.header.code.as_ref();
    let claimed = names.iter().flat_map(|names| &names.plugins);
    for (name, digest) in claimed {
        let found: Option<Digest> = app.plugins.get(name).map(|plugin| plugin.info().digest);
        if found != Some(*digest) {
            let found = found.map_or_else(|| "missing".to_owned(), Digest::to_hex);
            return Err(format!(
                "the export was changed: the component `{name}` is {found}, not {digest}"
            ));
        }
    }
    let version = app.graphs.get(&thread.graph).map(|graph| graph.version);
    if app.name == thread.app && version == Some(thread.version) {
        return Ok(());
    }
    Err(format!(
        "the export was changed: its code is not version {} of graph `{}` in app `{}`",
        thread.version, thread.graph, thread.app
    ))
}

impl LoaderInner {
    /// Locks the sources and ignores poisoning: no code that holds the lock can panic.
    pub(super) fn sources(&self) -> std::sync::MutexGuard<'_, super::Sources> {
        self.sources.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
