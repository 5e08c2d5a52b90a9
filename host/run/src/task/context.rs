//! What a task is given: the run that it is part of, what was logged of it before, and the loop that
//! runs graphs inside of it.

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
use wattle_graph::interrupt::Question;
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

/// Everything a task needs of its run.
#[derive(Clone)]
pub(crate) struct RunContext {
    pub app: Arc<App>,
    pub pack: Arc<GraphPack>,
    /// The graph that this one runs in as a node; `None` for the root.
    pub above: Option<Arc<GraphPack>>,
    pub log: Arc<ThreadLog>,
    pub record: Arc<ThreadRecord>,
    pub run: RunId,
    pub options: Arc<RunOptions>,
    pub ports: Ports,
    pub quotas: Arc<Quotas>,
    pub cancel: Cancel,
    /// Set when the run is to stand still between two supersteps.
    pub drain: Cancel,
    /// Set when it is to stop there and to be handed over.
    pub halt: Cancel,
    pub remaining_steps: u32,
    /// Tasks of the run, in all of its graphs.
    pub tasks: Arc<TaskCount>,
    pub base: CheckpointId,
    /// Where nested graphs ended that remember, at `base`.
    pub children: Arc<BTreeMap<Namespace, CheckpointId>>,
    /// Checkpoints of the graphs that this one is nested in.
    pub parents: Arc<BTreeMap<Namespace, CheckpointId>>,
    pub salvage: Arc<Salvage>,
    /// What is known of the root graph's superstep from before.
    pub past: Arc<Past>,
    /// The task that this graph runs as, which lives as long as its tasks show that they do.
    pub alive: Option<Arc<Alive>>,
    /// What failed, if this graph runs in the place of a node that did.
    pub error: Option<Arc<Value>>,
    /// Runs graphs inside of tasks.
    pub subgraphs: &'static dyn Subgraphs,
}

/// What was logged of a task before.
pub(crate) struct History {
    pub journal: Arc<Journal>,
    pub questions: Arc<BTreeMap<InterruptId, Question>>,
    /// Attempts that have failed.
    pub failed_attempts: u32,
}

/// Runs graphs inside of tasks. A task knows no more of the loop that it is part of, so that
/// imports go one way: the loop runs tasks, and a task asks for a loop of its own.
#[async_trait]
pub(crate) trait Subgraphs: Send + Sync {
    /// Runs the graph that a node is, as one attempt of its task. A further attempt goes on where
    /// the one before failed.
    async fn attempt(
        &self,
        context: &RunContext,
        task: &Task,
        node: &Node,
        graph: (&GraphName, SubgraphState),
        alive: Arc<Alive>,
    ) -> Result<Done, Ended>;

    /// Runs a nested graph from its input, or from where it stands.
    ///
    /// # Errors
    ///
    /// [`Ended`] if it could not even begin.
    async fn run(&self, context: &RunContext, nested: Nested) -> Result<Ran, Ended>;
}

/// A graph to run inside of a task.
pub(crate) struct Nested {
    /// The graph.
    pub pack: Arc<GraphPack>,
    /// Where.
    pub namespace: Namespace,
    /// What it remembers.
    pub state: SubgraphState,
    /// Channel values.
    pub input: Value,
    /// The graph that its tasks may have outcomes for; `None` if a call started it.
    pub above: Option<Arc<GraphPack>>,
    /// The task, which shows that it lives as long as tasks of the graph do.
    pub alive: Option<Arc<Alive>>,
    /// The place in the log at which the task, or the call that starts it, was begun first; `None`
    /// if that was in this process.
    pub begun: Option<u64>,
    /// What failed, if the graph runs in the place of a node that did.
    pub error: Option<Arc<Value>>,
}

/// How a nested graph ended.
pub(crate) struct Ran {
    /// How.
    pub end: End,
    /// Its newest checkpoint.
    pub checkpoint: Checkpoint,
    /// Whether that is stored.
    pub is_kept: bool,
    /// The values that it began with.
    pub began: Values,
}

/// What failed, if a task runs in its place, or a graph does that the task is in.
pub(crate) fn handled(context: &RunContext, task: &Task) -> Option<Arc<Value>> {
    let own = task.handles.as_deref().map(|failed| Arc::new(shown(failed)));
    own.or_else(|| context.error.clone())
}

/// What failed, as its handler sees it.
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
