//! Finds the graphs in which a fork inside of a superstep continues: the root graph, the subgraphs
//! on the path to the overridden call, and other subgraphs that had not ended.

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, Values};
use wattle_graph::event::{Called, Event, EventKind};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, Namespace, NodeName, TaskId, ThreadId, path_of_call};
use wattle_graph::lineage::Lineage;
use wattle_graph::plan::possible_tasks;

use super::forked_graph::{ForkedGraph, ForkedGraphs, RestartPoint, SuperstepEvents, TaskKey};
use super::overridden_call::OverriddenCall;
use crate::ports::store::Store;
use crate::view::SubgraphLog;

/// A scan for the state that a fork carries over.
pub(super) struct ForkScan<'a> {
    pub store: &'a dyn Store,
    pub thread: &'a ThreadId,
    /// The thread from which ids derive.
    pub origin: &'a ThreadId,
    /// The error handlers of all graphs of the app.
    pub error_handlers: BTreeSet<NodeName>,
    /// All events of the root graph's superstep.
    pub all_events: &'a SuperstepEvents,
    /// The events of `all_events` up to the first `reopened` event after the overridden call.
    pub events_before_reopen: &'a SuperstepEvents,
    /// The overridden call. If there is none, all pending work is carried over.
    pub overridden: Option<&'a OverriddenCall>,
    /// Tasks of the root graph that restart.
    pub restarted: BTreeSet<TaskId>,
}

