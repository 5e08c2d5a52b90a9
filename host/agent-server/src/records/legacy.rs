//! Runs in the form of hosts before store format 4. These hosts stored runs as records in the
//! memory, and the runs that had not started in a separate queue.
//!
//! The old records of started runs are still read, because the run records that these hosts wrote
//! to the store do not contain the requests. When a host starts, it moves the queued runs into the
//! store.

use serde::Deserialize;
use serde_json::{Map, Value};
use wattle_graph::event::{Send, Write};
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, CheckpointId, GraphName, NodeName, RunId, ThreadId};
use wattle_graph::step::Command;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::Multitask;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::MemoryScope;
use wattle_run::ports::store::{RunAnswers, RunKind, RunOptions, StaleAnswers};

use crate::records::Collection;
use crate::resolve::run::{ClientFields, EngineFields, RequestedRun};

/// An old record of a run with its request.
#[derive(Deserialize)]
struct LegacyRun {
    run: RunId,
    thread: ThreadId,
    tenant: Option<String>,
    assistant: String,
    #[serde(default)]
    assistant_version: u32,
    graph_id: String,
    app: AppName,
    graph: GraphName,
    work: LegacyRunKind,
    options: RunOptions,
    #[serde(default)]
    context: Value,
    kwargs: Map<String, Value>,
    metadata: Map<String, Value>,
    strategy: Multitask,
    created_ms: i64,
    due_ms: i64,
    state: LegacyRunState,
}

/// What an old run starts from.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum LegacyRunKind {
    Start {
        input: Value,
    },
    GoOn,
    Answer {
        resume: Value,
    },
    Fork {
        checkpoint: CheckpointId,
        input: Option<Value>,
    },
    Instead {
        checkpoint: CheckpointId,
        input: Value,
    },
    Command {
        writes: Vec<Write>,
        goto: Vec<NodeName>,
        sends: Vec<Send>,
        resume: Option<Value>,
        checkpoint: Option<CheckpointId>,
    },
}

/// The state of an old run before its start. A run that was cancelled or failed in this state never
/// started.
#[derive(PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum LegacyRunState {
    Pending,
    Cancelled,
    Failed,
}

/// An entry of the old queue.
#[derive(Deserialize)]
struct LegacyQueueEntry {
    run: RunId,
    thread: ThreadId,
    tenant: Option<String>,
    stage: LegacyQueueState,
}

/// The state of an entry of the old queue.
#[derive(PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum LegacyQueueState {
    Waiting,
    Taken,
    Dropped,
}

impl From<LegacyRunKind> for RunKind {
    fn from(kind: LegacyRunKind) -> Self {
        match kind {
            LegacyRunKind::Start { input } => Self::Start { input },
            LegacyRunKind::GoOn => Self::Continue,
            LegacyRunKind::Answer { resume } => {
                Self::Answer { answer: RunAnswers::Matched(resume) }
            }
            LegacyRunKind::Fork { checkpoint, input } => Self::Fork { checkpoint, input },
            LegacyRunKind::Instead { checkpoint, input } => Self::Redo { checkpoint, input },
            LegacyRunKind::Command { writes, goto, sends, resume, checkpoint } => Self::Command {
                command: Command { writes, goto, sends, skips_entry: false },
                answer: resume.map(RunAnswers::Matched),
                checkpoint,
            },
        }
    }
}

impl LegacyRun {
    /// Converts the old record to the form that this version uses.
    fn into_requested(self) -> (RequestedRun, EngineFields) {
        let requested = RequestedRun {
            run: self.run,
            thread: self.thread,
            tenant: self.tenant,
            app: self.app,
            graph: self.graph,
            created_ms: self.created_ms,
            due_ms: self.due_ms,
            client: ClientFields {
                assistant: self.assistant,
                assistant_version: self.assistant_version,
                graph_id: self.graph_id,
                kwargs: self.kwargs,
                metadata: self.metadata,
                strategy: self.strategy,
            },
        };
        let engine = EngineFields {
            kind: self.work.into(),
            stale_answers: StaleAnswers::default(),
            options: self.options,
            context: self.context,
            principal: None,
        };
        (requested, engine)
    }
}

/// Reads the request of a run that an older host started.
///
/// # Errors
///
/// The errors of the memory.
pub(crate) async fn find_run(
    ports: &Ports,
    tenant: Option<&String>,
    thread: &ThreadId,
    run: &RunId,
) -> Result<Option<RequestedRun>, Failure> {
    let run: Option<LegacyRun> = run_records(ports, tenant, thread).get(run.as_str()).await?;
    Ok(run.map(|run| run.into_requested().0))
}

/// Deletes the old records of a thread's runs.
///
/// # Errors
///
/// The errors of the memory.
pub(crate) async fn delete_runs(
    ports: &Ports,
    tenant: Option<&String>,
    thread: &ThreadId,
) -> Result<(), Failure> {
    run_records(ports, tenant, thread).delete_all().await
}

/// Enqueues the runs that an older host left in its queue, in the order of their creation. An entry
/// that cannot be read, or whose run cannot be enqueued, is logged and stays in the old queue until
/// the next start.
pub(crate) async fn enqueue_runs(engine: &Engine) {
    if let Err(failure) = enqueue(engine).await {
        tracing::error!(%failure, "failed to read the queue of an older host");
    }
}

async fn enqueue(engine: &Engine) -> Result<(), Failure> {
    let ports = engine.ports();
    let queue = Collection::new(ports, MemoryScope::Host(None), &["waiting"]);
    let mut found = Vec::new();
    for entry in queue.list_prefix::<LegacyQueueEntry>("").await? {
        let LegacyQueueEntry { run, thread, tenant, stage } = entry.value;
        let run: Option<LegacyRun> =
            run_records(ports, tenant.as_ref(), &thread).get(run.as_str()).await?;
        let is_pending = |run: &LegacyRun| {
            stage != LegacyQueueState::Dropped && run.state == LegacyRunState::Pending
        };
        found.push((entry.key, run.filter(is_pending)));
    }
    found.sort_by_key(|(_, run)| run.as_ref().map(|run| (run.created_ms, run.run.clone())));
    for (key, run) in found {
        if let Some(run) = run
            && let Err(failure) = enqueue_run(engine, run).await
        {
            tracing::error!(entry = key, %failure, "failed to enqueue a run of an older host");
            continue;
        }
        queue.delete(&key).await?;
    }
    Ok(())
}

async fn enqueue_run(engine: &Engine, run: LegacyRun) -> Result<(), Failure> {
    let known = engine.ports().store.run(&run.run).await;
    if known.map_err(|error| Failure::internal(error.to_string()))?.is_some() {
        return Ok(());
    }
    let (mut requested, engine_fields) = run.into_requested();
    let mut request = requested.request(engine_fields, true);
    // The runs are enqueued in the order of the old queue, independent of their strategies.
    request.strategy = Multitask::Enqueue;
    engine.create_run(request).await.map(drop)
}

fn run_records<'p>(ports: &'p Ports, tenant: Option<&String>, thread: &ThreadId) -> Collection<'p> {
    Collection::new(ports, MemoryScope::Host(tenant.cloned()), &["runs", thread.as_str()])
}
