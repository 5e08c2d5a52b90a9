//! Events of a thread. The event log is the source of truth; the journal, streams and traces are
//! projections of the log.

mod anonymous;
mod call;
mod decode;
mod shown;

use std::sync::Arc;

pub use call::{CallStarted, Called, Streamed, Tokens};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{EnumDiscriminants, IntoStaticStr, VariantArray, VariantNames};

use crate::checkpoint::{Checkpoint, CheckpointMeta, CheckpointSource, TakenCase};
use crate::elicitation::Elicited;
use crate::failure::Failure;
use crate::id::{
    ChannelName, CheckpointId, Digest, GraphName, InterruptId, Namespace, NodeName, RunId, TaskId,
};
use crate::omit::is_zero;
use crate::principal::Principal;

/// One entry of a thread's log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Sequence number in the thread's log, from 1 without gaps.
    pub seq: u64,
    /// Time of the event by the host's clock, in milliseconds since 1970.
    pub at_ms: i64,
    /// The run that the event belongs to.
    pub run: RunId,
    /// Namespace of the subgraph; empty for the root graph.
    #[serde(skip_serializing_if = "is_root")]
    pub namespace: Namespace,
    /// Kind and payload of the event.
    #[serde(flatten)]
    pub kind: EventKind,
}

fn is_root(namespace: &Namespace) -> bool {
    namespace.as_str().is_empty()
}

/// The kind of an event, with its payload.
///
/// The names of the kinds are public: they are the `type` in the JSON of events and in streams, and
/// the rules of projections refer to them. A name is that of the variant in snake case, or one that
/// the variant declares.
#[derive(Clone, Debug, PartialEq, Serialize, IntoStaticStr, VariantNames, EnumDiscriminants)]
#[strum(serialize_all = "snake_case")]
#[strum_discriminants(name(EventType), vis(pub(crate)), derive(VariantArray))]
#[strum_discriminants(doc = "The kind of an event, without its payload.")]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A run started, or continued after an answer or a restart.
    RunStarted(RunStarted),
    /// A run ended or was interrupted.
    RunEnded(RunEnded),
    /// An attempt of a task started.
    TaskStarted(TaskStarted),
    /// A task finished. Its writes are applied at the end of the superstep. The log and the
    /// state of the superstep share the payload, which can be large.
    TaskFinished(Arc<TaskFinished>),
    /// An attempt of a task failed.
    TaskFailed(TaskFailed),
    /// A slow host call started (model, HTTP, SQL, tool).
    CallStarted(CallStarted),
    /// Deltas of a model's completion arrived.
    Streamed(Streamed),
    /// A host call returned. The payload is its journal entry.
    Called(Box<Called>),
    /// A task raised an interrupt, and its guest was unwound.
    #[serde(rename = "asked")]
    #[strum(serialize = "asked")]
    InterruptRaised(InterruptRaised),
    /// An interrupt was answered.
    Answered(Answered),
    /// All writes of a superstep, an input or an edit were applied. The checkpoint has the values.
    Checkpointed(Checkpointed),
    /// The thread returned to a checkpoint, whose interrupts are pending again.
    Reopened(Reopened),
    /// The thread continued from an earlier checkpoint, on which the next checkpoint is based.
    Forked(Forked),
    /// A client or a policy settled a call in doubt.
    Settled(Settled),
    /// The thread was moved to another version of its graph and components.
    Migrated(Migrated),
    /// A guest emitted an event that the guest defines.
    Custom(Custom),
    /// A node reported its progress.
    Progress(Progress),
    /// A guest wrote a message for the operator, or to stdout or stderr.
    Log(Log),
}

impl EventKind {
    /// The names of all kinds, in the order of the variants.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;

    /// Returns the name of the kind, which is the `type` in the JSON of the event.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// The reason of a `run_started` event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunReason {
    /// The run starts with an input.
    Input,
    /// The run continues with answers to interrupts, or past a breakpoint.
    Resume,
    /// The run continues after the host that executed it stopped.
    Recovery,
    /// The run executes failed tasks again.
    Retry,
    /// The run starts at an earlier checkpoint or host call.
    Fork,
}

