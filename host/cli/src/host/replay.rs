//! Code and ports for a replay.
//!
//! No store file, database or network connection is opened, so that a replay changes and calls
//! nothing. Only the blobs are read, because the journal contains only references to them. If the
//! blobs cannot be opened, the replay continues without them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Mutex;
use wattle_graph::id::AppName;
use wattle_run::app::App;
use wattle_run::catalog::Catalog;
use wattle_run::export::Export;
use wattle_run::ports::{BlobLinks, BlobStore, Clock, Ports};
use wattle_run::replay::replay_ports;
use wattle_sql::Databases;
use wattle_store::{FileBlobs, InMemoryBlobs, InMemoryStore, PostgresBlobs, VolatileMemory};

use crate::config::{Config, StoreKind};
use crate::env::environment;
use crate::error::Error;
use crate::host::adapters::{open_sandbox, postgres_config};
use crate::host::clock::HostClock;
use crate::host::generated_secret::link_secret;
use crate::load::{Change, Changes, Loader};
use crate::output::Output;

/// The code of apps, and ports that a replay never calls.
pub struct ReplayHost {
    /// Ports that reject external calls.
    pub ports: Ports,
    catalog: Arc<Catalog>,
    loader: Loader,
    /// Apps that are still being loaded.
    later_changes: Mutex<Changes>,
}

impl ReplayHost {
    /// Loads the apps of the plugins folder. Prints a warning for each app that cannot be loaded.
    /// Apps that take longer than `server.load_wait` are loaded in the background.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] if a part of the configuration cannot be used, [`Error::Store`] if a store
    /// cannot be read, and [`Error::File`] if a file cannot be read or written.
    pub async fn open(config: Config) -> Result<Self, Error> {
        let blobs = blobs(&config).await?;
        let links = BlobLinks::new(&link_secret(&config)?);
        let clock: Arc<dyn Clock> = Arc::new(HostClock::new(&config.clock)?);
        let sandbox = open_sandbox(&config)?;
        let databases = Databases::open(BTreeMap::new(), &config.data).await;
        let databases = databases
            .map_err(|error| Error::Setup { what: "databases", message: error.to_string() })?;
        // With an in-memory store, the loader does not archive versions of apps.
        let mut config = config;
        config.store.kind = StoreKind::Memory;
        let catalog = Catalog::new();
        let load_wait = config.server.load_wait();
        let config = Arc::new(config);
        let loader = Loader::for_replay(config, catalog.clone(), sandbox, databases, clock.clone());
        loader.find_archived().await;
        let mut later_changes = loader.refresh().await;
        warn(later_changes.within(load_wait, Output::note).await);
        let (store, memory) = (Arc::new(InMemoryStore::new()), Arc::new(VolatileMemory::new()));
        let ports = replay_ports(store, memory, blobs, links, clock);
        Ok(Self { ports, catalog, loader, later_changes: Mutex::new(later_changes) })
    }

    /// Returns the app in the version to which a thread is pinned: the code in the export, or else
    /// a loaded or an archived version. If none of them has the version, waits for apps that are
    /// still being loaded.
    ///
    /// # Errors
    ///
    /// A message if the code of the export cannot be loaded, or differs from what the export
    /// declares.
    pub async fn load_app(&self, export: &Export) -> Result<Option<Arc<App>>, String> {
        if !export.code.is_empty() {
            return self.loader.load_exported(export).await.map(Some);
        }
        let thread = &export.header.thread;
        let find = || self.catalog.pinned_version(&thread.app, &thread.graph, thread.version);
        if find().is_none() {
            let loaded = self.loader.load_archived(&thread.app, thread.version).await;
            loaded.map_err(|failure| failure.message)?;
        }
        if find().is_none() {
            warn(self.later_changes.lock().await.all(Output::note).await);
        }
        Ok(find().map(|(app, _)| app))
    }

    /// Returns the newest version of an app. If the app is not loaded, waits for apps that are
    /// still being loaded.
    pub async fn newest(&self, app: &AppName) -> Option<Arc<App>> {
        if self.catalog.app(app).is_none() {
            warn(self.later_changes.lock().await.all(Output::note).await);
        }
        self.catalog.app(app)
    }

    /// Returns the ports, with the blobs of the export if it contains any.
    pub async fn ports_with_blobs(&self, export: &Export) -> Ports {
        let mut ports = self.ports.clone();
        if !export.blobs.is_empty() {
            ports.blobs = blobs_of(export).await;
        }
        ports
    }
}

/// Returns ports for the replay of an export with the links and the clock of a host.
pub(crate) async fn ports_for_export(export: &Export, host: &Ports) -> Ports {
    let (store, memory) = (Arc::new(InMemoryStore::new()), Arc::new(VolatileMemory::new()));
    let (links, clock) = (host.links.clone(), host.clock.clone());
    replay_ports(store, memory, blobs_of(export).await, links, clock)
}

async fn blobs_of(export: &Export) -> Arc<dyn BlobStore> {
    let blobs = InMemoryBlobs::new();
    for file in &export.blobs {
        // The put cannot fail, because a store in memory accepts every blob that a store on disk
        // has accepted.
        let _ = blobs.put(file.bytes.0.clone(), &file.media_type).await;
    }
    Arc::new(blobs)
}

/// Prints a warning for each app or plugin that cannot be loaded.
fn warn(changes: Vec<Change>) {
    for change in changes {
        if let Change::Problem { path, message, .. } = change {
            Output::warning(&format!("`{}` is not loaded: {message}", path.display()));
        }
    }
}

async fn blobs(config: &Config) -> Result<Arc<dyn BlobStore>, Error> {
    Ok(match config.store.kind {
        StoreKind::Memory => Arc::new(InMemoryBlobs::new()),
        StoreKind::Redb => Arc::new(FileBlobs::open_read_only(config.blobs_folder())),
        StoreKind::Postgres => {
            let (database, warning) = postgres_config(config, &environment())?;
            if let Some(warning) = warning {
                Output::warning(&warning);
            }
            match PostgresBlobs::connect(&database).await {
                Ok(blobs) => Arc::new(blobs),
                Err(error) => {
                    Output::warning(&format!("the replay continues without blobs: {error}"));
                    Arc::new(InMemoryBlobs::new())
                }
            }
        }
    })
}
