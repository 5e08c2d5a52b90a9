//! Threads and their history as documents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::checkpoint::Source;
use wattle_graph::event::Write;
use wattle_run::engine::recover::SetAside;
use wattle_run::hostcall::runs::ThreadView;
use wattle_run::ports::store::{ThreadRecord, ThreadStatus};
use wattle_run::travel::{StateView, TaskView};

use crate::document::run::{FailureDocument, QuestionDocument};

/// A thread without its state, as lists show it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ThreadSummary {
    /// Its id.
    pub thread: String,
    /// Its app.
    pub app: String,
    /// Its graph.
    pub graph: String,
    /// `idle`, `running`, `interrupted` or `error`.
    #[schema(value_type = String)]
    pub status: ThreadStatus,
    /// The newest run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Milliseconds since 1970.
    pub updated_ms: i64,
    /// Milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
    /// Free facts.
    #[serde(default)]
    pub metadata: BTreeMap<String, Value>,
}

/// A thread with its state.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ThreadDocument {
    /// Everything but the state.
    #[serde(flatten)]
    pub summary: ThreadSummary,
    /// Digest of the graph and components that it is pinned to.
    pub version: String,
    /// The state as an object.
    pub state: Value,
    /// Nodes that run next.
    pub next: Vec<String>,
    /// Open questions.
    pub interrupts: Vec<QuestionDocument>,
    /// Why the last run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureDocument>,
    /// Why the run cannot be gone on with, if it was cut and set aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<SetAsideDocument>,
}

/// Why a run that was cut cannot be gone on with. The state of its thread is not shown, since it may
/// be what cannot be read.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SetAsideDocument {
    /// Why.
    pub failure: FailureDocument,
    /// Since when, milliseconds since 1970.
    pub since_ms: i64,
    /// How often it was tried.
    pub attempts: u32,
}

/// One point of a thread's history.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CheckpointDocument {
    /// Its number in the thread.
    pub id: u64,
    /// The checkpoint before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// The subgraph that it is of; absent for the thread's own graph.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Superstep that runs next from here.
    pub step: u32,
    /// `input`, `loop`, `update` or `fork`.
    #[schema(value_type = String)]
    pub source: Source,
    /// The run that wrote it; for an edit, an id that no run has.
    pub run: String,
    /// Digest of the code that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// Nodes that run next.
    pub next: Vec<String>,
    /// Channels that it wrote.
    pub changed: Vec<String>,
    /// Nodes whose tasks or edits made it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<String>,
    /// The tasks that run next, with what came of them so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskDocument>,
    /// Open questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<QuestionDocument>,
    /// Free facts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Value>,
    /// The state as an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
}

/// A task that starts from a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskDocument {
    /// Its id.
    pub id: String,
    /// Its node.
    pub node: String,
    /// Which of the node's tasks, from 0.
    pub index: u32,
    /// What it wrote, each with `channel`, `value` and `overwrite`; absent unless it has finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Value>>)]
    pub writes: Option<Vec<Write>>,
    /// Its last failure, if it has not finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureDocument>,
    /// Ids of the questions that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<String>,
    /// The subgraph that runs as this task, whose history may be listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl From<ThreadRecord> for ThreadSummary {
    fn from(record: ThreadRecord) -> Self {
        Self {
            thread: record.id.into(),
            app: record.app.into(),
            graph: record.graph.into(),
            status: record.status,
            run: record.run.map(Into::into),
            created_ms: record.created_ms,
            updated_ms: record.updated_ms,
            expires_ms: record.expires_ms,
            metadata: record.metadata,
        }
    }
}

impl From<ThreadView> for ThreadDocument {
    fn from(view: ThreadView) -> Self {
        Self {
            summary: ThreadSummary {
                thread: view.thread.into(),
                app: view.app.into(),
                graph: view.graph.into(),
                status: view.status,
                run: view.run.map(Into::into),
                created_ms: view.created_ms,
                updated_ms: view.updated_ms,
                expires_ms: view.expires_ms,
                metadata: view.metadata,
            },
            version: view.version,
            state: view.state,
            next: view.next.into_iter().map(Into::into).collect(),
            interrupts: view.interrupts.into_iter().map(Into::into).collect(),
            failure: view.failure.map(Into::into),
            set_aside: None,
        }
    }
}

impl ThreadDocument {
    /// A thread whose run was set aside, without its state.
    pub fn set_aside(record: ThreadRecord, aside: SetAside) -> Self {
        Self {
            version: record.version.to_hex(),
            summary: record.into(),
            state: Value::Null,
            next: Vec::new(),
            interrupts: Vec::new(),
            failure: None,
            set_aside: Some(SetAsideDocument {
                failure: aside.failure.into(),
                since_ms: aside.since_ms,
                attempts: aside.attempts,
            }),
        }
    }
}

impl CheckpointDocument {
    /// The document of a point of the past.
    pub fn new(view: StateView, with_state: bool) -> Self {
        Self {
            id: view.checkpoint.0,
            parent: view.parent.map(|parent| parent.0),
            namespace: view.namespace.as_str().to_owned(),
            step: view.step,
            source: view.source,
            run: view.run.into(),
            version: view.version.map(Into::into),
            at_ms: view.at_ms,
            next: view.next.into_iter().map(Into::into).collect(),
            changed: view.changed.into_iter().map(Into::into).collect(),
            writers: view.writers.into_iter().map(Into::into).collect(),
            tasks: view.tasks.into_iter().map(Into::into).collect(),
            interrupts: view.interrupts.into_iter().map(Into::into).collect(),
            metadata: view.metadata,
            state: with_state.then_some(view.values),
        }
    }
}

impl From<TaskView> for TaskDocument {
    fn from(view: TaskView) -> Self {
        Self {
            id: view.id.into(),
            node: view.node.into(),
            index: view.index,
            writes: view.writes,
            failure: view.failure.map(Into::into),
            interrupts: view.interrupts.into_iter().map(|question| question.id).collect(),
            namespace: view.namespace.map(|namespace| namespace.as_str().to_owned()),
        }
    }
}
