//! A run of an export that can be executed again without the rest of its thread.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Event, EventKind, RunReason, RunStatus};
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, GraphName, Namespace, NodeName, RunId, TaskId, ThreadId};

use super::recording::Recording;
use crate::app::{App, GraphVersion};
use crate::export::{Export, ExportError};
use crate::gate::CallsByScope;
use crate::ports::store::{RunOptions, RunRecord, StoreError, ThreadRecord, ThreadStatus};
use crate::schemas::SchemaCache;
use crate::view;

/// The error for a run that cannot be executed again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordedRunError {
    /// The export was changed or is incomplete.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The thread belongs to another app.
    #[error("thread `{thread}` of the export belongs to app `{found}`, not to `{app}`")]
    OtherApp {
        /// The thread.
        thread: ThreadId,
        /// App of the thread.
        found: AppName,
        /// The app whose code executes the run.
        app: AppName,
    },
    /// The app does not have the graph of the thread.
    #[error("app `{app}` has no graph `{graph}`")]
    NoGraph {
        /// The app.
        app: AppName,
        /// Graph of the thread.
        graph: GraphName,
    },
    /// The thread does not have the run, or the run has not started.
    #[error("thread `{thread}` of the export has no started run `{run}`")]
    UnknownRun {
        /// The thread.
        thread: ThreadId,
        /// The run.
        run: String,
    },
    /// The thread has no run that has started.
    #[error("thread `{thread}` of the export has no run")]
    NoRun {
        /// The thread.
        thread: ThreadId,
    },
    /// The record of the run does not suffice to execute it again.
    #[error("run `{run}` cannot be executed again by itself: {reason}")]
    Unsuitable {
        /// The run.
        run: RunId,
        /// Why.
        reason: Unsuitable,
    },
    /// The run was executed again and ended differently.
    #[error("run `{run}` does not end as it was recorded: {difference}")]
    Different {
        /// The run.
        run: RunId,
        /// How it ends now.
        difference: String,
    },
    /// The store or the host failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl From<StoreError> for RecordedRunError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

/// Why a run cannot be executed again by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsuitable {
    /// The run was active when the thread was exported.
    #[error("it has not ended")]
    NotEnded,
    /// The run failed.
    #[error("it failed, so not all of its calls have results")]
    Failed,
    /// The run was cancelled.
    #[error("it was cancelled, so not all of its calls have results")]
    Cancelled,
    /// The run was drained.
    #[error("a drain stopped it between two supersteps")]
    Drained,
    /// The run did not start with an input.
    #[error("it continues an earlier run")]
    Continues,
    /// A prune has deleted the events or the state at the start or at the end of the run.
    #[error("a part of its history was pruned")]
    Pruned,
    /// No task was started.
    #[error("it executed no node")]
    NoTask,
    /// An attempt failed, and the next one made calls again.
    #[error("an attempt of node `{0}` failed in it, and retries are not executed again")]
    Retried(NodeName),
    /// The outcome of a task was in the cache, so its calls are not in the log of the thread.
    #[error("the result of node `{0}` came from the cache")]
    Cached(NodeName),
    /// A host call started a subgraph.
    #[error("node `{0}` started a graph with a host call, and such graphs are not executed again")]
    StartedGraph(String),
    /// A subgraph continues from its state at the end of an earlier run.
    #[error("subgraph `{0}` continues from an earlier run of the thread")]
    EarlierSubgraph(String),
}

/// A run of an export, with the data that its tasks received from outside.
///
/// [`RecordedRun::execute`] executes the run again from the checkpoint that its input made.
pub struct RecordedRun {
    pub(super) app: Arc<App>,
    pub(super) graph_version: Arc<GraphVersion>,
    /// The thread at the start of the run.
    pub(super) record: ThreadRecord,
    /// The run at its start.
    pub(super) run: RunRecord,
    /// The checkpoint of the input, as the first checkpoint of the thread.
    pub(super) start: Checkpoint,
    /// Status at the end: completed or interrupted.
    pub(super) status: RunStatus,
    /// State at the end.
    pub(super) state: Value,
    /// Calls of each task with their results.
    pub(super) calls: Arc<BTreeMap<TaskId, CallsByScope>>,
    /// What the calls of each task wrote to the log.
    pub(super) call_events: Arc<BTreeMap<TaskId, Vec<CallEvent>>>,
    /// Tasks with a tool that raised an interrupt. The call of the tool has no result.
    pub(super) asked_by_tools: Arc<BTreeSet<TaskId>>,
    /// Time zone of the host that recorded the run.
    pub(super) time_zone: Option<String>,
    /// Compiled schemas, which a host keeps between runs as well.
    pub(super) schemas: Arc<SchemaCache>,
}

