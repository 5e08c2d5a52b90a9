//! Carries over events of a superstep to a fork that begins inside of the superstep: the events
//! that do not depend on the overridden call, or on the writes of a command.
//!
//! The tasks of the fork have new ids, so the events of the old tasks are written again under the
//! new ids. The namespace of a subgraph contains the id of its task, so the namespace changes with
//! that id, and so do the ids of the subgraph's tasks. The newest checkpoint of each such subgraph
//! is copied.

use std::collections::BTreeMap;

use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, CheckpointSource, TakenCase};
use wattle_graph::event::{Checkpointed, EventKind, SubgraphEnd, TaskFinished};
use wattle_graph::id::{CheckpointId, Namespace, TaskId, ThreadId};

use super::forked_graph::{ForkedGraph, ForkedGraphs};
use super::journal_prefix::JournalPrefix;
use super::overridden_call::OverriddenCall;
use super::task_copier::{CopiedEvents, TaskCopier};

/// Events and checkpoints that are written with a fork, before a task of the fork runs.
#[derive(Default)]
pub(super) struct CarriedOver {
    /// Checkpoints of subgraphs, by id.
    pub checkpoints: Vec<Checkpoint>,
    /// The events that are carried over, and the call with its overriding result.
    pub events: Vec<(Namespace, EventKind)>,
}

/// Returns the events and checkpoints of a scan with the ids and namespaces of the fork. The id of
/// `fork` follows those of the copied checkpoints. `origin` is the thread from which ids derive.
pub(super) fn carry_over(
    found: &ForkedGraphs<'_>,
    origin: &ThreadId,
    fork: &Checkpoint,
    replaced: Option<&OverriddenCall>,
) -> CarriedOver {
    let names = IdMap::of(found, origin, fork);
    let mut checkpoints: Vec<Checkpoint> = found
        .idle_checkpoints
        .iter()
        .map(|old| names.copy_checkpoint(old, old.meta.parent_graphs.clone(), fork))
        .collect();
    let (mut rows, mut last) = (Vec::new(), Vec::new());
    for graph in &found.graphs {
        let namespace = names.namespace(&graph.namespace);
        let mut own = events_of(graph, &names);
        if let Some(old) = graph.stored_checkpoint.as_ref().filter(|_| !graph.namespace.is_root()) {
            let copy = names.copy_checkpoint(old, names.parents(&old.meta.parent_graphs), fork);
            let (seq, taken) = seq_and_taken(graph, old.meta.id);
            let made = Checkpointed { taken, ..Checkpointed::from(&copy.meta) };
            own.push((seq, EventKind::Checkpointed(made)));
            checkpoints.push(copy);
        }
        rows.extend(own.into_iter().map(|(seq, kind)| (seq, namespace.clone(), kind)));
        if let Some(replaced) = replaced.filter(|it| it.namespace == graph.namespace)
            && let Some(target) = &graph.restart_point
        {
            let new = names.task(&target.task);
            let kinds = copier(graph, &target.task, &new).overridden(replaced);
            last.extend(kinds.into_iter().map(|kind| (namespace.clone(), kind)));
        }
    }
    rows.sort_by_key(|(seq, ..)| *seq);
    let events = rows.into_iter().map(|(_, namespace, kind)| (namespace, kind));
    checkpoints.sort_by_key(|checkpoint| checkpoint.meta.id);
    CarriedOver { checkpoints, events: events.chain(last).collect() }
}

/// Returns the events of the tasks of one graph for the fork, with the ids and namespaces of the
/// fork in place of the old ones.
fn events_of(graph: &ForkedGraph<'_>, names: &IdMap) -> CopiedEvents {
    let mut rows = CopiedEvents::new();
    for old in graph.tasks.keys().filter(|task| !graph.is_discarded(task)) {
        let new = names.task(old);
        let (copy, failed) = (copier(graph, old, &new), graph.lineage.failed.get(old));
        rows.extend(if let Some(finished) = graph.lineage.finished.get(old) {
            let again = TaskFinished {
                child: finished.child.as_ref().map(|child| names.subgraph_end(child)),
                ..TaskFinished::clone(finished)
            };
            copy.finished(again, names.base(graph, old))
        } else if let Some(handler) = failed.and_then(|failed| failed.handler.as_ref()) {
            copy.failed(Some(&names.task(handler)))
        } else if graph.restarted.contains(old) {
            copy.answered_interrupts(&graph.lineage)
        } else if let Some(past) = graph.superstep.task(old) {
            copy.journal(&JournalPrefix::all(past), &graph.lineage)
        } else {
            CopiedEvents::new()
        });
    }
    if let Some(target) = &graph.restart_point {
        let new = names.task(&target.task);
        let copy = copier(graph, &target.task, &new);
        let journal = target.journal_prefix().map(|part| copy.journal(&part, &graph.lineage));
        let journal = journal.filter(|rows| !rows.is_empty());
        rows.extend(journal.unwrap_or_else(|| copy.task_started().into_iter().collect()));
    }
    rows
}

fn copier<'a>(graph: &'a ForkedGraph<'_>, old: &'a TaskId, new: &'a TaskId) -> TaskCopier<'a> {
    TaskCopier { events: &graph.superstep.tuple.events, namespace: &graph.namespace, old, new }
}

/// Returns the sequence number at which a graph reached a checkpoint, and the cases of branches that
/// it took before; 0 and no cases if no event of the superstep names the checkpoint.
fn seq_and_taken(graph: &ForkedGraph<'_>, id: CheckpointId) -> (u64, Vec<TakenCase>) {
    let mut events = graph.superstep.tuple.events.iter();
    let made = events.find_map(|event| match &event.kind {
        EventKind::Checkpointed(made)
            if event.namespace == graph.namespace && made.checkpoint == id =>
        {
            Some((event.seq, made.taken.clone()))
        }
        _ => None,
    });
    made.unwrap_or_default()
}

