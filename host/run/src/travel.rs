//! Requests and views of time travel: history, edits, forks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::checkpoint::Source;
use wattle_graph::event::Write;
use wattle_graph::failure::Failure;
use wattle_graph::id::{
    AppName, ChannelName, CheckpointId, Digest, GraphName, Namespace, NodeName, RunId, TaskId,
    ThreadId,
};
use wattle_graph::principal::Principal;
use wattle_graph::step::{Command, Edit};

use crate::hostcall::runs::OpenQuestion;
use crate::ports::store::RunOptions;

/// Which points of a thread to list; newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryQuery {
    /// Of this nested graph; of the thread's own without it.
    pub namespace: Namespace,
    /// Only older than this checkpoint.
    pub before: Option<CheckpointId>,
    /// All of these must be equal: `source`, `step`, `run`, or keys of the metadata. Keys are data:
    /// one that nothing has matches nothing.
    pub filter: BTreeMap<String, Value>,
    /// At most so many; all without it.
    pub limit: Option<usize>,
}

/// A thread, or a graph nested in it, at one of its checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateView {
    /// The thread.
    pub thread: ThreadId,
    /// The nested graph; the thread's own if empty.
    pub namespace: Namespace,
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// The checkpoint before.
    pub parent: Option<CheckpointId>,
    /// Checkpoints of the graphs that this one is nested in.
    pub parents: BTreeMap<Namespace, CheckpointId>,
    /// How it came to be.
    pub source: Source,
    /// Superstep that runs next from here.
    pub step: u32,
    /// The run that made it.
    pub run: RunId,
    /// Digest of the code that made it.
    pub version: Option<Digest>,
    /// When, milliseconds since 1970.
    pub at_ms: i64,
    /// Channel values.
    pub values: Value,
    /// Channels that it wrote.
    pub changed: Vec<ChannelName>,
    /// Nodes whose tasks or edits made it.
    pub writers: Vec<NodeName>,
    /// Nodes that run next.
    pub next: Vec<NodeName>,
    /// The tasks that run next, with what came of them so far.
    pub tasks: Vec<TaskView>,
    /// Open questions.
    pub interrupts: Vec<OpenQuestion>,
    /// The questions at which it stood still here: the open ones of where it stands, and in its past
    /// also those that were answered since.
    #[serde(default)]
    pub asked: Vec<OpenQuestion>,
    /// Free facts.
    pub metadata: BTreeMap<String, Value>,
}

/// A task that starts from a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskView {
    /// Its id.
    pub id: TaskId,
    /// Its node.
    pub node: NodeName,
    /// Which of the node's tasks, from 0.
    pub index: u32,
    /// What it wrote, if it has finished.
    pub writes: Option<Vec<Write>>,
    /// Its last failure, if it has not.
    pub failure: Option<Failure>,
    /// Questions that it waits for.
    pub interrupts: Vec<OpenQuestion>,
    /// Those of [`StateView::asked`] that are its own, or of the graph that it runs.
    #[serde(default)]
    pub asked: Vec<OpenQuestion>,
    /// Where the states of the graph are that runs as this task, or that a call of it started: of
    /// several, the one that asked, or else the newest.
    pub namespace: Option<Namespace>,
    /// The newest checkpoint of that graph which this task led to, if it is stored.
    #[serde(default)]
    pub child: Option<CheckpointId>,
}

/// Changes to the state of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct EditThread {
    /// The thread; made if it is not there and `app` is given.
    pub thread: ThreadId,
    /// Only a thread of this app.
    pub app: Option<AppName>,
    /// The graph of a new thread; without it, the only one of the app.
    pub graph: Option<GraphName>,
    /// Only a thread of this tenant.
    pub tenant: Option<String>,
    /// The nested graph to change; the thread's own if empty.
    pub namespace: Namespace,
    /// The checkpoint to change; where the thread stands without it. An earlier one forks, which a
    /// nested graph cannot.
    pub checkpoint: Option<CheckpointId>,
    /// The edits: each list is one superstep. All of them are made, or none.
    pub supersteps: Vec<Vec<Edit>>,
    /// Facts for the checkpoints that they make.
    pub metadata: BTreeMap<String, Value>,
    /// Who asks.
    pub principal: Option<Principal>,
}

/// Goes on from the past of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ForkThread {
    /// The thread.
    pub thread: ThreadId,
    /// The id of the run, which no other may have; a fresh one without it.
    pub run: Option<RunId>,
    /// From which point of it.
    pub from: ForkFrom,
    /// Where to go on.
    pub into: ForkInto,
    /// Only a thread of this app.
    pub app: Option<AppName>,
    /// Only a thread of this tenant.
    pub tenant: Option<String>,
    /// How the run runs, in place of what the graph says.
    pub options: RunOptions,
    /// Who asks.
    pub principal: Option<Principal>,
}

/// Where a fork begins.
#[derive(Clone, Debug, PartialEq)]
pub enum ForkFrom {
    /// At a checkpoint; its tasks run anew and its questions are asked again.
    Checkpoint {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// An input on top of its state, in place of what was to run there.
        input: Option<Value>,
    },
    /// At an input, with another one in its place.
    Input {
        /// The checkpoint that the input made.
        checkpoint: CheckpointId,
        /// The input in its place.
        input: Value,
    },
    /// At a host call, with another answer. What was done before it counts as done.
    Call {
        /// The call.
        call: CallRef,
        /// The answer that it gets.
        result: Result<Value, Failure>,
    },
}

/// Goes on where a thread stands, or from its past, with more than what is to run there.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandThread {
    /// The thread.
    pub thread: ThreadId,
    /// The id of the run, which no other may have; a fresh one without it.
    pub run: Option<RunId>,
    /// Only a thread of this app; a blank thread becomes one of it.
    pub app: AppName,
    /// The graph of a blank thread; without it, the only one of the app.
    pub graph: Option<GraphName>,
    /// Only a thread of this tenant.
    pub tenant: Option<String>,
    /// The checkpoint to go on from; where the thread stands without it. What was pending at an
    /// earlier one runs anew.
    pub checkpoint: Option<CheckpointId>,
    /// What is written and runs beside what is to run there.
    pub command: Command,
    /// Answers to questions that are open where the thread stands, by interrupt id.
    pub answers: BTreeMap<String, Value>,
    /// Handed to every node; as it is set already if `null`.
    pub context: Value,
    /// Facts that are added to those of the thread.
    pub metadata: BTreeMap<String, Value>,
    /// How the run runs, in place of what the graph says.
    pub options: RunOptions,
    /// Who asks.
    pub principal: Option<Principal>,
}

/// A host call in the log of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallRef {
    /// By the sequence number of its journal entry.
    Entry(u64),
    /// By its place; the newest entry of it.
    Place {
        /// The task.
        task: TaskId,
        /// Which calls of the task it is inside of.
        scope: Vec<u32>,
        /// Its number.
        call: u32,
    },
}

/// Where a fork goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ForkInto {
    /// In the thread itself, which stands at the fork from then on. Its past stays readable.
    #[default]
    Same,
    /// In a copy of the thread, which itself is not touched.
    New {
        /// The id of the copy; a fresh one without it.
        thread: Option<ThreadId>,
    },
}
