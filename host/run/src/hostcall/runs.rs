//! Threads and runs as web handlers and API clients see them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, GraphName, Namespace, NodeName, RunId, ThreadId};
use wattle_graph::principal::Principal;

use crate::ports::store::{RunOptions, RunSpec, ThreadStatus, ThreadTtl};

/// What to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartRun {
    /// The app.
    pub app: AppName,
    /// One of its graphs; without it, the only one.
    pub graph: Option<GraphName>,
    /// Channel values.
    pub input: Value,
    /// A new thread with a fresh id without it.
    pub thread: Option<ThreadId>,
    /// The id of the run, which no other may have; a fresh one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Handed to every node.
    #[serde(default)]
    pub context: Value,
    /// Free facts.
    #[serde(default)]
    pub metadata: BTreeMap<String, Value>,
    /// Whose it is.
    #[serde(default)]
    pub tenant: Option<String>,
    /// How it runs, in place of what the graph says.
    #[serde(default)]
    pub options: RunOptions,
    /// How long the thread is kept; as it is set already without it.
    #[serde(default)]
    pub ttl: Option<ThreadTtl>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// A run that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRun {
    /// The thread; a new one with a fresh id without it.
    pub thread: Option<ThreadId>,
    /// Whether a thread of that id is created if there is none.
    pub creates_thread: bool,
    /// The id of the run, which no other may have; a fresh one without it.
    pub run: Option<RunId>,
    /// Only a thread of this tenant, or a new one for it.
    pub tenant: Option<String>,
    /// What happens if the thread is at work, or has pending runs.
    pub strategy: Multitask,
    /// How it runs, in place of what the graph says.
    pub options: RunOptions,
    /// Whether the run stays pending if it cannot begin for a reason that passes. Without it, that
    /// reason is the answer, and there is no run.
    pub is_patient: bool,
    /// What it does.
    pub spec: RunSpec,
}

/// What happens to a run that is asked for while others of its thread are pending or at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Multitask {
    /// It is refused.
    Reject,
    /// It begins after them.
    #[default]
    Enqueue,
    /// They are cancelled; what they did stays.
    Interrupt,
    /// They are cancelled, and taken away with what they did.
    Rollback,
}

/// What becomes of a thread whose resumed run fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It stays where it failed; resuming without answers runs the failed tasks again.
    #[default]
    Keep,
    /// It goes back to the questions that were answered, which are open again.
    Reopen,
}

/// Answers to open questions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResumeRun {
    /// The thread.
    pub thread: ThreadId,
    /// The id of the run, which no other may have; a fresh one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// By interrupt id; the empty id stands for the only open question. No answers at all: goes
    /// on past a static interrupt, or runs failed tasks again.
    #[serde(default)]
    pub answers: BTreeMap<String, Value>,
    /// What if it fails.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Only a thread of this app.
    #[serde(default)]
    pub app: Option<AppName>,
    /// Only a thread of this tenant.
    #[serde(default)]
    pub tenant: Option<String>,
    /// How it runs, in place of what the graph says.
    #[serde(default)]
    pub options: RunOptions,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// A started run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRef {
    /// Its thread.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
}

/// An open question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Its id.
    pub id: String,
    /// The nested graph whose node asks; empty for the thread's own.
    #[serde(default, skip_serializing_if = "Namespace::is_root")]
    pub namespace: Namespace,
    /// The node that asks.
    pub node: NodeName,
    /// What the person needs to see.
    pub payload: Value,
    /// What an answer must look like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// When it was asked, milliseconds since 1970.
    pub asked_ms: i64,
    /// When the thread expires, milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
}

/// How a run ended, or why it stands still.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum RunOutcome {
    /// Reached the end.
    Completed,
    /// Waits: for answers, or at a static interrupt if there is no question.
    Interrupted {
        /// Open questions.
        interrupts: Vec<OpenQuestion>,
        /// Nodes that run next.
        next: Vec<NodeName>,
    },
    /// Failed.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// Cancelled.
    Cancelled,
}

/// A run that has ended or stands still.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndedRun {
    /// Which.
    #[serde(flatten)]
    pub run: RunRef,
    /// How.
    #[serde(flatten)]
    pub outcome: RunOutcome,
    /// The state as a JSON object.
    pub state: Value,
}

impl EndedRun {
    /// Function of the host call that a node gets it from.
    pub const FUNCTION: &'static str = "runs.wait";
}

/// A thread with its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadView {
    /// The thread.
    pub thread: ThreadId,
    /// Its app.
    pub app: AppName,
    /// Its graph.
    pub graph: GraphName,
    /// Digest of the code it is pinned to.
    pub version: String,
    /// What it does.
    pub status: ThreadStatus,
    /// The newest run.
    pub run: Option<RunId>,
    /// The state as a JSON object.
    pub state: Value,
    /// Nodes that run next.
    pub next: Vec<NodeName>,
    /// Open questions.
    pub interrupts: Vec<OpenQuestion>,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Milliseconds since 1970.
    pub updated_ms: i64,
    /// Milliseconds since 1970.
    pub expires_ms: Option<i64>,
    /// Free facts.
    pub metadata: BTreeMap<String, Value>,
    /// Why the last run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Threads and runs, as a web handler uses them. The engine implements it.
#[async_trait]
pub trait Runs: Send + Sync {
    /// Starts a run and returns once it is durable that it was started.
    async fn start(&self, request: StartRun) -> Result<RunRef, Failure>;
    /// Answers questions and goes on; returns once the answers are durable.
    async fn resume(&self, request: ResumeRun) -> Result<RunRef, Failure>;
    /// Waits until a run ends or stands still.
    async fn wait(&self, run: &RunRef) -> Result<EndedRun, Failure>;
    /// Cancels a run; not an error if it has ended.
    async fn cancel(&self, run: &RunRef) -> Result<(), Failure>;
    /// Reads a thread; `None` if there is none or it has expired.
    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadView>, Failure>;
    /// Deletes a thread.
    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), Failure>;
    /// Events of a thread.
    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Failure>;
}
