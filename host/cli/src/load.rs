//! Loads apps and plugins from disk, at the start and when they change.
//!
//! [`Loader::refresh`] scans all files and loads those that are new or have changed. A file that
//! cannot be loaded is reported, and its previously loaded version remains in use.

pub mod app_folder;
mod archive;
pub mod compiler;
mod exported;
pub mod facts;
pub mod file;
pub mod grants;
pub mod limits;
pub mod manifest;
pub mod migrations;
mod names;
mod page;
mod parts;
mod pinned;
pub mod plugin_file;
pub mod projections;
mod round;
mod scan;
mod texts;
mod versions;
pub mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use wattle_api::app_route::mount;
use wattle_api::state::LoosePlugins;
use wattle_graph::id::{AppName, Digest, PluginName};
use wattle_run::app::App;
use wattle_run::catalog::{Catalog, LoadProblem};
use wattle_run::ports::store::StoreError;
use wattle_run::ports::{Clock, Plugin, Sandbox, Store};
use wattle_sql::Databases;

use crate::config::Config;
use crate::load::app_folder::{AppFolder, LoadedApp, Plugins};
use crate::load::archive::Old;
use crate::load::file::FilePlace;
use crate::load::manifest::{ComponentFiles, Manifest};
use crate::load::migrations::{Migrations, PATIENCE};
use crate::load::round::Round;
use crate::load::scan::{Print, Snapshot};
use crate::load::versions::Versions;

/// A loader of apps and plugins. Cheap to clone.
#[derive(Clone)]
pub struct Loader {
    inner: Arc<Inner>,
}

struct Inner {
    config: Arc<Config>,
    catalog: Arc<Catalog>,
    sandbox: Arc<dyn Sandbox>,
    databases: Databases,
    clock: Arc<dyn Clock>,
    loose: LoosePlugins,
    /// Whether only code is loaded: migrations are not applied, and missing tools are not reported.
    code_only: bool,
    migrations: Migrations,
    /// The files that were loaded last. Locked during a refresh, so that refreshes never overlap.
    seen: Mutex<Seen>,
    sources: std::sync::Mutex<Sources>,
    versions: Versions,
    /// Runtime on which the loader was created. Work in the background runs there.
    runtime: Handle,
    /// Work in the background.
    tasks: std::sync::Mutex<JoinSet<()>>,
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

#[derive(Default)]
struct Seen {
    prints: BTreeMap<PathBuf, Print>,
    apps: BTreeMap<PathBuf, AppName>,
    plugins: BTreeMap<PathBuf, PluginName>,
}

impl Seen {
    /// Records the fingerprint of a path. Returns true if the fingerprint has changed.
    fn is_other(&mut self, path: &Path, print: Print) -> bool {
        let is_other = self.prints.get(path) != Some(&print);
        self.prints.insert(path.to_owned(), print);
        is_other
    }

    fn plugin_files(&self, config: &Config) -> impl Iterator<Item = (PluginName, FilePlace)> {
        let place = |path| scan::place_of_plugin(config, path);
        self.plugins.iter().map(move |(path, name)| (name.clone(), place(path)))
    }
}

/// An app that was read and is not installed yet.
struct ReadApp {
    manifest: Manifest,
    files: ComponentFiles,
    loaded: LoadedApp,
}

/// The reason why an app is not loaded.
struct NotLoaded {
    message: String,
    /// The app, if it was read and its migrations were not applied.
    unavailable: Option<AppName>,
}

impl From<String> for NotLoaded {
    fn from(message: String) -> Self {
        Self { message, unavailable: None }
    }
}

/// The result of a refresh for one file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An app was installed, with notes for the operator.
    App {
        /// The app.
        name: AppName,
        /// Notes for the operator, such as requests that are not granted.
        notes: Vec<String>,
    },
    /// A plugin was loaded.
    Plugin {
        /// The plugin.
        name: PluginName,
    },
    /// An app or a plugin was removed.
    Removed {
        /// Path of its folder or file.
        path: PathBuf,
    },
    /// A newly read app is not installed, because it claims paths of another app.
    Conflict {
        /// Folder of the rejected app.
        path: PathBuf,
        /// Error that names the claimed path.
        error: wattle_api::error::Error,
    },
    /// A file or folder could not be loaded.
    Problem {
        /// Path of the file or folder.
        path: PathBuf,
        /// Reason of the failure, and a hint.
        message: String,
    },
}

