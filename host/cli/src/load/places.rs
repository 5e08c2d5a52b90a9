//! The places that loads share, and the turns in which loads use them.
//!
//! In its first turn a load reads its files, and nothing is compiled. A load that needs a
//! compilation has further turns. In each turn one component is compiled: briefly, or completely if
//! one of the places for slow components is free. A component that takes longer than a brief
//! compilation waits for such a place. So slow components delay neither loads whose code is in the
//! cache, nor those that compile quickly. A turn tells what it compiles.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use wattle_graph::id::PluginName;
use wattle_run::ports::sandbox::{LoadEffort, LoadError};
use wattle_run::ports::{Plugin, Sandbox};

use crate::load::changes::Change;
use crate::load::limits::{COMPILE_PLACES, READ_PLACES, SLOW_PLACES};

/// Time after which a compilation that goes on is reported again.
const REPORT_PERIOD: Duration = Duration::from_secs(15);

/// The places of all loads of a loader.
pub struct Places {
    read: Arc<Semaphore>,
    compile: Arc<Semaphore>,
    slow: Arc<Semaphore>,
}

impl Default for Places {
    fn default() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self {
            read: places(READ_PLACES),
            compile: places(COMPILE_PLACES),
            slow: places(SLOW_PLACES),
        }
    }
}

impl Places {
    /// Begins the first turn of a load, in which nothing is compiled.
    pub async fn first_turn(&self) -> Turn {
        let places = vec![take(&self.read).await];
        Turn { compiles: None, is_slow: false, places, ..Turn::unlimited() }
    }

    /// Begins a turn in which one component is compiled.
    pub async fn next_turn(&self, progress: Progress) -> Turn {
        let slow = if progress.is_slow {
            Some(take(&self.slow).await)
        } else {
            self.slow.clone().try_acquire_owned().ok().map(Some)
        };
        let effort = if slow.is_some() { LoadEffort::Full } else { LoadEffort::Brief };
        let places = slow.into_iter().chain([take(&self.compile).await]).collect();
        let compiles = Some(Compiles::One(effort));
        Turn {
            compiles,
            is_slow: false,
            compiled: progress.compiled,
            tells: progress.tells,
            places,
        }
    }
}

/// Takes a place. The semaphores are never closed.
async fn take(places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    places.clone().acquire_owned().await.ok()
}

/// What may still be compiled in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compiles {
    One(LoadEffort),
    All,
}

/// What a load has reached in its turns so far.
#[derive(Default)]
pub struct Progress {
    /// Whether a component takes longer than a brief compilation.
    is_slow: bool,
    /// The components that were compiled. Holding them keeps their code in memory.
    compiled: Vec<Arc<dyn Plugin>>,
    tells: Tells,
}

impl Progress {
    /// Returns the progress of a load before its first compilation. Compilations are reported
    /// to `changes`.
    pub fn told(changes: UnboundedSender<Change>) -> Self {
        let tells = Tells { changes: Some(changes), begun: BTreeMap::new() };
        Self { tells, ..Self::default() }
    }
}

/// Tells what a load compiles.
#[derive(Default)]
struct Tells {
    /// Receives the changes; `None` if nobody wants to know.
    changes: Option<UnboundedSender<Change>>,
    /// The compilations that have begun, by file.
    begun: BTreeMap<PathBuf, Instant>,
}

impl Tells {
    /// Tells that a compilation begins, unless it goes on after a brief attempt. Returns the time
    /// of its begin.
    fn begin(&mut self, path: &Path, bytes: u64) -> Instant {
        if let Some(begun) = self.begun.get(path) {
            return *begun;
        }
        self.tell(Change::Compiling { path: path.to_owned(), bytes, elapsed: Duration::ZERO });
        *self.begun.entry(path.to_owned()).or_insert_with(Instant::now)
    }

    fn end(&mut self, path: &Path, begun: Instant) {
        self.begun.remove(path);
        self.tell(Change::Compiled { path: path.to_owned(), elapsed: begun.elapsed() });
    }

