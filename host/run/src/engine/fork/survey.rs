//! Finds the graphs in which a fork inside of a superstep continues: the root graph, the subgraphs
//! on the path to the overridden call, and other subgraphs that had not ended.

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta};
use wattle_graph::event::{Called, Event, EventKind};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, Namespace, NodeName, TaskId, ThreadId};
use wattle_graph::lineage::Lineage;
use wattle_graph::plan::possible_tasks;

use super::order::path;
use super::replaced::Replaced;
use super::site::{Known, Seat, Site, Sites, Target};
use crate::ports::store::Store;
use crate::view::{Strand, store_failure};

/// A scan for the state that a fork carries over.
pub(super) struct Survey<'a> {
    pub store: &'a dyn Store,
    pub thread: &'a ThreadId,
    /// The thread from which ids derive.
    pub origin: &'a ThreadId,
    /// The error handlers of all graphs of the app.
    pub handlers: BTreeSet<NodeName>,
    /// All events of the root graph's superstep.
    pub whole: &'a Known,
    /// The events of `whole` up to the first `reopened` event after the call.
    pub then: &'a Known,
    /// The overridden call; without it, everything that is pending is carried over.
    pub replaced: Option<&'a Replaced>,
    /// Tasks of the root graph that restart.
    pub afresh: BTreeSet<TaskId>,
}

