//! JSON representation of pending runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_run::ports::store::{RunRecord, ThreadRecord};

/// A pending run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueuedRunDocument {
    /// Id of the run.
    pub run: String,
    /// Id of its thread.
    pub thread: String,
    /// App of the run.
    pub app: String,
    /// Graph of the run; absent if it is the only graph of the app and the thread has none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// Tenant of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Time of the request, in milliseconds since 1970.
    pub created_ms: i64,
    /// Time before which the run does not start, in milliseconds since 1970.
    pub due_ms: i64,
    /// Id of the API key that requested the run; absent if no key did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// User that requested the run, as a trusted proxy names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

impl QueuedRunDocument {
    /// Describes a pending run and its thread. Returns `None` for a record without a request, which
    /// is not that of a pending run.
    pub fn new(run: &RunRecord, thread: ThreadRecord) -> Option<Self> {
        let spec = run.spec.as_deref()?;
        let bound = (!thread.is_unbound()).then(|| thread.graph.to_string());
        let principal = spec.principal.as_ref();
        Some(Self {
            run: run.id.to_string(),
            thread: run.thread.to_string(),
            app: spec.app.to_string(),
            graph: bound.or_else(|| spec.graph.as_ref().map(ToString::to_string)),
            tenant: thread.tenant,
            created_ms: run.created_ms(),
            due_ms: run.due_ms(),
            key: principal.and_then(|principal| principal.key.clone()),
            user: principal.and_then(|principal| principal.user.clone()),
        })
    }
}