/// See [`EventKind::RunStarted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// Graph of the run.
    pub graph: GraphName,
    /// Digest of the graph with its components.
    pub digest: Digest,
    /// Why the run started or continued.
    pub reason: RunReason,
    /// The run context, which every node receives.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub context: Value,
    /// The party that requested the run; `None` if it is unknown, and for a recovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The run was requested and has not started.
    Pending,
    /// A host executes the run.
    Running,
    /// The run reached the end of the graph.
    Completed,
    /// The run waits for answers, or for a resume past a breakpoint or after a drain.
    Interrupted,
    /// A task failed permanently, or a superstep could not be applied.
    Failed,
    /// The run was cancelled.
    Cancelled,
}

/// See [`EventKind::RunEnded`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEnded {
    /// Status of the run from now on.
    pub status: RunStatus,
    /// The failure of a failed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// True if the run stopped between two supersteps because of a `drain`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
    /// The party that cancelled the run, if the run was cancelled and the party is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// Time for which the run waited for the store between supersteps, since its last start or
    /// recovery, in microseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub store_us: u64,
}

/// See [`EventKind::TaskStarted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStarted {
    /// The task.
    pub task: TaskId,
    /// Node of the task.
    pub node: NodeName,
    /// Number of the superstep, from 0.
    pub step: u32,
    /// Number of the attempt, from 1.
    pub attempt: u32,
}

/// A write to a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Write {
    /// The channel.
    pub channel: ChannelName,
    /// The value that the reducer combines with the value of the channel.
    pub value: Value,
    /// True if the value replaces that of the channel, without the reducer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overwrite: bool,
}

/// A task for the next superstep with a separate input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Send {
    /// The node that runs.
    pub node: NodeName,
    /// Input of the task, in place of the state.
    pub input: Value,
    /// Timeout of one attempt in milliseconds, in place of the timeout of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// The end of a subgraph that ran as a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubgraphEnd {
    /// Namespace of the subgraph.
    pub namespace: Namespace,
    /// Last checkpoint of the subgraph; `None` if it is not persisted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointId>,
    /// True if the next invocation of the subgraph continues from the checkpoint.
    #[serde(rename = "keeps", default, skip_serializing_if = "std::ops::Not::not")]
    pub persists: bool,
}

/// See [`EventKind::TaskFinished`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskFinished {
    /// The task.
    pub task: TaskId,
    /// Node of the task.
    pub node: NodeName,
    /// Index among the tasks of the node in the superstep. It determines the order of writes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub index: u32,
    /// Checkpoint at which the task started.
    pub base: CheckpointId,
    /// Writes of the task, in order.
    pub writes: Vec<Write>,
    /// Nodes to run next in place of the edges. `END` is left out, so an empty list ends the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goto: Option<Vec<NodeName>>,
    /// Tasks for the next superstep, in addition to `goto` or the edges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sends: Vec<Send>,
    /// True if the writes, `goto` and sends are for the parent graph. The task's own graph ends
    /// with this superstep.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_parent: bool,
    /// The end of the subgraph that ran as this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<SubgraphEnd>,
    /// True if the task was not executed: its outcome comes from the cache, or a fork carried it
    /// over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// Wall time of the last attempt, in microseconds.
    pub duration_us: u64,
}

/// The cause of a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskFault {
    /// The guest returned a failure.
    Failure,
    /// The guest trapped.
    Trap,
    /// The guest exceeded a limit: CPU time, memory, output, host calls.
    Limit,
    /// The attempt exceeded its timeout.
    Timeout,
    /// A host call of the guest differs from the journal.
    Divergence,
    /// The host could not execute the guest.
    Host,
}

/// See [`EventKind::TaskFailed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskFailed {
    /// The task.
    pub task: TaskId,
    /// Node of the task.
    pub node: NodeName,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Cause of the failure.
    pub fault: TaskFault,
    /// The failure. Its message names the plugin and the node.
    pub failure: Failure,
    /// Milliseconds until the next attempt; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<u64>,
    /// Task of the error handler that runs in place of this task, which failed permanently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<TaskId>,
}

/// See [`EventKind::InterruptRaised`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterruptRaised {
    /// Stable id of the interrupt.
    pub interrupt: InterruptId,
    /// The task that raised the interrupt.
    pub task: TaskId,
    /// Node of the task.
    pub node: NodeName,
    /// Numbers of the enclosing tool calls, see [`Called::scope`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<u32>,
    /// Number of the call in its scope, from 0.
    pub call: u32,
    /// What a client shows to a person.
    pub payload: Value,
    /// JSON Schema of the answer; any answer is accepted if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// When the thread expires without an answer, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
    /// True if a fork repeats the interrupt together with its answer, so it is not pending.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answered: bool,
    /// State with which a tool call continues after an elicitation. Internal, see [`Event::shown`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicited: Option<Box<Elicited>>,
}

