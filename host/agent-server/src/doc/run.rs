//! A run as it was asked for.
//!
//! The document is written before the run is begun or queued. How far the run is, the store knows
//! alone as soon as it has a record of it; before that, the document says whether it still waits. A
//! document whose run neither has a record nor waits is left over from a run that was taken away.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wattle_graph::event::{Send, Write};
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, CheckpointId, GraphName, NodeName, RunId, ThreadId};
use wattle_run::ports::Ports;
use wattle_run::ports::memory::MemoryScope;
use wattle_run::ports::store::{RunOptions, RunRecord, ThreadTtl};

use crate::doc::Shelf;
use crate::wire::request::Multitask;
use crate::wire::shape::{Run, RunStatus};
use crate::wire::time::iso;

/// Bytes of an input that stay in the document of a run that has begun: it is in the log anyway,
/// and lists of runs read every document whole.
const KEPT_INPUT_BYTES: usize = 64 << 10;

/// Milliseconds for which the document of a run without a thread outlives that: the run may take
/// long, the host may be away, and its webhook is told what was asked for.
const TEMPORARY_MS: u64 = 3_600_000;

/// A run as it was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunDoc {
    pub(crate) run: RunId,
    pub(crate) thread: ThreadId,
    pub(crate) tenant: Option<String>,
    /// Its assistant.
    pub(crate) assistant: String,
    /// The version of that which it runs.
    #[serde(default)]
    pub(crate) assistant_version: u32,
    /// The id of its graph.
    pub(crate) graph_id: String,
    pub(crate) app: AppName,
    pub(crate) graph: GraphName,
    /// What it does.
    pub(crate) work: Work,
    pub(crate) options: RunOptions,
    #[serde(default)]
    pub(crate) context: Value,
    /// What was asked for, as clients see it.
    pub(crate) kwargs: Map<String, Value>,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) strategy: Multitask,
    /// Milliseconds since 1970.
    pub(crate) created_ms: i64,
    /// When it may begin, milliseconds since 1970.
    pub(crate) due_ms: i64,
    /// How it stands, as long as the store does not know it.
    pub(crate) state: Waiting,
    /// How long its thread is kept, if that was made for it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) temporary: Option<ThreadTtl>,
}

/// What a run does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Work {
    /// Takes an input.
    Start { input: Value },
    /// Goes on where the thread stands still.
    GoOn,
    /// Answers questions.
    Answer { resume: Value },
    /// Goes on from an earlier checkpoint.
    Fork { checkpoint: CheckpointId, input: Option<Value> },
    /// Goes on where the thread stands, or from an earlier checkpoint, with further values and
    /// nodes.
    Command {
        writes: Vec<Write>,
        goto: Vec<NodeName>,
        sends: Vec<Send>,
        resume: Option<Value>,
        checkpoint: Option<CheckpointId>,
    },
}

/// How a run stands that the store does not know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Waiting {
    /// For its turn.
    #[default]
    Pending,
    /// Not any more: it was cancelled.
    Cancelled,
    /// Not any more: it could not begin.
    Failed { failure: Failure },
}

impl RunDoc {
    /// How it stands.
    pub(crate) fn status(&self, record: Option<&RunRecord>) -> RunStatus {
        match (record, &self.state) {
            (Some(record), _) => RunStatus::of(record),
            (None, Waiting::Pending) => RunStatus::Pending,
            (None, Waiting::Cancelled) => RunStatus::Interrupted,
            (None, Waiting::Failed { .. }) => RunStatus::Error,
        }
    }

    /// As clients see it.
    pub(crate) fn shape(&self, record: Option<&RunRecord>) -> Run {
        let changed_ms =
            record.map_or(self.created_ms, |run| run.ended_ms.unwrap_or(run.started_ms));
        Run {
            run_id: self.run.to_string(),
            thread_id: self.thread.to_string(),
            assistant_id: self.assistant.clone(),
            created_at: iso(self.created_ms),
            updated_at: iso(changed_ms),
            metadata: self.metadata.clone(),
            status: self.status(record),
            kwargs: Value::Object(self.kwargs.clone()),
            multitask_strategy: self.strategy,
        }
    }

    /// Where the server keeps it.
    pub(crate) fn scope(&self) -> MemoryScope {
        MemoryScope::Host(self.tenant.clone())
    }

    /// Writes it down, durable when this returns.
    pub(crate) async fn save(&self, ports: &Ports) -> Result<(), Failure> {
        let ttl_ms = self.temporary.map(|ttl| ttl.after_ms.saturating_add(TEMPORARY_MS));
        shelf(ports, self.scope(), &self.thread).put(self.run.as_str(), self, ttl_ms).await
    }

    /// Takes a large input out of the document of a run that has begun, if that can be done: the run
    /// goes on either way.
    pub(crate) async fn lighten(&self, ports: &Ports) {
        let bytes = self.kwargs.get("input").map_or(0, |input| input.to_string().len());
        if bytes <= KEPT_INPUT_BYTES {
            return;
        }
        let mut light = Self { work: Work::GoOn, ..self.clone() };
        light.kwargs.insert("input".to_owned(), Value::Null);
        if let Err(failure) = light.save(ports).await {
            tracing::warn!(run = %self.run, %failure, "the document of a run keeps its large input");
        }
    }

    /// Forgets it.
    pub(crate) async fn forget(&self, ports: &Ports) -> Result<(), Failure> {
        shelf(ports, self.scope(), &self.thread).delete(self.run.as_str()).await
    }
}

/// The run documents of a thread.
pub(crate) fn shelf<'p>(ports: &'p Ports, scope: MemoryScope, thread: &ThreadId) -> Shelf<'p> {
    Shelf::new(ports, scope, &["runs", thread.as_str()])
}
