//! Replays subgraphs without checkpoints: those with `state = "none"`, and the subgraphs of a run
//! with durability `exit`. They are rebuilt from the inputs that their tasks, or the calls that
//! started them, passed to them.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, Values};
use wattle_graph::event::{Event, TaskFinished};
use wattle_graph::graph::NodeKind;
use wattle_graph::id::{CheckpointId, Namespace};
use wattle_graph::lineage::Lineage;
use wattle_graph::plan::{Plan, Task, plan};
use wattle_graph::step::{
    CheckpointStamp, ParentOutcome, accept_input, input_reductions, parent_outcome,
};

use super::record::Started;
use super::step::{Happened, Superstep, decided};
use super::{Divergence, Replay};
use crate::app::GraphPack;
use crate::driver::{nested_input, nested_writes, reduce};
use crate::hostcall::runs::EndedRun;
use crate::replay::Unstored;

/// A subgraph without checkpoints.
struct Inner<'r> {
    namespace: &'r Namespace,
    pack: Arc<GraphPack>,
    above: Option<Arc<GraphPack>>,
    input: Value,
    events: &'r [Event],
}

/// The end of a subgraph without checkpoints.
struct InnerEnd {
    began: Values,
    checkpoint: Checkpoint,
    outcome: Option<ParentOutcome>,
}

