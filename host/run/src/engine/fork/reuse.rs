//! Carries over the events of a superstep to a fork inside of it: those that do not depend on the
//! overridden call, or on the writes of a command.
//!
//! The tasks of the fork have new ids, so the events of the old tasks are written again under the
//! new ids. The namespace of a subgraph contains the id of its task. It changes with that id, and
//! so do the ids of the subgraph's tasks. The newest checkpoint of each such subgraph is copied.

use std::collections::BTreeMap;

use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, CheckpointSource};
use wattle_graph::event::{Checkpointed, EventKind, SubgraphEnd, TaskFinished};
use wattle_graph::id::{CheckpointId, Namespace, TaskId, ThreadId};

use super::copy::{Copy, Rows};
use super::order::Part;
use super::replaced::Replaced;
use super::site::{Site, Sites};

/// Events and checkpoints that a fork has before anything runs on it.
#[derive(Default)]
pub(super) struct TakenOver {
    /// Checkpoints of subgraphs, by id.
    pub checkpoints: Vec<Checkpoint>,
    /// The events that are carried over, and the call with its overriding result.
    pub events: Vec<(Namespace, EventKind)>,
}

/// Returns the events and checkpoints of a scan, rewritten for `fork`. The id of `fork` follows
/// those of the copied checkpoints. `origin` is the thread from which ids derive.
pub(super) fn taken_over(
    found: &Sites<'_>,
    origin: &ThreadId,
    fork: &Checkpoint,
    replaced: Option<&Replaced>,
) -> TakenOver {
    let names = Names::of(found, origin, fork);
    let mut checkpoints: Vec<Checkpoint> = found
        .remembered
        .iter()
        .map(|old| names.copy(old, old.meta.parent_graphs.clone(), fork))
        .collect();
    let (mut rows, mut last) = (Vec::new(), Vec::new());
    for site in &found.sites {
        let namespace = names.namespace(&site.namespace);
        let mut own = rows_of(site, &names);
        if let Some(old) = site.stored.as_ref().filter(|_| !site.namespace.is_root()) {
            let copy = names.copy(old, names.parents(&old.meta.parent_graphs), fork);
            let made = EventKind::Checkpointed(Checkpointed::from(&copy.meta));
            own.push((made_at(site, old.meta.id), made));
            checkpoints.push(copy);
        }
        rows.extend(own.into_iter().map(|(seq, kind)| (seq, namespace.clone(), kind)));
        if let Some(replaced) = replaced.filter(|it| it.namespace == site.namespace)
            && let Some(target) = &site.target
        {
            let new = names.task(&target.task);
            let kinds = copy(site, &target.task, &new).replaced(replaced);
            last.extend(kinds.into_iter().map(|kind| (namespace.clone(), kind)));
        }
    }
    rows.sort_by_key(|(seq, ..)| *seq);
    let events = rows.into_iter().map(|(_, namespace, kind)| (namespace, kind));
    checkpoints.sort_by_key(|checkpoint| checkpoint.meta.id);
    TakenOver { checkpoints, events: events.chain(last).collect() }
}

/// Returns the rewritten events of the tasks of one graph.
fn rows_of(site: &Site<'_>, names: &Names) -> Rows {
    let mut rows = Rows::new();
    for old in site.tasks.keys().filter(|task| !site.is_void(task)) {
        let new = names.task(old);
        let (copy, failed) = (copy(site, old, &new), site.lineage.failed.get(old));
        rows.extend(if let Some(finished) = site.lineage.finished.get(old) {
            let again = TaskFinished {
                child: finished.child.as_ref().map(|child| names.child(child)),
                ..finished.clone()
            };
            copy.finished(again, names.base(site, old))
        } else if let Some(handler) = failed.and_then(|failed| failed.handler.as_ref()) {
            copy.failed(Some(&names.task(handler)))
        } else if site.afresh.contains(old) {
            copy.answers(&site.lineage)
        } else if let Some(past) = site.known.past(old) {
            copy.journal(&Part::all(past), &site.lineage)
        } else {
            Rows::new()
        });
    }
    if let Some(target) = &site.target {
        let new = names.task(&target.task);
        let copy = copy(site, &target.task, &new);
        let journal = target.part().map(|part| copy.journal(&part, &site.lineage));
        let journal = journal.filter(|rows| !rows.is_empty());
        rows.extend(journal.unwrap_or_else(|| copy.begun().into_iter().collect()));
    }
    rows
}

