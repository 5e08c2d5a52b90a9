//! The places that loads share, and the turns in which loads use them.
//!
//! In its first turn a load reads its files, and nothing is compiled. A load that needs a
//! compilation has further turns. In each turn one component is compiled: briefly, or completely if
//! one of the places for slow components is free. A component that takes longer than a brief
//! compilation waits for such a place. So slow components delay neither loads whose code is in the
//! cache, nor those that compile quickly.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wattle_graph::id::PluginName;
use wattle_run::ports::sandbox::{LoadEffort, LoadError};
use wattle_run::ports::{Plugin, Sandbox};

use crate::load::limits::{COMPILE_PLACES, READ_PLACES, SLOW_PLACES};

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
        Turn { compiles: None, is_slow: false, compiled: Vec::new(), places }
    }

    /// Begins a turn in which one component is compiled.
    pub async fn next_turn(&self, progress: Progress) -> Turn {
        let Progress { is_slow, compiled } = progress;
        let slow = if is_slow {
            Some(take(&self.slow).await)
        } else {
            self.slow.clone().try_acquire_owned().ok().map(Some)
        };
        let effort = if slow.is_some() { LoadEffort::Full } else { LoadEffort::Brief };
        let places = slow.into_iter().chain([take(&self.compile).await]).collect();
        Turn { compiles: Some(Compiles::One(effort)), is_slow: false, compiled, places }
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
}

/// A turn of a load. Its places are free again when it is dropped.
pub struct Turn {
    compiles: Option<Compiles>,
    is_slow: bool,
    compiled: Vec<Arc<dyn Plugin>>,
    places: Vec<Option<OwnedSemaphorePermit>>,
}

impl Turn {
    /// Returns a turn in which all components are compiled, for a command that loads nothing else.
    pub fn unlimited() -> Self {
        let (compiled, places) = (Vec::new(), Vec::new());
        Self { compiles: Some(Compiles::All), is_slow: false, compiled, places }
    }

    /// Loads a component. Returns `None` if the load needs another turn.
    ///
    /// # Errors
    ///
    /// Those of the sandbox.
    pub async fn load(
        &mut self,
        sandbox: &dyn Sandbox,
        name: &PluginName,
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
        let plugin = sandbox.load_within(name, bytes, effort).await?;
        match &plugin {
            Some(plugin) => self.compiled.push(plugin.clone()),
            None => self.is_slow = true,
        }
        Ok(plugin)
    }

    /// Frees the places of the turn before work that has places of its own.
    pub fn release(&mut self) {
        self.places.clear();
    }

    /// Ends the turn of a load that needs another one.
    pub fn end(self) -> Progress {
        Progress { is_slow: self.is_slow, compiled: self.compiled }
    }
}
