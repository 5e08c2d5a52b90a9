//! Loads apps and plugins from disk, at the start and when they change.
//!
//! [`Loader::refresh`] scans all files, and loads new and changed files in the background. A file
//! that cannot be loaded is reported, and the version that was loaded before remains in use.

pub mod app_folder;
pub mod app_loader;
mod app_plugins;
mod app_request;
mod archive;
mod changes;
mod claims;
mod code_memory;
pub mod compiler;
mod config_file;
mod export_code;
pub mod file;
mod found_names;
mod grant_registry;
pub mod grants;
pub mod hinted_message;
mod install;
pub mod limits;
mod listing;
mod load_state;
mod loading;
pub mod manifest;
pub mod migrations;
mod names;
pub(crate) mod page;
mod pinned;
pub mod plugin_catalog;
pub mod plugin_file;
pub mod projections;
mod refresh;
mod regrant;
mod round;
mod scan;
mod text_files;
pub mod turns;
mod unconfigured;
mod unused;
mod versions;
pub mod watch;
pub(crate) mod watcher;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use wattle_api::app_route::mount;
use wattle_api::standalone::{Permissions, StandalonePlugins};
use wattle_graph::id::{Digest, PluginName};
use wattle_run::app::App;
use wattle_run::catalog::{Catalog, LoadProblem};
use wattle_run::ports::sandbox::PluginInfo;
use wattle_run::ports::store::StoreError;
use wattle_run::ports::{Clock, Plugin, Sandbox, Store};
use wattle_sql::Databases;

use crate::config::Config;
use crate::load::app_folder::{AppFolder, LoadedApp, Plugins};
use crate::load::archive::ArchivedVersion;
pub(crate) use crate::load::changes::RELOAD_TARGET;
pub use crate::load::changes::{Change, Changes, Severity};
use crate::load::code_memory::UnloadingSandbox;
use crate::load::config_file::ConfigFile;
pub use crate::load::found_names::UnusedTable;
use crate::load::grant_registry::GrantRegistry;
pub use crate::load::grants::UnrequestedGrant;
use crate::load::grants::{GrantDecision, GrantTables};
pub use crate::load::listing::{apps, grant_tables, may_have_app, standalone_plugins};
use crate::load::load_state::{ItemKind, Load, LoadState, NotLoaded};
use crate::load::manifest::{ComponentFiles, Manifest};
use crate::load::migrations::Migrations;
use crate::load::scan::Snapshot;
use crate::load::turns::{LoadPermits, Turn};
pub use crate::load::unconfigured::{Unconfigured, find_unconfigured};
pub use crate::load::unused::{Unused, find_unused};
use crate::load::versions::Versions;

/// A loader of apps and plugins. Cheap to clone.
#[derive(Clone)]
pub struct Loader {
    inner: Arc<LoaderInner>,
}

struct LoaderInner {
    config: Arc<Config>,
    catalog: Arc<Catalog>,
    sandbox: Arc<dyn Sandbox>,
    databases: Databases,
    clock: Arc<dyn Clock>,
    standalone: StandalonePlugins,
    /// Whether the loader is for replays: migrations are not applied, and missing tools are not
    /// reported.
    is_replay: bool,
    migrations: Migrations,
    permits: LoadPermits,
    /// The results of the last loads, and the loads in progress.
    state: Mutex<LoadState>,
    /// Locked during a scan, so that the results of scans are compared in order.
    scans: tokio::sync::Mutex<ConfigFile>,
    grant_registry: Mutex<GrantRegistry>,
    /// Locked while a plugin is checked, installed or removed.
    installing: tokio::sync::Mutex<()>,
    sources: Mutex<Sources>,
    versions: Versions,
    /// Runtime on which the loader was created. It runs the background tasks.
    runtime: Handle,
    /// Background tasks.
    tasks: Mutex<JoinSet<()>>,
}

/// Locations of the files of installed apps that are not archived, by digest of the app.
type Sources = BTreeMap<Digest, Source>;

