//! One round of loading, in the background. Files are loaded concurrently, so that a slow file does
//! not delay the others.
//!
//! Apps are read after the first turns of plugins, since their graphs may use the plugins. They are
//! installed in the order of their paths, so that the same files always result in the same apps. An
//! app that takes longer than its first turn or [`PATIENCE`] is installed when it is ready.
//!
//! A plugin that is ready later makes the apps that may use it be read again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};
use wattle_run::ports::Plugin;

use super::places::{Progress, Turn};
use super::seen::{Kind, Load, Seen};
use super::{Change, Inner, NotLoaded, ReadApp};

/// Time that apps wait for plugins of the same round, and for each other. Reading a component from
/// the cache takes some milliseconds, and compiling one of a few megabytes one or two seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum number of plugins that a problem names.
const NAMED_PLUGINS: usize = 5;

/// The end of a job.
enum Done {
    Plugin(Result<Arc<dyn Plugin>, String>),
    App {
        /// Number of changes of the plugins before the app was read.
        plugin_changes: u64,
        app: Box<Result<ReadApp, NotLoaded>>,
    },
    /// A component must be compiled.
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
struct Pending {
    load: Load,
    plugin_changes: u64,
    app: Result<ReadApp, NotLoaded>,
}

/// A round of loading.
pub(super) struct Round {
    inner: Arc<Inner>,
    changes: UnboundedSender<Change>,
    jobs: JoinSet<Done>,
    /// The jobs of loads, by task.
    loads: HashMap<Id, Job>,
    /// Number of jobs that are first turns.
    first_turns: usize,
    /// Apps of the round that are not started yet.
    apps: Vec<Load>,
    /// Whether apps have been started.
    has_started_apps: bool,
    /// Apps in their first turn, and those that were read in it and are not installed yet.
    waiting: BTreeSet<PathBuf>,
    /// Apps that were read and are not installed yet.
    read: BTreeMap<PathBuf, Pending>,
    /// Whether apps are installed in the order of their paths.
    in_order: bool,
    /// Problems of apps that may be solved by a plugin that is being loaded. `None` if problems are
    /// reported immediately.
    held: Option<BTreeMap<PathBuf, String>>,
}

impl Round {
    pub(super) fn new(
        inner: Arc<Inner>,
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
            held: Some(BTreeMap::new()),
        }
    }

    /// Loads the plugins and then the apps, and sends each change.
    pub(super) async fn run(mut self, plugins: Vec<Load>) {
        let inner = self.inner.clone();
        for plugin in plugins {
            self.start(&mut inner.seen(), plugin);
        }
        self.handle_until(Self::has_no_first_turn, Some(PATIENCE)).await;
        self.has_started_apps = true;
        for app in std::mem::take(&mut self.apps) {
            self.waiting.insert(app.path.clone());
            self.start(&mut inner.seen(), app);
        }
        self.handle_until(Self::has_no_first_turn, Some(PATIENCE)).await;
        self.in_order = false;
        self.install_ready();
        self.handle_until(Self::holds_nothing, Some(PATIENCE)).await;
        self.report_held();
        self.handle_until(|_| false, None).await;
    }

    fn has_no_first_turn(&self) -> bool {
        self.first_turns == 0
    }

    fn holds_nothing(&self) -> bool {
        self.held.as_ref().is_none_or(BTreeMap::is_empty)
    }

    fn send(&self, change: Change) {
        // An error means that nobody wants to know.
        let _ = self.changes.send(change);
    }

    /// Starts the first turn of a load, unless a newer load has replaced it.
    fn start(&mut self, seen: &mut Seen, load: Load) {
        if !seen.is_current(&load) {
            self.waiting.remove(&load.path);
            return;
        }
        self.first_turns += 1;
        let (inner, own) = (self.inner.clone(), load.clone());
        self.spawn(seen, load, true, async move {
            let mut turn = inner.places.first_turn().await;
            let done = inner.attempt(&own, &mut turn).await;
            done.unwrap_or(Done::NotCompiled)
        });
    }

    /// Starts the turns in which a load compiles its components.
    fn start_compiling(&mut self, seen: &mut Seen, load: Load) {
        let (inner, own) = (self.inner.clone(), load.clone());
        let mut progress = Progress::told(self.changes.clone());
        self.spawn(seen, load, false, async move {
            loop {
                let mut turn = inner.places.next_turn(progress).await;
                match inner.attempt(&own, &mut turn).await {
                    Some(done) => return done,
                    None => progress = turn.end(),
                }
            }
        });
    }

    fn spawn(
        &mut self,
        seen: &mut Seen,
        load: Load,
        is_first_turn: bool,
        work: impl Future<Output = Done> + Send + 'static,
    ) {
        let task = self.jobs.spawn(work);
        self.loads.insert(task.id(), Job { load: load.clone(), is_first_turn });
        seen.set_task(&load, task);
    }

