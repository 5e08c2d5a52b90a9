//! Threads and runs for web handlers and API clients.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, GraphName, Namespace, NodeName, RunId, ThreadId};
use wattle_graph::principal::Principal;

use crate::ports::store::{
    RunOptions, RunSpec, TenantFilter, ThreadCursor, ThreadRecord, ThreadSearch, ThreadSearchPage,
    ThreadStatus, ThreadTtl,
};

/// Function that starts a run.
pub const START: &str = "runs.start";

/// Function that resumes a thread.
pub const RESUME: &str = "runs.resume";

/// Function that cancels a run.
pub const CANCEL: &str = "runs.cancel";

/// Function that returns a thread.
pub const THREAD: &str = "runs.thread";

/// Function that deletes a thread.
pub const DELETE_THREAD: &str = "runs.delete-thread";

/// Function that lists threads.
pub const THREADS: &str = "runs.threads";

/// Function that updates a thread.
pub const UPDATE_THREAD: &str = "runs.update-thread";

/// Function that returns events of a thread.
pub const EVENTS: &str = "runs.events";

/// Maximum number of threads in a page of a list.
pub const PAGE_THREADS: usize = 500;

/// Request to start a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartRun {
    /// The app.
    pub app: AppName,
    /// The graph; `None` for the only graph of the app.
    pub graph: Option<GraphName>,
    /// Input: values of channels.
    pub input: Value,
    /// The thread; `None` for a new thread with a generated id.
    pub thread: Option<ThreadId>,
    /// Id of the run, which must be unique; `None` for a generated id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Run context, which every node receives.
    #[serde(default)]
    pub context: Value,
    /// Metadata of the thread.
    #[serde(default)]
    pub metadata: BTreeMap<String, Value>,
    /// Tenant of the thread.
    #[serde(default)]
    pub tenant: Option<String>,
    /// Run options, which override the settings of the graph.
    #[serde(default)]
    pub options: RunOptions,
    /// Time to live of the thread; `None` keeps the current time to live.
    #[serde(default)]
    pub ttl: Option<ThreadTtl>,
    /// Who requests the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// True to reject the run with `conflict` if the thread is interrupted and has pending
    /// interrupts. Otherwise the run gives these interrupts up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reject_if_interrupted: bool,
}

impl StartRun {
    /// Creates a request for a run of the only graph of an app, on a new thread without a tenant,
    /// with the settings of the graph.
    #[must_use]
    pub fn new(app: AppName, input: Value) -> Self {
        Self {
            app,
            graph: None,
            input,
            thread: None,
            run: None,
            context: Value::Null,
            metadata: BTreeMap::new(),
            tenant: None,
            options: RunOptions::default(),
            ttl: None,
            principal: None,
            reject_if_interrupted: false,
        }
    }
}

/// Request to create a run.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRun {
    /// The thread; `None` for a new thread with a generated id.
    pub thread: Option<ThreadId>,
    /// Whether the run creates the thread.
    pub creation: ThreadCreation,
    /// Id of the run, which must be unique; `None` for a generated id.
    pub run: Option<RunId>,
    /// Tenant. A thread of another tenant is not found; a new thread belongs to this tenant.
    pub tenant: Option<String>,
    /// Strategy if the thread has an active run or pending runs.
    pub strategy: Multitask,
    /// Run options, which override the settings of the graph.
    pub options: RunOptions,
    /// True if the run stays pending when a temporary condition prevents its start. Otherwise that
    /// condition is returned as an error, and no run is created.
    pub may_stay_pending: bool,
    /// Specification of the run.
    pub spec: RunSpec,
}

/// Whether a requested run creates the thread that it names.
#[derive(Clone, Debug, PartialEq)]
pub enum ThreadCreation {
    /// The thread must exist.
    Never,
    /// The run creates the thread, without metadata, if it does not exist.
    IfMissing,
    /// The run creates the thread with this record, from
    /// [`Engine::unbound_thread`](crate::engine::Engine::unbound_thread). The run is rejected with
    /// `conflict` if the thread exists, unless it is unbound and of the same tenant.
    New(Box<ThreadRecord>),
}