/// The location of the files of an app.
#[derive(Clone)]
struct Source {
    manifest: Manifest,
    folder: PathBuf,
    files: ComponentFiles,
}

/// An app that was read and is not installed yet.
struct ReadApp {
    manifest: Manifest,
    files: ComponentFiles,
    loaded: LoadedApp,
    /// The tables of grants that decided the grants of the app.
    tables: Arc<GrantTables>,
}

/// An archived version that was read.
struct ArchivedApp {
    manifest: Manifest,
    app: App,
    /// The tables of grants that decided the grants of the app.
    tables: Arc<GrantTables>,
}

/// An installed app that is not archived yet.
struct Unarchived {
    app: Arc<App>,
    source: Source,
}

/// The loads that a scan requires.
struct PendingLoads {
    plugins: Vec<Load>,
    apps: Vec<Load>,
}

impl Loader {
    /// Creates a loader. The loader loads nothing until [`Self::start`] or [`Self::refresh`] is
    /// called.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn new(
        config: Arc<Config>,
        catalog: Arc<Catalog>,
        sandbox: Arc<dyn Sandbox>,
        databases: Databases,
        clock: Arc<dyn Clock>,
        standalone: StandalonePlugins,
    ) -> Self {
        let inner = LoaderInner::new(config, catalog, sandbox, databases, clock, standalone, false);
        Self { inner: Arc::new(inner) }
    }

    /// Creates a loader for replays, which only execute code. The loader writes no files and
    /// applies no migrations.
    pub fn for_replay(
        config: Arc<Config>,
        catalog: Arc<Catalog>,
        sandbox: Arc<dyn Sandbox>,
        databases: Databases,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let standalone = StandalonePlugins::default();
        let inner = LoaderInner::new(config, catalog, sandbox, databases, clock, standalone, true);
        Self { inner: Arc::new(inner) }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Returns the permissions of a standalone plugin outside of apps, by the tables of grants that
    /// apply now.
    pub fn standalone_permissions(&self, plugin: &PluginInfo) -> Permissions {
        let GrantDecision { grants, request } = self.inner.decide_standalone(plugin);
        Permissions { grants, request }
    }

    /// Returns the tables of grants that apply now. A refresh may replace them.
    pub(crate) fn grant_tables(&self) -> Arc<GrantTables> {
        self.inner.grant_registry().tables()
    }

    /// Begins to load everything at the start. Archived versions are loaded when a thread needs
    /// them.
    ///
    /// # Errors
    ///
    /// The errors of the store, from which the pinned versions are read.
    pub async fn start(&self, store: &dyn Store) -> Result<Changes, StoreError> {
        let inner = &self.inner;
        let pinned = store.pinned_versions().await?;
        let is_complete = pinned.is_complete && store.damaged_threads().await?.is_empty();
        inner.find_archived(is_complete.then_some(pinned.versions)).await;
        Ok(self.refresh().await)
    }

    /// Stops running migrations. Their databases remain unchanged.
    pub fn stop_migrations(&self) {
        self.inner.migrations.stop();
    }

    /// Stops the background tasks.
    pub async fn close(&self) {
        let mut tasks = std::mem::take(&mut *self.inner.tasks());
        tasks.shutdown().await;
    }
}

impl LoaderInner {
    fn new(
        config: Arc<Config>,
        catalog: Arc<Catalog>,
        sandbox: Arc<dyn Sandbox>,
        databases: Databases,
        clock: Arc<dyn Clock>,
        standalone: StandalonePlugins,
        is_replay: bool,
    ) -> Self {
        // The tables are created now, because an archived version can be loaded before the first
        // refresh.
        let tables = grant_tables(&config);
        let sandbox = Arc::new(UnloadingSandbox::new(sandbox, catalog.clone()));
        Self {
            config,
            catalog,
            sandbox,
            databases,
            clock,
            standalone,
            is_replay,
            migrations: Migrations::default(),
            permits: LoadPermits::default(),
            state: Mutex::default(),
            scans: tokio::sync::Mutex::default(),
            grant_registry: Mutex::new(GrantRegistry::new(tables)),
            installing: tokio::sync::Mutex::default(),
            sources: Mutex::default(),
            versions: Versions::default(),
            runtime: Handle::current(),
            tasks: Mutex::default(),
        }
    }

