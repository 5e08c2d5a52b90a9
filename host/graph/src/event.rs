//! What can happen on a thread. The event log is the one truth: the journal, streams, traces and
//! audit views are projections of it.

mod shown;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantNames};

use crate::checkpoint::{CheckpointMeta, Source};
use crate::elicitation::Elicited;
use crate::failure::Failure;
use crate::id::{
    ChannelName, CheckpointId, Digest, GraphName, InterruptId, Namespace, NodeName, RunId, TaskId,
    answer_id,
};
use crate::llm::Delta;
use crate::principal::Principal;

/// One entry of a thread's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Position in the thread's log: 1, 2, 3 and so on without gaps.
    pub seq: u64,
    /// Milliseconds since 1970, from the host's clock.
    pub at_ms: i64,
    /// The run it belongs to.
    pub run: RunId,
    /// Nested graph; root if empty.
    #[serde(default, skip_serializing_if = "is_root")]
    pub namespace: Namespace,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

fn is_root(namespace: &Namespace) -> bool {
    namespace.as_str().is_empty()
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

/// What happened.
///
/// The variants in snake case are the public names of events: the `type` of their JSON, of streams
/// and of the rules of projections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A run began, or went on after an answer or a restart.
    RunStarted(RunStarted),
    /// A run ended or stands still.
    RunEnded(RunEnded),
    /// A task began an attempt.
    TaskStarted(TaskStarted),
    /// A task ended well; its writes wait for the end of the superstep.
    TaskFinished(TaskFinished),
    /// An attempt of a task ended badly.
    TaskFailed(TaskFailed),
    /// A slow host call began (model, HTTP, SQL, tool).
    CallStarted(CallStarted),
    /// Pieces of a model's answer arrived.
    Streamed(Streamed),
    /// A host call was answered: the journal entry itself.
    Called(Box<Called>),
    /// A node asked a question and was unwound.
    Asked(Asked),
    /// A question was answered.
    Answered(Answered),
    /// All writes of a superstep (or an input) were applied; values are in the checkpoint store.
    Checkpointed(Checkpointed),
    /// The thread went back to a checkpoint whose questions are open again.
    Reopened(Reopened),
    /// The thread went on from an earlier checkpoint; the checkpoint that follows is its copy.
    Forked(Forked),
    /// A call in doubt was settled by a person or a policy.
    Settled(Settled),
    /// The thread was moved to another version of its code.
    Migrated(Migrated),
    /// A guest's own event.
    Custom(Custom),
    /// How far a node is.
    Progress(Progress),
    /// A guest's message for the operator, or its stdout and stderr.
    Log(Log),
}

impl EventKind {
    /// The names of all kinds.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;

    /// The name of this kind, as the JSON of an event has it under `type`.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// Why a run (re)started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunReason {
    /// From an input.
    Input,
    /// From answers to questions, or past a static interrupt.
    Resume,
    /// After a restart of the host.
    Recovery,
    /// From the tasks that failed.
    Retry,
    /// From an earlier checkpoint or host call.
    Fork,
}

/// See [`EventKind::RunStarted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The graph that runs.
    pub graph: GraphName,
    /// Digest of the graph with its components.
    pub digest: Digest,
    /// Why it runs.
    pub reason: RunReason,
    /// The run context, handed to every node.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub context: Value,
    /// Who asked for it; `None` if that is not known, and after a restart of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Was asked for and has not begun.
    Pending,
    /// Is running.
    Running,
    /// Reached the end of the graph.
    Completed,
    /// Waits for answers.
    Interrupted,
    /// A task failed for good, or the graph could not go on.
    Failed,
    /// Was cancelled.
    Cancelled,
}

/// See [`EventKind::RunEnded`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEnded {
    /// How.
    pub status: RunStatus,
    /// Why, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Whether it stands still between two supersteps because it was asked to (`drain`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
    /// Who cancelled the run, if it was cancelled and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// See [`EventKind::TaskStarted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStarted {
    /// The task.
    pub task: TaskId,
    /// Its node.
    pub node: NodeName,
    /// Its superstep.
    pub step: u32,
    /// From 1.
    pub attempt: u32,
}

/// A write to a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Write {
    /// The channel.
    pub channel: ChannelName,
    /// What to combine with the old value.
    pub value: Value,
    /// Replace instead of combine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overwrite: bool,
}

