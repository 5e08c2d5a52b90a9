//! Replays subgraphs without checkpoints: subgraphs with `state = "none"`, and the subgraphs of a
//! run with durability `exit`. Such subgraphs are rebuilt from the inputs that their tasks, or the
//! calls that started them, passed to them.

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

use super::recording::RecordedSubgraph;
use super::step::{LoggedTasks, Superstep, outcome_json};
use super::{Counts, Divergence, Replay};
use crate::app::GraphVersion;
use crate::driver::{reduce, subgraph_input, subgraph_writes};
use crate::hostcall::runs::EndedRun;
use crate::unpersisted_events::UnpersistedEvents;

/// Why a subgraph without checkpoints that a call started is not compared.
const INPUT_TOO_LONG: &str = "the input from the call that started the graph is too long for the \
                              journal";

/// A subgraph without checkpoints.
struct UnpersistedGraph<'r> {
    namespace: &'r Namespace,
    graph_version: Arc<GraphVersion>,
    parent_graph: Option<Arc<GraphVersion>>,
    input: Value,
    events: &'r [Event],
}

/// The end of a subgraph without checkpoints.
struct UnpersistedGraphEnd {
    initial_values: Values,
    checkpoint: Checkpoint,
    outcome: Option<ParentOutcome>,
}