    fn tell(&self, change: Change) {
        if let Some(changes) = &self.changes {
            // An error means that nobody wants to know.
            let _ = changes.send(change);
        }
    }
}

/// A turn of a load. Its places are free again when it is dropped.
pub struct Turn {
    compiles: Option<Compiles>,
    is_slow: bool,
    compiled: Vec<Arc<dyn Plugin>>,
    tells: Tells,
    places: Vec<Option<OwnedSemaphorePermit>>,
}

impl Turn {
    /// Returns a turn in which all components are compiled, for a command that loads nothing else.
    pub fn unlimited() -> Self {
        let (compiled, tells, places) = (Vec::new(), Tells::default(), Vec::new());
        Self { compiles: Some(Compiles::All), is_slow: false, compiled, tells, places }
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
        let cached = sandbox.load_within(name, bytes.clone(), LoadEffort::Cached).await?;
        let effort = match (&cached, self.compiles) {
            (Some(_), _) | (_, None) => return Ok(cached),
            (None, Some(Compiles::All)) => LoadEffort::Full,
            (None, Some(Compiles::One(effort))) => {
                self.compiles = None;
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

    /// Compiles a component, and tells that at the begin, while it goes on, and at the end.
    async fn compile(
        &mut self,
        sandbox: &dyn Sandbox,
        name: &PluginName,
        path: &Path,
        bytes: Bytes,
        effort: LoadEffort,
    ) -> Result<Option<Arc<dyn Plugin>>, LoadError> {
        let size = bytes.len() as u64;
        let begun = self.tells.begin(path, size);
        let mut work = sandbox.load_within(name, bytes, effort);
        let compiled = loop {
            if let Ok(compiled) = timeout(REPORT_PERIOD, &mut work).await {
                break compiled?;
            }
            let (path, elapsed) = (path.to_owned(), begun.elapsed());
            self.tells.tell(Change::Compiling { path, bytes: size, elapsed });
        };
        if compiled.is_some() {
            self.tells.end(path, begun);
        }
        Ok(compiled)
    }

    /// Frees the places of the turn before work that has places of its own.
    pub fn release(&mut self) {
        self.places.clear();
    }

    /// Ends the turn of a load that needs another one.
    pub fn end(self) -> Progress {
        Progress { is_slow: self.is_slow, compiled: self.compiled, tells: self.tells }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tokio::sync::mpsc;

    use super::*;
    use crate::load::changes::Severity;

    /// Gives up each compilation after 40 seconds.
    struct Slow;

    #[async_trait]
    impl Sandbox for Slow {
        async fn load(&self, name: &PluginName, _: Bytes) -> Result<Arc<dyn Plugin>, LoadError> {
            let (message, hint) = (String::new(), String::new());
            Err(LoadError { plugin: name.clone(), code: "invalid", message, hint })
        }

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

    #[tokio::test(start_paused = true)]
    async fn a_compilation_is_told_at_its_begin_and_while_it_goes_on() {
        let (sender, mut changes) = mpsc::unbounded_channel();
        let (places, name) = (Places::default(), PluginName::new("slow").unwrap());
        let mut progress = Progress::told(sender);
        for _ in 0..2 {
            let mut turn = places.next_turn(progress).await;
            let bytes = Bytes::from_static(b"bytes");
            let loaded = turn.load(&Slow, &name, Path::new("slow.wasm"), bytes).await;
            assert!(loaded.unwrap().is_none());
            progress = turn.end();
        }
        drop(progress);
        let mut told = Vec::new();
        while let Some(change) = changes.recv().await {
            told.extend(change.messages());
        }
        let later =
            [15, 30, 55, 70].map(|time| format!("still compiling `slow.wasm`, 5B, after {time} s"));
        let all = ["compiling `slow.wasm`, 5B".to_owned()].into_iter().chain(later);
        assert_eq!(told, all.map(|text| (Severity::Progress, text)).collect::<Vec<_>>());
    }
}
