//! Subgraphs: graphs that run inside of a task.
//!
//! A subgraph has its own superstep loop, state and namespace. Its events are in the thread's log,
//! under the checkpoint of the root graph. After a crash or an interrupt, the subgraph is therefore
//! restored from the events since that checkpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;
use wattle_graph::checkpoint::{Checkpoint, Values};
use wattle_graph::definition::SubgraphState;
use wattle_graph::event::SubgraphEnd;
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::Node;
use wattle_graph::id::{ChannelName, CheckpointId, END, GraphName, InterruptId};
use wattle_graph::lineage::Lineage;
use wattle_graph::plan::Task;
use wattle_graph::step::{ParentOutcome, StepError, accept_input, input_reductions};

use super::loop_state::{LoopState, SubgraphLock, THIS_PROCESS_SEQ};
use super::superstep_loop::{SuperstepLoop, checkpoint_stamp};
use super::{LoopExit, reduce, subgraph_io};
use crate::blocking::{block_in_place_in_turn, is_long_input};
use crate::gate::unwind::Unwind;
use crate::limit;
use crate::ports::sandbox::{GuestError, NodeOutcome};
use crate::ports::store::{Durability, StoreError};
use crate::task::context::{
    GraphContext, StepContext, SubgraphCall, SubgraphResult, SubgraphRunner, handled_failure,
};
use crate::task::node_result::NodeResult;
use crate::task::task_heartbeat::TaskHeartbeat;
use crate::view::SubgraphLog;

/// Results of plugin reducers for an input, by channel.
type ReducedChannels = BTreeMap<ChannelName, Value>;

/// Runs subgraphs inside of tasks.
pub(crate) struct SubgraphDriver;

#[async_trait]
impl SubgraphRunner for SubgraphDriver {
    async fn attempt(
        &self,
        context: &StepContext,
        task: &Task,
        node: &Node,
        graph: (&GraphName, SubgraphState),
        heartbeat: Arc<TaskHeartbeat>,
    ) -> Result<NodeResult, GuestError> {
        attempt(context, task, node, graph, heartbeat).await
    }

    async fn run(
        &self,
        context: &StepContext,
        nested: SubgraphCall,
    ) -> Result<SubgraphResult, GuestError> {
        run_subgraph(context, nested).await
    }
}

/// Runs the subgraph of a node as one attempt of its task. A retry continues where the previous
/// attempt failed.
async fn attempt(
    context: &StepContext,
    task: &Task,
    node: &Node,
    (name, state): (&GraphName, SubgraphState),
    heartbeat: Arc<TaskHeartbeat>,
) -> Result<NodeResult, GuestError> {
    let graph_version = context.app.graphs.get(name).cloned().ok_or_else(|| {
        GuestError::Host(Failure::internal(format!("graph `{name}` of the app is not loaded")))
    })?;
    let around = context.log.namespace();
    let namespace = match state {
        SubgraphState::Own => around.for_node(&node.name),
        SubgraphState::Inherit | SubgraphState::None => around.for_task(&node.name, &task.id),
    };
    if state == SubgraphState::Own && task.follows_same_node {
        return Err(GuestError::Failure(concurrent_own_state(node)));
    }
    let nested = SubgraphCall {
        input: subgraph_io::subgraph_input(
            &context.graph_version.graph,
            &graph_version.graph,
            context.input_of(task).to_value(),
        ),
        graph_version: graph_version.clone(),
        namespace: namespace.clone(),
        state,
        run_context: context.run_context.clone(),
        parent_graph: Some(context.graph_version.clone()),
        parent_heartbeat: Some(heartbeat),
        is_awaited_by_guest: context.is_awaited_by_guest,
        started_seq: context.root_superstep.started_seq(&task.id),
        error: handled_failure(context, task),
    };
    let ran = run_subgraph(context, nested).await?;
    let subgraph_end = Some(SubgraphEnd {
        namespace,
        checkpoint: ran.is_persisted.then_some(ran.checkpoint.meta.id),
        persists: state == SubgraphState::Own,
    });
    let outcome = match ran.end {
        LoopExit::Completed => NodeOutcome {
            writes: subgraph_io::subgraph_writes(
                &context.graph_version.graph,
                &graph_version.graph,
                &ran.initial_values,
                &ran.checkpoint.values,
            ),
            ..NodeOutcome::default()
        },
        LoopExit::ParentOutcome(outcome) => into_node_outcome(outcome),
        // The interrupt, if there is one, is in the log. This id only names the suspended task.
        LoopExit::Interrupted => {
            return Err(GuestError::Unwound(Unwind::Suspended(InterruptId::derive(
                &task.id,
                &[],
                0,
            ))));
        }
        LoopExit::Failed(failure) => return Err(GuestError::Failure(failure)),
        LoopExit::Cancelled => return Err(GuestError::Unwound(Unwind::Cancelled)),
        LoopExit::Drained => return Err(GuestError::Unwound(Unwind::Drained)),
        LoopExit::LogLost(failure) => return Err(GuestError::Unwound(Unwind::LogLost(failure))),
    };
    Ok(NodeResult { outcome, subgraph_end })
}