fn copy<'a>(site: &'a Site<'_>, old: &'a TaskId, new: &'a TaskId) -> Copy<'a> {
    Copy { events: &site.known.tuple.events, namespace: &site.namespace, old, new }
}

/// Returns the sequence number at which a graph reached a checkpoint; 0 if it is not among the
/// events.
fn made_at(site: &Site<'_>, id: CheckpointId) -> u64 {
    let mut events = site.known.tuple.events.iter();
    let made = events.find(|event| {
        event.namespace == site.namespace
            && matches!(&event.kind, EventKind::Checkpointed(made) if made.checkpoint == id)
    });
    made.map_or(0, |event| event.seq)
}

/// Maps ids and namespaces to those of the fork.
struct Names {
    namespaces: BTreeMap<Namespace, Namespace>,
    tasks: BTreeMap<TaskId, TaskId>,
    checkpoints: BTreeMap<CheckpointId, CheckpointId>,
    /// New ids of the current checkpoints of the graphs that continue, by old namespace.
    standing: BTreeMap<Namespace, CheckpointId>,
}

impl Names {
    fn of(found: &Sites<'_>, origin: &ThreadId, fork: &Checkpoint) -> Self {
        let checkpoints = numbers(found, fork.meta.id);
        let (namespaces, tasks, standing) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut names = Self { namespaces, tasks, checkpoints, standing };
        for site in &found.sites {
            let namespace = names.namespace(&site.namespace);
            for (old, seat) in &site.tasks {
                let base = names.base(site, old);
                let new = TaskId::derive(origin, &namespace, base, &seat.node, seat.index);
                names.tasks.insert(old.clone(), new);
            }
            // The checkpoint id of a graph without checkpoints is the number of its superstep.
            let is_stored = site.stored.is_some();
            let at = if is_stored { names.checkpoint(site.at()) } else { site.at() };
            names.standing.insert(site.namespace.clone(), at);
            names.namespaces.insert(site.namespace.clone(), namespace);
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
    fn base(&self, site: &Site<'_>, task: &TaskId) -> CheckpointId {
        let base = site.tasks.get(task).map_or(site.at(), |seat| seat.base);
        if site.stored.is_some() { self.checkpoint(base) } else { base }
    }

    /// Returns the new end of a subgraph. It stays the same unless the subgraph keeps its state.
    fn child(&self, old: &SubgraphEnd) -> SubgraphEnd {
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
        let at = |namespace, id| self.standing.get(namespace).copied().unwrap_or(id);
        old.iter().map(|(around, id)| (self.namespace(around), at(around, *id))).collect()
    }

    /// Copies the checkpoint of a subgraph under its new id. The copy contains all values itself,
    /// because the checkpoints before it belong to another namespace.
    fn copy(
        &self,
        old: &Checkpoint,
        parents: BTreeMap<Namespace, CheckpointId>,
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
            parent_graphs: parents,
            versions: old.meta.versions.keys().map(|channel| (channel.clone(), id)).collect(),
            event_seq: None,
            ..old.meta.clone()
        };
        Checkpoint { meta, values: old.values.clone(), list_deltas: BTreeMap::new() }
    }
}

/// Returns new ids for the copied checkpoints, directly below the id of the fork.
fn numbers(found: &Sites<'_>, fork: CheckpointId) -> BTreeMap<CheckpointId, CheckpointId> {
    let remembered = found.remembered.iter();
    let nested = found.sites.iter().filter(|site| !site.namespace.is_root());
    let copied = remembered.chain(nested.filter_map(|site| site.stored.as_ref()));
    let first = fork.0 - found.copies();
    let numbered = copied.zip(first..).map(|(old, new)| (old.meta.id, CheckpointId(new)));
    let root = found.sites.iter().filter(|site| site.namespace.is_root());
    numbered.chain(root.map(|site| (site.at(), fork))).collect()
}