impl<'a> ForkScan<'a> {
    /// Runs the scan.
    ///
    /// # Errors
    ///
    /// `conflict` if the log has no path to the call.
    pub(super) async fn run(&self) -> Result<ForkedGraphs<'a>, Failure> {
        let mut found = ForkedGraphs::default();
        let root = self.all_events.tuple.checkpoint.clone();
        let mut waiting = vec![self.forked_graph(
            self.all_events,
            &Namespace::root(),
            Some(root.clone()),
            root,
        )?];
        while let Some(graph) = waiting.pop() {
            for child in self.continuing_subgraphs(&graph) {
                waiting.extend(self.subgraph(&graph, &child).await?);
            }
            self.collect_idle_checkpoints(&graph, &mut found.idle_checkpoints).await?;
            found.graphs.push(graph);
        }
        Ok(found)
    }

    /// Returns true if the call is in a graph or in one of its subgraphs.
    fn contains_call(&self, namespace: &Namespace) -> bool {
        let inside = self.overridden.map(|replaced| &replaced.namespace);
        inside.is_some_and(|inside| inside == namespace || inside.is_nested_in(namespace))
    }

    /// Returns the direct subgraph of the graph `namespace` that contains the overridden call,
    /// itself or in a nested subgraph. Returns `None` if no direct subgraph contains it.
    fn child_towards_call(&self, namespace: &Namespace) -> Option<Namespace> {
        self.overridden?.namespace.child_of(namespace)
    }

    /// Returns those direct subgraphs of `graph` that the fork continues.
    fn continuing_subgraphs(&self, graph: &ForkedGraph<'a>) -> Vec<Namespace> {
        let beside = graph.superstep.subgraphs().filter(|(namespace, subgraph_log)| {
            namespace.parent().as_ref() == Some(&graph.namespace)
                && !self.contains_call(namespace)
                && graph.carries_over(namespace, subgraph_log)
        });
        let beside = beside.map(|(namespace, _)| namespace.clone());
        beside.chain(self.child_towards_call(&graph.namespace)).collect()
    }

    /// Returns a subgraph; `None` if its newest checkpoint belongs to an earlier invocation.
    async fn subgraph(
        &self,
        around: &ForkedGraph<'a>,
        namespace: &Namespace,
    ) -> Result<Option<ForkedGraph<'a>>, Failure> {
        let is_on_the_way = self.contains_call(namespace);
        let superstep = if is_on_the_way { self.events_before_reopen } else { around.superstep };
        let end = self.overridden.filter(|_| is_on_the_way).map_or(u64::MAX, |it| it.seq);
        let subgraph_log =
            superstep.subgraph(namespace).ok_or_else(|| self.unreachable_call(namespace))?;
        let parent_graphs = around.parents_for_subgraphs();
        let Some(id) = newest_checkpoint(subgraph_log, end) else {
            let id = CheckpointId(u64::from(superstep_at(subgraph_log, end)));
            let above = &self.all_events.tuple.checkpoint.meta;
            let meta =
                CheckpointMeta { id, namespace: namespace.clone(), parent_graphs, ..above.clone() };
            let checkpoint = Checkpoint::new(meta, Values::new());
            return self.forked_graph(superstep, namespace, None, checkpoint).map(Some);
        };
        let stored = self.load_checkpoint(namespace, id).await?;
        if !is_on_the_way && stored.meta.parent_graphs != parent_graphs {
            return Ok(None);
        }
        self.forked_graph(superstep, namespace, Some(stored.clone()), stored).map(Some)
    }

    /// Returns a graph at `checkpoint`. `stored_checkpoint` is `None` if the checkpoint is not
    /// stored.
    fn forked_graph(
        &self,
        superstep: &'a SuperstepEvents,
        namespace: &Namespace,
        stored_checkpoint: Option<Checkpoint>,
        checkpoint: Checkpoint,
    ) -> Result<ForkedGraph<'a>, Failure> {
        let events = superstep.events_of(namespace);
        let mut lineage = Lineage::new(checkpoint);
        for event in &events {
            lineage.apply(event);
        }
        let tasks = self.tasks(&events, &lineage, stored_checkpoint.is_some());
        // A graph without checkpoints executes all of its supersteps again.
        for event in events.iter().filter(|_| stored_checkpoint.is_none()) {
            if let EventKind::TaskFinished(done) = &event.kind
                && tasks.contains_key(&done.task)
            {
                lineage.finished.entry(done.task.clone()).or_insert_with(|| done.clone());
            }
        }
        let restarted = if namespace.is_root() { self.restarted.clone() } else { BTreeSet::new() };
        let namespace = namespace.clone();
        let mut graph = ForkedGraph {
            namespace,
            superstep,
            stored_checkpoint,
            tasks,
            lineage,
            restart_point: None,
            restarted,
        };
        if let Some(replaced) = self.overridden
            && self.contains_call(&graph.namespace)
        {
            graph.restart_point = Some(self.restart_point(&graph, replaced)?);
        }
        Ok(graph)
    }

    /// Returns the tasks that have events in the current superstep. If the graph has no stored
    /// checkpoints, also returns the tasks of all earlier supersteps.
    fn tasks(
        &self,
        events: &[Event],
        lineage: &Lineage,
        is_stored: bool,
    ) -> BTreeMap<TaskId, TaskKey> {
        let CheckpointMeta { id, namespace, next, .. } = &lineage.checkpoint.meta;
        let (mut tasks, mut nodes) = (BTreeSet::new(), self.error_handlers.clone());
        let mut sends = 0;
        for event in events {
            let (task, node) = match &event.kind {
                EventKind::TaskStarted(begun) => (&begun.task, &begun.node),
                EventKind::TaskFinished(done) => {
                    sends += done.sends.len();
                    (&done.task, &done.node)
                }
                EventKind::TaskFailed(failed) => {
                    tasks.extend(failed.handler.clone());
                    (&failed.task, &failed.node)
                }
                _ => continue,
            };
            tasks.insert(task.clone());
            nodes.insert(node.clone());
        }
        let triggers = if is_stored { next.len() } else { nodes.len() + sends };
        let first = if is_stored { id.0 } else { 0 };
        let mut seats = BTreeMap::new();
        for base in (first..=id.0).map(CheckpointId) {
            let known = possible_tasks(self.origin, namespace, base, &nodes, triggers as u32);
            let known = known.into_iter().filter(|(task, _)| tasks.contains(task));
            seats.extend(known.map(|(task, (node, index))| (task, TaskKey { base, node, index })));
        }
        seats
    }

    /// Returns the task of a graph that restarts: the task that made the overridden call, or the
    /// task that runs the subgraph that contains this call.
    fn restart_point(
        &self,
        graph: &ForkedGraph<'a>,
        replaced: &OverriddenCall,
    ) -> Result<RestartPoint, Failure> {
        let OverriddenCall { seq, called, .. } = replaced;
        let lost = || self.unreachable_call(&graph.namespace);
        let (task, journal_end) = match self.child_towards_call(&graph.namespace) {
            None => {
                let Called { task, scope, call, batch, .. } = called;
                (task.clone(), Some((path_of_call(scope, *call), *batch)))
            }
            Some(child) => {
                let task = graph.owning_task(&child, *seq).ok_or_else(lost)?;
                let journal_end = match child.call_path() {
                    Some(path) => {
                        let wait = graph.waiting_call(&task, &path, *seq).ok_or_else(lost)?;
                        let batch = wait.last().copied().unwrap_or_default();
                        Some((wait, batch))
                    }
                    None => None,
                };
                (task, journal_end)
            }
        };
        if !graph.tasks.contains_key(&task) {
            return Err(lost());
        }
        Ok(RestartPoint {
            logged_task: self.all_events.task_until_attempt_end(&task, *seq),
            task,
            journal_end,
        })
    }

    /// Collects the last checkpoints of subgraphs that keep their state and have another namespace
    /// in the fork: those that the checkpoint of the graph names, and those of its finished tasks.
    async fn collect_idle_checkpoints(
        &self,
        graph: &ForkedGraph<'a>,
        remembered: &mut Vec<Checkpoint>,
    ) -> Result<(), Failure> {
        let ended = graph.lineage.finished.values().filter(|done| !graph.is_discarded(&done.task));
        let ended = ended.filter_map(|done| {
            let child = done.child.as_ref().filter(|child| child.persists)?;
            Some((child.namespace.clone(), child.checkpoint?))
        });
        let begun = graph
            .stored_checkpoint
            .iter()
            .flat_map(|stored| stored.meta.subgraph_checkpoints.clone());
        let mut wanted: Vec<(Namespace, CheckpointId)> = begun.chain(ended).collect();
        while let Some((namespace, id)) = wanted.pop() {
            if contains_task_id(&namespace) && remembered.iter().all(|known| known.meta.id != id) {
                let checkpoint = self.load_checkpoint(&namespace, id).await?;
                wanted.extend(checkpoint.meta.subgraph_checkpoints.clone());
                remembered.push(checkpoint);
            }
        }
        Ok(())
    }

    async fn load_checkpoint(
        &self,
        namespace: &Namespace,
        id: CheckpointId,
    ) -> Result<Checkpoint, Failure> {
        let found = self.store.checkpoint(self.thread, namespace, Some(id)).await?;
        found.map(|tuple| tuple.checkpoint).ok_or_else(|| self.unreachable_call(namespace))
    }

    fn unreachable_call(&self, namespace: &Namespace) -> Failure {
        let goal = match self.overridden {
            Some(OverriddenCall { called: Called { task, node, .. }, .. }) => {
                format!("task `{task}` of node `{node}`")
            }
            None => "the pending tasks".to_owned(),
        };
        let place = match namespace.as_str() {
            "" => String::new(),
            name => format!(" in the subgraph `{name}`"),
        };
        Failure::new(
            code::CONFLICT,
            format!(
                "cannot reach {goal}{place} from checkpoint {}: the superstep was not persisted \
                 (durability `exit`), was pruned, or belongs to another version of the graph; fork \
                 from a checkpoint",
                self.all_events.tuple.checkpoint.meta.id
            ),
        )
    }
}

/// Returns true if a namespace contains the id of a task, so that it differs in the fork.
fn contains_task_id(namespace: &Namespace) -> bool {
    namespace.ancestors().any(|it| it.task().is_some())
}

/// Returns the newest checkpoint of a subgraph before a sequence number.
fn newest_checkpoint(subgraph_log: &SubgraphLog, end: u64) -> Option<CheckpointId> {
    let mut before = subgraph_log.events.iter().rev().filter(|event| event.seq < end);
    before.find_map(|event| match &event.kind {
        EventKind::Checkpointed(made) => Some(made.checkpoint),
        _ => None,
    })
}

/// Returns the superstep of a subgraph at a sequence number.
fn superstep_at(subgraph_log: &SubgraphLog, end: u64) -> u32 {
    let mut before = subgraph_log.events.iter().rev().filter(|event| event.seq < end);
    before
        .find_map(|event| match &event.kind {
            EventKind::TaskStarted(begun) => Some(begun.step),
            _ => None,
        })
        .unwrap_or_default()
}
