//! Subgraphs: graphs that run inside of a task.
//!
//! A subgraph has its own superstep loop, state and namespace. Its events are in the thread's log,
//! under the checkpoint of the root graph. After a crash or an interrupt it is therefore restored
//! from that checkpoint.

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

use super::stand::{HERE, Stand, Turn};
use super::walk::{Walk, position};
use super::{End, exchange, reduce};
use crate::bulk::{are_large, in_bulk};
use crate::gate::unwind::Unwind;
use crate::limit;
use crate::ports::sandbox::{Ended, NodeOutcome};
use crate::ports::store::{Durability, StoreError};
use crate::task::context::{Nested, Ran, RunContext, Subgraphs, handled};
use crate::task::done::Done;
use crate::task::idle::Alive;
use crate::view::Strand;

/// Results of plugin reducers for an input, by channel.
type Reduced = BTreeMap<ChannelName, Value>;

/// Runs subgraphs inside of tasks.
pub(crate) struct NestedLoop;

#[async_trait]
impl Subgraphs for NestedLoop {
    async fn attempt(
        &self,
        context: &RunContext,
        task: &Task,
        node: &Node,
        graph: (&GraphName, SubgraphState),
        alive: Arc<Alive>,
    ) -> Result<Done, Ended> {
        attempt(context, task, node, graph, alive).await
    }

    async fn run(&self, context: &RunContext, nested: Nested) -> Result<Ran, Ended> {
        run_nested(context, nested).await
    }
}

/// Runs the subgraph of a node as one attempt of its task. A retry continues where the previous
/// attempt failed.
async fn attempt(
    context: &RunContext,
    task: &Task,
    node: &Node,
    (name, state): (&GraphName, SubgraphState),
    alive: Arc<Alive>,
) -> Result<Done, Ended> {
    let pack = context.app.graphs.get(name).cloned().ok_or_else(|| {
        Ended::Host(Failure::internal(format!("graph `{name}` of the app is not loaded")))
    })?;
    let around = context.log.namespace();
    let namespace = match state {
        SubgraphState::Own => around.for_node(&node.name),
        SubgraphState::Inherit | SubgraphState::None => around.for_task(&node.name, &task.id),
    };
    if state == SubgraphState::Own && task.is_first_of_node {
        return Err(Ended::Failure(two_at_once(node)));
    }
    let nested = Nested {
        input: exchange::input(&context.pack.graph, &pack.graph, task.input.clone()),
        pack: pack.clone(),
        namespace: namespace.clone(),
        state,
        above: Some(context.pack.clone()),
        alive: Some(alive),
        begun: context.past.begun(&task.id),
        error: handled(context, task),
    };
    let ran = run_nested(context, nested).await?;
    let child = Some(SubgraphEnd {
        namespace,
        checkpoint: ran.is_kept.then_some(ran.checkpoint.meta.id),
        persists: state == SubgraphState::Own,
    });
    let outcome = match ran.end {
        End::Completed => NodeOutcome {
            writes: exchange::writes(
                &context.pack.graph,
                &pack.graph,
                &ran.began,
                &ran.checkpoint.values,
            ),
            ..NodeOutcome::default()
        },
        End::ToParent(outcome) => for_this_graph(outcome),
        // The interrupt, if there is one, is in the log. This id only names the suspended task.
        End::Interrupted => {
            return Err(Ended::Unwound(Unwind::Suspended(InterruptId::derive(&task.id, &[], 0))));
        }
        End::Failed(failure) => return Err(Ended::Failure(failure)),
        End::Cancelled => return Err(Ended::Unwound(Unwind::Cancelled)),
        End::Drained => return Err(Ended::Unwound(Unwind::Drained)),
        End::LogLost(failure) => return Err(Ended::Unwound(Unwind::Log(failure))),
    };
    Ok(Done { outcome, child })
}

