//! What a fork inside of a superstep takes over from it: all that does not depend on the call whose
//! answer is replaced, or on what a command writes.
//!
//! The tasks of the fork have ids of their own, so what stands in the log of the old ones is
//! written again under the new ids. Where a task runs a graph its namespace changes with the id,
//! and so do the tasks of that graph. The newest checkpoint of each such graph is copied.

use std::collections::BTreeMap;

use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, Source};
use wattle_graph::event::{Checkpointed, ChildEnd, EventKind, TaskFinished};
use wattle_graph::id::{CheckpointId, Namespace, TaskId, ThreadId};

use super::copy::{Copy, Rows};
use super::order::Part;
use super::replaced::Replaced;
use super::site::{Site, Sites};

/// What happened on a fork before anything runs there.
#[derive(Default)]
pub(super) struct TakenOver {
    /// Checkpoints of nested graphs, by number.
    pub checkpoints: Vec<Checkpoint>,
    /// What is taken over, and the call with its new answer.
    pub events: Vec<(Namespace, EventKind)>,
}

/// Writes again what was found, on `fork`. Its number is the first after those of the copies.
/// `origin` is the thread that ids derive from.
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
        .map(|old| names.copy(old, old.meta.parents.clone(), fork))
        .collect();
    let (mut rows, mut last) = (Vec::new(), Vec::new());
    for site in &found.sites {
        let namespace = names.namespace(&site.namespace);
        let mut own = rows_of(site, &names);
        if let Some(old) = site.stored.as_ref().filter(|_| !site.namespace.is_root()) {
            let copy = names.copy(old, names.parents(&old.meta.parents), fork);
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

/// What is written again of the tasks of one graph.
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

/// The place in the log at which a graph's checkpoint was made.
fn made_at(site: &Site<'_>, id: CheckpointId) -> u64 {
    let mut events = site.known.tuple.events.iter();
    let made = events.find(|event| {
        event.namespace == site.namespace
            && matches!(&event.kind, EventKind::Checkpointed(made) if made.checkpoint == id)
    });
    made.map_or(0, |event| event.seq)
}

/// How everything is called in the fork.
struct Names {
    namespaces: BTreeMap<Namespace, Namespace>,
    tasks: BTreeMap<TaskId, TaskId>,
    checkpoints: BTreeMap<CheckpointId, CheckpointId>,
    /// Where the graphs stand that go on, by their old namespaces.
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
            // Of a graph that makes no checkpoints the number is that of its superstep.
            let is_stored = site.stored.is_some();
            let at = if is_stored { names.checkpoint(site.at()) } else { site.at() };
            names.standing.insert(site.namespace.clone(), at);
            names.namespaces.insert(site.namespace.clone(), namespace);
        }
        names
    }

    /// A graph, of which the one around it is known.
    fn namespace(&self, old: &Namespace) -> Namespace {
        if let Some(known) = self.namespaces.get(old) {
            return known.clone();
        }
        let Some(around) = old.parent() else { return Namespace::root() };
        let task = old.task().map(|task| self.task(&task));
        old.moved(&self.namespace(&around), task.as_ref())
    }

    fn task(&self, old: &TaskId) -> TaskId {
        self.tasks.get(old).unwrap_or(old).clone()
    }

    fn checkpoint(&self, old: CheckpointId) -> CheckpointId {
        self.checkpoints.get(&old).copied().unwrap_or(old)
    }

    /// The checkpoint that a task begins at.
    fn base(&self, site: &Site<'_>, task: &TaskId) -> CheckpointId {
        let base = site.tasks.get(task).map_or(site.at(), |seat| seat.base);
        if site.stored.is_some() { self.checkpoint(base) } else { base }
    }

    /// Where a graph ended: what it did stays where it is, unless it goes on from there.
    fn child(&self, old: &ChildEnd) -> ChildEnd {
        if !old.keeps {
            return old.clone();
        }
        ChildEnd {
            namespace: self.namespace(&old.namespace),
            checkpoint: old.checkpoint.map(|id| self.checkpoint(id)),
            keeps: true,
        }
    }

    /// Checkpoints of the graphs around one that is at work.
    fn parents(
        &self,
        old: &BTreeMap<Namespace, CheckpointId>,
    ) -> BTreeMap<Namespace, CheckpointId> {
        let at = |namespace, id| self.standing.get(namespace).copied().unwrap_or(id);
        old.iter().map(|(around, id)| (self.namespace(around), at(around, *id))).collect()
    }

    /// A nested graph's checkpoint under its new number. It holds all values itself, since those
    /// before it are of another graph.
    fn copy(
        &self,
        old: &Checkpoint,
        parents: BTreeMap<Namespace, CheckpointId>,
        fork: &Checkpoint,
    ) -> Checkpoint {
        let id = self.checkpoint(old.meta.id);
        let children = old.meta.children.iter();
        let children = children.map(|(child, id)| (self.namespace(child), self.checkpoint(*id)));
        let meta = CheckpointMeta {
            id,
            parent: Some(old.meta.id),
            namespace: self.namespace(&old.meta.namespace),
            source: Source::Fork,
            run: fork.meta.run.clone(),
            at_ms: fork.meta.at_ms,
            children: children.collect(),
            parents,
            versions: old.meta.versions.keys().map(|channel| (channel.clone(), id)).collect(),
            made_seq: None,
            ..old.meta.clone()
        };
        Checkpoint { meta, values: old.values.clone(), tails: BTreeMap::new() }
    }
}

/// New numbers of the checkpoints that are copied, just below that of the fork itself.
fn numbers(found: &Sites<'_>, fork: CheckpointId) -> BTreeMap<CheckpointId, CheckpointId> {
    let remembered = found.remembered.iter();
    let nested = found.sites.iter().filter(|site| !site.namespace.is_root());
    let copied = remembered.chain(nested.filter_map(|site| site.stored.as_ref()));
    let first = fork.0 - found.copies();
    let numbered = copied.zip(first..).map(|(old, new)| (old.meta.id, CheckpointId(new)));
    let root = found.sites.iter().filter(|site| site.namespace.is_root());
    numbered.chain(root.map(|site| (site.at(), fork))).collect()
}
