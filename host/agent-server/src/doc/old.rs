//! Runs as hosts stored them before store format 4: as records in the memory, and with a separate
//! queue of runs that had not started.
//!
//! The old records of started runs are still read, because the run records of the store lack the
//! requests. When a host starts, it moves the queued runs into the store.

use serde::Deserialize;
use serde_json::{Map, Value};
use wattle_graph::event::{Send, Write};
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, CheckpointId, GraphName, NodeName, RunId, ThreadId};
use wattle_graph::step::Command;
use wattle_run::hostcall::runs::Multitask;
use wattle_run::ports::Ports;
use wattle_run::ports::memory::MemoryScope;
use wattle_run::ports::store::{RunAnswers, RunKind, RunOptions, StaleAnswers};

use crate::asked::run::{AskedRun, EngineTerms, Terms};
use crate::doc::Shelf;
use crate::state::AgentServer;

/// An old record of a run with its request.
#[derive(Deserialize)]
struct OldRun {
    run: RunId,
    thread: ThreadId,
    tenant: Option<String>,
    assistant: String,
    #[serde(default)]
    assistant_version: u32,
    graph_id: String,
    app: AppName,
    graph: GraphName,
    work: Work,
    options: RunOptions,
    #[serde(default)]
    context: Value,
    kwargs: Map<String, Value>,
    metadata: Map<String, Value>,
    strategy: Multitask,
    created_ms: i64,
    due_ms: i64,
    state: State,
}

/// What an old run starts from.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Work {
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
enum State {
    Pending,
    Cancelled,
    Failed,
}

/// An entry of the old queue.
#[derive(Deserialize)]
struct Queued {
    run: RunId,
    thread: ThreadId,
    tenant: Option<String>,
    stage: Stage,
}

/// The state of an entry of the old queue.
#[derive(PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Stage {
    Waiting,
    Taken,
    Dropped,
}

impl From<Work> for RunKind {
    fn from(work: Work) -> Self {
        match work {
            Work::Start { input } => Self::Start { input },
            Work::GoOn => Self::Continue,
            Work::Answer { resume } => Self::Answer { answer: RunAnswers::Matched(resume) },
            Work::Fork { checkpoint, input } => Self::Fork { checkpoint, input },
            Work::Instead { checkpoint, input } => Self::Redo { checkpoint, input },
            Work::Command { writes, goto, sends, resume, checkpoint } => Self::Command {
                command: Command { writes, goto, sends },
                answer: resume.map(RunAnswers::Matched),
                checkpoint,
            },
        }
    }
}

impl OldRun {
    /// Returns the run as a host of this version has it.
    fn into_asked(self) -> (AskedRun, EngineTerms) {
        let asked = AskedRun {
            run: self.run,
            thread: self.thread,
            tenant: self.tenant,
            app: self.app,
            graph: self.graph,
            created_ms: self.created_ms,
            due_ms: self.due_ms,
            terms: Terms {
                assistant: self.assistant,
                assistant_version: self.assistant_version,
                graph_id: self.graph_id,
                kwargs: self.kwargs,
                metadata: self.metadata,
                strategy: self.strategy,
            },
        };
        let own = EngineTerms {
            kind: self.work.into(),
            stale_answers: StaleAnswers::default(),
            options: self.options,
            context: self.context,
            principal: None,
        };
        (asked, own)
    }
}

/// Reads the request of a run that an older host started.
///
/// # Errors
///
/// Those of the memory.
pub(crate) async fn run(
    ports: &Ports,
    tenant: Option<&String>,
    thread: &ThreadId,
    run: &RunId,
) -> Result<Option<AskedRun>, Failure> {
    let old: Option<OldRun> = runs(ports, tenant, thread).get(run.as_str()).await?;
    Ok(old.map(|old| old.into_asked().0))
}

/// Deletes the old records of a thread's runs.
///
/// # Errors
///
/// Those of the memory.
pub(crate) async fn forget(
    ports: &Ports,
    tenant: Option<&String>,
    thread: &ThreadId,
) -> Result<(), Failure> {
    runs(ports, tenant, thread).clear().await
}

impl AgentServer {
    /// Enqueues the runs that an older host left in its queue, in the order of their creation. An
    /// entry that cannot be read or enqueued is logged and kept until the next start.
    pub(crate) async fn enqueue_old_runs(&self) {
        if let Err(failure) = enqueue(self).await {
            tracing::error!(%failure, "failed to read the queue of an older host");
        }
    }
}

async fn enqueue(server: &AgentServer) -> Result<(), Failure> {
    let ports = server.ports();
    let queue = Shelf::new(ports, MemoryScope::Host(None), &["waiting"]);
    let mut found = Vec::new();
    for entry in queue.under::<Queued>("").await? {
        let Queued { run, thread, tenant, stage } = entry.doc;
        let old: Option<OldRun> = runs(ports, tenant.as_ref(), &thread).get(run.as_str()).await?;
        let is_pending = |old: &OldRun| stage != Stage::Dropped && old.state == State::Pending;
        found.push((entry.key, old.filter(is_pending)));
    }
    found.sort_by_key(|(_, old)| old.as_ref().map(|old| (old.created_ms, old.run.clone())));
    for (key, old) in found {
        if let Some(old) = old
            && let Err(failure) = enqueue_one(server, old).await
        {
            tracing::error!(entry = key, %failure, "failed to enqueue a run of an older host");
            continue;
        }
        queue.delete(&key).await?;
    }
    Ok(())
}

async fn enqueue_one(server: &AgentServer, old: OldRun) -> Result<(), Failure> {
    let known = server.ports().store.run(&old.run).await;
    if known.map_err(|error| Failure::internal(error.to_string()))?.is_some() {
        return Ok(());
    }
    let (mut asked, own) = old.into_asked();
    let mut request = asked.request(own, true);
    // The runs keep the order of the queue, whatever their strategies are.
    request.strategy = Multitask::Enqueue;
    server.engine().create_run(request).await.map(drop)
}

fn runs<'p>(ports: &'p Ports, tenant: Option<&String>, thread: &ThreadId) -> Shelf<'p> {
    Shelf::new(ports, MemoryScope::Host(tenant.cloned()), &["runs", thread.as_str()])
}
