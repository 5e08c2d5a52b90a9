//! A run as a client requested it.
//!
//! The record of the run stores the request. [`RunSpec`] contains what the engine needs. The engine
//! does not read the field `client` of [`RunSpec`], which contains what only clients of this server
//! see.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};
use wattle_graph::json_text;
use wattle_graph::principal::Principal;
use wattle_project::agent_server::time::format_time_with_micros;
use wattle_run::hostcall::runs::{CreateRun, Multitask, RunRef, ThreadCreation};
use wattle_run::ports::store::{
    RunKind, RunOptions, RunRecord, RunSpec, StaleAnswers, ThreadRecord,
};

use crate::wire::response::{Run, RunStatus};

/// Maximum size in bytes of an input that the record of a run stores as the client wrote it. A
/// larger input is only in the event log. Lists of runs read whole records, so records must be
/// small.
const MAX_STORED_INPUT_BYTES: u64 = 64 << 10;

/// The field of `kwargs` that contains the input.
const INPUT: &str = "input";

/// A run as a client requested it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestedRun {
    pub(crate) run: RunId,
    pub(crate) thread: ThreadId,
    pub(crate) tenant: Option<String>,
    pub(crate) app: AppName,
    pub(crate) graph: GraphName,
    /// Time of the request, in milliseconds since 1970.
    pub(crate) created_ms: i64,
    /// Earliest start, in milliseconds since 1970.
    pub(crate) due_ms: i64,
    /// The part of the run that only clients of this server see.
    pub(crate) client: ClientFields,
}

/// The part of a run that only the engine needs. Its input, answers and context may be large.
#[derive(Debug)]
pub(crate) struct EngineFields {
    pub(crate) kind: RunKind,
    /// What happens to answers whose interrupts are not pending.
    pub(crate) stale_answers: StaleAnswers,
    pub(crate) options: RunOptions,
    pub(crate) context: Value,
    /// The principal that requested the run.
    pub(crate) principal: Option<Principal>,
}

/// The part of a run that only clients of this server see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClientFields {
    /// Id of the assistant.
    pub(crate) assistant: String,
    /// Version of the assistant that the run uses.
    pub(crate) assistant_version: u32,
    /// Id of the graph.
    pub(crate) graph_id: String,
    /// Fields of the request, which clients get as `kwargs` of the run.
    pub(crate) kwargs: Map<String, Value>,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) strategy: Multitask,
}

impl RequestedRun {
    /// Creates the run from its record; `None` if another API created the record.
    pub(crate) fn from_record(record: &RunRecord, thread: &ThreadRecord) -> Option<Self> {
        let spec = record.spec.as_deref()?;
        let mut client = ClientFields::deserialize(&spec.client).ok()?;
        // A large input is not in `kwargs`. Until the run starts, its specification contains the
        // input as channel values.
        if client.kwargs.get(INPUT).is_some_and(Value::is_null) {
            let input = spec.kind.input().cloned().unwrap_or_default();
            client.kwargs.insert(INPUT.to_owned(), input);
        }
        Some(Self {
            run: record.id.clone(),
            thread: record.thread.clone(),
            tenant: thread.tenant.clone(),
            app: spec.app.clone(),
            graph: spec.graph.clone().unwrap_or_else(|| thread.graph.clone()),
            created_ms: record.created_ms(),
            due_ms: spec.due_ms,
            client,
        })
    }

    /// Returns the request to the engine. Drops a large input from the part for clients, because
    /// only the event log stores a large input.
    pub(crate) fn request(&mut self, engine: EngineFields, may_stay_pending: bool) -> CreateRun {
        let ClientFields { graph_id, assistant, kwargs, strategy, .. } = &mut self.client;
        let is_large = |input| !json_text::has_at_most(input, MAX_STORED_INPUT_BYTES);
        if kwargs.get(INPUT).is_some_and(is_large) {
            kwargs.insert(INPUT.to_owned(), Value::Null);
        }
        // The thread records the graph and the assistant of its first run in its metadata.
        let ids = [("graph_id", &*graph_id), ("assistant_id", &*assistant)];
        let metadata = ids.map(|(name, id)| (name.to_owned(), json!(id))).into();
        CreateRun {
            thread: Some(self.thread.clone()),
            creation: ThreadCreation::Never,
            run: Some(self.run.clone()),
            tenant: self.tenant.clone(),
            strategy: *strategy,
            options: engine.options,
            may_stay_pending,
            spec: RunSpec {
                kind: engine.kind,
                stale_answers: engine.stale_answers,
                app: self.app.clone(),
                graph: Some(self.graph.clone()),
                context: engine.context,
                metadata,
                due_ms: self.due_ms,
                ttl: None,
                client: json!(self.client),
                principal: engine.principal,
            },
        }
    }

    /// Returns the ids by which the engine finds the run.
    pub(crate) fn run_ref(&self) -> RunRef {
        RunRef { thread: self.thread.clone(), run: self.run.clone() }
    }

    /// Describes the run for clients, as JSON.
    pub(crate) fn to_body(&self, record: &RunRecord) -> Run {
        let changed_ms = record.ended_ms.unwrap_or(record.started_ms);
        Run {
            run_id: self.run.to_string(),
            thread_id: self.thread.to_string(),
            assistant_id: self.client.assistant.clone(),
            created_at: format_time_with_micros(self.created_ms),
            updated_at: format_time_with_micros(changed_ms),
            metadata: self.client.metadata.clone(),
            status: RunStatus::from_record(record),
            kwargs: Value::Object(self.client.kwargs.clone()),
            multitask_strategy: self.client.strategy.into(),
        }
    }
}
