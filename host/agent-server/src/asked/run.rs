//! A run as a client asked for it.
//!
//! The engine keeps it as part of the run's record: what the engine itself needs as [`RunSpec`], and
//! what only clients of this server see in the field of that which the engine does not read.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};
use wattle_graph::principal::Principal;
use wattle_project::agent_server::time::iso;
use wattle_run::hostcall::runs::{CreateRun, Multitask, RunRef};
use wattle_run::ports::store::{RunKind, RunOptions, RunRecord, RunSpec, ThreadRecord};

use crate::wire::shape::{Run, RunStatus};

/// Bytes of an input that the record of a run keeps as the client wrote it. The input is in the log
/// too, and lists of runs read every record whole.
const KEPT_INPUT_BYTES: usize = 64 << 10;

/// The fact of a run that says which cron began it.
pub(crate) const CRON_FACT: &str = "cron_id";

/// The field of `kwargs` with the input.
const INPUT: &str = "input";

/// A run as a client asked for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AskedRun {
    pub(crate) run: RunId,
    pub(crate) thread: ThreadId,
    pub(crate) tenant: Option<String>,
    pub(crate) app: AppName,
    pub(crate) graph: GraphName,
    /// What it does.
    pub(crate) kind: RunKind,
    pub(crate) options: RunOptions,
    pub(crate) context: Value,
    /// Milliseconds since 1970.
    pub(crate) created_ms: i64,
    /// When it may begin, milliseconds since 1970.
    pub(crate) due_ms: i64,
    /// Who asked.
    pub(crate) principal: Option<Principal>,
    /// What only clients see.
    pub(crate) terms: Terms,
}

/// What only clients of this server see of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Terms {
    /// Its assistant.
    pub(crate) assistant: String,
    /// The version of that which it runs.
    pub(crate) assistant_version: u32,
    /// The id of its graph.
    pub(crate) graph_id: String,
    /// The fields of the request.
    pub(crate) kwargs: Map<String, Value>,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) strategy: Multitask,
}

impl AskedRun {
    /// The run of a record; `None` if it was asked for by another API.
    pub(crate) fn of(record: &RunRecord, thread: &ThreadRecord) -> Option<Self> {
        let spec = record.spec.as_deref()?;
        let mut terms = Terms::deserialize(&spec.client).ok()?;
        // A large one was left out, and is shown as the graph takes it until the run begins.
        if terms.kwargs.get(INPUT).is_some_and(Value::is_null) {
            let input = spec.kind.input().cloned().unwrap_or_default();
            terms.kwargs.insert(INPUT.to_owned(), input);
        }
        Some(Self {
            run: record.id.clone(),
            thread: record.thread.clone(),
            tenant: thread.tenant.clone(),
            app: spec.app.clone(),
            graph: spec.graph.clone().unwrap_or_else(|| thread.graph.clone()),
            kind: spec.kind.clone(),
            options: record.options.clone(),
            context: spec.context.clone(),
            created_ms: record.created_ms(),
            due_ms: spec.due_ms,
            principal: spec.principal.clone(),
            terms,
        })
    }

    /// The request of the engine for it.
    pub(crate) fn request(self, is_patient: bool) -> CreateRun {
        let Terms { graph_id, assistant, strategy, .. } = &self.terms;
        // What the first run of a thread is of, stays said of the thread.
        let facts = [("graph_id", graph_id), ("assistant_id", assistant)];
        let metadata = facts.map(|(name, id)| (name.to_owned(), json!(id))).into();
        let strategy = *strategy;
        let mut terms = self.terms;
        let input_bytes = terms.kwargs.get(INPUT).map_or(0, |input| input.to_string().len());
        if input_bytes > KEPT_INPUT_BYTES {
            terms.kwargs.insert(INPUT.to_owned(), Value::Null);
        }
        CreateRun {
            thread: Some(self.thread),
            creates_thread: false,
            run: Some(self.run),
            tenant: self.tenant,
            strategy,
            options: self.options,
            is_patient,
            spec: RunSpec {
                kind: self.kind,
                app: self.app,
                graph: Some(self.graph),
                context: self.context,
                metadata,
                due_ms: self.due_ms,
                ttl: None,
                client: json!(terms),
                principal: self.principal,
            },
        }
    }

    /// Whether a cron began it: then other hosts may be about to begin the same.
    pub(crate) fn is_of_cron(&self) -> bool {
        self.terms.metadata.contains_key(CRON_FACT)
    }

    /// Its name for the engine.
    pub(crate) fn reference(&self) -> RunRef {
        RunRef { thread: self.thread.clone(), run: self.run.clone() }
    }

    /// As clients see it.
    pub(crate) fn shape(&self, record: &RunRecord) -> Run {
        let changed_ms = record.ended_ms.unwrap_or(record.started_ms);
        Run {
            run_id: self.run.to_string(),
            thread_id: self.thread.to_string(),
            assistant_id: self.terms.assistant.clone(),
            created_at: iso(self.created_ms),
            updated_at: iso(changed_ms),
            metadata: self.terms.metadata.clone(),
            status: RunStatus::of(record),
            kwargs: Value::Object(self.terms.kwargs.clone()),
            multitask_strategy: self.terms.strategy.into(),
        }
    }
}
