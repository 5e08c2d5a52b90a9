//! Requests and views of time travel: history, edits, forks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::Write;
use wattle_graph::failure::Failure;
use wattle_graph::id::{
    AppName, ChannelName, CheckpointId, Digest, GraphName, Namespace, NodeName, RunId, TaskId,
    ThreadId,
};
use wattle_graph::principal::Principal;
use wattle_graph::step::Edit;

use crate::hostcall::runs::InterruptView;
use crate::ports::store::RunOptions;

/// A query of the checkpoints of a thread, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryQuery {
    /// Namespace of a subgraph; empty for the root graph.
    pub namespace: Namespace,
    /// Only checkpoints before this checkpoint.
    pub before: Option<CheckpointId>,
    /// Conditions that must all hold: `source`, `step`, `run` or a metadata key with the given
    /// value. An unknown key is not an error; it matches no checkpoint.
    pub filter: BTreeMap<String, Value>,
    /// Maximum number of checkpoints. Unlimited if `None`.
    pub limit: Option<usize>,
    /// True to leave out the channel values, which are then not read.
    pub without_states: bool,
}

/// The state of a thread, or of a subgraph, at one of its checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateView {
    /// The thread.
    pub thread: ThreadId,
    /// Namespace of the subgraph; empty for the root graph.
    pub namespace: Namespace,
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// The previous checkpoint.
    pub parent: Option<CheckpointId>,
    /// Checkpoints of the parent graphs, by namespace.
    pub parents: BTreeMap<Namespace, CheckpointId>,
    /// What made the checkpoint.
    pub source: CheckpointSource,
    /// Number of the superstep that runs next.
    pub step: u32,
    /// The run that made the checkpoint.
    pub run: RunId,
    /// Digest of the code that made the checkpoint.
    pub version: Option<Digest>,
    /// Time of the checkpoint, milliseconds since 1970.
    pub at_ms: i64,
    /// Channel values; `null` in a history without states.
    pub values: Value,
    /// Channels that the checkpoint changed.
    pub changed: Vec<ChannelName>,
    /// Nodes whose tasks or edits made the checkpoint.
    pub writers: Vec<NodeName>,
    /// Nodes that run next.
    pub next: Vec<NodeName>,
    /// The tasks that run next, with their results so far.
    pub tasks: Vec<TaskView>,
    /// Pending interrupts.
    pub interrupts: Vec<InterruptView>,
    /// The interrupts at which the thread stopped at this checkpoint: for the current checkpoint
    /// the pending interrupts, for an earlier checkpoint also the interrupts that were answered
    /// since.
    #[serde(default)]
    pub asked: Vec<InterruptView>,
    /// Metadata of the checkpoint.
    pub metadata: BTreeMap<String, Value>,
}

/// A task that starts from a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskView {
    /// Id of the task.
    pub id: TaskId,
    /// Node of the task.
    pub node: NodeName,
    /// Index among the tasks of the node, from 0.
    pub index: u32,
    /// Writes of the task, if it has finished.
    pub writes: Option<Vec<Write>>,
    /// Last failure of the task, if it has not finished.
    pub failure: Option<Failure>,
    /// Pending interrupts of the task.
    pub interrupts: Vec<InterruptView>,
    /// The interrupts of [`StateView::asked`] that the task or its subgraph raised.
    #[serde(default)]
    pub asked: Vec<InterruptView>,
    /// Namespace of the subgraph that runs as this task, or that a call of the task started. If
    /// there are several subgraphs, the interrupted one, or else the newest.
    pub namespace: Option<Namespace>,
    /// Newest checkpoint that this task led to in that subgraph, if the checkpoint was persisted.
    #[serde(default)]
    pub child: Option<CheckpointId>,
}

/// A request to edit the state of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct EditThread {
    /// The thread. Created if it does not exist and `app` is given.
    pub thread: ThreadId,
    /// If set, the thread must belong to this app.
    pub app: Option<AppName>,
    /// The graph of a new thread. Default: the only graph of the app.
    pub graph: Option<GraphName>,
    /// If set, the thread must belong to this tenant.
    pub tenant: Option<String>,
    /// Namespace of the subgraph to edit; empty for the root graph.
    pub namespace: Namespace,
    /// The checkpoint to edit. Default: the current checkpoint. An edit of an earlier checkpoint is
    /// a fork, which subgraphs do not support.
    pub checkpoint: Option<CheckpointId>,
    /// The edits. Each list is one superstep. Either all supersteps are applied or none.
    pub supersteps: Vec<Vec<Edit>>,
    /// Metadata for the new checkpoints.
    pub metadata: BTreeMap<String, Value>,
    /// Who sent the request.
    pub principal: Option<Principal>,
}

/// A request to continue from the past of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ForkThread {
    /// The thread.
    pub thread: ThreadId,
    /// Id of the new run, which no other run may have. Default: a new id.
    pub run: Option<RunId>,
    /// The point at which the fork begins.
    pub from: ForkFrom,
    /// Whether the fork continues in the thread or in a copy.
    pub into: ForkInto,
    /// If set, the thread must belong to this app.
    pub app: Option<AppName>,
    /// If set, the thread must belong to this tenant.
    pub tenant: Option<String>,
    /// Options of the run, in place of the settings of the graph.
    pub options: RunOptions,
    /// Who sent the request.
    pub principal: Option<Principal>,
}

/// The point at which a fork begins.
#[derive(Clone, Debug, PartialEq)]
pub enum ForkFrom {
    /// At a checkpoint. Its tasks run again, and their interrupts are raised again.
    Checkpoint {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// Input that is applied to the state of the checkpoint. The input replaces the tasks that
        /// would run at the checkpoint.
        input: Option<Value>,
    },
    /// At an earlier input. The fork applies another input in its place.
    Input {
        /// The checkpoint that the earlier input created.
        checkpoint: CheckpointId,
        /// The new input.
        input: Value,
    },
    /// At a host call, whose result is overridden. Work before the call is not repeated.
    Call {
        /// The call.
        call: CallRef,
        /// The overridden result.
        result: Result<Value, Failure>,
    },
}

/// A host call in the log of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallRef {
    /// By the sequence number of its journal entry.
    Seq(u64),
    /// By its call path. Refers to the newest entry.
    Path {
        /// The task.
        task: TaskId,
        /// Call numbers of the tool calls that contain the call, outermost first.
        scope: Vec<u32>,
        /// Call number within the scope.
        call: u32,
    },
}

/// Where a fork continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ForkInto {
    /// In the thread itself, whose current checkpoint is the fork from then on. Its past stays
    /// readable.
    #[default]
    InPlace,
    /// In a copy of the thread. The thread itself does not change.
    Copy {
        /// Id of the copy. Default: a new id.
        thread: Option<ThreadId>,
    },
}
