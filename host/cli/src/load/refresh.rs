//! Scans all files, and begins to load new and changed files.

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::config_file::{self, ChangeFilter, ConfigFile, FileCheck};
use super::round::Round;
use super::{Changes, Loader, PendingLoads, scan};

impl Loader {
    /// Applies changed grants of the configuration file, and begins to load everything that is new
    /// or has changed since the last refresh. The loads continue in the background. A later refresh
    /// does not wait for them.
    pub async fn refresh(&self) -> Changes {
        let mut file = self.inner.scans.lock().await;
        self.refresh_filtered(&mut file, ChangeFilter::Any).await.0
    }

    /// Like [`Self::refresh`], but defers a configuration file that has just changed, because it
    /// may be incomplete. Also returns the time from which a refresh reads the deferred file.
    pub(super) async fn refresh_settled(&self) -> (Changes, Option<Instant>) {
        let mut file = self.inner.scans.lock().await;
        let filter = ChangeFilter::Settled(file.settled());
        self.refresh_filtered(&mut file, filter).await
    }

    async fn refresh_filtered(
        &self,
        file: &mut ConfigFile,
        filter: ChangeFilter,
    ) -> (Changes, Option<Instant>) {
        let inner = &self.inner;
        let (sender, changes) = mpsc::unbounded_channel();
        let (config, known) = (inner.config.clone(), file.fingerprint());
        let read = move || {
            let check = config_file::reread(&config, known.as_ref(), &filter);
            (check, scan::snapshot(&config))
        };
        let mut deferred_until = None;
        match tokio::task::spawn_blocking(read).await {
            Ok((check, found)) => {
                // An error means that the receiver was dropped.
                let send = |change| drop(sender.send(change));
                let tables = match check {
                    FileCheck::Unchanged => None,
                    FileCheck::Changing(fingerprint) => {
                        deferred_until = Some(file.defer(fingerprint));
                        None
                    }
                    FileCheck::Read(reread) => inner.apply_file(file, reread, send),
                };
                let PendingLoads { plugins, apps } = inner.compare(found, tables, send);
                if !plugins.is_empty() || !apps.is_empty() {
                    let round = Round::new(inner.clone(), sender, apps);
                    inner.spawn(round.run(plugins));
                }
            }
            Err(error) => tracing::error!(%error, "cannot scan the apps and plugins"),
        }
        (Changes::new(changes), deferred_until)
    }
}