impl Superstep<'_> {
    /// Replays the subgraph that runs as a task, if it makes no checkpoints. A subgraph with
    /// checkpoints is replayed from these.
    pub(super) async fn inner(
        &self,
        task: &Task,
        recorded: Option<&TaskFinished>,
        replay: &mut Replay,
    ) {
        let (world, meta) = (self.world, &self.lineage.checkpoint.meta);
        let namespace = meta.namespace.for_task(&task.node, &task.id);
        let Some(events) = world.record.unstored(&namespace) else { return };
        let body = self.pack.graph.node(&task.node).map(|node| &node.body);
        let Some(NodeKind::Graph { graph, .. }) = body else { return };
        let Some(pack) = world.app.graphs.get(graph).cloned() else { return };
        let input = nested_input(&self.pack.graph, &pack.graph, task.input.clone());
        let above = Some(self.pack.clone());
        let inner = Inner { namespace: &namespace, pack: pack.clone(), above, input, events };
        let ended = Box::pin(self.again(&inner, replay)).await;
        let Some((recorded, ended)) = recorded.zip(ended) else { return };
        let outcome = ended.outcome.unwrap_or_else(|| ParentOutcome {
            writes: nested_writes(
                &self.pack.graph,
                &pack.graph,
                &ended.began,
                &ended.checkpoint.values,
            ),
            ..ParentOutcome::default()
        });
        let ParentOutcome { writes, goto, sends } = outcome;
        let now = TaskFinished { writes, goto, sends, for_parent: false, ..recorded.clone() };
        if decided(recorded) != decided(&now) {
            let message = "the subgraph returns a different outcome";
            let (then, now) = (decided(recorded), decided(&now));
            replay.differ(self.of_task(recorded, message, then, now));
        }
    }

    /// Replays the subgraphs without checkpoints that calls of a task started.
    pub(super) async fn started(&self, task: &Task, replay: &mut Replay) {
        let (world, around) = (self.world, &self.lineage.checkpoint.meta.namespace);
        for (namespace, started) in world.record.started_by(around, &task.id) {
            let Some(events) = world.record.unstored(namespace) else { continue };
            let Some(pack) = world.app.graphs.get(&started.graph).cloned() else { continue };
            let inner =
                Inner { namespace, pack, above: None, input: started.input.clone(), events };
            let Some(ended) = Box::pin(self.again(&inner, replay)).await else { continue };
            let now = ended.checkpoint.state();
            if let Some(told) = self.told(task, started).filter(|told| *told != now) {
                let meta = CheckpointMeta { namespace: namespace.clone(), ..ended.checkpoint.meta };
                let message = "the subgraph that a call started ends with a different state";
                replay.differ(Divergence::of(&meta, message, told, now));
            }
        }
    }

    /// Returns the state that a task received at the end of a subgraph that it started.
    fn told(&self, task: &Task, started: &Started) -> Option<Value> {
        let past = self.happened.past(&task.id)?;
        let answered = past.scopes.values().flat_map(|calls| calls.answered.values());
        let mut waited = answered.filter(|(_, called)| called.function == EndedRun::FUNCTION);
        waited.find_map(|(_, called)| {
            let answer = called.result.as_ref().ok()?;
            (answer["run"]["run"] == started.run).then(|| answer["state"].clone())
        })
    }

    /// Executes all supersteps of a subgraph again. Returns `None` if it did not finish.
    async fn again(&self, inner: &Inner<'_>, replay: &mut Replay) -> Option<InnerEnd> {
        let world = self.world;
        let origin = world.export.header.thread.origin();
        let happened = Happened::of(inner.events);
        let mut unstored = Unstored::of(inner.namespace, inner.events);
        let mut checkpoint = self.first(inner, replay).await?;
        let began = checkpoint.values.clone();
        loop {
            let mut lineage = Lineage::new(checkpoint.clone());
            let planned = |lineage: &Lineage| plan(&inner.pack.graph, origin, lineage, 1);
            while let Plan::Tasks { all, .. } = planned(&lineage)
                && unstored.take_over(&all, &mut lineage)
            {}
            let superstep = Superstep {
                world,
                pack: inner.pack.clone(),
                above: inner.above.clone(),
                happened: &happened,
                lineage: &lineage,
                steps: Some(checkpoint.meta.step),
            };
            superstep.tasks(replay).await;
            let outcome = match planned(&lineage) {
                Plan::Done => None,
                Plan::ParentOutcome => parent_outcome(&lineage),
                Plan::Tasks { runnable: run, waiting, .. }
                    if run.is_empty() && waiting.is_empty() =>
                {
                    let id = CheckpointId(u64::from(checkpoint.meta.step) + 1);
                    let at = self.position(inner, id);
                    checkpoint = superstep.make(at, replay).await?;
                    replay.checkpoints += 1;
                    continue;
                }
                Plan::Tasks { .. } | Plan::RecursionLimitReached => return None,
            };
            if let Some(left) = unstored.left() {
                let message = "the graph does not run this task";
                let known = json!(left);
                replay.differ(Divergence::of(&checkpoint.meta, message, known, json!(null)));
            }
            return Some(InnerEnd { began, checkpoint, outcome });
        }
    }

    /// Makes the checkpoint of the input, which was not persisted either.
    async fn first(&self, inner: &Inner<'_>, replay: &mut Replay) -> Option<Checkpoint> {
        let (graph, input) = (&inner.pack.graph, &inner.input);
        let reduced = reduce(&self.world.app, input_reductions(graph, None, input)).await;
        let at = self.position(inner, CheckpointId(0));
        let first = reduced.and_then(|reduced| {
            accept_input(graph, None, inner.namespace, input, &reduced, at)
                .map_err(|error| error.to_failure())
        });
        first
            .map_err(|failure| {
                let meta = &self.lineage.checkpoint.meta;
                let message = "the subgraph no longer accepts its input";
                let recorded = json!(inner.input);
                replay.differ(Divergence::of(meta, message, recorded, json!(failure)));
            })
            .ok()
    }

    fn position(&self, inner: &Inner<'_>, id: CheckpointId) -> CheckpointStamp {
        let meta = &self.lineage.checkpoint.meta;
        let mut parents = meta.parent_graphs.clone();
        parents.insert(meta.namespace.clone(), meta.id);
        CheckpointStamp {
            id,
            run: meta.run.clone(),
            at_ms: meta.at_ms,
            version: inner.pack.version,
            parents,
            tasks: None,
        }
    }
}
