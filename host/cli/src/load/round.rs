//! One round of loading: several files at once, so that a slow one does not delay the others.
//!
//! What is read is installed in the order of its paths as long as all of it is quick, so that the
//! same files give the same apps. What is still at work after [`PATIENCE`] is installed whenever it
//! is done.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use wattle_run::ports::Plugin;

use super::{Change, Inner, ReadApp, Seen};

/// How long apps wait for plugins that are loaded in the same round, and for each other. Compiling
/// a component of some megabytes takes a second or two.
const PATIENCE: Duration = Duration::from_secs(5);

/// Files and folders that are loaded at once: each may hold a component of 64 MiB in memory.
const AT_ONCE: usize = 8;

/// What was read.
enum Done {
    Plugin(PathBuf, Result<Arc<dyn Plugin>, String>),
    App(PathBuf, Box<Result<ReadApp, String>>),
}

/// A round of loading.
pub(super) struct Round<'a> {
    inner: &'a Inner,
    seen: &'a mut Seen,
    places: Arc<Semaphore>,
    work: FuturesUnordered<BoxFuture<'a, Done>>,
    /// Apps that are not installed yet.
    waiting: BTreeSet<PathBuf>,
    /// Those of them that were read.
    read: BTreeMap<PathBuf, Result<ReadApp, String>>,
    /// Whether apps are installed in the order of their paths.
    in_order: bool,
    plugins: usize,
    changes: Vec<Change>,
}

impl<'a> Round<'a> {
    /// A round that has nothing to do yet.
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

    /// Loads plugins, then apps, then apps once more if a slow plugin came that they may use.
    pub(super) async fn load(
        mut self,
        plugins: Vec<PathBuf>,
        apps: &BTreeSet<PathBuf>,
    ) -> Vec<Change> {
        for path in plugins {
            self.start(move |inner| {
                Box::pin(async move { Done::Plugin(path.clone(), inner.read_plugin(&path).await) })
            });
        }
        self.take(Some(PATIENCE)).await;
        loop {
            let plugins = self.plugins;
            for folder in apps.clone() {
                self.waiting.insert(folder.clone());
                self.start(move |inner| {
                    Box::pin(async move {
                        let app = inner.read_app(&folder).await;
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

    fn start(&mut self, work: impl FnOnce(&'a Inner) -> BoxFuture<'a, Done> + Send + 'a) {
        let (inner, places) = (self.inner, self.places.clone());
        self.work.push(Box::pin(async move {
            // The semaphore is never closed.
            let _place = places.acquire().await;
            work(inner).await
        }));
    }

    /// Takes what is done, until all is or the time is over.
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

    /// The app to install next, if there is one.
    fn next(&self) -> Option<PathBuf> {
        let next = if self.in_order { self.waiting.first()? } else { self.read.keys().next()? };
        self.read.contains_key(next).then(|| next.clone())
    }
}