fn into_node_outcome(outcome: ParentOutcome) -> NodeOutcome {
    let goto = match outcome.goto {
        None => Vec::new(),
        Some(targets) if targets.is_empty() => vec![END.to_owned()],
        Some(targets) => targets.into_iter().map(String::from).collect(),
    };
    NodeOutcome { writes: outcome.writes, goto, sends: outcome.sends, ..NodeOutcome::default() }
}

/// Runs a subgraph from its input, or continues it.
///
/// # Errors
///
/// [`GuestError`] if the subgraph cannot start.
async fn run_subgraph(
    context: &StepContext,
    nested: SubgraphCall,
) -> Result<SubgraphResult, GuestError> {
    if nested.namespace.depth() > limit::GRAPH_DEPTH {
        return Err(GuestError::Failure(too_deep(&nested.graph_version.graph.name)));
    }
    let persists_checkpoints = match nested.state {
        SubgraphState::Own => true,
        SubgraphState::None => false,
        // A run that persists only its last checkpoint persists no checkpoint of a subgraph that
        // has ended before. A subgraph that another run started keeps its mode.
        SubgraphState::Inherit => {
            let known = context.root_superstep.persists_checkpoints(&nested.namespace);
            known.unwrap_or(context.options.durability != Durability::Exit)
        }
    };
    let inside = Arc::new(subgraph_context(context, &nested));
    let lock = Arc::new(context.root_superstep.lock(&nested.namespace).lock_owned().await);
    let start = SubgraphStart {
        parent_context: context,
        context: &inside,
        call: &nested,
        persists_checkpoints,
    };
    let StartState { state, initial_values } = start.resolve_start().await?;
    let superstep_loop =
        SuperstepLoop::for_subgraph(inside, state, persists_checkpoints, lock.clone());
    // Spawned as a tokio task, so that many levels of subgraphs do not share one stack.
    let work =
        tokio::spawn(SaveStateOnDrop { superstep_loop: Some(superstep_loop), _lock: lock }.run());
    let ended = AbortOnDropHandle::new(work).await;
    let (end, checkpoint) = ended
        .map_err(|error| format!("subgraph task failed: {error}"))
        .and_then(|ended| ended.ok_or_else(|| "the subgraph has no loop state".to_owned()))
        .map_err(|text| GuestError::Unwound(Unwind::LogLost(Failure::internal(text))))?;
    Ok(SubgraphResult { end, checkpoint, is_persisted: persists_checkpoints, initial_values })
}

/// Returns the context of a subgraph. `context` is the context of the parent task.
fn subgraph_context(context: &StepContext, nested: &SubgraphCall) -> GraphContext {
    let mut parents = context.parents.as_ref().clone();
    parents.insert(context.log.namespace().clone(), context.base);
    GraphContext {
        graph_version: nested.graph_version.clone(),
        parent_graph: nested.parent_graph.clone(),
        log: Arc::new(context.log.for_namespace(nested.namespace.clone())),
        run_context: nested.run_context.clone(),
        parents: Arc::new(parents),
        parent_heartbeat: nested.parent_heartbeat.clone(),
        is_awaited_by_guest: nested.is_awaited_by_guest,
        error: nested.error.clone(),
        ..context.graph.as_ref().clone()
    }
}