fn for_this_graph(outcome: ParentOutcome) -> NodeOutcome {
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
/// [`Ended`] if the subgraph cannot start.
async fn run_nested(context: &RunContext, nested: Nested) -> Result<Ran, Ended> {
    if nested.namespace.depth() > limit::GRAPH_DEPTH {
        return Err(Ended::Failure(too_deep(&nested.pack.graph.name)));
    }
    let is_kept = match nested.state {
        SubgraphState::Own => true,
        SubgraphState::None => false,
        // A run that persists only its last checkpoint persists none of a subgraph that has ended
        // by then. A subgraph that another run started keeps its mode.
        SubgraphState::Inherit => {
            let known = context.past.is_kept(&nested.namespace);
            known.unwrap_or(context.options.durability != Durability::Exit)
        }
    };
    let inside = context_inside(context, &nested);
    let turn = Arc::new(context.past.turn(&nested.namespace).lock_owned().await);
    let open = Opening { around: context, inside: &inside, nested: &nested, is_kept };
    let Opened { stand, began } = open.open().await?;
    let walk = Walk::nested(inside, stand, is_kept, turn.clone());
    // A spawned task, so that many levels do not share one stack.
    let work = tokio::spawn(Parking { walk: Some(walk), _turn: turn }.go());
    let ended = AbortOnDropHandle::new(work).await;
    let (end, checkpoint) = ended
        .map_err(|error| format!("subgraph task failed: {error}"))
        .and_then(|ended| ended.ok_or_else(|| "the subgraph has no loop state".to_owned()))
        .map_err(|text| Ended::Unwound(Unwind::Log(Failure::internal(text))))?;
    Ok(Ran { end, checkpoint, is_kept, began })
}

/// Returns the context for the tasks of a subgraph.
fn context_inside(context: &RunContext, nested: &Nested) -> RunContext {
    let mut parents = context.parents.as_ref().clone();
    parents.insert(context.log.namespace().clone(), context.base);
    RunContext {
        pack: nested.pack.clone(),
        above: nested.above.clone(),
        log: Arc::new(context.log.within(nested.namespace.clone())),
        parents: Arc::new(parents),
        children: Arc::default(),
        alive: nested.alive.clone(),
        error: nested.error.clone(),
        ..context.clone()
    }
}

/// A subgraph that is about to run.
struct Opening<'a> {
    around: &'a RunContext,
    inside: &'a RunContext,
    nested: &'a Nested,
    is_kept: bool,
}

/// Position from which a subgraph starts or continues.
struct Opened {
    stand: Stand,
    began: Values,
}