/// A task for the next superstep with an input of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Send {
    /// The node.
    pub node: NodeName,
    /// Its input.
    pub input: Value,
    /// How long one attempt may take, in milliseconds, in place of the node's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Where a graph that ran as a task ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildEnd {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its last checkpoint; `None` if it made none that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointId>,
    /// Whether its next invocation goes on there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps: bool,
}

/// See [`EventKind::TaskFinished`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskFinished {
    /// The task.
    pub task: TaskId,
    /// Its node.
    pub node: NodeName,
    /// Which of the node's tasks in its superstep; fixes the order of writes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub index: u32,
    /// The checkpoint it started from.
    pub base: CheckpointId,
    /// Its writes, in order.
    pub writes: Vec<Write>,
    /// Nodes to run next in place of the edges; `END` is left out, so an empty list ends the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goto: Option<Vec<NodeName>>,
    /// Further tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sends: Vec<Send>,
    /// Whether its writes, `goto` and sends are for the graph above its own, which ends with this
    /// superstep.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_parent: bool,
    /// Where the graph ended that ran as this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<ChildEnd>,
    /// Whether it did not run, since what an equal task did before was taken over: from the cache, or
    /// by a fork.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// Wall time of the last attempt.
    pub duration_us: u64,
}

/// The ways an attempt can end badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskFault {
    /// The guest answered with a failure.
    Failure,
    /// The guest trapped.
    Trap,
    /// The guest reached a limit: CPU, memory, output, host calls.
    Limit,
    /// The attempt took too long.
    Timeout,
    /// The guest asked for something else than its journal says.
    Divergence,
    /// The host could not run the guest.
    Host,
}

/// See [`EventKind::TaskFailed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskFailed {
    /// The task.
    pub task: TaskId,
    /// Its node.
    pub node: NodeName,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// In which way.
    pub fault: TaskFault,
    /// Why, with the plugin and node named in the message.
    pub failure: Failure,
    /// Milliseconds until the next attempt; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<u64>,
    /// The task that runs in its place, since it has failed for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<TaskId>,
}

/// See [`EventKind::CallStarted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallStarted {
    /// The task.
    pub task: TaskId,
    /// Which calls of the task it is inside of: empty for a call of the node itself, `[n]` for a
    /// call of the tool that the node called in its call `n`, and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<u32>,
    /// Number of the call in its scope, from 0, the same in every re-execution.
    pub call: u32,
    /// Interface and function, such as `llm.complete`.
    pub function: String,
    /// One line for people.
    pub summary: String,
    /// Whether it asks a model for a document for programs, which is nothing to read to a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub document: bool,
    /// 0 the first time that the task begins the call; grows every time that it is begun once more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub again: u64,
    /// The request of a call of a tool, or its head if it is large, so that clients can show what
    /// the run waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
}

impl CallStarted {
    /// The id of the message that the answer of a model becomes, if it answers anew so many times.
    pub fn answer_id(&self, restarts: u32) -> String {
        answer_id(&self.task, &self.scope, self.call, self.again, restarts)
    }
}

/// See [`EventKind::Streamed`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streamed {
    /// The task.
    pub task: TaskId,
    /// Its node.
    pub node: NodeName,
    /// Which calls of the task it is inside of: empty for a call of the node itself, `[n]` for a
    /// call of the tool that the node called in its call `n`, and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<u32>,
    /// Number of the call that is answered.
    pub call: u32,
    /// The pieces, in order.
    pub deltas: Vec<Delta>,
}

/// See [`EventKind::Called`]: one journal entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Called {
    /// The task.
    pub task: TaskId,
    /// Its node.
    pub node: NodeName,
    /// Which calls of the task it is inside of: empty for a call of the node itself, `[n]` for a
    /// call of the tool that the node called in its call `n`, and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<u32>,
    /// Number of the call in its scope, from 0, the same in every re-execution.
    pub call: u32,
    /// Interface and function, such as `llm.complete`.
    pub function: String,
    /// Digest of the request; a re-execution must ask for the same.
    pub digest: Digest,
    /// The request, or its head if it is large.
    pub request: Value,
    /// The answer, or why there was none.
    pub result: Result<Value, Failure>,
    /// When it began, milliseconds since 1970.
    pub started_ms: i64,
    /// How long it took.
    pub duration_us: u64,
    /// One line for people, such as `chat (gpt-4o-mini)`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Tokens in and out, for model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Sequence number of the entry whose answer this is, if nothing was asked anew: the run that
    /// had paid for it was cancelled before anything came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused: Option<u64>,
    /// Number of the first call of the batch it was part of; its own if it was alone.
    pub batch: u32,
}

