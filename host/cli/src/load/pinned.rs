//! Loads the archived versions to which threads are pinned.
//!
//! A version is loaded when the first thread needs it. The load continues in the background if it
//! takes longer than a request waits.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use tokio::time::timeout_at;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, Digest};

use super::app_request::AppRequest;
use super::archive::{self, ArchivedVersion};
use super::versions::{VersionFailure, VersionLoad};
use super::{Loader, LoaderInner};

/// Time that a request waits for a version. Loading takes some milliseconds if the compiled code is
/// in the cache.
const MAX_WAIT: Duration = Duration::from_secs(5);

impl Loader {
    /// Finds the archived versions of the data folder.
    pub async fn find_archived(&self) {
        self.inner.find_archived(None).await;
    }

    /// Loads an archived version of an app, without a timeout. Returns false if the version is not
    /// archived.
    ///
    /// # Errors
    ///
    /// `unavailable` if the version cannot be loaded.
    pub async fn load_archived(&self, app: &AppName, version: Digest) -> Result<bool, Failure> {
        self.inner.load_version(app, version, None).await
    }
}

impl LoaderInner {
    /// Finds the archived versions. If `pinned` is known, deletes all other versions.
    pub(super) async fn find_archived(&self, pinned: Option<BTreeSet<(AppName, Digest)>>) {
        let config = self.config.clone();
        let find = move || {
            let needed = match pinned {
                Some(pinned) => {
                    let (needed, rest) = archive::partition_pinned(&config, &pinned);
                    archive::delete(rest);
                    needed
                }
                None => archive::all(&config),
            };
            let read = needed.into_iter().map(|archived| (archived.request(), archived));
            read.collect::<Vec<(Option<AppRequest>, ArchivedVersion)>>()
        };
        match tokio::task::spawn_blocking(find).await {
            Ok(found) => {
                for (request, archived) in found {
                    let (app, folder) = (archived.app(), &archived.folder);
                    self.versions.insert(app, archived.versions(), folder, request);
                }
            }
            Err(error) => tracing::error!(%error, "cannot list the archived versions"),
        }
    }

    /// Loads an archived version for a request.
    pub(super) async fn load_for_request(
        self: &Arc<Self>,
        app: &AppName,
        version: Digest,
    ) -> Result<bool, Failure> {
        self.load_version(app, version, Some(MAX_WAIT)).await
    }

    async fn load_version(
        self: &Arc<Self>,
        app: &AppName,
        version: Digest,
        max_wait: Option<Duration>,
    ) -> Result<bool, Failure> {
        let Some(folder) = self.versions.folder(app, version) else { return Ok(false) };
        let (mut load, sender) = self.versions.begin(&folder);
        if let Some(sender) = sender {
            self.load_in_background(folder, sender);
        }
        let ended = load.outcome.wait_for(|outcome| *outcome != VersionLoad::Running);
        let ended = match max_wait {
            Some(max_wait) => timeout_at(load.began + max_wait, ended).await,
            None => Ok(ended.await),
        };
        let version = &version.to_hex()[..12];
        match ended.as_ref().map(|ended| ended.as_deref()) {
            Ok(Ok(VersionLoad::Failed(VersionFailure { message, .. }))) => {
                let text = format!("version {version} of app `{app}` cannot be loaded: {message}");
                Err(Failure::new(code::UNAVAILABLE, text))
            }
            Ok(Ok(_)) => Ok(true),
            // The sender was dropped, because the host stops.
            Ok(Err(_)) => {
                let text = format!("version {version} of app `{app}` was not loaded; try again");
                Err(Failure::new(code::UNAVAILABLE, text).retryable())
            }
            Err(_) => {
                let text = format!("version {version} of app `{app}` is being loaded; try again");
                let failure = Failure::new(code::UNAVAILABLE, text).retryable();
                Err(failure.with_details(json!({ "loading": [app] })))
            }
        }
    }

    fn load_in_background(self: &Arc<Self>, folder: PathBuf, sender: watch::Sender<VersionLoad>) {
        let inner = self.clone();
        self.spawn(async move {
            let outcome = match inner.install_archived(&folder).await {
                Ok(()) => VersionLoad::Loaded,
                Err(failure) => {
                    let (folder, message) = (folder.display(), &failure.message);
                    tracing::error!(%folder, "an archived version cannot be loaded: {message}");
                    VersionLoad::Failed(failure)
                }
            };
            inner.versions.end(&folder, &outcome);
            sender.send_replace(outcome);
        });
    }

    async fn install_archived(&self, folder: &Path) -> Result<(), VersionFailure> {
        let path = folder.to_owned();
        let archived = tokio::task::spawn_blocking(move || archive::read(path)).await;
        let archived = archived.map_err(|error| error.to_string())?;
        let archived = archived.ok_or_else(|| "its files are missing".to_owned())?;
        let mut turn = self.permits.first_turn().await;
        loop {
            let loaded = self.load_archived_version(&archived, &mut turn).await;
            let loaded = loaded.map_err(|messages| VersionFailure {
                may_pass: turn.lacks_code_memory(),
                ..VersionFailure::from(messages.join("\n"))
            })?;
            if let Some(archived) = loaded {
                let app = self.catalog.install_version(archived.app);
                self.grant_registry().add(&app, &archived.manifest, &archived.tables);
                return Ok(());
            }
            let progress = turn.end();
            turn = self.permits.next_turn(progress).await;
        }
    }
}
