//! One run as this server knows it, and waiting for what becomes of it.

mod listed;

use std::time::Duration;

use serde_json::{Map, Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::RunId;
use wattle_run::call::runs::{EndedRun, RunOutcome, RunRef, Runs as _};
use wattle_run::ports::memory::MemoryScope;
use wattle_run::ports::store::{RunRecord, ThreadRecord};

use crate::agents::Agents;
use crate::doc::queued::is_queued;
use crate::doc::run::{RunDoc, Waiting, Work, shelf};
use crate::fault::Fault;
use crate::graphs;
use crate::view;
use crate::wire::id::assistant_uuid;
use crate::wire::shape::{ERROR, error_of, outcome};

pub(crate) use self::listed::Listed;

/// Pause before looking again at a run that waits on another host.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A run of a thread.
#[derive(Clone)]
pub(crate) struct KnownRun {
    /// What was asked for.
    pub(crate) doc: RunDoc,
    /// What the store knows, once it has begun.
    pub(crate) record: Option<RunRecord>,
}

impl KnownRun {
    /// The run of that id.
    ///
    /// # Errors
    ///
    /// 404 if the thread has none.
    pub(crate) async fn find(
        agents: &Agents,
        thread: &ThreadRecord,
        id: &str,
    ) -> Result<Self, Fault> {
        let run = RunId::new(id).map_err(|error| Fault::unprocessable(error.to_string()))?;
        let known = Self::look(agents, thread, &run).await?;
        if known.is_none() {
            crate::caller::uuid("run", id)?;
        }
        known.ok_or_else(|| Fault::missing("run", id))
    }

    async fn look(
        agents: &Agents,
        thread: &ThreadRecord,
        run: &RunId,
    ) -> Result<Option<Self>, Fault> {
        let ports = agents.ports();
        let scope = MemoryScope::Host(thread.tenant.clone());
        let doc: Option<RunDoc> = shelf(ports, scope, &thread.id).get(run.as_str()).await?;
        let is_there = match &doc {
            Some(doc) if doc.state == Waiting::Pending => is_queued(ports, &thread.id, run).await?,
            Some(_) => true,
            None => false,
        };
        let record = ports.store.run(run).await?.filter(|record| record.thread == thread.id);
        Ok(match (doc, record) {
            (Some(doc), None) if is_there => Some(Self { doc, record: None }),
            (_, None) => None,
            (Some(doc), record) => Some(Self { doc, record }),
            (None, Some(record)) => Some(Self::of_record(agents, thread, record)),
        })
    }

    /// A run that was begun by another API.
    fn of_record(agents: &Agents, thread: &ThreadRecord, record: RunRecord) -> Self {
        let graph_id = graphs::id_of(agents.engine().catalog(), &thread.app, &thread.graph);
        let doc = RunDoc {
            run: record.id.clone(),
            thread: record.thread.clone(),
            tenant: thread.tenant.clone(),
            assistant: assistant_uuid(&graph_id).to_string(),
            assistant_version: 1,
            graph_id,
            app: thread.app.clone(),
            graph: thread.graph.clone(),
            work: Work::GoOn,
            options: record.options.clone(),
            context: Value::Null,
            kwargs: Map::new(),
            metadata: Map::new(),
            strategy: Default::default(),
            created_ms: record.started_ms,
            due_ms: record.started_ms,
            state: Waiting::Pending,
            temporary: None,
        };
        Self { doc, record: Some(record) }
    }

    /// Whether nothing more will come of it.
    pub(crate) fn is_over(&self) -> bool {
        self.doc.status(self.record.as_ref()).is_over()
    }
}

/// What became of a run that waited.
pub(crate) enum Turn {
    /// It has begun.
    Begun(Box<RunRecord>),
    /// It could not begin.
    Failed(Failure),
    /// It was cancelled, or taken away.
    Gone,
    /// The host stops.
    Stopping,
}

/// Waits until a run has begun, or will not.
pub(crate) async fn turn(agents: &Agents, doc: &RunDoc) -> Result<Turn, Fault> {
    let ports = agents.ports();
    let mut stopping = agents.api().stopping.clone();
    loop {
        let left = agents.queue().left(&doc.thread, &doc.run);
        if left.is_none() {
            let is_queued = is_queued(ports, &doc.thread, &doc.run).await?;
            if let Some(record) = ports.store.run(&doc.run).await? {
                return Ok(Turn::Begun(Box::new(record)));
            }
            let found: Option<RunDoc> =
                shelf(ports, doc.scope(), &doc.thread).get(doc.run.as_str()).await?;
            match found.map(|doc| doc.state) {
                None | Some(Waiting::Cancelled) => return Ok(Turn::Gone),
                Some(Waiting::Failed { failure }) => return Ok(Turn::Failed(failure)),
                Some(Waiting::Pending) if !is_queued => return Ok(Turn::Gone),
                Some(Waiting::Pending) => {}
            }
        }
        let its_turn = async {
            match left {
                // An error means that the lane is gone with the run.
                Some(mut left) => drop(left.wait_for(|left| *left).await),
                None => tokio::time::sleep(LOOK_AGAIN).await,
            }
        };
        tokio::select! {
            () = its_turn => {}
            _ = stopping.wait_for(|stopping| *stopping) => return Ok(Turn::Stopping),
        }
    }
}

/// The values of a run when it is over, with its open questions, or why it failed.
pub(crate) async fn ended(agents: &Agents, doc: &RunDoc) -> Value {
    match end(agents, doc).await {
        Ok(Ok(value)) => value,
        Ok(Err(failure)) => json!({ ERROR: error_of(&failure) }),
        Err(fault) => json!({ ERROR: { "error": code::INTERNAL, "message": fault.detail() } }),
    }
}

async fn end(agents: &Agents, doc: &RunDoc) -> Result<Result<Value, Failure>, Fault> {
    let stopped = || Failure::new(code::UNAVAILABLE, "the host is shutting down");
    let run = RunRef { thread: doc.thread.clone(), run: doc.run.clone() };
    let mut stopping = agents.api().stopping.clone();
    let ended = match turn(agents, doc).await? {
        Turn::Begun(_) => tokio::select! {
            ended = agents.engine().wait(&run) => ended?,
            _ = stopping.wait_for(|stopping| *stopping) => return Ok(Err(stopped())),
        },
        Turn::Failed(failure) => return Ok(Err(failure)),
        Turn::Stopping => return Ok(Err(stopped())),
        Turn::Gone => {
            let view = agents.engine().thread(&doc.thread).await?;
            let state = view.map(|view| view.state).unwrap_or_default();
            EndedRun { run, outcome: RunOutcome::Cancelled, state }
        }
    };
    let head = agents.ports().store.thread(&doc.thread).await?;
    let Some(head) = head else { return Ok(Ok(ended.state)) };
    Ok(Ok(outcome(&view::lens(agents, &head.record), &ended)))
}
