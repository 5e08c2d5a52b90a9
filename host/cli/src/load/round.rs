//! One round of loading, in the background. Files are loaded concurrently, so that a slow file does
//! not delay other files.
//!
//! Apps are read after the first turns of plugins, since their graphs may use the plugins. Apps are
//! installed in the order of their paths, so that the same files always result in the same apps. An
//! app that takes longer than its first turn or [`MAX_WAIT`] is installed when it is ready.
//!
//! Apps that may use a plugin are read again when the plugin is ready.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};
use wattle_run::ports::Plugin;

use super::load_state::{ItemKind, Load, LoadState, NotLoaded};
use super::turns::{Progress, Turn};
use super::{Change, LoaderInner, ReadApp};

/// Time that apps wait for plugins of the same round, and for each other. Reading a component from
/// the cache takes some milliseconds. Compiling a component of a few megabytes takes one or two
/// seconds.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Maximum number of plugins that a problem names.
const NAMED_PLUGINS: usize = 5;

/// The result of a job.
enum JobResult {
    Plugin(Result<Arc<dyn Plugin>, String>),
    App {
        /// Number of changes of the plugins before the app was read.
        plugin_changes: u64,
        app: Box<Result<ReadApp, NotLoaded>>,
    },
    /// The first turn ended without a result, because a component must be compiled.
    NotCompiled,
    /// An app was archived.
    Archived,
}

/// The job of a load.
struct Job {
    load: Load,
    is_first_turn: bool,
}

/// An app that was read and is not installed yet.
struct PendingApp {
    load: Load,
    plugin_changes: u64,
    app: Result<ReadApp, NotLoaded>,
}

/// A round of loading.
pub(super) struct Round {
    inner: Arc<LoaderInner>,
    changes: UnboundedSender<Change>,
    jobs: JoinSet<JobResult>,
    /// The jobs of loads, by task.
    loads: HashMap<Id, Job>,
    /// Number of running jobs that are first turns.
    first_turns: usize,
    /// Apps of the round that are not started yet.
    apps: Vec<Load>,
    /// Whether apps have been started.
    has_started_apps: bool,
    /// Apps in their first turn, and apps that were read in the first turn and are not installed
    /// yet.
    waiting: BTreeSet<PathBuf>,
    /// Apps that were read and are not installed yet.
    read: BTreeMap<PathBuf, PendingApp>,
    /// Whether apps are installed in the order of their paths.
    in_order: bool,
    /// Problems of apps that may be solved by a plugin that is being loaded. `None` if problems are
    /// reported immediately.
    deferred: Option<BTreeMap<PathBuf, String>>,
}

impl Round {
    pub(super) fn new(
        inner: Arc<LoaderInner>,
        changes: UnboundedSender<Change>,
        apps: Vec<Load>,
    ) -> Self {
        Self {
            inner,
            changes,
            jobs: JoinSet::new(),
            loads: HashMap::new(),
            first_turns: 0,
            apps,
            has_started_apps: false,
            waiting: BTreeSet::new(),
            read: BTreeMap::new(),
            in_order: true,
            deferred: Some(BTreeMap::new()),
        }
    }

    /// Loads the plugins and then the apps, and sends each change.
    pub(super) async fn run(mut self, plugins: Vec<Load>) {
        let inner = self.inner.clone();
        for plugin in plugins {
            self.start(&mut inner.state(), plugin);
        }
        self.handle_until(Self::has_no_first_turn, Some(MAX_WAIT)).await;
        self.has_started_apps = true;
        for app in std::mem::take(&mut self.apps) {
            self.waiting.insert(app.path.clone());
            self.start(&mut inner.state(), app);
        }
        self.handle_until(Self::has_no_first_turn, Some(MAX_WAIT)).await;
        self.in_order = false;
        self.install_ready();
        self.handle_until(Self::has_no_deferred, Some(MAX_WAIT)).await;
        self.report_deferred();
        self.handle_until(|_| false, None).await;
    }

    fn has_no_first_turn(&self) -> bool {
        self.first_turns == 0
    }

    fn has_no_deferred(&self) -> bool {
        self.deferred.as_ref().is_none_or(BTreeMap::is_empty)
    }

    fn send(&self, change: Change) {
        // An error means that the receiver was dropped.
        let _ = self.changes.send(change);
    }

