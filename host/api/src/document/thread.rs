//! Threads and their history as documents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::checkpoint::{Checkpoint, Source};
use wattle_run::call::runs::ThreadView;
use wattle_run::ports::store::{ThreadRecord, ThreadStatus};

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
}

/// One point of a thread's history.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CheckpointDocument {
    /// Its number in the thread.
    pub id: u64,
    /// The checkpoint before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// Superstep that runs next from here.
    pub step: u32,
    /// `input`, `loop`, `update` or `fork`.
    #[schema(value_type = String)]
    pub source: Source,
    /// The run that wrote it.
    pub run: String,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// Nodes that run next.
    pub next: Vec<String>,
    /// Channels that it wrote.
    pub changed: Vec<String>,
    /// The state as an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
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
        }
    }
}

impl CheckpointDocument {
    /// The document of a checkpoint.
    pub fn new(checkpoint: &Checkpoint, with_state: bool) -> Self {
        let meta = &checkpoint.meta;
        Self {
            id: meta.id.0,
            parent: meta.parent.map(|parent| parent.0),
            step: meta.step,
            source: meta.source,
            run: meta.run.to_string(),
            at_ms: meta.at_ms,
            next: meta.next.iter().map(|trigger| trigger.node.to_string()).collect(),
            changed: meta.changed().map(ToString::to_string).collect(),
            state: with_state.then(|| checkpoint.state()),
        }
    }
}