impl ThreadCreation {
    /// Returns the record of a new thread.
    pub(crate) fn new_thread(&self) -> Option<&ThreadRecord> {
        match self {
            Self::New(record) => Some(record),
            Self::Never | Self::IfMissing => None,
        }
    }
}

/// Strategy for a run that is requested while other runs of its thread are pending or active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Multitask {
    /// Rejects the new run.
    Reject,
    /// Starts the new run after the other runs.
    #[default]
    Enqueue,
    /// Cancels the other runs and keeps their results.
    Interrupt,
    /// Cancels the other runs and discards their results.
    Rollback,
}

/// What a failed resume does to the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The thread stays at the failure. A resume without answers executes the failed tasks again.
    #[default]
    Keep,
    /// The thread returns to the interrupts that the resume answered, which are pending again.
    Reopen,
}

/// Request to resume a thread: with answers, past a breakpoint, or with its failed tasks again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResumeRun {
    /// The thread.
    pub thread: ThreadId,
    /// Id of the run, which must be unique; `None` for a generated id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Answers by interrupt id; the empty id selects the only pending interrupt. Without answers
    /// the run passes a breakpoint or executes failed tasks again.
    #[serde(default)]
    pub answers: BTreeMap<String, Value>,
    /// What happens if the run fails.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// If set, the thread must belong to this app.
    #[serde(default)]
    pub app: Option<AppName>,
    /// If set, the thread must belong to this tenant.
    #[serde(default)]
    pub tenant: Option<String>,
    /// Run options, which override the settings of the graph.
    #[serde(default)]
    pub options: RunOptions,
    /// Who requests the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// Request to list threads of an app, newest update first. All conditions must hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListThreads {
    /// The app.
    pub app: AppName,
    /// Tenant of the threads; `None` for threads without a tenant.
    pub tenant: Option<String>,
    /// Only threads of this graph.
    pub graph: Option<GraphName>,
    /// Only threads that contain this text, see [`ThreadSearch::text`].
    pub text: Option<String>,
    /// Only threads whose metadata contains these values, see [`ThreadSearch::metadata`].
    pub metadata: BTreeMap<String, Value>,
    /// Only threads after this position.
    pub after: Option<ThreadCursor>,
    /// Maximum number of threads in the page. A number outside of 1 to [`PAGE_THREADS`] counts as
    /// the nearest one within.
    pub limit: usize,
}

impl From<ListThreads> for ThreadSearch {
    fn from(list: ListThreads) -> Self {
        Self {
            app: Some(list.app),
            graph: list.graph,
            tenant: TenantFilter::named_or_none(list.tenant),
            text: list.text,
            metadata: list.metadata,
            after: list.after,
            limit: list.limit.clamp(1, PAGE_THREADS),
            ..Self::default()
        }
    }
}

/// Request to update a thread outside of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpdateThread {
    /// The thread to update.
    pub thread: ThreadId,
    /// If set, the thread must belong to this app.
    pub app: Option<AppName>,
    /// Tenant of the thread; `None` for a thread without a tenant. A thread of another tenant is
    /// not found.
    pub tenant: Option<String>,
    /// Metadata to add. Each entry replaces an entry with the same key.
    pub metadata: BTreeMap<String, Value>,
    /// New time to live. Default: unchanged.
    pub ttl: Option<ThreadTtl>,
}

/// Reference to a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRef {
    /// Thread of the run.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
}