    /// Starts the first turn of a load, unless a newer load has replaced it.
    fn start(&mut self, state: &mut LoadState, load: Load) {
        if !state.is_current(&load) {
            self.waiting.remove(&load.path);
            return;
        }
        self.first_turns += 1;
        let (inner, own) = (self.inner.clone(), load.clone());
        self.spawn(state, load, true, async move {
            let mut turn = inner.permits.first_turn().await;
            let done = inner.attempt(&own, &mut turn).await;
            done.unwrap_or(JobResult::NotCompiled)
        });
    }

    /// Starts the turns in which a load compiles its components.
    fn start_compiling(&mut self, state: &mut LoadState, load: Load) {
        let (inner, own) = (self.inner.clone(), load.clone());
        let mut progress = Progress::reporting_to(self.changes.clone());
        self.spawn(state, load, false, async move {
            loop {
                let mut turn = inner.permits.next_turn(progress).await;
                match inner.attempt(&own, &mut turn).await {
                    Some(done) => return done,
                    None => progress = turn.end(),
                }
            }
        });
    }

    fn spawn(
        &mut self,
        state: &mut LoadState,
        load: Load,
        is_first_turn: bool,
        work: impl Future<Output = JobResult> + Send + 'static,
    ) {
        let task = self.jobs.spawn(work);
        self.loads.insert(task.id(), Job { load: load.clone(), is_first_turn });
        state.set_task(&load, task);
    }

