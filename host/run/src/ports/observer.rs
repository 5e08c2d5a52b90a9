//! Port: those who watch runs without taking part, such as telemetry and file projections.

use std::sync::Arc;

use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};

/// A run that has ended or stands still.
#[derive(Clone, Debug, PartialEq)]
pub struct RunNote {
    /// Its app.
    pub app: AppName,
    /// Its graph.
    pub graph: GraphName,
    /// Its thread.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
    /// Whose thread it is.
    pub tenant: Option<String>,
    /// Sequence number of its first event. Events of other runs may lie between.
    pub first_seq: u64,
    /// Sequence number of its last event, which is durable.
    pub last_seq: u64,
    /// How it ended.
    pub status: RunStatus,
    /// Why, if it failed.
    pub failure: Option<Failure>,
}

/// Hears of runs. What happened in them stands in the event log, of which every observer makes a
/// projection; nothing that an observer does or fails to do touches a run.
pub trait Observer: Send + Sync {
    /// A run has begun, or goes on after a restart. Must not block.
    fn run_started(&self, app: &AppName, graph: &GraphName) {
        let _ = (app, graph);
    }

    /// A run has ended or stands still, and that is durable. Must not block.
    fn run_ended(&self, note: RunNote);
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn run_ended(&self, _note: RunNote) {}
}

/// Several observers as one.
pub struct Observers(pub Vec<Arc<dyn Observer>>);

impl Observer for Observers {
    fn run_started(&self, app: &AppName, graph: &GraphName) {
        for observer in &self.0 {
            observer.run_started(app, graph);
        }
    }

    fn run_ended(&self, note: RunNote) {
        for observer in &self.0 {
            observer.run_ended(note.clone());
        }
    }
}