/// Maps ids and namespaces to those of the fork.
struct IdMap {
    namespaces: BTreeMap<Namespace, Namespace>,
    tasks: BTreeMap<TaskId, TaskId>,
    checkpoints: BTreeMap<CheckpointId, CheckpointId>,
    /// New ids of the current checkpoints of the graphs that continue, by old namespace.
    current_checkpoints: BTreeMap<Namespace, CheckpointId>,
}

impl IdMap {
    fn of(found: &ForkedGraphs<'_>, origin: &ThreadId, fork: &Checkpoint) -> Self {
        let checkpoints = assign_checkpoint_ids(found, fork.meta.id);
        let (namespaces, tasks, current_checkpoints) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut names = Self { namespaces, tasks, checkpoints, current_checkpoints };
        for graph in &found.graphs {
            let namespace = names.namespace(&graph.namespace);
            for (old, seat) in &graph.tasks {
                let base = names.base(graph, old);
                let new = TaskId::derive(origin, &namespace, base, &seat.node, seat.index);
                names.tasks.insert(old.clone(), new);
            }
            // The checkpoint id of a graph without checkpoints is the number of its superstep.
            let is_stored = graph.stored_checkpoint.is_some();
            let at = if is_stored {
                names.checkpoint(graph.checkpoint_id())
            } else {
                graph.checkpoint_id()
            };
            names.current_checkpoints.insert(graph.namespace.clone(), at);
            names.namespaces.insert(graph.namespace.clone(), namespace);
        }
        names
    }

    /// Returns the new namespace of a graph whose parent graph is known.
    fn namespace(&self, old: &Namespace) -> Namespace {
        if let Some(known) = self.namespaces.get(old) {
            return known.clone();
        }
        let Some(around) = old.parent() else { return Namespace::root() };
        let task = old.task().map(|task| self.task(&task));
        old.rebased(&self.namespace(&around), task.as_ref())
    }

    fn task(&self, old: &TaskId) -> TaskId {
        self.tasks.get(old).unwrap_or(old).clone()
    }

    fn checkpoint(&self, old: CheckpointId) -> CheckpointId {
        self.checkpoints.get(&old).copied().unwrap_or(old)
    }

    /// Returns the new base checkpoint of a task.
    fn base(&self, graph: &ForkedGraph<'_>, task: &TaskId) -> CheckpointId {
        let base = graph.tasks.get(task).map_or(graph.checkpoint_id(), |seat| seat.base);
        if graph.stored_checkpoint.is_some() { self.checkpoint(base) } else { base }
    }

    /// Returns the end of a subgraph with the ids of the fork. Only the end of a subgraph that
    /// keeps its state changes.
    fn subgraph_end(&self, old: &SubgraphEnd) -> SubgraphEnd {
        if !old.persists {
            return old.clone();
        }
        SubgraphEnd {
            namespace: self.namespace(&old.namespace),
            checkpoint: old.checkpoint.map(|id| self.checkpoint(id)),
            persists: true,
        }
    }

    /// Returns the new checkpoints of the parent graphs of an active subgraph.
    fn parents(
        &self,
        old: &BTreeMap<Namespace, CheckpointId>,
    ) -> BTreeMap<Namespace, CheckpointId> {
        let at = |namespace, id| self.current_checkpoints.get(namespace).copied().unwrap_or(id);
        old.iter().map(|(around, id)| (self.namespace(around), at(around, *id))).collect()
    }

    /// Copies the checkpoint of a subgraph under its new id. The copy contains all values in full,
    /// because the checkpoints before it belong to another namespace.
    fn copy_checkpoint(
        &self,
        old: &Checkpoint,
        parent_graphs: BTreeMap<Namespace, CheckpointId>,
        fork: &Checkpoint,
    ) -> Checkpoint {
        let id = self.checkpoint(old.meta.id);
        let children = old.meta.subgraph_checkpoints.iter();
        let children = children.map(|(child, id)| (self.namespace(child), self.checkpoint(*id)));
        let meta = CheckpointMeta {
            id,
            parent: Some(old.meta.id),
            namespace: self.namespace(&old.meta.namespace),
            source: CheckpointSource::Fork,
            run: fork.meta.run.clone(),
            at_ms: fork.meta.at_ms,
            subgraph_checkpoints: children.collect(),
            parent_graphs,
            versions: old.meta.versions.keys().map(|channel| (channel.clone(), id)).collect(),
            event_seq: None,
            ..old.meta.clone()
        };
        Checkpoint::new(meta, old.values.clone())
    }
}

/// Returns new ids for the copied checkpoints, directly below the id of the fork.
fn assign_checkpoint_ids(
    found: &ForkedGraphs<'_>,
    fork: CheckpointId,
) -> BTreeMap<CheckpointId, CheckpointId> {
    let remembered = found.idle_checkpoints.iter();
    let nested = found.graphs.iter().filter(|graph| !graph.namespace.is_root());
    let copied = remembered.chain(nested.filter_map(|graph| graph.stored_checkpoint.as_ref()));
    let first = fork.0 - found.copied_checkpoint_count();
    let numbered = copied.zip(first..).map(|(old, new)| (old.meta.id, CheckpointId(new)));
    let root = found.graphs.iter().filter(|graph| graph.namespace.is_root());
    numbered.chain(root.map(|graph| (graph.checkpoint_id(), fork))).collect()
}