    /// Handles the results of jobs until a condition holds, all jobs have ended, or `max_wait` has
    /// passed.
    async fn handle_until(
        &mut self,
        is_reached: impl Fn(&Self) -> bool,
        max_wait: Option<Duration>,
    ) {
        let end = max_wait.map(|max_wait| Instant::now() + max_wait);
        while !is_reached(self) {
            let next = self.jobs.join_next_with_id();
            let ended = match end {
                Some(end) => timeout_at(end, next).await,
                None => Ok(next.await),
            };
            match ended {
                Ok(Some(ended)) => self.handle(ended),
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn handle(&mut self, ended: Result<(Id, JobResult), JoinError>) {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        // A job without an entry archives an app.
        let Some(Job { load, is_first_turn }) = self.loads.remove(&id) else { return };
        self.first_turns -= usize::from(is_first_turn);
        let inner = self.inner.clone();
        let mut state = inner.state();
        if !state.is_current(&load) {
            self.waiting.remove(&load.path);
            return;
        }
        match ended {
            Ok((_, JobResult::NotCompiled)) => {
                self.waiting.remove(&load.path);
                self.start_compiling(&mut state, load);
            }
            Ok((_, JobResult::Plugin(plugin))) => self.install_plugin(&mut state, &load, plugin),
            Ok((_, JobResult::App { plugin_changes, app })) => {
                let pending = PendingApp { load, plugin_changes, app: *app };
                self.read.insert(pending.load.path.clone(), pending);
            }
            Ok((_, JobResult::Archived)) => {}
            Err(error) => {
                let message = format!("loading it failed: {error}");
                self.waiting.remove(&load.path);
                self.send(inner.problem(&state, &load.path, message));
                inner.end_load(&mut state, &load.path);
            }
        }
        drop(state);
        self.install_ready();
    }

    fn install_plugin(
        &mut self,
        state: &mut LoadState,
        load: &Load,
        plugin: Result<Arc<dyn Plugin>, String>,
    ) {
        let inner = self.inner.clone();
        let change = inner.install_plugin(&load.path, plugin, state);
        if let Change::Plugin { name, .. } = &change {
            state.plugin_changes += 1;
            for folder in inner.apps_to_read(state, name) {
                self.read_again(state, folder);
            }
        }
        self.send(change);
        inner.end_load(state, &load.path);
        if state.loading_plugins().next().is_none() {
            for folder in std::mem::take(&mut state.awaiting_plugins) {
                inner.end_load(state, &folder);
            }
            self.report_all_deferred(state);
        }
    }

    /// Reads an app again. If the apps of the round are not started yet, the app is added to them.
    fn read_again(&mut self, state: &mut LoadState, folder: PathBuf) {
        if let Some(deferred) = &mut self.deferred {
            deferred.remove(&folder);
        }
        let load = self.inner.begin_reload(state, &folder, ItemKind::App);
        if self.has_started_apps {
            self.start(state, load);
        } else {
            self.apps.push(load);
        }
    }

    fn install_ready(&mut self) {
        while let Some(path) = self.next_app() {
            self.waiting.remove(&path);
            if let Some(pending) = self.read.remove(&path) {
                self.finish_app(pending);
            }
        }
    }

    /// Returns the app to install next, if one is ready.
    fn next_app(&self) -> Option<PathBuf> {
        let is_next = |path: &&PathBuf| {
            !self.in_order || !self.waiting.contains(*path) || self.waiting.first() == Some(*path)
        };
        self.read.keys().find(is_next).cloned()
    }

    fn finish_app(&mut self, pending: PendingApp) {
        let PendingApp { load, plugin_changes, app } = pending;
        let inner = self.inner.clone();
        let mut state = inner.state();
        if !state.is_current(&load) {
            return;
        }
        let is_stale = plugin_changes != state.plugin_changes;
        match app {
            Ok(app) => {
                state.failed.remove(&load.path);
                let former = state.apps.get(&load.path).cloned();
                let (change, archive) = inner.install_app(&load, app, &mut state);
                if let Some(change) = change {
                    self.send(change);
                }
                if let Some(archive) = archive {
                    let inner = inner.clone();
                    self.jobs.spawn(async move {
                        inner.archive(archive).await;
                        JobResult::Archived
                    });
                }
                if former.is_some_and(|name| state.apps.get(&load.path) != Some(&name)) {
                    // The previous name of the app is available to another folder now.
                    for duplicate in inner.begin_former_duplicates(&mut state) {
                        self.start(&mut state, duplicate);
                    }
                }
            }
            Err(not_loaded) => {
                state.failed.insert(load.path.clone());
                if !is_stale {
                    self.refuse_app(&mut state, &load, not_loaded);
                    return;
                }
            }
        }
        if is_stale {
            self.read_again(&mut state, load.path);
        } else {
            inner.end_load(&mut state, &load.path);
        }
    }

    /// Reports the problem of an app. While plugins that may solve the problem are being loaded,
    /// the report is deferred. Problems of migrations are not deferred, because no plugin solves
    /// them.
    fn refuse_app(&mut self, state: &mut LoadState, load: &Load, not_loaded: NotLoaded) {
        let inner = self.inner.clone();
        let plugins: Vec<String> = state.loading_plugins().take(NAMED_PLUGINS).collect();
        if plugins.is_empty() || not_loaded.unavailable.is_some() {
            self.send(inner.report(state, &load.path, not_loaded));
            inner.end_load(state, &load.path);
            return;
        }
        let message = not_loaded.message;
        // Only the state ends the load. For clients, the app still counts as being loaded.
        state.end(&load.path);
        state.awaiting_plugins.insert(load.path.clone());
        match &mut self.deferred {
            Some(deferred) => drop(deferred.insert(load.path.clone(), message)),
            None => self.send(inner.problem(state, &load.path, with_plugins(&message, &plugins))),
        }
    }

    /// Reports the deferred problems. From now on, every problem is reported immediately.
    fn report_deferred(&mut self) {
        let inner = self.inner.clone();
        let state = inner.state();
        let plugins: Vec<String> = state.loading_plugins().take(NAMED_PLUGINS).collect();
        for (folder, message) in self.deferred.take().into_iter().flatten() {
            self.send(inner.problem(&state, &folder, with_plugins(&message, &plugins)));
        }
    }

    /// Reports the deferred problems after the last plugin was loaded.
    fn report_all_deferred(&mut self, state: &LoadState) {
        let deferred = self.deferred.as_mut().map(std::mem::take);
        for (folder, message) in deferred.into_iter().flatten() {
            self.send(self.inner.problem(state, &folder, message));
        }
    }
}

/// Adds to the problem of an app the plugins that are still being loaded.
fn with_plugins(message: &str, plugins: &[String]) -> String {
    if plugins.is_empty() {
        return message.to_owned();
    }
    let names: Vec<String> = plugins.iter().map(|name| format!("`{name}`")).collect();
    format!(
        "{message}\n  note: the app is read again when these plugins are loaded: {}",
        names.join(", ")
    )
}

impl LoaderInner {
    /// Loads a file or folder. Returns `None` if the load needs another turn.
    async fn attempt(&self, load: &Load, turn: &mut Turn) -> Option<JobResult> {
        match load.kind {
            ItemKind::Plugin => {
                let plugin = self.read_plugin(&load.path, turn).await;
                plugin.transpose().map(JobResult::Plugin)
            }
            ItemKind::App => {
                let plugin_changes = self.state().plugin_changes;
                let read = self.read_app(&load.path, turn).await.transpose()?;
                let app = match read {
                    Ok(app) => self.migrate_app(&load.path, app, turn).await,
                    Err(message) => Err(NotLoaded::from(message)),
                };
                Some(JobResult::App { plugin_changes, app: Box::new(app) })
            }
        }
    }
}