impl Loader {
    /// Creates a loader. It loads nothing until [`Self::start`] or [`Self::refresh`].
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
        loose: LoosePlugins,
    ) -> Self {
        let inner = Inner::new(config, catalog, sandbox, databases, clock, loose, false);
        Self { inner: Arc::new(inner) }
    }

    /// Creates a loader for replays, which only execute code. The loader writes no files and
    /// applies no migrations.
    pub fn for_code(
        config: Arc<Config>,
        catalog: Arc<Catalog>,
        sandbox: Arc<dyn Sandbox>,
        databases: Databases,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let loose = LoosePlugins::default();
        let inner = Inner::new(config, catalog, sandbox, databases, clock, loose, true);
        Self { inner: Arc::new(inner) }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Loads everything at the start. Archived versions are loaded when a thread needs them.
    ///
    /// # Errors
    ///
    /// Those of the store, from which the pinned versions are read.
    pub async fn start(&self, store: &dyn Store) -> Result<Vec<Change>, StoreError> {
        let inner = &self.inner;
        let pinned = store.pinned_versions().await?;
        let is_complete = pinned.is_complete && store.damaged_threads().await?.is_empty();
        inner.find_archived(is_complete.then_some(pinned.versions)).await;
        Ok(self.refresh().await)
    }

    /// Stops the work in the background.
    pub async fn close(&self) {
        let mut tasks = std::mem::take(&mut *self.inner.tasks());
        tasks.shutdown().await;
    }

    /// Loads everything that is new or has changed since the last refresh.
    pub async fn refresh(&self) -> Vec<Change> {
        let inner = &self.inner;
        let mut seen = inner.seen.lock().await;
        let found = scan::snapshot(&inner.config);
        let mut changes = Vec::new();
        let plugin_gone = inner.forget_missing(&mut seen, &found, &mut changes);
        for (path, (print, message)) in found.unusable {
            if seen.is_other(&path, print) {
                changes.push(inner.problem(&path, message));
            }
        }
        let changed = |(path, print): (PathBuf, Print)| seen.is_other(&path, print).then_some(path);
        let plugins: Vec<PathBuf> = found.plugins.into_iter().filter_map(changed).collect();
        let plugins_changed = plugin_gone || !plugins.is_empty();
        let mut apps = BTreeSet::new();
        for (folder, files) in found.apps {
            if seen.is_other(&folder, files.print) || plugins_changed {
                apps.insert(folder);
            }
        }
        Round::new(inner, &mut seen, changes).load(plugins, &apps).await
    }
}

impl Loader {
    /// Waits until migrations end for which [`Self::refresh`] did not wait, and loads their apps.
    pub async fn load_migrated(&self) -> Vec<Change> {
        let inner = &self.inner;
        inner.migrations.ended().await;
        let mut seen = inner.seen.lock().await;
        let apps = inner.migrations.take_ended();
        Round::new(inner, &mut seen, Vec::new()).load(Vec::new(), &apps).await
    }

    /// Waits for all migrations, and loads their apps.
    pub async fn finish_migrations(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        while self.inner.migrations.are_running() {
            changes.extend(self.load_migrated().await);
        }
        changes
    }

    /// Stops migrations that are at work, which changes nothing in their databases.
    pub fn stop_migrations(&self) {
        self.inner.migrations.stop();
    }
}

