//! One round of loading. Files are loaded concurrently, so that a slow file does not delay the
//! others. Migrations of an app run beside it.
//!
//! Apps are installed in the order of their paths, so that the same files always result in the same
//! apps. If files take longer than [`PATIENCE`], their apps are installed in the order in which
//! they are ready.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use wattle_run::ports::Plugin;

use super::{Change, Inner, NotLoaded, ReadApp, Seen};

/// Time that apps wait for plugins of the same round, and for each other. Compiling a component of
/// a few megabytes takes one or two seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum number of files and folders that are loaded concurrently. Each can hold a component of
/// 64 MiB in memory.
const AT_ONCE: usize = 8;

/// A file or folder that was read.
enum Done {
    Plugin(PathBuf, Result<Arc<dyn Plugin>, String>),
    App(PathBuf, Box<Result<ReadApp, NotLoaded>>),
}

/// One of the [`AT_ONCE`] places. Dropping it frees the place.
type Place = Option<OwnedSemaphorePermit>;

/// A round of loading.
pub(super) struct Round<'a> {
    inner: &'a Inner,
    seen: &'a mut Seen,
    places: Arc<Semaphore>,
    work: FuturesUnordered<BoxFuture<'a, Done>>,
    /// Apps that are not installed yet.
    waiting: BTreeSet<PathBuf>,
    /// Apps that were read and are not installed yet.
    read: BTreeMap<PathBuf, Result<ReadApp, NotLoaded>>,
    /// Whether apps are installed in the order of their paths.
    in_order: bool,
    plugins: usize,
    changes: Vec<Change>,
}

impl<'a> Round<'a> {
    /// Creates a round without work.
    pub(super) fn new(inner: &'a Inner, seen: &'a mut Seen, changes: Vec<Change>) -> Self {
        Self {
            inner,
            seen,
            places: Arc::new(Semaphore::new(AT_ONCE)),
            work: FuturesUnordered::new(),
            waiting: BTreeSet::new(),
            read: BTreeMap::new(),
            in_order: true,
            plugins: 0,
            changes,
        }
    }

    /// Loads the plugins and then the apps. Repeats the apps if plugins finished in the meantime
    /// that the apps may use.
    pub(super) async fn load(
        mut self,
        plugins: Vec<PathBuf>,
        apps: &BTreeSet<PathBuf>,
    ) -> Vec<Change> {
        for path in plugins {
            self.start(move |inner, place| {
                Box::pin(async move {
                    let plugin = inner.read_plugin(&path).await;
                    drop(place);
                    Done::Plugin(path, plugin)
                })
            });
        }
        self.take(Some(PATIENCE)).await;
        loop {
            let plugins = self.plugins;
            for folder in apps.clone() {
                self.waiting.insert(folder.clone());
                self.start(move |inner, place| {
                    Box::pin(async move {
                        let app = inner.read_app(&folder).await;
                        // Migrations need no place: other files are read meanwhile.
                        drop(place);
                        let app = inner.migrate_app(&folder, app).await;
                        Done::App(folder, Box::new(app))
                    })
                });
            }
            self.take(Some(PATIENCE)).await;
            self.in_order = false;
            self.install();
            self.take(None).await;
            if self.plugins == plugins {
                return self.changes;
            }
        }
    }

    fn start(&mut self, work: impl FnOnce(&'a Inner, Place) -> BoxFuture<'a, Done> + Send + 'a) {
        let (inner, places) = (self.inner, self.places.clone());
        self.work.push(Box::pin(async move {
            // The semaphore is never closed.
            let place = places.acquire_owned().await.ok();
            work(inner, place).await
        }));
    }

    /// Installs apps and plugins as they are ready, until all are installed or `patience` has
    /// passed.
    async fn take(&mut self, patience: Option<Duration>) {
        let end = patience.map(|patience| Instant::now() + patience);
        loop {
            let next = self.work.next();
            let done = match end {
                Some(end) => timeout_at(end, next).await,
                None => Ok(next.await),
            };
            match done {
                Ok(Some(Done::Plugin(path, plugin))) => {
                    self.plugins += 1;
                    self.changes.push(self.inner.install_plugin(&path, plugin, self.seen));
                }
                Ok(Some(Done::App(folder, app))) => {
                    self.read.insert(folder, *app);
                    self.install();
                }
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn install(&mut self) {
        while let Some(next) = self.next() {
            self.waiting.remove(&next);
            if let Some(app) = self.read.remove(&next) {
                self.changes.push(self.inner.install_app(&next, app, self.seen));
            }
        }
    }

    /// Returns the app to install next, if it is ready.
    fn next(&self) -> Option<PathBuf> {
        let next = if self.in_order { self.waiting.first()? } else { self.read.keys().next()? };
        self.read.contains_key(next).then(|| next.clone())
    }
}
