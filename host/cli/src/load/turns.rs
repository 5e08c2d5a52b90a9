//! The permits that loads share, and the turns in which loads hold them.
//!
//! In its first turn, a load reads its files and compiles nothing. A load that requires
//! compilations has further turns, each of which compiles one component: briefly, or completely if
//! a permit for slow components is available. A component that takes longer than a brief
//! compilation waits for such a permit. Slow components therefore delay neither loads whose code is
//! in the cache nor loads that compile quickly. A turn reports its compilations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use wattle_graph::id::PluginName;
use wattle_run::ports::sandbox::{CODE_MEMORY, LoadEffort, LoadError};
use wattle_run::ports::{Plugin, Sandbox};

use crate::load::changes::Change;
use crate::load::limits::{COMPILE_PLACES, READ_PLACES, SLOW_PLACES};

/// Time after which a running compilation is reported again.
const REPORT_PERIOD: Duration = Duration::from_secs(15);

/// The permits of all loads of a loader.
pub struct LoadPermits {
    read: Arc<Semaphore>,
    compile: Arc<Semaphore>,
    slow: Arc<Semaphore>,
}

impl Default for LoadPermits {
    fn default() -> Self {
        let permits = |count| Arc::new(Semaphore::new(count));
        Self {
            read: permits(READ_PLACES),
            compile: permits(COMPILE_PLACES),
            slow: permits(SLOW_PLACES),
        }
    }
}

impl LoadPermits {
    /// Begins the first turn of a load, in which nothing is compiled.
    pub async fn first_turn(&self) -> Turn {
        let permits = vec![acquire(&self.read).await];
        Turn::new(None, Progress::default(), permits)
    }

    /// Begins a turn in which one component is compiled.
    pub async fn next_turn(&self, progress: Progress) -> Turn {
        let slow = if progress.is_slow {
            Some(acquire(&self.slow).await)
        } else {
            self.slow.clone().try_acquire_owned().ok().map(Some)
        };
        let effort = if slow.is_some() { LoadEffort::Full } else { LoadEffort::Brief };
        let permits = slow.into_iter().chain([acquire(&self.compile).await]).collect();
        Turn::new(Some(CompileAllowance::One(effort)), progress, permits)
    }
}

/// Acquires a permit. The semaphores are never closed.
async fn acquire(permits: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    permits.clone().acquire_owned().await.ok()
}

/// The compilations that a turn may still perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompileAllowance {
    One(LoadEffort),
    All,
}

/// The progress of a load after a turn.
#[derive(Default)]
pub struct Progress {
    /// Whether a component takes longer than a brief compilation.
    is_slow: bool,
    /// The components that were compiled. Holding them keeps their code in memory.
    compiled: Vec<Arc<dyn Plugin>>,
    reports: CompileReports,
}

impl Progress {
    /// Returns the progress of a load before its first compilation. Compilations are reported
    /// to `changes`.
    pub fn reporting_to(changes: UnboundedSender<Change>) -> Self {
        let reports = CompileReports::new(move |change| {
            // An error means that the receiver was dropped.
            let _ = changes.send(change);
        });
        Self { reports, ..Self::default() }
    }
}

/// Reports the compilations of a load.
#[derive(Default)]
struct CompileReports {
    /// Receives the changes; `None` if they are not reported.
    report: Option<Box<dyn Fn(Change) + Send + Sync>>,
    /// Start times of running compilations, by file.
    started: BTreeMap<PathBuf, Instant>,
}

impl CompileReports {
    fn new(report: impl Fn(Change) + Send + Sync + 'static) -> Self {
        Self { report: Some(Box::new(report)), started: BTreeMap::new() }
    }

    /// Reports the start of a compilation, unless it continues after a brief attempt. Returns the
    /// start time.
    fn begin(&mut self, path: &Path, bytes: u64) -> Instant {
        if let Some(started) = self.started.get(path) {
            return *started;
        }
        self.send(Change::Compiling { path: path.to_owned(), bytes, elapsed: Duration::ZERO });
        *self.started.entry(path.to_owned()).or_insert_with(Instant::now)
    }