/// A subgraph that is about to run.
struct SubgraphStart<'a> {
    parent_context: &'a StepContext,
    context: &'a GraphContext,
    call: &'a SubgraphCall,
    persists_checkpoints: bool,
}

/// Position from which a subgraph starts or continues.
struct StartState {
    state: LoopState,
    initial_values: Values,
}

impl SubgraphStart<'_> {
    async fn resolve_start(&self) -> Result<StartState, GuestError> {
        let root_superstep = &self.parent_context.root_superstep;
        let base = self.previous_invocation_end().await?;
        let subgraph_log = root_superstep.subgraph(&self.call.namespace);
        // The first checkpoint follows from the input; its number does not matter.
        let first = match &subgraph_log {
            None if !root_superstep.has_state(&self.call.namespace) => None,
            _ => Some(self.input_checkpoint(base.as_ref(), CheckpointId(0)).await?),
        };
        // From here on nothing is awaited until a loop owns the state, because an attempt can be
        // aborted at any `await`.
        let saved = root_superstep.take_state(&self.call.namespace);
        let saved = saved.filter(|saved| self.is_current_invocation(&saved.lineage.checkpoint));
        // A subgraph without checkpoints logs nothing before its first task starts. The subgraph
        // starts with the parent task, or with the call that started the subgraph.
        let checkpoint_seq = self.call.started_seq.unwrap_or(THIS_PROCESS_SEQ);
        let state = match (saved, subgraph_log, &first) {
            (Some(mut saved), ..) => {
                self.context.tasks.add(saved.collect_finished_tasks());
                Some(saved)
            }
            (None, Some(subgraph_log), _) if self.persists_checkpoints => {
                self.load_state(subgraph_log).await?
            }
            (None, Some(subgraph_log), Some(first)) => {
                let lineage = Lineage::new(first.clone());
                Some(LoopState::from_events(lineage, checkpoint_seq, &subgraph_log.events))
            }
            (None, ..) => None,
        };
        if let (Some(mut state), Some(first)) = (state, first) {
            state.count_steps_from(&first);
            return Ok(StartState { state, initial_values: first.values });
        }
        let checkpoint = self.persist_input_checkpoint(base.as_ref()).await?;
        let initial_values = checkpoint.values.clone();
        let state = LoopState::new(Lineage::new(checkpoint), checkpoint_seq);
        Ok(StartState { state, initial_values })
    }

    /// Returns true if a checkpoint belongs to this invocation and not to an earlier one.
    fn is_current_invocation(&self, checkpoint: &Checkpoint) -> bool {
        checkpoint.meta.parent_graphs == *self.context.parents
    }

    /// Returns the last checkpoint of the previous invocation, for a subgraph with `state = "own"`.
    async fn previous_invocation_end(&self) -> Result<Option<Checkpoint>, GuestError> {
        if self.call.state != SubgraphState::Own {
            return Ok(None);
        }
        let Some(id) = self.parent_context.children.get(&self.call.namespace) else {
            return Ok(None);
        };
        // The store reads only durable checkpoints.
        self.context.log.wait_durable().await.map_err(log_lost)?;
        self.load_checkpoint(*id).await
    }

    async fn load_checkpoint(&self, id: CheckpointId) -> Result<Option<Checkpoint>, GuestError> {
        let (states, thread) = (self.context.log.states(), &self.context.record.id);
        let tuple = states.checkpoint(thread, &self.call.namespace, id).await;
        Ok(tuple.map_err(log_lost)?.map(|tuple| tuple.checkpoint))
    }

    /// Reads the logged position of the subgraph; `None` if it is the position of another
    /// invocation.
    async fn load_state(&self, subgraph_log: SubgraphLog) -> Result<Option<LoopState>, GuestError> {
        let Some(at) = subgraph_log.checkpoint else { return Ok(None) };
        let Some(checkpoint) = self.load_checkpoint(at).await? else { return Ok(None) };
        if !self.is_current_invocation(&checkpoint) {
            return Ok(None);
        }
        let mut lineage = Lineage::new(checkpoint);
        subgraph_log.events.iter().for_each(|event| lineage.apply(event));
        Ok(Some(LoopState::new(lineage, subgraph_log.checkpoint_seq())))
    }

    /// Creates the checkpoint of the input, with the number `id`.
    async fn input_checkpoint(
        &self,
        base: Option<&Checkpoint>,
        id: CheckpointId,
    ) -> Result<Checkpoint, GuestError> {
        let reduced = self.reduce_input(base).await?;
        let made = self.make_input_checkpoint(base, &reduced, id).await;
        made.map_err(|error| GuestError::Failure(error.to_failure()))
    }

    /// Creates the checkpoint of the input, and persists it if the subgraph persists its
    /// checkpoints.
    async fn persist_input_checkpoint(
        &self,
        base: Option<&Checkpoint>,
    ) -> Result<Checkpoint, GuestError> {
        if !self.persists_checkpoints {
            return self.input_checkpoint(base, CheckpointId(0)).await;
        }
        let reduced = self.reduce_input(base).await?;
        let made =
            self.context.log.checkpoint(|id| self.make_input_checkpoint(base, &reduced, id)).await;
        made.map_err(|error| GuestError::Failure(error.to_failure()))
    }

    async fn reduce_input(&self, base: Option<&Checkpoint>) -> Result<ReducedChannels, GuestError> {
        let reductions = input_reductions(&self.call.graph_version.graph, base, &self.call.input);
        reduce(&self.context.app, reductions).await.map_err(GuestError::Failure)
    }

    async fn make_input_checkpoint(
        &self,
        base: Option<&Checkpoint>,
        reduced: &ReducedChannels,
        id: CheckpointId,
    ) -> Result<Checkpoint, StepError> {
        let SubgraphCall { graph_version, namespace, input, .. } = self.call;
        let (graph, caller) = (&graph_version.graph, self.context.caller);
        block_in_place_in_turn(caller, is_long_input(graph, base, input), || {
            let stamp = checkpoint_stamp(self.context, id);
            accept_input(graph, base, namespace, input, reduced, stamp)
        })
        .await
    }
}