/// An event that a host call wrote to the log.
pub(super) struct CallEvent {
    pub(super) namespace: Namespace,
    pub(super) kind: EventKind,
    /// True if the call sent the event to the store at once.
    pub(super) is_flushed: bool,
}

impl RecordedRun {
    /// Finds a run that can be executed again with the code of an app: the run `wanted`, or else
    /// the newest suitable run. The app may be another version than the one that executed the run.
    ///
    /// # Errors
    ///
    /// [`RecordedRunError`]. If no run is suitable, the error is that of the newest run.
    pub fn find(
        export: &Export,
        app: &Arc<App>,
        wanted: Option<&str>,
    ) -> Result<Self, RecordedRunError> {
        export.verify()?;
        let thread = &export.header.thread;
        if thread.app != app.name {
            let (found, app) = (thread.app.clone(), app.name.clone());
            return Err(RecordedRunError::OtherApp { thread: thread.id.clone(), found, app });
        }
        let Some(graph_version) = app.graphs.get(&thread.graph) else {
            let (app, graph) = (app.name.clone(), thread.graph.clone());
            return Err(RecordedRunError::NoGraph { app, graph });
        };
        let recording = Recording::of(export)?;
        let source = RunSource { export, app, graph_version, recording: &recording };
        let mut events: HashMap<&str, Vec<&Event>> = HashMap::new();
        for event in export.batches.iter().flat_map(|batch| &batch.events) {
            events.entry(event.run.as_str()).or_default().push(event);
        }
        let is_wanted = |run: &&RunRecord| {
            run.has_started() && wanted.is_none_or(|wanted| run.id.as_str() == wanted)
        };
        let mut refusal = None;
        for run in export.header.runs.iter().rev().filter(is_wanted) {
            let events = events.get(run.id.as_str()).map(Vec::as_slice).unwrap_or_default();
            match source.read(run, events) {
                Ok(found) => return Ok(found),
                Err(reason) => {
                    let run = run.id.clone();
                    refusal = refusal.or(Some(RecordedRunError::Unsuitable { run, reason }));
                }
            }
        }
        let thread = thread.id.clone();
        Err(refusal.unwrap_or_else(|| match wanted {
            Some(run) => RecordedRunError::UnknownRun { thread, run: run.to_owned() },
            None => RecordedRunError::NoRun { thread },
        }))
    }

    /// Returns the run.
    pub fn id(&self) -> &RunId {
        &self.run.id
    }

    /// Returns the thread of the run.
    pub fn thread(&self) -> &ThreadId {
        &self.record.id
    }

    /// Returns the graph of the run.
    pub fn graph(&self) -> &GraphName {
        &self.record.graph
    }
}

/// The export of a run, and the code that executes it.
struct RunSource<'e> {
    export: &'e Export,
    app: &'e Arc<App>,
    graph_version: &'e Arc<GraphVersion>,
    recording: &'e Recording,
}

impl RunSource<'_> {
    fn read(&self, run: &RunRecord, events: &[&Event]) -> Result<RecordedRun, Unsuitable> {
        check(run, events)?;
        let of_root = events.iter().filter(|event| event.namespace.is_root());
        let mut made = of_root.filter_map(|event| match &event.kind {
            EventKind::Checkpointed(made) => Some(made.checkpoint),
            _ => None,
        });
        let first = made.next().ok_or(Unsuitable::Pruned)?;
        let last = made.next_back().unwrap_or(first);
        let stored = |id| self.recording.checkpoint(id).ok_or(Unsuitable::Pruned);
        let (start, end) = (stored(first)?, stored(last)?);
        if let Some(subgraph) = start.meta.subgraph_checkpoints.keys().next() {
            return Err(Unsuitable::EarlierSubgraph(subgraph.as_str().to_owned()));
        }
        let thread = &self.export.header.thread;
        let record = ThreadRecord {
            status: ThreadStatus::Running,
            stopped: false,
            failure: None,
            run: Some(run.id.clone()),
            expires_ms: None,
            context: self.recording.run_context(&run.id),
            ..thread.clone()
        };
        let own: Vec<Event> = events.iter().map(|event| (*event).clone()).collect();
        let calls = view::logged_tasks(&own).into_iter();
        Ok(RecordedRun {
            app: self.app.clone(),
            graph_version: self.graph_version.clone(),
            record,
            run: at_start(run),
            start: as_first_checkpoint(start),
            status: run.status,
            state: end.state(),
            calls: Arc::new(calls.map(|(task, logged)| (task, logged.calls_by_scope)).collect()),
            call_events: Arc::new(call_events(events)),
            asked_by_tools: Arc::new(asked_by_tools(events)),
            time_zone: self.export.header.time_zone.clone(),
            schemas: Arc::default(),
        })
    }
}

