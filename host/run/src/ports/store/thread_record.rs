//! The record of a thread: its status, owner and retention.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, Digest, GraphName, RunId, ThreadId};

use crate::limit::{THREAD_FAILURE_CHARS, THREAD_FAILURE_CODE_CHARS};

/// The current status of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadStatus {
    /// No run is active.
    Idle,
    /// A run is active.
    Running,
    /// The thread waits for answers.
    Interrupted,
    /// The last run failed.
    Error,
}

impl ThreadStatus {
    /// Returns true if a thread with this status and this time of expiry has expired. Only
    /// interrupted threads expire.
    #[must_use]
    pub fn has_expired(self, expires_ms: Option<i64>, now_ms: i64) -> bool {
        self == Self::Interrupted && expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms)
    }
}

/// The record of a thread, stored in addition to its log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// The thread.
    pub id: ThreadId,
    /// The app of the thread.
    pub app: AppName,
    /// The graph of the thread.
    pub graph: GraphName,
    /// Digest of graph and components. The first run of the thread pins the thread to this version.
    pub version: Digest,
    /// Current status.
    pub status: ThreadStatus,
    /// True if the thread is idle because its last run was cancelled before the end of the graph,
    /// so that a run without an input can continue it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// Failure of the newest run, if it failed. `None` as well if an older host executed the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ThreadFailure>,
    /// The newest run.
    pub run: Option<RunId>,
    /// Time of creation, milliseconds since 1970.
    pub created_ms: i64,
    /// Time of the last update, milliseconds since 1970.
    pub updated_ms: i64,
    /// Time of expiry, milliseconds since 1970. The time is computed from stored times, so a
    /// restart does not change it.
    pub expires_ms: Option<i64>,
    /// Tenant that owns the thread.
    pub tenant: Option<String>,
    /// Run context, passed to every node.
    #[serde(default)]
    pub context: Value,
    /// Metadata of the client.
    #[serde(default)]
    pub metadata: BTreeMap<String, Value>,
    /// Incarnation: an id that no other thread has, not even a deleted thread with the same thread
    /// id. `None` if an older host created the thread.
    #[serde(rename = "born", default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<RunId>,
    /// The thread that this thread was copied from, or the origin of that thread. Ids of tasks and
    /// interrupts derive from the origin, so that pending tasks and interrupts keep their ids in
    /// the copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ThreadId>,
    /// Retention of the thread. Unlimited if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<ThreadTtl>,
    /// Time of the last prune after the time to live, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruned_ms: Option<i64>,
}

/// The failure of a thread's newest run, short enough for lists. The record of the run has the
/// whole failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadFailure {
    /// Code of the failure: its first [`THREAD_FAILURE_CODE_CHARS`] characters.
    pub code: String,
    /// Message of the failure: its first [`THREAD_FAILURE_CHARS`] characters.
    pub message: String,
    /// True if the same work can succeed later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retryable: bool,
}

impl From<&Failure> for ThreadFailure {
    fn from(failure: &Failure) -> Self {
        Self {
            code: failure.code.chars().take(THREAD_FAILURE_CODE_CHARS).collect(),
            message: failure.message.chars().take(THREAD_FAILURE_CHARS).collect(),
            retryable: failure.retryable,
        }
    }
}

/// The retention of a thread after its last update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTtl {
    /// Time to live since the last update, in milliseconds.
    pub after_ms: u64,
    /// What happens when the time to live ends.
    pub strategy: PruneStrategy,
}

/// The data that a prune deletes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PruneStrategy {
    /// Everything except the newest checkpoint of each namespace and the events since then.
    KeepLatest,
    /// The whole thread.
    #[default]
    Delete,
}

/// Name of the app and the graph of an [unbound thread](ThreadRecord::is_unbound) without a pending
/// run. No app may have this name.
pub const UNBOUND: &str = "blank";

impl ThreadRecord {
    /// Creates the record of a thread whose graph is not known yet.
    pub fn unbound(id: ThreadId, now_ms: i64) -> Self {
        Self {
            id,
            app: AppName::new(UNBOUND).expect("a valid name"),
            graph: GraphName::new(UNBOUND).expect("a valid name"),
            version: Digest::from_bytes([0; 32]),
            status: ThreadStatus::Idle,
            stopped: false,
            failure: None,
            run: None,
            created_ms: now_ms,
            updated_ms: now_ms,
            expires_ms: None,
            tenant: None,
            context: Value::Null,
            metadata: BTreeMap::new(),
            incarnation: None,
            origin: None,
            ttl: None,
            pruned_ms: None,
        }
    }

    /// Returns true if the thread has no version of a graph yet. The first run or edit of the thread
    /// binds the thread to a graph. While this run is pending, `app` and `graph` are those that it
    /// requests; they bind no other run or edit.
    pub fn is_unbound(&self) -> bool {
        self.version == Digest::from_bytes([0; 32])
    }

    /// Returns the record with the app and the graph that a pending first run requests. Returns
    /// `None` if the thread is bound, or if the record has them.
    pub fn with_requested_graph(&self, (app, graph): &(AppName, GraphName)) -> Option<Self> {
        let is_new = self.is_unbound() && (&self.app, &self.graph) != (app, graph);
        is_new.then(|| Self { app: app.clone(), graph: graph.clone(), ..self.clone() })
    }

    /// Returns the thread that ids of tasks derive from.
    pub fn origin(&self) -> &ThreadId {
        self.origin.as_ref().unwrap_or(&self.id)
    }

    /// Returns the incarnation as text. A thread that an older host created is identified by the
    /// time of its creation.
    pub fn incarnation_text(&self) -> String {
        self.incarnation.as_ref().map_or_else(|| self.created_ms.to_string(), RunId::to_string)
    }

    /// Returns the end of the time to live, milliseconds since 1970. Returns `None` if the thread
    /// has no time to live, or if it was pruned at the end of its time to live and not updated
    /// since.
    pub fn ttl_ends_ms(&self) -> Option<i64> {
        let is_done = self.pruned_ms.is_some_and(|pruned| pruned >= self.updated_ms);
        self.ttl
            .filter(|_| !is_done)
            .map(|ttl| self.updated_ms.saturating_add_unsigned(ttl.after_ms))
    }

    /// Returns true if the thread has expired: its interrupts were not answered in time.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.status.has_expired(self.expires_ms, now_ms)
    }

    /// Returns true if an app may use the thread on behalf of a tenant. A thread without a tenant
    /// is accessible to all tenants.
    pub fn is_accessible_to(&self, app: &AppName, tenant: Option<&str>) -> bool {
        self.app == *app && (self.tenant.is_none() || self.tenant.as_deref() == tenant)
    }
}