impl Opening<'_> {
    async fn open(&self) -> Result<Opened, Ended> {
        let past = &self.around.past;
        let base = self.base().await?;
        let strand = past.strand(&self.nested.namespace);
        // The first checkpoint follows from the input; its number does not matter.
        let first = match &strand {
            None if !past.is_parked(&self.nested.namespace) => None,
            _ => Some(self.first(base.as_ref(), CheckpointId(0)).await?),
        };
        // From here on nothing is awaited until a loop owns the state, because an attempt can be
        // aborted at any `await`.
        let parked = past.unpark(&self.nested.namespace);
        let parked = parked.filter(|stand| self.is_now(&stand.lineage.checkpoint));
        // A subgraph without checkpoints logs nothing before its first task starts. Its start is
        // the start of the parent task or of the call that started it.
        let arrived = self.nested.begun.unwrap_or(HERE);
        let stand = match (parked, strand, &first) {
            (Some(mut stand), ..) => {
                self.inside.tasks.add(stand.hear_of_ends());
                Some(stand)
            }
            (None, Some(strand), _) if self.is_kept => self.read(strand).await?,
            (None, Some(strand), Some(first)) => {
                let lineage = Lineage::new(first.clone());
                Some(Stand::replaying(lineage, arrived, &strand.events))
            }
            (None, ..) => None,
        };
        if let (Some(mut stand), Some(first)) = (stand, first) {
            stand.count_from(&first);
            return Ok(Opened { stand, began: first.values });
        }
        let checkpoint = self.begin(base.as_ref()).await?;
        let began = checkpoint.values.clone();
        Ok(Opened { stand: Stand::new(Lineage::new(checkpoint), arrived), began })
    }

    /// Returns true if a checkpoint belongs to this invocation and not to an earlier one.
    fn is_now(&self, checkpoint: &Checkpoint) -> bool {
        checkpoint.meta.parent_graphs == *self.inside.parents
    }

    /// Returns the last checkpoint of the previous invocation, for a subgraph with `state = "own"`.
    async fn base(&self) -> Result<Option<Checkpoint>, Ended> {
        if self.nested.state != SubgraphState::Own {
            return Ok(None);
        }
        let Some(id) = self.around.children.get(&self.nested.namespace) else { return Ok(None) };
        // The store reads only durable checkpoints.
        self.inside.log.barrier().await.map_err(lost)?;
        self.stored(*id).await
    }

    async fn stored(&self, id: CheckpointId) -> Result<Option<Checkpoint>, Ended> {
        let (store, thread) = (&self.inside.ports.store, &self.inside.record.id);
        let tuple = store.checkpoint(thread, &self.nested.namespace, Some(id)).await;
        Ok(tuple.map_err(lost)?.map(|tuple| tuple.checkpoint))
    }

    /// Reads the logged position of the subgraph; `None` if it belongs to another invocation.
    async fn read(&self, strand: Strand) -> Result<Option<Stand>, Ended> {
        let Some(at) = strand.at else { return Ok(None) };
        let Some(checkpoint) = self.stored(at).await? else { return Ok(None) };
        if !self.is_now(&checkpoint) {
            return Ok(None);
        }
        let mut lineage = Lineage::new(checkpoint);
        strand.events.iter().for_each(|event| lineage.apply(event));
        Ok(Some(Stand::new(lineage, strand.arrived())))
    }

    /// Creates the checkpoint of the input, with the number `id`.
    async fn first(
        &self,
        base: Option<&Checkpoint>,
        id: CheckpointId,
    ) -> Result<Checkpoint, Ended> {
        let reduced = self.reduced(base).await?;
        self.accept(base, &reduced, id).map_err(|error| Ended::Failure(error.to_failure()))
    }

    /// Creates the checkpoint of the input, and persists it if the subgraph persists its
    /// checkpoints.
    async fn begin(&self, base: Option<&Checkpoint>) -> Result<Checkpoint, Ended> {
        if !self.is_kept {
            return self.first(base, CheckpointId(0)).await;
        }
        let reduced = self.reduced(base).await?;
        let made = self.inside.log.checkpoint(|id| self.accept(base, &reduced, id)).await;
        made.map_err(|error| Ended::Failure(error.to_failure()))
    }

    async fn reduced(&self, base: Option<&Checkpoint>) -> Result<Reduced, Ended> {
        let reductions = input_reductions(&self.nested.pack.graph, base, &self.nested.input);
        reduce(&self.inside.app, reductions).await.map_err(Ended::Failure)
    }

    fn accept(
        &self,
        base: Option<&Checkpoint>,
        reduced: &Reduced,
        id: CheckpointId,
    ) -> Result<Checkpoint, StepError> {
        let Nested { pack, namespace, input, .. } = self.nested;
        in_bulk(are_large([input]), || {
            accept_input(&pack.graph, base, namespace, input, reduced, position(self.inside, id))
        })
    }
}

/// The superstep loop of a subgraph. Its drop saves the state of the loop, from which a retry of
/// the parent task continues.
struct Parking {
    walk: Option<Walk>,
    /// A retry waits until this attempt has saved its state and all of its tasks have ended.
    _turn: Turn,
}

impl Parking {
    async fn go(mut self) -> Option<(End, Checkpoint)> {
        let walk = self.walk.as_mut()?;
        let end = walk.go().await;
        Some((end, walk.lineage().checkpoint.clone()))
    }
}

impl Drop for Parking {
    fn drop(&mut self) {
        if let Some(Walk { context, stand, .. }) = self.walk.take() {
            context.past.park(context.log.namespace().clone(), stand);
        }
    }
}

fn lost(error: StoreError) -> Ended {
    Ended::Unwound(Unwind::Log(error.into()))
}

fn two_at_once(node: &Node) -> Failure {
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
