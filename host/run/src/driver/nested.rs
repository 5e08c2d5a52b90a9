//! A graph that runs inside of a task of another.
//!
//! It is a walk of its own, with its own state, in a namespace of its own. Everything that happens
//! in it goes to the thread's one log and belongs to the checkpoint of the root graph, so a crash or
//! a question anywhere is found again from there.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;
use wattle_graph::checkpoint::{Checkpoint, Values};
use wattle_graph::definition::SubgraphState;
use wattle_graph::event::ChildEnd;
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

/// What plugins made of an input, by channel.
type Reduced = BTreeMap<ChannelName, Value>;

/// The loop that runs graphs inside of tasks.
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

/// Runs the graph that a node is, as one attempt of its task. A further attempt goes on where the
/// one before failed.
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
        SubgraphState::Own => around.of_node(&node.name),
        SubgraphState::Inherit | SubgraphState::None => around.of_task(&node.name, &task.id),
    };
    if state == SubgraphState::Own && task.is_further {
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
    let child = Some(ChildEnd {
        namespace,
        checkpoint: ran.is_kept.then_some(ran.checkpoint.meta.id),
        keeps: state == SubgraphState::Own,
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
        // The question, if there is one, is in the log; this names the task that waits for it.
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

/// Runs a nested graph from its input, or from where it stands.
///
/// # Errors
///
/// [`Ended`] if it could not even begin.
async fn run_nested(context: &RunContext, nested: Nested) -> Result<Ran, Ended> {
    if nested.namespace.depth() > limit::GRAPH_DEPTH {
        return Err(Ended::Failure(too_deep(&nested.pack.graph.name)));
    }
    let is_kept = match nested.state {
        SubgraphState::Own => true,
        SubgraphState::None => false,
        // A run that stores only its last checkpoint stores none of graphs that are gone by then.
        // What another run began goes on as it was begun.
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
    // In a task of the runtime, so that many levels do not meet on one stack.
    let work = tokio::spawn(Parking { walk: Some(walk), _turn: turn }.go());
    let ended = AbortOnDropHandle::new(work).await;
    let (end, checkpoint) = ended
        .map_err(|error| format!("a subgraph ended: {error}"))
        .and_then(|ended| ended.ok_or_else(|| "a subgraph was not there".to_owned()))
        .map_err(|text| Ended::Unwound(Unwind::Log(Failure::internal(text))))?;
    Ok(Ran { end, checkpoint, is_kept, began })
}

/// What tasks of a nested graph need.
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

/// A nested graph that is about to run.
struct Opening<'a> {
    around: &'a RunContext,
    inside: &'a RunContext,
    nested: &'a Nested,
    is_kept: bool,
}

/// Where a nested graph begins or goes on.
struct Opened {
    stand: Stand,
    began: Values,
}

impl Opening<'_> {
    async fn open(&self) -> Result<Opened, Ended> {
        let past = &self.around.past;
        let base = self.base().await?;
        let strand = past.strand(&self.nested.namespace);
        // Where it began follows from what it was given; the number does not matter.
        let first = match &strand {
            None if !past.is_parked(&self.nested.namespace) => None,
            _ => Some(self.first(base.as_ref(), CheckpointId(0)).await?),
        };
        // Until a walk has it nothing is waited for: an attempt can be cut wherever it waits.
        let parked = past.unpark(&self.nested.namespace);
        let parked = parked.filter(|stand| self.is_now(&stand.lineage.checkpoint));
        // One that makes no checkpoints says nothing before its first task begins, but it stood there
        // since what it runs as was begun.
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

    /// Whether a checkpoint is of this invocation and not of one before.
    fn is_now(&self, checkpoint: &Checkpoint) -> bool {
        checkpoint.meta.parents == *self.inside.parents
    }

    /// Where the last invocation ended, of a graph that remembers.
    async fn base(&self) -> Result<Option<Checkpoint>, Ended> {
        if self.nested.state != SubgraphState::Own {
            return Ok(None);
        }
        let Some(id) = self.around.children.get(&self.nested.namespace) else { return Ok(None) };
        // The store shows only what is durable.
        self.inside.log.barrier().await.map_err(lost)?;
        self.stored(*id).await
    }

    async fn stored(&self, id: CheckpointId) -> Result<Option<Checkpoint>, Ended> {
        let (store, thread) = (&self.inside.ports.store, &self.inside.record.id);
        let tuple = store.checkpoint(thread, &self.nested.namespace, Some(id)).await;
        Ok(tuple.map_err(lost)?.map(|tuple| tuple.checkpoint))
    }

    /// Where the log says that it stands; `None` if that was another invocation.
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

    /// The checkpoint of the input under some number.
    async fn first(
        &self,
        base: Option<&Checkpoint>,
        id: CheckpointId,
    ) -> Result<Checkpoint, Ended> {
        let reduced = self.reduced(base).await?;
        self.accept(base, &reduced, id).map_err(|error| Ended::Failure(error.to_failure()))
    }

    /// The same, stored if the graph's checkpoints are.
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

/// A walk that keeps its place, however it ends: its task may be tried again, after a failure or a
/// timeout.
struct Parking {
    walk: Option<Walk>,
    /// A further attempt waits until this one has parked, and all of its tasks have ended.
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
            "node `{}` is a graph with a state of its own, and two of its tasks are to run in one \
             superstep; send to it once at a time, or let it run without `state = \"own\"`",
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