impl Inner {
    fn new(
        config: Arc<Config>,
        catalog: Arc<Catalog>,
        sandbox: Arc<dyn Sandbox>,
        databases: Databases,
        clock: Arc<dyn Clock>,
        loose: LoosePlugins,
        code_only: bool,
    ) -> Self {
        Self {
            config,
            catalog,
            sandbox,
            databases,
            clock,
            loose,
            code_only,
            migrations: Migrations::new(PATIENCE),
            seen: Mutex::default(),
            sources: std::sync::Mutex::default(),
            versions: Versions::default(),
            runtime: Handle::current(),
            tasks: std::sync::Mutex::default(),
        }
    }

    /// Locks the tasks and ignores poisoning: no code that can panic runs under the lock.
    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs work in the background until it ends or the loader is closed.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(work, &self.runtime);
    }

    /// Removes apps and plugins whose files no longer exist. Returns true if a plugin was removed,
    /// because apps that use the plugin must then be loaded again.
    fn forget_missing(&self, seen: &mut Seen, found: &Snapshot, changes: &mut Vec<Change>) -> bool {
        let mut plugin_gone = false;
        let gone = |path: &Path| !found.contains(path);
        for path in seen.prints.keys().filter(|path| gone(path)).cloned().collect::<Vec<_>>() {
            seen.prints.remove(&path);
            self.migrations.forget(&path);
            self.catalog.clear_problem(&path);
            if let Some(app) = seen.apps.remove(&path) {
                self.catalog.remove(&app);
                changes.push(Change::Removed { path: path.clone() });
            }
            if let Some(plugin) = seen.plugins.remove(&path) {
                self.loose.remove(&plugin);
                plugin_gone = true;
                changes.push(Change::Removed { path });
            }
        }
        plugin_gone
    }

    async fn read_plugin(&self, path: &Path) -> Result<Arc<dyn Plugin>, String> {
        let place = scan::place_of_plugin(&self.config, path);
        plugin_file::load(self.sandbox.as_ref(), &place).await
    }

    fn install_plugin(
        &self,
        path: &Path,
        plugin: Result<Arc<dyn Plugin>, String>,
        seen: &mut Seen,
    ) -> Change {
        match plugin {
            Ok(plugin) => {
                let name = plugin.info().name.clone();
                seen.plugins.insert(path.to_owned(), name.clone());
                self.loose.insert(plugin);
                self.catalog.clear_problem(path);
                Change::Plugin { name }
            }
            Err(message) => self.problem(path, message),
        }
    }

    async fn read_app(&self, folder: &Path) -> Result<ReadApp, String> {
        let manifest = Manifest::read(folder)?;
        let files = manifest.component_files(folder, &self.config);
        let loose = self.loose.all();
        let reader = self.app_folder(folder, &manifest, &files, &loose);
        let loaded = reader.load().await.map_err(|messages| messages.join("\n"))?;
        Ok(ReadApp { manifest, files, loaded })
    }

    /// Applies the migrations of an app that was read. The app is not installed before that.
    async fn migrate_app(
        &self,
        folder: &Path,
        app: Result<ReadApp, String>,
    ) -> Result<ReadApp, NotLoaded> {
        let mut app = app?;
        let name = app.loaded.app.name.clone();
        let migrations = std::mem::take(&mut app.loaded.migrations);
        match self.migrations.apply(folder, &self.databases, &name, migrations).await {
            Ok(()) => Ok(app),
            Err(message) => Err(NotLoaded { message, unavailable: Some(name) }),
        }
    }

    fn install_app(
        &self,
        folder: &Path,
        app: Result<ReadApp, NotLoaded>,
        seen: &mut Seen,
    ) -> Change {
        let ReadApp { manifest, files, loaded } = match app {
            Ok(app) => app,
            Err(not_loaded) => return self.report(folder, not_loaded),
        };
        let name = loaded.app.name.clone();
        if let Some(message) = twin(&name, folder, seen) {
            return self.problem(folder, message);
        }
        if let Some(error) = self.conflict(&loaded.app) {
            self.problem(folder, error.to_string());
            return Change::Conflict { path: folder.to_owned(), error };
        }
        if let Some(old) =
            seen.apps.insert(folder.to_owned(), name.clone()).filter(|it| *it != name)
        {
            self.catalog.remove(&old);
        }
        let app = self.catalog.install(loaded.app);
        self.catalog.clear_problem(folder);
        let loose = seen.plugin_files(&self.config);
        let files = files.into_iter().chain(loose).collect();
        match archive::keep(&self.config, &app, &manifest, folder, &files) {
            Some(archived) => {
                let versions = app.graphs.values().map(|graph| (app.name.clone(), graph.version));
                self.versions.insert(versions, &archived);
            }
            None => {
                let source = Source { manifest, folder: folder.to_owned(), files };
                self.sources().insert(app.digest, source);
            }
        }
        Change::App { name, notes: loaded.notes }
    }

    fn app_folder<'a>(
        &'a self,
        folder: &'a Path,
        manifest: &'a Manifest,
        files: &'a ComponentFiles,
        loose: &'a Plugins,
    ) -> AppFolder<'a> {
        let (config, sandbox) = (&*self.config, self.sandbox.as_ref());
        let databases = &self.databases;
        let is_old = self.code_only;
        AppFolder { folder, manifest, files, is_old, config, sandbox, databases, loose }
    }

    /// Loads an archived version for the threads that are pinned to it, or the code of an export.
    async fn load_old(&self, old: &Old) -> Result<App, Vec<String>> {
        let manifest = old.manifest().map_err(|message| vec![message])?;
        let (own, others) = old.files(&manifest);
        let loose = app_folder::components(&others, self.sandbox.as_ref()).await?;
        let reader = self.app_folder(&old.folder, &manifest, &own, &loose);
        Ok(AppFolder { is_old: true, ..reader }.load().await?.app)
    }

    /// Returns the reason why an app cannot be mounted together with the other apps, or cannot be
    /// served on its own listen address.
    fn conflict(&self, app: &App) -> Option<wattle_api::error::Error> {
        let others = self.catalog.apps();
        let mut all: Vec<&App> = others.iter().map(|other| &**other).collect();
        all.retain(|other| other.name != app.name);
        all.push(app);
        let has_own = self.config.apps.get(&app.name).is_some_and(|own| own.listen.is_some());
        let alone = has_own.then(|| mount::conflict_alone(app)).flatten();
        mount::conflicts(&all).into_iter().next().or(alone)
    }

    fn problem(&self, path: &Path, message: String) -> Change {
        self.report(path, message.into())
    }

    fn report(&self, path: &Path, NotLoaded { message, unavailable }: NotLoaded) -> Change {
        let (path, at_ms) = (path.to_owned(), self.clock.now_ms());
        let (shown, app) = (message.clone(), unavailable);
        self.catalog.report_problem(LoadProblem { path: path.clone(), at_ms, message: shown, app });
        Change::Problem { path, message }
    }
}

/// Returns an error message if another folder contains an app with the same name.
fn twin(name: &AppName, folder: &Path, seen: &Seen) -> Option<String> {
    let mut twins = seen.apps.iter().filter(|(path, known)| *known == name && *path != folder);
    twins.next().map(|(path, _)| {
        format!(
            "app `{name}` is already loaded from `{}`\n  hint: give one of them another name",
            path.display()
        )
    })
}

/// Returns the folders of all apps.
pub fn app_folders(config: &Config) -> Vec<PathBuf> {
    scan::scan(config).apps.into_iter().collect()
}

/// Loads the standalone plugins of the plugins folder. Skips plugins that cannot be loaded.
pub async fn loose_plugins(config: &Config, sandbox: &dyn Sandbox) -> Plugins {
    let mut plugins = Plugins::new();
    for path in scan::scan(config).plugins {
        let place = scan::place_of_plugin(config, &path);
        if let Ok(plugin) = plugin_file::load(sandbox, &place).await {
            plugins.insert(plugin.info().name.clone(), plugin);
        }
    }
    plugins
}
