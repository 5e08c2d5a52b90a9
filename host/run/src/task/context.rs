//! Context of a task: its run, its superstep, its logged history, and the interface to subgraphs.

use std::collections::BTreeMap;
use std::ops::Deref;
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
use wattle_graph::json_text::JsonWithText;
use wattle_graph::plan::{Task, TaskInput};

use crate::app::{App, GraphVersion};
use crate::caller_id::CallerId;
use crate::driver::{LoopExit, RootSuperstep};
use crate::gate::Journal;
use crate::gate::unwind::GuestError;
use crate::log::ThreadLog;
use crate::ports::Ports;
use crate::ports::store::{RunOptions, ThreadRecord};
use crate::quota::Quotas;
use crate::result_reuse::ReusableResults;
use crate::run_memory::RunMemory;
use crate::schemas::SchemaCache;
use crate::stop_flag::StopFlag;
use crate::task::node_result::NodeResult;
use crate::task::outcome_bytes::OutcomeBytes;
use crate::task::task_count::TaskCount;
use crate::task::task_heartbeat::TaskHeartbeat;

/// Context of one graph in a run: what is the same in all of its supersteps.
#[derive(Clone)]
pub(crate) struct GraphContext {
    pub app: Arc<App>,
    pub graph_version: Arc<GraphVersion>,
    /// Parent graph; `None` for the root graph.
    pub parent_graph: Option<Arc<GraphVersion>>,
    pub log: Arc<ThreadLog>,
    pub record: Arc<ThreadRecord>,
    /// Run context of the graph: that of the call that started this graph or a graph around it, if
    /// the call gave one, or else that of the run.
    pub run_context: Arc<JsonWithText>,
    pub run: RunId,
    /// The caller that the run counts for.
    pub caller: CallerId,
    pub options: Arc<RunOptions>,
    pub ports: Arc<Ports>,
    pub quotas: Arc<Quotas>,
    pub schemas: Arc<SchemaCache>,
    pub cancel: StopFlag,
    /// Signal to drain: stop before the next superstep.
    pub drain: StopFlag,
    /// Signal to hand the run over: stop before the next superstep without ending the run.
    pub handover: StopFlag,
    /// Counter of the run's tasks, in all of its graphs.
    pub tasks: Arc<TaskCount>,
    /// Memory of the run, for all of its graphs.
    pub memory: RunMemory,
    /// Current checkpoints of the parent graphs.
    pub parents: Arc<BTreeMap<Namespace, CheckpointId>>,
    pub reusable_results: Arc<ReusableResults>,
    /// State of the root graph's current superstep.
    pub root_superstep: Arc<RootSuperstep>,
    /// Heartbeat of the parent task. Heartbeats of this graph's tasks also count for the parent
    /// task.
    pub parent_heartbeat: Option<Arc<TaskHeartbeat>>,
    /// True if a guest started this graph, or a graph around it, and waits for it.
    pub is_awaited_by_guest: bool,
    /// The failure that this graph handles, if it runs as an error handler.
    pub error: Option<Arc<Value>>,
    /// Runs subgraphs.
    pub subgraph_runner: &'static dyn SubgraphRunner,
}

/// Context that the tasks of one superstep share.
pub(crate) struct StepContext {
    pub graph: Arc<GraphContext>,
    /// Supersteps that the recursion limit still allows.
    pub remaining_steps: u32,
    /// Counter of the outcomes of the superstep.
    pub outcomes: Arc<OutcomeBytes>,
    pub base: CheckpointId,
    /// Channel values of checkpoint `base`, which the tasks read.
    pub values: Values,
    /// Last checkpoint of each subgraph with `state = "own"`, as of checkpoint `base`.
    pub children: BTreeMap<Namespace, CheckpointId>,
}

impl Deref for StepContext {
    type Target = GraphContext;

    fn deref(&self) -> &GraphContext {
        &self.graph
    }
}

impl StepContext {
    /// Returns the input of a task.
    pub(crate) fn input_of(&self, task: &Task) -> TaskInput {
        task.input(&self.graph_version.graph, &self.values)
    }
}

/// Logged history of a task.
pub(crate) struct TaskHistory {
    pub journal: Arc<Journal>,
    pub interrupts: Arc<BTreeMap<InterruptId, Interrupt>>,
    /// Number of failed attempts since the last permanent failure.
    pub failed_attempts: u32,
}

/// Runs subgraphs. The trait keeps imports acyclic: the superstep loop runs tasks, and a task that
/// is a subgraph needs a superstep loop.
#[async_trait]
pub(crate) trait SubgraphRunner: Send + Sync {
    /// Runs the subgraph of a node as one attempt of its task. A retry continues where the previous
    /// attempt failed.
    async fn attempt(
        &self,
        context: &StepContext,
        task: &Task,
        node: &Node,
        graph: (&GraphName, SubgraphState),
        heartbeat: Arc<TaskHeartbeat>,
    ) -> Result<NodeResult, GuestError>;

    /// Runs a subgraph from its input, or continues it.
    ///
    /// # Errors
    ///
    /// [`GuestError`] if the subgraph cannot start.
    async fn run(
        &self,
        context: &StepContext,
        nested: SubgraphCall,
    ) -> Result<SubgraphResult, GuestError>;
}

/// A subgraph to run inside of a task.
pub(crate) struct SubgraphCall {
    /// The graph.
    pub graph_version: Arc<GraphVersion>,
    /// Namespace of the subgraph.
    pub namespace: Namespace,
    /// Persistence of its state between invocations.
    pub state: SubgraphState,
    /// Input: values of channels.
    pub input: Value,
    /// Run context of the subgraph.
    pub run_context: Arc<JsonWithText>,
    /// Parent graph, for which tasks may return outcomes; `None` if a call started the subgraph.
    pub parent_graph: Option<Arc<GraphVersion>>,
    /// Heartbeat of the parent task.
    pub parent_heartbeat: Option<Arc<TaskHeartbeat>>,
    /// True if a guest started the subgraph, or a graph around it, and waits for it.
    pub is_awaited_by_guest: bool,
    /// Sequence number of the first start of the parent task, or of the call that starts the
    /// subgraph; `None` if that was in this process.
    pub started_seq: Option<u64>,
    /// The failure that the subgraph handles, if it runs as an error handler.
    pub error: Option<Arc<Value>>,
}

/// Result of a subgraph.
pub(crate) struct SubgraphResult {
    /// Reason why its loop ended.
    pub end: LoopExit,
    /// Newest checkpoint of the subgraph.
    pub checkpoint: Checkpoint,
    /// True if that checkpoint is persisted.
    pub is_persisted: bool,
    /// Channel values after the input.
    pub initial_values: Values,
}

/// Returns the failure that a task handles, or that a parent graph of the task handles.
pub(crate) fn handled_failure(context: &GraphContext, task: &Task) -> Option<Arc<Value>> {
    let own = task.handles.as_deref().map(|failed| Arc::new(failure_json(failed)));
    own.or_else(|| context.error.clone())
}

/// Returns a failure as its error handler receives it.
pub(crate) fn failure_json(failed: &TaskFailed) -> Value {
    let Failure { code, message, details, .. } = &failed.failure;
    json!({
        "node": failed.node,
        "task": failed.task,
        "code": code,
        "message": message,
        "details": details,
    })
}