/// See [`EventKind::Answered`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// Id of the interrupt.
    pub interrupt: InterruptId,
    /// The task that raised the interrupt.
    pub task: TaskId,
    /// The answer.
    pub answer: Value,
    /// The party that answered, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// See [`EventKind::Checkpointed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpointed {
    /// Number of the checkpoint in the thread.
    pub checkpoint: CheckpointId,
    /// Number of the superstep that runs next, from 0.
    pub step: u32,
    /// How the checkpoint was created.
    pub source: CheckpointSource,
    /// Channels that the checkpoint wrote.
    pub changed: Vec<ChannelName>,
    /// Nodes that run next.
    pub next: Vec<NodeName>,
    /// Cases of branches that the superstep or the edit took, in the order of the branches. Empty
    /// in events of older hosts, and of the checkpoint of the root graph with which a fork begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<TakenCase>,
    /// The party that edited the state, if an edit created the checkpoint and the party is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

impl From<&CheckpointMeta> for Checkpointed {
    fn from(meta: &CheckpointMeta) -> Self {
        Self {
            checkpoint: meta.id,
            step: meta.step,
            source: meta.source,
            changed: meta.written_channels().cloned().collect(),
            next: meta.next.iter().map(|trigger| trigger.node.clone()).collect(),
            taken: Vec::new(),
            principal: None,
        }
    }
}

impl From<&Checkpoint> for Checkpointed {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self { taken: checkpoint.taken.clone(), ..Self::from(&checkpoint.meta) }
    }
}

/// See [`EventKind::Reopened`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reopened {
    /// The checkpoint to which the thread returned.
    pub to: CheckpointId,
    /// Interrupts that are pending again.
    pub interrupts: Vec<InterruptId>,
    /// Tasks whose results are discarded, because their subgraphs raised these interrupts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskId>,
    /// Failure of the resumed run. This event removes the answers of that run. `None` if the event
    /// does not record the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// See [`EventKind::Forked`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    /// The checkpoint at which the fork starts.
    pub from: CheckpointId,
    /// The host call whose result was replaced, if the fork starts inside of a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<ForkedCall>,
    /// The party that forked the thread, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// A host call whose result a fork replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForkedCall {
    /// Id of the task before the fork.
    pub task: TaskId,
    /// Numbers of the enclosing tool calls, see [`Called::scope`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<u32>,
    /// Number of the call in its scope, from 0.
    pub call: u32,
    /// Sequence number of the replaced journal entry.
    pub seq: u64,
}

/// See [`EventKind::Migrated`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migrated {
    /// Digest of the graph and components to which the thread was pinned.
    pub from: Digest,
    /// Digest of the graph and components to which the thread is pinned now.
    pub to: Digest,
    /// The party that migrated the thread, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// See [`EventKind::Settled`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// The task.
    pub task: TaskId,
    /// Numbers of the enclosing tool calls, see [`Called::scope`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<u32>,
    /// Number of the call in its scope, from 0.
    pub call: u32,
    /// The decision.
    pub decision: Decision,
    /// `policy`, or a name that the client gave. The host does not verify the name.
    pub by: String,
    /// The party that decided, as authenticated by the host; `None` for a policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// The decision about a call in doubt, which may have taken effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Decision {
    /// The call is executed again.
    Retry,
    /// The call took effect and returned this output.
    Answer {
        /// Output of the call.
        answer: Value,
    },
    /// The call counts as failed.
    Fail,
}

/// See [`EventKind::Custom`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Custom {
    /// The task.
    pub task: TaskId,
    /// Node of the task.
    pub node: NodeName,
    /// Name of the event, chosen by the guest.
    pub name: String,
    /// Payload of the event, chosen by the guest.
    pub data: Value,
}

/// See [`EventKind::Progress`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The task.
    pub task: TaskId,
    /// Node of the task.
    pub node: NodeName,
    /// Description of the progress in one sentence.
    pub message: String,
    /// Completed fraction, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
}

/// See [`EventKind::Log`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Log {
    /// The task.
    pub task: TaskId,
    /// Node of the task.
    pub node: NodeName,
    /// `trace`, `debug`, `info`, `warn`, `error`, `stdout` or `stderr`.
    pub level: String,
    /// Text of the message.
    pub message: String,
    /// Structured fields of the message.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub fields: Value,
}

#[cfg(test)]
mod tests;