    fn end(&mut self, path: &Path, started: Instant) {
        self.started.remove(path);
        self.send(Change::Compiled { path: path.to_owned(), elapsed: started.elapsed() });
    }

    fn send(&self, change: Change) {
        if let Some(report) = &self.report {
            report(change);
        }
    }
}

/// A turn of a load. Its permits are released on drop.
pub struct Turn {
    allowance: Option<CompileAllowance>,
    is_slow: bool,
    lacks_code_memory: bool,
    compiled: Vec<Arc<dyn Plugin>>,
    reports: CompileReports,
    permits: Vec<Option<OwnedSemaphorePermit>>,
}

impl Turn {
    fn new(
        allowance: Option<CompileAllowance>,
        progress: Progress,
        permits: Vec<Option<OwnedSemaphorePermit>>,
    ) -> Self {
        let Progress { compiled, reports, .. } = progress;
        Self { allowance, is_slow: false, lacks_code_memory: false, compiled, reports, permits }
    }

    /// Returns a turn in which all components are compiled, for a command that loads nothing else.
    /// Passes texts about compilations to `report`.
    pub fn unlimited(report: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let reports = CompileReports::new(move |change| {
            for (_, text) in change.messages() {
                report(&text);
            }
        });
        let progress = Progress { reports, ..Progress::default() };
        Self::new(Some(CompileAllowance::All), progress, Vec::new())
    }

    /// Loads the component in a file. Returns `None` if the load needs another turn.
    ///
    /// # Errors
    ///
    /// Those of the sandbox.
    pub async fn load(
        &mut self,
        sandbox: &dyn Sandbox,
        name: &PluginName,
        path: &Path,
        bytes: Bytes,
    ) -> Result<Option<Arc<dyn Plugin>>, LoadError> {
        let loaded = self.load_allowed(sandbox, name, path, bytes).await;
        self.lacks_code_memory |= loaded.as_ref().is_err_and(|error| error.code == CODE_MEMORY);
        loaded
    }

    /// Loads a component within the compilations that the turn may still perform.
    async fn load_allowed(
        &mut self,
        sandbox: &dyn Sandbox,
        name: &PluginName,
        path: &Path,
        bytes: Bytes,
    ) -> Result<Option<Arc<dyn Plugin>>, LoadError> {
        let cached = sandbox.load_within(name, bytes.clone(), LoadEffort::Cached).await?;
        let effort = match (&cached, self.allowance) {
            (Some(_), _) | (_, None) => return Ok(cached),
            (None, Some(CompileAllowance::All)) => LoadEffort::Full,
            (None, Some(CompileAllowance::One(effort))) => {
                self.allowance = None;
                effort
            }
        };
        let plugin = self.compile(sandbox, name, path, bytes, effort).await?;
        match &plugin {
            Some(plugin) => self.compiled.push(plugin.clone()),
            None => self.is_slow = true,
        }
        Ok(plugin)
    }

    /// Compiles a component. Reports the start, the progress and the end.
    async fn compile(
        &mut self,
        sandbox: &dyn Sandbox,
        name: &PluginName,
        path: &Path,
        bytes: Bytes,
        effort: LoadEffort,
    ) -> Result<Option<Arc<dyn Plugin>>, LoadError> {
        let size = bytes.len() as u64;
        let started = self.reports.begin(path, size);
        let mut work = sandbox.load_within(name, bytes, effort);
        let compiled = loop {
            if let Ok(compiled) = timeout(REPORT_PERIOD, &mut work).await {
                break compiled?;
            }
            let (path, elapsed) = (path.to_owned(), started.elapsed());
            self.reports.send(Change::Compiling { path, bytes: size, elapsed });
        };
        if compiled.is_some() {
            self.reports.end(path, started);
        }
        Ok(compiled)
    }

