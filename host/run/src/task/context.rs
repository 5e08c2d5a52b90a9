//! Context of a task: its run, its logged history, and the interface to subgraphs.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use wattle_graph::checkpoint::{Checkpoint, Values};
use wattle_graph::definition::SubgraphState;
use wattle_graph::event::TaskFailed;
use wattle_graph::failure::Failure;
use wattle_graph::graph::Node;
use wattle_graph::id::{CheckpointId, GraphName, InterruptId, Namespace, RunId};
use wattle_graph::interrupt::Interrupt;
use wattle_graph::plan::Task;

use crate::app::{App, GraphPack};
use crate::cancel::Cancel;
use crate::driver::{End, Past};
use crate::gate::Journal;
use crate::gate::unwind::Ended;
use crate::log::ThreadLog;
use crate::ports::Ports;
use crate::ports::store::{RunOptions, ThreadRecord};
use crate::quota::Quotas;
use crate::salvage::Salvage;
use crate::task::count::TaskCount;
use crate::task::done::Done;
use crate::task::idle::Alive;

/// Context of the tasks of one graph in a run.
#[derive(Clone)]
pub(crate) struct RunContext {
    pub app: Arc<App>,
    pub pack: Arc<GraphPack>,
    /// Parent graph; `None` for the root graph.
    pub above: Option<Arc<GraphPack>>,
    pub log: Arc<ThreadLog>,
    pub record: Arc<ThreadRecord>,
    pub run: RunId,
    pub options: Arc<RunOptions>,
    pub ports: Ports,
    pub quotas: Arc<Quotas>,
    pub cancel: Cancel,
    /// Signal to drain: stop before the next superstep.
    pub drain: Cancel,
    /// Signal to hand the run over: stop before the next superstep without ending it.
    pub halt: Cancel,
    pub remaining_steps: u32,
    /// Counter of the run's tasks, in all of its graphs.
    pub tasks: Arc<TaskCount>,
    pub base: CheckpointId,
    /// Last checkpoint of each subgraph with `state = "own"`, as of checkpoint `base`.
    pub children: Arc<BTreeMap<Namespace, CheckpointId>>,
    /// Current checkpoints of the parent graphs.
    pub parents: Arc<BTreeMap<Namespace, CheckpointId>>,
    pub salvage: Arc<Salvage>,
    /// State of the root graph's current superstep.
    pub past: Arc<Past>,
    /// Heartbeat of the parent task. Heartbeats of this graph's tasks count for it.
    pub alive: Option<Arc<Alive>>,
    /// The failure that this graph handles, if it runs as an error handler.
    pub error: Option<Arc<Value>>,
    /// Runs subgraphs.
    pub subgraphs: &'static dyn Subgraphs,
}

/// Logged history of a task.
pub(crate) struct History {
    pub journal: Arc<Journal>,
    pub questions: Arc<BTreeMap<InterruptId, Interrupt>>,
    /// Number of failed attempts since the last permanent failure.
    pub failed_attempts: u32,
}

/// Runs subgraphs. The trait keeps imports acyclic: the superstep loop runs tasks, and a task that
/// is a subgraph needs a superstep loop.
#[async_trait]
pub(crate) trait Subgraphs: Send + Sync {
    /// Runs the subgraph of a node as one attempt of its task. A retry continues where the previous
    /// attempt failed.
    async fn attempt(
        &self,
        context: &RunContext,
        task: &Task,
        node: &Node,
        graph: (&GraphName, SubgraphState),
        alive: Arc<Alive>,
    ) -> Result<Done, Ended>;

    /// Runs a subgraph from its input, or continues it.
    ///
    /// # Errors
    ///
    /// [`Ended`] if the subgraph cannot start.
    async fn run(&self, context: &RunContext, nested: Nested) -> Result<Ran, Ended>;
}

/// A subgraph to run inside of a task.
pub(crate) struct Nested {
    /// The graph.
    pub pack: Arc<GraphPack>,
    /// Namespace of the subgraph.
    pub namespace: Namespace,
    /// Persistence of its state between invocations.
    pub state: SubgraphState,
    /// Input: values of channels.
    pub input: Value,
    /// Parent graph, for which tasks may return outcomes; `None` if a call started the subgraph.
    pub above: Option<Arc<GraphPack>>,
    /// Heartbeat of the parent task.
    pub alive: Option<Arc<Alive>>,
    /// Sequence number of the first start of the parent task, or of the call that starts the
    /// subgraph; `None` if that was in this process.
    pub begun: Option<u64>,
    /// The failure that the subgraph handles, if it runs as an error handler.
    pub error: Option<Arc<Value>>,
}

/// Result of a subgraph.
pub(crate) struct Ran {
    /// Reason why its loop ended.
    pub end: End,
    /// Newest checkpoint of the subgraph.
    pub checkpoint: Checkpoint,
    /// True if that checkpoint is persisted.
    pub is_kept: bool,
    /// Channel values after the input.
    pub began: Values,
}

/// Returns the failure that a task handles, or that a parent graph of the task handles.
pub(crate) fn handled(context: &RunContext, task: &Task) -> Option<Arc<Value>> {
    let own = task.handles.as_deref().map(|failed| Arc::new(shown(failed)));
    own.or_else(|| context.error.clone())
}

/// Returns a failure as its error handler receives it.
pub(crate) fn shown(failed: &TaskFailed) -> Value {
    let Failure { code, message, details, .. } = &failed.failure;
    json!({
        "node": failed.node,
        "task": failed.task,
        "code": code,
        "message": message,
        "details": details,
    })
}
