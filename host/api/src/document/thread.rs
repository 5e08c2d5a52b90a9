//! JSON bodies of the thread and checkpoint endpoints.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::Write;
use wattle_run::engine::recover::SetAside;
use wattle_run::hostcall::runs::ThreadView;
use wattle_run::ports::store::{self, ThreadCounts, ThreadFailure, ThreadRecord, ThreadStatus};
use wattle_run::time_travel::{StateView, TaskView};

use crate::document::run::{FailureDocument, InterruptDocument};

/// A thread without its state, as in a list of threads.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ThreadSummary {
    /// Id of the thread.
    pub thread: String,
    /// Same value as `thread`, under the field name that requests use.
    #[serde(default)]
    #[schema(required = true)]
    pub thread_id: String,
    /// App of the thread.
    pub app: String,
    /// Graph of the thread.
    pub graph: String,
    /// `idle`, `running`, `interrupted` or `error`.
    #[schema(value_type = String)]
    pub status: ThreadStatus,
    /// True if the last run was cancelled before the end of the graph. A run without an input then
    /// continues the thread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// Failure of the newest run. A list truncates the message of the failure to 200 characters and
    /// omits the details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureDocument>,
    /// Tenant of the thread; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Newest run of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Time of creation, in milliseconds since 1970.
    pub created_ms: i64,
    /// Time of the last update, in milliseconds since 1970.
    pub updated_ms: i64,
    /// Time of expiry, in milliseconds since 1970; absent if the thread does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
    /// Metadata of the thread.
    #[serde(default)]
    pub metadata: BTreeMap<String, Value>,
}

/// A thread with its state.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ThreadDocument {
    /// The thread without its state.
    #[serde(flatten)]
    pub summary: ThreadSummary,
    /// Digest of the graph and components to which the thread is pinned.
    pub version: String,
    /// State of the thread: channel values by name.
    pub state: Value,
    /// Nodes that run next.
    pub next: Vec<String>,
    /// Pending interrupts.
    pub interrupts: Vec<InterruptDocument>,
    /// Reason why the thread is set aside; absent if the thread is not set aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<SetAsideDocument>,
}

/// The reason why a thread is set aside: its run cannot be recovered. The document of the thread
/// has no state, because the stored state may be unreadable.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SetAsideDocument {
    /// Failure that prevents the recovery.
    pub failure: FailureDocument,
    /// Time at which the thread was set aside, in milliseconds since 1970.
    pub since_ms: i64,
    /// Number of failed recovery attempts.
    pub attempts: u32,
}

/// The number of threads that match some conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ThreadCountsDocument {
    /// Number of threads.
    pub total: u64,
    /// Number of threads by status.
    pub by_status: StatusCountsDocument,
    /// False if more threads may match, because not all threads were examined.
    pub is_complete: bool,
}

/// Numbers of threads by status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusCountsDocument {
    /// Number of idle threads.
    pub idle: u64,
    /// Number of threads with a running run.
    pub running: u64,
    /// Number of interrupted threads.
    pub interrupted: u64,
    /// Number of threads whose last run failed.
    pub error: u64,
}

impl From<ThreadCounts> for ThreadCountsDocument {
    fn from(counts: ThreadCounts) -> Self {
        let ThreadCounts { idle, running, interrupted, error, is_complete } = counts;
        let by_status = StatusCountsDocument { idle, running, interrupted, error };
        Self { total: counts.total(), by_status, is_complete }
    }
}

/// A checkpoint of a thread.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CheckpointDocument {
    /// Number of the checkpoint in the thread.
    pub id: u64,
    /// Parent checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// Namespace of the subgraph; absent for the root graph.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Number of the superstep that runs next.
    pub step: u32,
    /// Origin of the checkpoint: `input`, `loop` (a superstep), `update` (an edit) or `fork`.
    #[schema(value_type = String)]
    pub source: CheckpointSource,
    /// Run that wrote the checkpoint; for an edit, an id that no run has.
    pub run: String,
    /// Digest of the graph and components that wrote the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Time of the checkpoint, in milliseconds since 1970.
    pub at_ms: i64,
    /// Nodes that run next.
    pub next: Vec<String>,
    /// Channels that the checkpoint changed.
    pub changed: Vec<String>,
    /// Nodes whose tasks or edits wrote the checkpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<String>,
    /// Tasks that start from the checkpoint, with their results so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskDocument>,
    /// Pending interrupts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<InterruptDocument>,
    /// Metadata of the edit that wrote the checkpoint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Value>,
    /// State at the checkpoint: channel values by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
}

/// A task that starts from a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskDocument {
    /// Id of the task.
    pub id: String,
    /// Node of the task.
    pub node: String,
    /// Index among the tasks of the same node in the superstep, from 0.
    pub index: u32,
    /// Writes of a finished task, each with `channel`, `value` and `overwrite`; absent until the
    /// task has finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Value>>)]
    pub writes: Option<Vec<Write>>,
    /// Last failure of a task that has not finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureDocument>,
    /// Ids of the pending interrupts of the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<String>,
    /// Namespace of the subgraph that runs as this task, by which its history can be listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl From<store::ThreadSummary> for ThreadSummary {
    fn from(thread: store::ThreadSummary) -> Self {
        let id = String::from(thread.id);
        Self {
            thread: id.clone(),
            thread_id: id,
            app: thread.app.into(),
            graph: thread.graph.into(),
            status: thread.status,
            stopped: thread.stopped,
            failure: thread.failure.map(Into::into),
            tenant: thread.tenant,
            run: thread.run.map(Into::into),
            created_ms: thread.created_ms,
            updated_ms: thread.updated_ms,
            expires_ms: thread.expires_ms,
            metadata: thread.metadata,
        }
    }
}

impl From<ThreadFailure> for FailureDocument {
    fn from(failure: ThreadFailure) -> Self {
        let ThreadFailure { code, message, retryable } = failure;
        Self { code, message, retryable, details: None }
    }
}

impl ThreadDocument {
    /// Describes a thread. `record` is its record, which may be older than the view.
    pub fn new(view: ThreadView, record: &ThreadRecord) -> Self {
        let id = String::from(view.thread);
        Self {
            summary: ThreadSummary {
                thread: id.clone(),
                thread_id: id,
                app: view.app.into(),
                graph: view.graph.into(),
                status: view.status,
                stopped: record.stopped && view.status == ThreadStatus::Idle,
                failure: view.failure.map(Into::into),
                tenant: record.tenant.clone(),
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
            set_aside: None,
        }
    }

    /// Describes a thread that is set aside: the reason, the time and the number of attempts. The
    /// document has no state, because the stored state may be unreadable.
    pub fn set_aside(record: &ThreadRecord, set_aside: SetAside) -> Self {
        Self {
            version: record.version.to_hex(),
            summary: store::ThreadSummary::from(record).into(),
            state: Value::Null,
            next: Vec::new(),
            interrupts: Vec::new(),
            set_aside: Some(SetAsideDocument {
                failure: set_aside.failure.into(),
                since_ms: set_aside.since_ms,
                attempts: set_aside.attempts,
            }),
        }
    }
}

impl CheckpointDocument {
    /// Describes a checkpoint.
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
            interrupts: view.interrupts.into_iter().map(|interrupt| interrupt.id).collect(),
            namespace: view.namespace.map(|namespace| namespace.as_str().to_owned()),
        }
    }
}