    /// Returns true if the compiled code of a component did not fit in memory. The load may succeed
    /// later.
    pub fn lacks_code_memory(&self) -> bool {
        self.lacks_code_memory
    }

    /// Releases the permits of the turn before work that has separate permits.
    pub fn release(&mut self) {
        self.permits.clear();
    }

    /// Ends the turn of a load that needs another turn.
    pub fn end(self) -> Progress {
        Progress { is_slow: self.is_slow, compiled: self.compiled, reports: self.reports }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use tokio::sync::mpsc;

    use super::*;
    use crate::load::changes::Severity;

    /// A sandbox that abandons each compilation after 40 seconds.
    struct Slow;

    #[async_trait]
    impl Sandbox for Slow {
        async fn load_within(
            &self,
            _: &PluginName,
            _: Bytes,
            effort: LoadEffort,
        ) -> Result<Option<Arc<dyn Plugin>>, LoadError> {
            if effort != LoadEffort::Cached {
                tokio::time::sleep(Duration::from_secs(40)).await;
            }
            Ok(None)
        }
    }

    /// A sandbox that loads nothing, for the reason with this code.
    struct Refusing(&'static str);

    #[async_trait]
    impl Sandbox for Refusing {
        async fn load_within(
            &self,
            name: &PluginName,
            _: Bytes,
            _: LoadEffort,
        ) -> Result<Option<Arc<dyn Plugin>>, LoadError> {
            let (message, hint) = (String::new(), String::new());
            Err(LoadError { plugin: name.clone(), code: self.0, message, hint })
        }
    }

    #[tokio::test]
    async fn a_turn_tells_whether_code_did_not_fit_in_memory() {
        let name = PluginName::new("large").unwrap();
        for (code, lacks_memory) in [(CODE_MEMORY, true), ("invalid", false)] {
            let mut turn = LoadPermits::default().first_turn().await;
            let loaded = turn.load(&Refusing(code), &name, Path::new("a.wasm"), Bytes::new()).await;
            assert_eq!(loaded.err().map(|error| error.code), Some(code));
            assert_eq!(turn.lacks_code_memory(), lacks_memory);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_of_a_command_reports_its_compilations() {
        let texts = Arc::<Mutex<Vec<String>>>::default();
        let reported = texts.clone();
        let mut turn = Turn::unlimited(move |text| reported.lock().unwrap().push(text.to_owned()));
        let name = PluginName::new("slow").unwrap();
        let loaded = turn.load(&Slow, &name, Path::new("slow.wasm"), Bytes::new()).await;
        assert!(loaded.unwrap().is_none());
        let later = [15, 30].map(|time| format!("still compiling `slow.wasm`, 0B, after {time} s"));
        let all = ["compiling `slow.wasm`, 0B".to_owned()].into_iter().chain(later);
        assert_eq!(*texts.lock().unwrap(), all.collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn the_start_and_the_progress_of_a_compilation_are_reported() {
        let (sender, mut changes) = mpsc::unbounded_channel();
        let (permits, name) = (LoadPermits::default(), PluginName::new("slow").unwrap());
        let mut progress = Progress::reporting_to(sender);
        for _ in 0..2 {
            let mut turn = permits.next_turn(progress).await;
            let bytes = Bytes::from_static(b"bytes");
            let loaded = turn.load(&Slow, &name, Path::new("slow.wasm"), bytes).await;
            assert!(loaded.unwrap().is_none());
            progress = turn.end();
        }
        drop(progress);
        let mut reported = Vec::new();
        while let Some(change) = changes.recv().await {
            reported.extend(change.messages());
        }
        let later =
            [15, 30, 55, 70].map(|time| format!("still compiling `slow.wasm`, 5B, after {time} s"));
        let all = ["compiling `slow.wasm`, 5B".to_owned()].into_iter().chain(later);
        assert_eq!(reported, all.map(|text| (Severity::Progress, text)).collect::<Vec<_>>());
    }
}