    /// Handles the ends of jobs until a condition holds, all jobs have ended, or `patience` has
    /// passed.
    async fn handle_until(
        &mut self,
        is_reached: impl Fn(&Self) -> bool,
        patience: Option<Duration>,
    ) {
        let end = patience.map(|patience| Instant::now() + patience);
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

    fn handle(&mut self, ended: Result<(Id, Done), JoinError>) {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        // Archiving is no load.
        let Some(Job { load, is_first_turn }) = self.loads.remove(&id) else { return };
        self.first_turns -= usize::from(is_first_turn);
        let inner = self.inner.clone();
        let mut seen = inner.seen();
        if !seen.is_current(&load) {
            self.waiting.remove(&load.path);
            return;
        }
        match ended {
            Ok((_, Done::NotCompiled)) => {
                self.waiting.remove(&load.path);
                self.start_compiling(&mut seen, load);
            }
            Ok((_, Done::Plugin(plugin))) => self.install_plugin(&mut seen, &load, plugin),
            Ok((_, Done::App { plugin_changes, app })) => {
                let pending = Pending { load, plugin_changes, app: *app };
                self.read.insert(pending.load.path.clone(), pending);
            }
            Ok((_, Done::Archived)) => {}
            Err(error) => {
                let message = format!("loading it failed: {error}");
                self.waiting.remove(&load.path);
                self.send(inner.problem(&seen, &load.path, message));
                inner.end_load(&mut seen, &load.path);
            }
        }
        drop(seen);
        self.install_ready();
    }

    fn install_plugin(
        &mut self,
        seen: &mut Seen,
        load: &Load,
        plugin: Result<Arc<dyn Plugin>, String>,
    ) {
        let inner = self.inner.clone();
        let change = inner.install_plugin(&load.path, plugin, seen);
        if let Change::Plugin { name } = &change {
            seen.plugin_changes += 1;
            for folder in inner.apps_to_read(seen, name) {
                self.read_again(seen, folder);
            }
        }
        self.send(change);
        inner.end_load(seen, &load.path);
        if seen.loading_plugins().next().is_none() {
            for folder in std::mem::take(&mut seen.awaiting_plugins) {
                inner.end_load(seen, &folder);
            }
            self.report_all_held(seen);
        }
    }

    /// Reads an app again. Before the apps of the round have been started, it joins them.
    fn read_again(&mut self, seen: &mut Seen, folder: PathBuf) {
        if let Some(held) = &mut self.held {
            held.remove(&folder);
        }
        let load = self.inner.begin_load_again(seen, &folder, Kind::App);
        if self.has_started_apps {
            self.start(seen, load);
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

    fn finish_app(&mut self, pending: Pending) {
        let Pending { load, plugin_changes, app } = pending;
        let inner = self.inner.clone();
        let mut seen = inner.seen();
        if !seen.is_current(&load) {
            return;
        }
        let is_stale = plugin_changes != seen.plugin_changes;
        match app {
            Ok(app) => {
                seen.failed.remove(&load.path);
                let former = seen.apps.get(&load.path).cloned();
                let (change, archive) = inner.install_app(&load, app, &mut seen);
                if let Some(change) = change {
                    self.send(change);
                }
                if let Some(archive) = archive {
                    let inner = inner.clone();
                    self.jobs.spawn(async move {
                        inner.archive(archive).await;
                        Done::Archived
                    });
                }
                if former.is_some_and(|name| seen.apps.get(&load.path) != Some(&name)) {
                    // The former name is free for another folder.
                    for twin in inner.begin_former_twins(&mut seen) {
                        self.start(&mut seen, twin);
                    }
                }
            }
            Err(not_loaded) => {
                seen.failed.insert(load.path.clone());
                if !is_stale {
                    self.refuse_app(&mut seen, &load, not_loaded);
                    return;
                }
            }
        }
        if is_stale {
            self.read_again(&mut seen, load.path);
        } else {
            inner.end_load(&mut seen, &load.path);
        }
    }

    /// Reports the problem of an app, or holds it while plugins are being loaded that may solve it.
    /// No plugin solves a problem of migrations.
    fn refuse_app(&mut self, seen: &mut Seen, load: &Load, not_loaded: NotLoaded) {
        let inner = self.inner.clone();
        let plugins: Vec<String> = seen.loading_plugins().take(NAMED_PLUGINS).collect();
        if plugins.is_empty() || not_loaded.unavailable.is_some() {
            self.send(inner.report(seen, &load.path, not_loaded));
            inner.end_load(seen, &load.path);
            return;
        }
        let message = not_loaded.message;
        // For clients, the app is still being loaded.
        seen.end(&load.path);
        seen.awaiting_plugins.insert(load.path.clone());
        match &mut self.held {
            Some(held) => drop(held.insert(load.path.clone(), message)),
            None => self.send(inner.problem(seen, &load.path, with_plugins(&message, &plugins))),
        }
    }

    /// Reports the held problems, and from now on every problem immediately.
    fn report_held(&mut self) {
        let inner = self.inner.clone();
        let seen = inner.seen();
        let plugins: Vec<String> = seen.loading_plugins().take(NAMED_PLUGINS).collect();
        for (folder, message) in self.held.take().into_iter().flatten() {
            self.send(inner.problem(&seen, &folder, with_plugins(&message, &plugins)));
        }
    }

    /// Reports the held problems after the last plugin was loaded.
    fn report_all_held(&mut self, seen: &Seen) {
        let held = self.held.as_mut().map(std::mem::take);
        for (folder, message) in held.into_iter().flatten() {
            self.send(self.inner.problem(seen, &folder, message));
        }
    }
}

/// Adds to a problem of an app that plugins are still being loaded.
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

impl Inner {
    /// Loads a file or folder as far as its turn allows. Returns `None` if it needs another turn.
    async fn attempt(&self, load: &Load, turn: &mut Turn) -> Option<Done> {
        match load.kind {
            Kind::Plugin => {
                let plugin = self.read_plugin(&load.path, turn).await;
                plugin.transpose().map(Done::Plugin)
            }
            Kind::App => {
                let plugin_changes = self.seen().plugin_changes;
                let read = self.read_app(&load.path, turn).await.transpose()?;
                let app = match read {
                    Ok(app) => self.migrate_app(&load.path, app, turn).await,
                    Err(message) => Err(NotLoaded::from(message)),
                };
                Some(Done::App { plugin_changes, app: Box::new(app) })
            }
        }
    }
}