impl Superstep<'_> {
    /// Replays the subgraph that runs as a task, if it makes no checkpoints. A subgraph with
    /// checkpoints is replayed from its checkpoints.
    pub(super) async fn replay_subgraph(
        &self,
        task: &Task,
        recorded: Option<&TaskFinished>,
        replay: &mut Replay,
    ) {
        let (replay_context, meta) = (self.replay_context, &self.lineage.checkpoint.meta);
        let namespace = meta.namespace.for_task(&task.node, &task.id);
        let Some(events) = replay_context.recording.unpersisted(&namespace) else { return };
        let body = self.graph_version.graph.node(&task.node).map(|node| &node.body);
        let Some(NodeKind::Graph { graph, .. }) = body else { return };
        let Some(graph_version) = replay_context.app.graphs.get(graph).cloned() else { return };
        let values = &self.lineage.checkpoint.values;
        let own = task.input(&self.graph_version.graph, values).to_value();
        let input = subgraph_input(&self.graph_version.graph, &graph_version.graph, own);
        let parent_graph = Some(self.graph_version.clone());
        let inner = UnpersistedGraph {
            namespace: &namespace,
            graph_version: graph_version.clone(),
            parent_graph,
            input,
            events,
        };
        let ended = Box::pin(self.replay_supersteps(&inner, replay)).await;
        let Some((recorded, ended)) = recorded.zip(ended) else { return };
        let outcome = ended.outcome.unwrap_or_else(|| ParentOutcome {
            writes: subgraph_writes(
                &self.graph_version.graph,
                &graph_version.graph,
                &ended.initial_values,
                &ended.checkpoint.values,
            ),
            ..ParentOutcome::default()
        });
        let ParentOutcome { writes, goto, sends } = outcome;
        let now = TaskFinished { writes, goto, sends, for_parent: false, ..recorded.clone() };
        if outcome_json(recorded) != outcome_json(&now) {
            let message = "the subgraph returns a different outcome";
            let (then, now) = (outcome_json(recorded), outcome_json(&now));
            replay.add_divergence(self.task_divergence(recorded, message, then, now));
        }
    }

    /// Replays the subgraphs without checkpoints that calls of a task started.
    pub(super) async fn replay_started_subgraphs(&self, task: &Task, replay: &mut Replay) {
        let (replay_context, around) =
            (self.replay_context, &self.lineage.checkpoint.meta.namespace);
        for (namespace, started) in replay_context.recording.started_by(around, &task.id) {
            let Some(events) = replay_context.recording.unpersisted(namespace) else { continue };
            let Some(graph_version) = replay_context.app.graphs.get(&started.graph).cloned() else {
                continue;
            };
            let Some(input) = started.input.clone() else {
                let place = (namespace, self.lineage.checkpoint.meta.id);
                replay.skip(place, None, INPUT_TOO_LONG, Counts::of_superstep(events));
                continue;
            };
            let inner =
                UnpersistedGraph { namespace, graph_version, parent_graph: None, input, events };
            let Some(ended) = Box::pin(self.replay_supersteps(&inner, replay)).await else {
                continue;
            };
            let now = ended.checkpoint.state();
            if let Some(told) = self.recorded_state(task, started).filter(|told| *told != now) {
                let meta = CheckpointMeta { namespace: namespace.clone(), ..ended.checkpoint.meta };
                let message = "the subgraph that a call started ends with a different state";
                replay.add_divergence(Divergence::of(&meta, message, told, now));
            }
        }
    }

    /// Returns the state that a task received at the end of a subgraph that it started.
    fn recorded_state(&self, task: &Task, started: &RecordedSubgraph) -> Option<Value> {
        let past = self.logged.task(&task.id)?;
        let answered = past.calls_by_scope.values().flat_map(|calls| calls.results.values());
        let mut waited = answered.filter(|(_, called)| called.function == EndedRun::FUNCTION);
        waited.find_map(|(_, called)| {
            let answer = called.result.as_ref().ok()?;
            (answer["run"]["run"] == started.run).then(|| answer["state"].clone())
        })
    }

    /// Executes all supersteps of a subgraph again. Returns `None` if the subgraph did not finish.
    async fn replay_supersteps(
        &self,
        inner: &UnpersistedGraph<'_>,
        replay: &mut Replay,
    ) -> Option<UnpersistedGraphEnd> {
        let replay_context = self.replay_context;
        let origin = replay_context.export.header.thread.origin();
        let logged = LoggedTasks::of(inner.events);
        let mut unpersisted = UnpersistedEvents::from_events(inner.namespace, inner.events);
        let mut checkpoint = self.input_checkpoint(inner, replay).await?;
        let initial_values = checkpoint.values.clone();
        loop {
            let mut lineage = Lineage::new(checkpoint.clone());
            let planned = |lineage: &Lineage| plan(&inner.graph_version.graph, origin, lineage, 1);
            while let Plan::Tasks { all, .. } = planned(&lineage)
                && unpersisted.apply_to(&all, &mut lineage)
            {}
            let superstep = Superstep {
                replay_context,
                graph_version: inner.graph_version.clone(),
                parent_graph: inner.parent_graph.clone(),
                logged: &logged,
                lineage: &lineage,
                steps: Some(checkpoint.meta.step),
            };
            superstep.replay_tasks(replay).await;
            let outcome = match planned(&lineage) {
                Plan::Done => None,
                Plan::ParentOutcome => parent_outcome(&lineage),
                Plan::Tasks { runnable, waiting, .. }
                    if runnable.is_empty() && waiting.is_empty() =>
                {
                    let id = CheckpointId(u64::from(checkpoint.meta.step) + 1);
                    let at = self.checkpoint_stamp(inner, id);
                    checkpoint = superstep.make_checkpoint(at, replay).await?;
                    replay.checkpoints += 1;
                    continue;
                }
                Plan::Tasks { .. } | Plan::RecursionLimitReached => return None,
            };
            if let Some(left) = unpersisted.unapplied_task() {
                let message = "the graph does not run this task";
                let known = json!(left);
                replay.add_divergence(Divergence::of(
                    &checkpoint.meta,
                    message,
                    known,
                    json!(null),
                ));
            }
            return Some(UnpersistedGraphEnd { initial_values, checkpoint, outcome });
        }
    }

    /// Makes the checkpoint of the input, which was not persisted either.
    async fn input_checkpoint(
        &self,
        inner: &UnpersistedGraph<'_>,
        replay: &mut Replay,
    ) -> Option<Checkpoint> {
        let (graph, input) = (&inner.graph_version.graph, &inner.input);
        let reduced = reduce(&self.replay_context.app, input_reductions(graph, None, input)).await;
        let at = self.checkpoint_stamp(inner, CheckpointId(0));
        let first = reduced.and_then(|reduced| {
            accept_input(graph, None, inner.namespace, input, &reduced, at)
                .map_err(|error| error.to_failure())
        });
        first
            .map_err(|failure| {
                let meta = &self.lineage.checkpoint.meta;
                let message = "the subgraph no longer accepts its input";
                let recorded = json!(inner.input);
                replay.add_divergence(Divergence::of(meta, message, recorded, json!(failure)));
            })
            .ok()
    }

    fn checkpoint_stamp(&self, inner: &UnpersistedGraph<'_>, id: CheckpointId) -> CheckpointStamp {
        let meta = &self.lineage.checkpoint.meta;
        let mut parents = meta.parent_graphs.clone();
        parents.insert(meta.namespace.clone(), meta.id);
        CheckpointStamp {
            id,
            run: meta.run.clone(),
            at_ms: meta.at_ms,
            version: inner.graph_version.version,
            parents,
            tasks: None,
        }
    }
}
