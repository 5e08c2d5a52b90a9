//! Port: observers of runs, such as telemetry and file projections.

use std::sync::Arc;

use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};

/// A run that has ended or is interrupted.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// App of the thread.
    pub app: AppName,
    /// Graph of the thread.
    pub graph: GraphName,
    /// Thread of the run.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
    /// Tenant of the thread.
    pub tenant: Option<String>,
    /// Sequence number of the first event. Events of other runs may lie in between.
    pub first_seq: u64,
    /// Sequence number of the last event, which is durable.
    pub last_seq: u64,
    /// Status at the end.
    pub status: RunStatus,
    /// Failure, if the run failed.
    pub failure: Option<Failure>,
}

/// Receives a notification when a run starts and ends. An observer reads the event log to build its
/// projection. An observer cannot affect a run.
pub trait Observer: Send + Sync {
    /// Notifies that a run has started, or continues after a restart of the host. Must not block.
    fn run_started(&self, app: &AppName, graph: &GraphName) {
        let _ = (app, graph);
    }

    /// Notifies that a run has ended or is interrupted, and that its last event is durable. Must
    /// not block.
    fn run_ended(&self, note: RunSummary);
}

/// Ignores all notifications.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn run_ended(&self, _note: RunSummary) {}
}

/// Passes notifications to several observers.
pub struct Observers(pub Vec<Arc<dyn Observer>>);

impl Observer for Observers {
    fn run_started(&self, app: &AppName, graph: &GraphName) {
        for observer in &self.0 {
            observer.run_started(app, graph);
        }
    }

    fn run_ended(&self, note: RunSummary) {
        for observer in &self.0 {
            observer.run_ended(note.clone());
        }
    }
}