impl<'a> Survey<'a> {
    /// Runs the scan.
    ///
    /// # Errors
    ///
    /// `conflict` if the log has no path to the call.
    pub(super) async fn make(&self) -> Result<Sites<'a>, Failure> {
        let mut found = Sites::default();
        let root = self.whole.tuple.checkpoint.clone();
        let mut waiting =
            vec![self.site(self.whole, &Namespace::root(), Some(root.clone()), root)?];
        while let Some(site) = waiting.pop() {
            for child in self.children(&site) {
                waiting.extend(self.child(&site, &child).await?);
            }
            self.remember(&site, &mut found.remembered).await?;
            found.sites.push(site);
        }
        Ok(found)
    }

    /// Returns true if the call is in a graph or in one of its subgraphs.
    fn is_on_the_way(&self, namespace: &Namespace) -> bool {
        let inside = self.replaced.map(|replaced| &replaced.namespace);
        inside.is_some_and(|inside| inside == namespace || inside.is_nested_in(namespace))
    }

    /// Returns the direct subgraph of a graph on the path to the call.
    fn next_on_the_way(&self, namespace: &Namespace) -> Option<Namespace> {
        self.replaced?.namespace.child_of(namespace)
    }

    /// Returns the direct subgraphs of a graph in which the fork continues.
    fn children(&self, site: &Site<'a>) -> Vec<Namespace> {
        let beside = site.known.strands().filter(|(namespace, strand)| {
            namespace.parent().as_ref() == Some(&site.namespace)
                && !self.is_on_the_way(namespace)
                && site.takes(namespace, strand)
        });
        let beside = beside.map(|(namespace, _)| namespace.clone());
        beside.chain(self.next_on_the_way(&site.namespace)).collect()
    }

    /// Returns a subgraph; `None` if nothing of its current invocation is known.
    async fn child(
        &self,
        around: &Site<'a>,
        namespace: &Namespace,
    ) -> Result<Option<Site<'a>>, Failure> {
        let is_on_the_way = self.is_on_the_way(namespace);
        let known = if is_on_the_way { self.then } else { around.known };
        let end = self.replaced.filter(|_| is_on_the_way).map_or(u64::MAX, |it| it.seq);
        let strand = known.strand(namespace).ok_or_else(|| self.no_way(namespace))?;
        let parents = around.parents_inside();
        let Some(at) = newest(strand, end) else {
            let at = CheckpointId(u64::from(step(strand, end)));
            let above = &self.whole.tuple.checkpoint.meta;
            let meta = CheckpointMeta {
                id: at,
                namespace: namespace.clone(),
                parent_graphs: parents,
                ..above.clone()
            };
            let checkpoint =
                Checkpoint { meta, values: BTreeMap::new(), list_deltas: BTreeMap::new() };
            return self.site(known, namespace, None, checkpoint).map(Some);
        };
        let stored = self.stored(namespace, at).await?;
        if !is_on_the_way && stored.meta.parent_graphs != parents {
            return Ok(None);
        }
        self.site(known, namespace, Some(stored.clone()), stored).map(Some)
    }

    /// Returns a graph at its checkpoint, stored or not.
    fn site(
        &self,
        known: &'a Known,
        namespace: &Namespace,
        stored: Option<Checkpoint>,
        checkpoint: Checkpoint,
    ) -> Result<Site<'a>, Failure> {
        let events = known.events_of(namespace);
        let mut lineage = Lineage::new(checkpoint);
        for event in &events {
            lineage.apply(event);
        }
        let tasks = self.tasks(&events, &lineage, stored.is_some());
        // A graph without checkpoints executes all of its supersteps again.
        for event in events.iter().filter(|_| stored.is_none()) {
            if let EventKind::TaskFinished(done) = &event.kind
                && tasks.contains_key(&done.task)
            {
                lineage.finished.entry(done.task.clone()).or_insert_with(|| done.clone());
            }
        }
        let afresh = if namespace.is_root() { self.afresh.clone() } else { BTreeSet::new() };
        let namespace = namespace.clone();
        let mut site = Site { namespace, known, stored, tasks, lineage, target: None, afresh };
        if let Some(replaced) = self.replaced
            && self.is_on_the_way(&site.namespace)
        {
            site.target = Some(self.target(&site, replaced)?);
        }
        Ok(site)
    }

    /// Returns the tasks with events: of the current superstep, and of all supersteps before it if
    /// the graph has no stored checkpoints.
    fn tasks(
        &self,
        events: &[Event],
        lineage: &Lineage,
        is_stored: bool,
    ) -> BTreeMap<TaskId, Seat> {
        let CheckpointMeta { id, namespace, next, .. } = &lineage.checkpoint.meta;
        let (mut tasks, mut nodes) = (BTreeSet::new(), self.handlers.clone());
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
            seats.extend(known.map(|(task, (node, index))| (task, Seat { base, node, index })));
        }
        seats
    }

    /// Returns the task of a graph on the path to the call that restarts.
    fn target(&self, site: &Site<'a>, replaced: &Replaced) -> Result<Target, Failure> {
        let Replaced { seq, called, .. } = replaced;
        let lost = || self.no_way(&site.namespace);
        let (task, place) = match self.next_on_the_way(&site.namespace) {
            None => {
                let Called { task, scope, call, batch, .. } = called;
                (task.clone(), Some((path(scope, *call), *batch)))
            }
            Some(child) => {
                let task = site.owner(&child, *seq).ok_or_else(lost)?;
                let place = match child.call_path() {
                    Some(place) => {
                        let wait = site.wait(&task, &place, *seq).ok_or_else(lost)?;
                        let batch = wait.last().copied().unwrap_or_default();
                        Some((wait, batch))
                    }
                    None => None,
                };
                (task, place)
            }
        };
        if !site.tasks.contains_key(&task) {
            return Err(lost());
        }
        Ok(Target { past: self.whole.attempt(&task, *seq), task, place })
    }

    /// Collects the last checkpoints of subgraphs that keep their state and have another namespace
    /// in the fork: those that the checkpoint of the graph names, and those of its finished tasks.
    async fn remember(
        &self,
        site: &Site<'a>,
        remembered: &mut Vec<Checkpoint>,
    ) -> Result<(), Failure> {
        let ended = site.lineage.finished.values().filter(|done| !site.is_void(&done.task));
        let ended = ended.filter_map(|done| {
            let child = done.child.as_ref().filter(|child| child.persists)?;
            Some((child.namespace.clone(), child.checkpoint?))
        });
        let begun = site.stored.iter().flat_map(|stored| stored.meta.subgraph_checkpoints.clone());
        let mut wanted: Vec<(Namespace, CheckpointId)> = begun.chain(ended).collect();
        while let Some((namespace, id)) = wanted.pop() {
            if is_moved(&namespace) && remembered.iter().all(|known| known.meta.id != id) {
                let checkpoint = self.stored(&namespace, id).await?;
                wanted.extend(checkpoint.meta.subgraph_checkpoints.clone());
                remembered.push(checkpoint);
            }
        }
        Ok(())
    }

    async fn stored(&self, namespace: &Namespace, id: CheckpointId) -> Result<Checkpoint, Failure> {
        let found = self.store.checkpoint(self.thread, namespace, Some(id)).await;
        let found = found.map_err(store_failure)?;
        found.map(|tuple| tuple.checkpoint).ok_or_else(|| self.no_way(namespace))
    }

    fn no_way(&self, namespace: &Namespace) -> Failure {
        let goal = match self.replaced {
            Some(Replaced { called: Called { task, node, .. }, .. }) => {
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
                self.whole.tuple.checkpoint.meta.id
            ),
        )
    }
}

/// Returns true if a namespace contains the id of a task, so that it differs in the fork.
fn is_moved(namespace: &Namespace) -> bool {
    namespace.ancestors().any(|it| it.task().is_some())
}

/// Returns the newest checkpoint of a subgraph before a sequence number.
fn newest(strand: &Strand, end: u64) -> Option<CheckpointId> {
    let mut before = strand.events.iter().rev().filter(|event| event.seq < end);
    before.find_map(|event| match &event.kind {
        EventKind::Checkpointed(made) => Some(made.checkpoint),
        _ => None,
    })
}

/// Returns the superstep of a subgraph at a sequence number.
fn step(strand: &Strand, end: u64) -> u32 {
    let mut before = strand.events.iter().rev().filter(|event| event.seq < end);
    before
        .find_map(|event| match &event.kind {
            EventKind::TaskStarted(begun) => Some(begun.step),
            _ => None,
        })
        .unwrap_or_default()
}