/// Checks that the log has everything that the tasks of a run got from outside.
fn check(run: &RunRecord, events: &[&Event]) -> Result<(), Unsuitable> {
    match run.status {
        RunStatus::Completed | RunStatus::Interrupted => {}
        RunStatus::Pending | RunStatus::Running => return Err(Unsuitable::NotEnded),
        RunStatus::Failed => return Err(Unsuitable::Failed),
        RunStatus::Cancelled => return Err(Unsuitable::Cancelled),
    }
    let mut reasons = events.iter().filter_map(|event| match &event.kind {
        EventKind::RunStarted(started) => Some(started.reason),
        _ => None,
    });
    match reasons.next() {
        Some(RunReason::Input) => {}
        Some(_) => return Err(Unsuitable::Continues),
        None => return Err(Unsuitable::Pruned),
    }
    let unsuitable = events.iter().find_map(|event| match &event.kind {
        EventKind::TaskFailed(failed) => Some(Unsuitable::Retried(failed.node.clone())),
        EventKind::TaskFinished(finished) if finished.cached => {
            Some(Unsuitable::Cached(finished.node.clone()))
        }
        EventKind::RunEnded(ended) if ended.drained => Some(Unsuitable::Drained),
        _ if event.namespace.call_path().is_some() => {
            Some(Unsuitable::StartedGraph(event.namespace.node().to_owned()))
        }
        _ => None,
    });
    if let Some(unsuitable) = unsuitable {
        return Err(unsuitable);
    }
    let has_task = events.iter().any(|event| matches!(event.kind, EventKind::TaskStarted(_)));
    if has_task { Ok(()) } else { Err(Unsuitable::NoTask) }
}

/// Returns the record of a run as it was at the start. The tasks of a superstep run one after the
/// other, so that their times add up.
fn at_start(run: &RunRecord) -> RunRecord {
    RunRecord {
        first_seq: 1,
        status: RunStatus::Running,
        ended_ms: None,
        last_checkpoint: None,
        options: RunOptions { max_concurrency: Some(1), ..run.options.clone() },
        spec: None,
        ..run.clone()
    }
}

/// Returns a checkpoint that has no predecessors and has written all values itself. Its number stays
/// the same, since the ids of tasks derive from it.
fn as_first_checkpoint(mut checkpoint: Checkpoint) -> Checkpoint {
    let meta = &mut checkpoint.meta;
    (meta.parent, meta.event_seq) = (None, None);
    for version in meta.versions.values_mut() {
        *version = meta.id;
    }
    checkpoint
}

/// Returns the events of host calls by task.
fn call_events(events: &[&Event]) -> BTreeMap<TaskId, Vec<CallEvent>> {
    let mut by_task: BTreeMap<TaskId, Vec<CallEvent>> = BTreeMap::new();
    let mut started = BTreeSet::new();
    for event in events {
        let (task, is_flushed) = match &event.kind {
            EventKind::CallStarted(call) => {
                started.insert((&call.task, &call.scope, call.call));
                (&call.task, true)
            }
            // A call without a start does not wait for the store.
            EventKind::Called(called) => {
                (&called.task, started.contains(&(&called.task, &called.scope, called.call)))
            }
            EventKind::Streamed(streamed) => (&streamed.task, true),
            EventKind::Custom(custom) => (&custom.task, true),
            EventKind::Progress(progress) => (&progress.task, true),
            _ => continue,
        };
        let (namespace, kind) = (event.namespace.clone(), event.kind.clone());
        let call_event = CallEvent { namespace, kind, is_flushed };
        by_task.entry(task.clone()).or_default().push(call_event);
    }
    by_task
}

/// Returns the tasks with a tool that raised an interrupt.
fn asked_by_tools(events: &[&Event]) -> BTreeSet<TaskId> {
    let raised = events.iter().filter_map(|event| match &event.kind {
        EventKind::InterruptRaised(raised) if !raised.scope.is_empty() => Some(raised.task.clone()),
        _ => None,
    });
    raised.collect()
}