/// An interrupt, pending or answered, as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterruptView {
    /// Interrupt id.
    pub id: String,
    /// Namespace of the subgraph whose node raised the interrupt; empty for the root graph.
    #[serde(default, skip_serializing_if = "Namespace::is_root")]
    pub namespace: Namespace,
    /// The node that raised the interrupt.
    pub node: NodeName,
    /// Payload for the person who answers.
    pub payload: Value,
    /// JSON Schema of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// When the interrupt was raised, in milliseconds since the Unix epoch.
    pub asked_ms: i64,
    /// When the thread expires, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
}

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum RunOutcome {
    /// The run reached the end of the graph.
    Completed,
    /// The run waits for answers or, without pending interrupts, at a breakpoint.
    Interrupted {
        /// Pending interrupts.
        interrupts: Vec<InterruptView>,
        /// Nodes that execute next.
        next: Vec<NodeName>,
    },
    /// The run failed.
    Failed {
        /// The failure.
        failure: Failure,
    },
    /// The run was cancelled.
    Cancelled,
}

/// A run that has ended or is interrupted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndedRun {
    /// The run.
    #[serde(flatten)]
    pub run: RunRef,
    /// Outcome of the run.
    #[serde(flatten)]
    pub outcome: RunOutcome,
    /// The state as a JSON object.
    pub state: Value,
}

impl EndedRun {
    /// Function of the host call that returns an ended run to a node.
    pub const FUNCTION: &'static str = "runs.wait";
}

/// A thread with its current state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadView {
    /// The thread.
    pub thread: ThreadId,
    /// App of the thread.
    pub app: AppName,
    /// Graph of the thread.
    pub graph: GraphName,
    /// Digest of the graph version to which the thread is pinned.
    pub version: String,
    /// Status of the thread.
    pub status: ThreadStatus,
    /// The newest run.
    pub run: Option<RunId>,
    /// The state as a JSON object.
    pub state: Value,
    /// Nodes that execute next.
    pub next: Vec<NodeName>,
    /// Pending interrupts.
    pub interrupts: Vec<InterruptView>,
    /// Creation time, in milliseconds since the Unix epoch.
    pub created_ms: i64,
    /// Time of the last update, in milliseconds since the Unix epoch.
    pub updated_ms: i64,
    /// Expiry time, in milliseconds since the Unix epoch; `None` if the thread does not expire.
    pub expires_ms: Option<i64>,
    /// Metadata of the thread.
    pub metadata: BTreeMap<String, Value>,
    /// Failure of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Service for threads and runs. The engine implements it.
#[async_trait]
pub trait RunService: Send + Sync {
    /// Starts a run. Returns when the start is durable.
    async fn start(&self, request: StartRun) -> Result<RunRef, Failure>;
    /// Answers interrupts and resumes the thread. Returns when the answers are durable.
    async fn resume(&self, request: ResumeRun) -> Result<RunRef, Failure>;
    /// Waits until a run ends or is interrupted.
    async fn wait(&self, run: &RunRef) -> Result<EndedRun, Failure>;
    /// Cancels a run. Succeeds if the run has ended.
    async fn cancel(&self, run: &RunRef) -> Result<(), Failure>;
    /// Reads a thread. Returns `None` if it does not exist or has expired.
    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadView>, Failure>;
    /// Deletes a thread.
    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), Failure>;
    /// Lists threads, without those that have expired. The page may be short or empty although
    /// another one follows.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    async fn threads(&self, list: ListThreads) -> Result<ThreadSearchPage, Failure>;
    /// Updates the metadata and time to live of a thread. An active run does not observe the
    /// update.
    ///
    /// # Errors
    ///
    /// `not-found` if the thread does not exist, has expired, or belongs to another app or tenant;
    /// `busy` while a run is active on another host, or if another operation uses the thread for
    /// too long; `limit` if the metadata becomes too large.
    async fn update_thread(&self, update: UpdateThread) -> Result<ThreadRecord, Failure>;
    /// Reads at most `limit` events of a thread with sequence numbers greater than `after`.
    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Failure>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_a_list_has_1_to_500_threads() {
        for (limit, expected) in [(0, 1), (1, 1), (500, 500), (501, 500), (usize::MAX, 500)] {
            let list = ListThreads {
                app: AppName::new("shop").unwrap(),
                tenant: None,
                graph: None,
                text: None,
                metadata: BTreeMap::new(),
                after: None,
                limit,
            };
            assert_eq!(ThreadSearch::from(list).limit, expected, "{limit}");
        }
    }
}