/// The superstep loop of a subgraph. Its drop saves the state of the loop, from which a retry of
/// the parent task continues.
struct SaveStateOnDrop {
    superstep_loop: Option<SuperstepLoop>,
    /// A retry waits until this attempt has saved its state and all of its tasks have ended.
    _lock: SubgraphLock,
}

impl SaveStateOnDrop {
    async fn run(mut self) -> Option<(LoopExit, Checkpoint)> {
        let superstep_loop = self.superstep_loop.as_mut()?;
        let end = superstep_loop.run().await;
        Some((end, superstep_loop.lineage().checkpoint.clone()))
    }
}

impl Drop for SaveStateOnDrop {
    fn drop(&mut self) {
        if let Some(SuperstepLoop { context, state, .. }) = self.superstep_loop.take() {
            context.root_superstep.save_state(context.log.namespace().clone(), state);
        }
    }
}

fn log_lost(error: StoreError) -> GuestError {
    GuestError::Unwound(Unwind::LogLost(error.into()))
}

fn concurrent_own_state(node: &Node) -> Failure {
    Failure::new(
        code::INVALID,
        format!(
            "node `{}` is a subgraph with a state of its own, and two of its tasks are triggered \
             in one superstep; send to it once per superstep, or remove `state = \"own\"`",
            node.name
        ),
    )
}

fn too_deep(graph: &GraphName) -> Failure {
    Failure::new(
        code::LIMIT,
        format!("graph `{graph}` would be nested more than {} levels deep", limit::GRAPH_DEPTH),
    )
    .with_details(json!({ "limit": "graph_depth", "allowed": limit::GRAPH_DEPTH }))
}