/// Tokens of a model call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Read by the model.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
}

/// See [`EventKind::Asked`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Stable id of the question.
    pub interrupt: InterruptId,
    /// The task that asks.
    pub task: TaskId,
    /// Its node.
    pub node: NodeName,
    /// Which calls of the task it is inside of: empty for a call of the node itself, `[n]` for a
    /// call of the tool that the node called in its call `n`, and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<u32>,
    /// Number of the call in its scope.
    pub call: u32,
    /// What the person needs to see.
    pub payload: Value,
    /// What an answer must look like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// When the thread expires if nobody answers, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
    /// Whether a fork repeats the question together with its answer, so that nobody is asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answered: bool,
    /// What a call needs to go on if the server of its tool asks. For the host alone, see [`Event::shown`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicited: Option<Box<Elicited>>,
}

/// See [`EventKind::Answered`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// The question.
    pub interrupt: InterruptId,
    /// The task that asked.
    pub task: TaskId,
    /// The answer.
    pub answer: Value,
    /// Who answered, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// See [`EventKind::Checkpointed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpointed {
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// Superstep that runs next.
    pub step: u32,
    /// How it came to be.
    pub source: Source,
    /// Channels that it wrote.
    pub changed: Vec<ChannelName>,
    /// Nodes that run next.
    pub next: Vec<NodeName>,
    /// Who edited the state, if an edit made the checkpoint and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

impl From<&CheckpointMeta> for Checkpointed {
    fn from(meta: &CheckpointMeta) -> Self {
        Self {
            checkpoint: meta.id,
            step: meta.step,
            source: meta.source,
            changed: meta.changed().cloned().collect(),
            next: meta.next.iter().map(|trigger| trigger.node.clone()).collect(),
            principal: None,
        }
    }
}

/// See [`EventKind::Reopened`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reopened {
    /// The checkpoint the thread went back to.
    pub to: CheckpointId,
    /// Questions that are open again.
    pub interrupts: Vec<InterruptId>,
    /// Tasks whose results are void, since such a question was asked in a graph that they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskId>,
    /// Why: the failure of the run that was undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// See [`EventKind::Forked`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    /// The checkpoint it was forked from.
    pub from: CheckpointId,
    /// The host call whose answer was replaced, if it was forked inside of a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<ForkedCall>,
    /// Who forked the thread, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// A host call whose answer a fork replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForkedCall {
    /// The task, as it was called before the fork.
    pub task: TaskId,
    /// Which calls of the task it is inside of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<u32>,
    /// Its number.
    pub call: u32,
    /// Sequence number of the entry in the journal that was replaced.
    pub seq: u64,
}

/// See [`EventKind::Migrated`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migrated {
    /// Digest of graph and components that it was pinned to.
    pub from: Digest,
    /// Digest of those that it is pinned to now.
    pub to: Digest,
    /// Who moved the thread, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// See [`EventKind::Settled`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// The task.
    pub task: TaskId,
    /// Which calls of the task it is inside of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<u32>,
    /// Number of the call.
    pub call: u32,
    /// What was decided.
    pub decision: Decision,
    /// Who decided: `policy`, or what the client said of itself, which nobody checked.
    pub by: String,
    /// Who decided, as the host knows it; `None` for a policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// What becomes of a call of which nobody knows whether it had its effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Decision {
    /// It is made again.
    Retry,
    /// It had its effect, and this was its answer.
    Answer {
        /// The answer.
        answer: Value,
    },
    /// It counts as failed.
    Fail,
}

/// See [`EventKind::Custom`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Custom {
    /// The task.
    pub task: TaskId,
    /// Its node.
    pub node: NodeName,
    /// The guest's name for it.
    pub name: String,
    /// The guest's data.
    pub data: Value,
}

/// See [`EventKind::Progress`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The task.
    pub task: TaskId,
    /// Its node.
    pub node: NodeName,
    /// A sentence.
    pub message: String,
    /// Share done, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
}

/// See [`EventKind::Log`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Log {
    /// The task.
    pub task: TaskId,
    /// Its node.
    pub node: NodeName,
    /// `trace`, `debug`, `info`, `warn`, `error`, `stdout` or `stderr`.
    pub level: String,
    /// The message.
    pub message: String,
    /// Structured fields.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub fields: Value,
}

#[cfg(test)]
mod tests;