    /// Locks the state and ignores poisoning: each change leaves the state consistent.
    fn state(&self) -> MutexGuard<'_, LoadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the tasks and ignores poisoning: no code that holds the lock can panic.
    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a background task until it ends or the loader is closed.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(work, &self.runtime);
    }

    /// Compares a scan with the state, and begins the loads of new and changed files. Applies the
    /// tables of grants of a configuration file that was read again. Sends the changes that need no
    /// load.
    fn compare(
        &self,
        found: Snapshot,
        tables: Option<GrantTables>,
        send: impl Fn(Change) + Copy,
    ) -> PendingLoads {
        let mut state = self.state();
        let gone = self.uninstall_missing(&mut state, &found, send);
        let folders =
            found.apps.iter().map(|(folder, files)| (folder.clone(), files.name().cloned()));
        state.folders = folders.collect();
        state.standalone = found.standalone();
        let to_read = self.regrant(&mut state, tables, &found, send);
        self.report_unused(&mut state, &found, send);
        for (path, (fingerprint, message)) in found.unusable {
            if state.record_fingerprint(&path, fingerprint) {
                self.end_load(&mut state, &path);
                send(self.problem(&state, &path, message));
            }
        }
        let mut loads = PendingLoads { plugins: Vec::new(), apps: Vec::new() };
        for (path, fingerprint) in found.plugins {
            if state.record_fingerprint(&path, fingerprint) {
                loads.plugins.push(self.begin_load(&mut state, &path, ItemKind::Plugin));
            }
        }
        for (folder, files) in found.apps {
            if state.record_fingerprint(&folder, files.fingerprint) {
                loads.apps.push(self.begin_load(&mut state, &folder, ItemKind::App));
            }
        }
        for load in self.begin_former_duplicates(&mut state) {
            match load.kind {
                ItemKind::Plugin => loads.plugins.push(load),
                ItemKind::App => loads.apps.push(load),
            }
        }
        for folder in to_read {
            if state.folders.contains_key(&folder) && !state.is_loading(&folder) {
                loads.apps.push(self.begin_load(&mut state, &folder, ItemKind::App));
            }
        }
        for plugin in gone {
            state.plugin_changes += 1;
            for folder in self.apps_to_read(&state, &plugin) {
                loads.apps.push(self.begin_reload(&mut state, &folder, ItemKind::App));
            }
        }
        loads
    }

    /// Removes apps and plugins whose files no longer exist. Returns the removed plugins.
    fn uninstall_missing(
        &self,
        state: &mut LoadState,
        found: &Snapshot,
        send: impl Fn(Change),
    ) -> Vec<PluginName> {
        let mut plugins = Vec::new();
        for path in state.remove_missing(|path| found.contains(path)) {
            self.migrations.remove(&path);
            self.catalog.clear_problem(&path);
            self.catalog.end_loading(&path);
            if let Some(app) = state.apps.remove(&path) {
                self.catalog.remove(&app);
                send(Change::Removed { path: path.clone() });
            }
            if let Some(plugin) = state.plugins.remove(&path) {
                self.standalone.remove(&plugin);
                plugins.push(plugin);
                send(Change::Removed { path });
            }
        }
        plugins
    }

    async fn read_plugin(
        &self,
        path: &Path,
        turn: &mut Turn,
    ) -> Result<Option<Arc<dyn Plugin>>, String> {
        let location = scan::plugin_location(&self.config, path);
        let loaded = plugin_file::load_in_turn(self.sandbox.as_ref(), &location, turn).await;
        loaded.map_err(|error| error.to_string())
    }

    fn install_plugin(
        &self,
        path: &Path,
        plugin: Result<Arc<dyn Plugin>, String>,
        state: &mut LoadState,
    ) -> Change {
        match plugin {
            Ok(plugin) => {
                let name = plugin.info().name.clone();
                if let Some(message) = claims::duplicate_plugin(&name, path, state) {
                    state.duplicates.insert(path.to_owned());
                    return self.problem(state, path, message);
                }
                state.plugins.insert(path.to_owned(), name.clone());
                let notes = self.decide_standalone(plugin.info()).request.notes;
                self.standalone.insert(plugin);
                self.catalog.clear_problem(path);
                Change::Plugin { name, notes }
            }
            Err(message) => self.problem(state, path, message),
        }
    }

    /// Reads an app. Returns `None` if the load needs another turn.
    async fn read_app(&self, folder: &Path, turn: &mut Turn) -> Result<Option<ReadApp>, String> {
        let manifest = Manifest::read(folder)?;
        if let Some(message) = claims::wrong_folder(&self.config, &manifest.app.name, folder) {
            return Err(message);
        }
        let files = manifest.component_files(folder, &self.config);
        let (standalone, tables) = (self.standalone.all(), self.grant_registry().tables());
        let reader = self.app_folder(folder, &manifest, &files, &standalone, &tables);
        let loaded = reader.load(turn).await.map_err(|messages| messages.join("\n"))?;
        Ok(loaded.map(|loaded| ReadApp { manifest, files, loaded, tables }))
    }

    /// Applies the migrations of an app that was read. The app is installed only after its
    /// migrations are applied.
    async fn migrate_app(
        &self,
        folder: &Path,
        mut app: ReadApp,
        turn: &mut Turn,
    ) -> Result<ReadApp, NotLoaded> {
        let migrations = std::mem::take(&mut app.loaded.migrations);
        if migrations.is_empty() {
            return Ok(app);
        }
        // Migrations have a separate semaphore, so that other files are read while migrations run.
        turn.release();
        let name = app.loaded.app.name.clone();
        match self.migrations.apply(folder, &self.databases, &name, migrations).await {
            Ok(()) => Ok(app),
            Err(message) => Err(NotLoaded { message, unavailable: Some(name) }),
        }
    }

    /// Installs an app. Returns no change for an app that was read again without a difference.
    fn install_app(
        &self,
        load: &Load,
        app: ReadApp,
        state: &mut LoadState,
    ) -> (Option<Change>, Option<Unarchived>) {
        let folder = load.path.as_path();
        let ReadApp { manifest, files, loaded, tables } = app;
        let name = loaded.app.name.clone();
        if let Some(message) = claims::duplicate_app(&self.config, &name, folder, state) {
            state.duplicates.insert(folder.to_owned());
            return (Some(self.problem(state, folder, message)), None);
        }
        if let Some(error) = self.conflict(&loaded.app) {
            self.problem(state, folder, error.to_string());
            let keeps_old = state.has_version(folder);
            let change = Change::Conflict { path: folder.to_owned(), error, keeps_old };
            return (Some(change), None);
        }
        let old = self.catalog.app(&name).filter(|_| load.is_reload);
        if let Some(old) =
            state.apps.insert(folder.to_owned(), name.clone()).filter(|it| *it != name)
        {
            self.catalog.remove(&old);
        }
        let app = self.catalog.install(loaded.app);
        let regranted = self.grant_registry().add(&app, &manifest, &tables);
        let notes = match regranted {
            Some(regranted) => regranted.renew(loaded.notes),
            None => loaded.notes,
        };
        self.catalog.clear_problem(folder);
        let standalone = state.plugin_files(&self.config);
        let files = files.into_iter().chain(standalone).collect();
        let source = Source { manifest, folder: folder.to_owned(), files };
        self.sources().insert(app.digest, source.clone());
        let is_same = old.is_some_and(|old| is_same(&old, &app));
        let change = (!is_same).then_some(Change::App { name, notes });
        (change, Some(Unarchived { app, source }))
    }

    /// Archives an installed app, so that its threads can continue after a restart.
    async fn archive(&self, installed: Unarchived) {
        let config = self.config.clone();
        let Unarchived { app, source } = installed;
        let request = source.manifest.request();
        let archived = tokio::task::spawn_blocking(move || {
            let Source { manifest, folder, files } = &source;
            let folder = archive::save(&config, &app, manifest, folder, files);
            folder.map(|folder| (app, folder))
        });
        match archived.await {
            Ok(Some((app, folder))) => {
                let versions = app.graphs.iter();
                let versions = versions.map(|(name, graph)| (graph.version, Some(name.clone())));
                self.versions.insert(&app.name, versions, &folder, Some(request));
                self.sources().remove(&app.digest);
            }
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "cannot archive a version"),
        }
    }

    fn app_folder<'a>(
        &'a self,
        folder: &'a Path,
        manifest: &'a Manifest,
        files: &'a ComponentFiles,
        standalone: &'a Plugins,
        tables: &'a GrantTables,
    ) -> AppFolder<'a> {
        let (config, sandbox) = (&*self.config, self.sandbox.as_ref());
        let databases = &self.databases;
        let is_archived = self.is_replay;
        AppFolder {
            folder,
            manifest,
            files,
            is_archived,
            config,
            tables,
            sandbox,
            databases,
            standalone,
        }
    }

    /// Loads an archived version for the threads that are pinned to it, or the code of an export.
    /// Returns `None` if the load needs another turn.
    async fn load_archived_version(
        &self,
        archived: &ArchivedVersion,
        turn: &mut Turn,
    ) -> Result<Option<ArchivedApp>, Vec<String>> {
        let manifest = archived.manifest().map_err(|message| vec![message])?;
        let (own, others) = archived.files(&manifest);
        let standalone =
            app_loader::components_in_turn(&others, None, self.sandbox.as_ref(), turn).await?;
        let Some(standalone) = standalone else { return Ok(None) };
        let tables = self.grant_registry().tables();
        let reader = self.app_folder(&archived.folder, &manifest, &own, &standalone, &tables);
        let loaded = AppFolder { is_archived: true, ..reader }.load(turn).await?;
        Ok(loaded.map(|LoadedApp { app, .. }| ArchivedApp { manifest, app, tables }))
    }

    /// Returns the error if an app cannot be mounted beside the other apps, or cannot be served on
    /// its own listen address.
    fn conflict(&self, app: &App) -> Option<wattle_api::error::Error> {
        let others = self.catalog.apps();
        let mut all: Vec<&App> = others.iter().map(|other| &**other).collect();
        all.retain(|other| other.name != app.name);
        all.push(app);
        let has_own = self.config.apps.get(&app.name).is_some_and(|own| own.listen.is_some());
        let alone = has_own.then(|| mount::app_address_conflict(app)).flatten();
        let has_studio = self.config.server.has_studio_on_main_address();
        mount::conflicts(&all, has_studio).into_iter().next().or(alone)
    }

    fn problem(&self, state: &LoadState, path: &Path, message: String) -> Change {
        self.report(state, path, message.into())
    }

    fn report(
        &self,
        state: &LoadState,
        path: &Path,
        NotLoaded { message, unavailable }: NotLoaded,
    ) -> Change {
        let keeps_old = state.has_version(path);
        let (path, at_ms) = (path.to_owned(), self.clock.now_ms());
        let (shown, app) = (message.clone(), unavailable);
        self.catalog.report_problem(LoadProblem { path: path.clone(), at_ms, message: shown, app });
        Change::Problem { path, message, keeps_old }
    }
}

/// Returns true if two loads of an app have no difference that matters to the operator.
fn is_same(old: &App, new: &App) -> bool {
    let about = |app: &App| (app.digest, app.version.clone(), app.doc.clone(), app.web.clone());
    about(old) == about(new)
        && old.settings == new.settings
        && old.mount == new.mount
        && old.grants.all() == new.grants.all()
}
