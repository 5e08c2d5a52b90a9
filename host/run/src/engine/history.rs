//! Reads the states of a thread at its checkpoints.

use std::collections::BTreeSet;

use serde_json::Value;
use wattle_graph::definition::SubgraphState;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::{Graph, NodeKind};
use wattle_graph::id::{
    ChannelName, CheckpointId, GraphName, Namespace, NodeName, TaskId, ThreadId,
};
use wattle_graph::lineage::Lineage;
use wattle_graph::plan::{Plan, plan};

use super::app_code::LoadedCode;
use super::{Engine, thread_not_found};
use crate::app::{App, GraphVersion};
use crate::hostcall::runs::InterruptView;
use crate::limit;
use crate::ports::store::{
    CheckpointParts, CheckpointQuery, CheckpointTuple, ListPage, ThreadHead,
};
use crate::time_travel::{HistoryQuery, StateView, TaskView};
use crate::unpersisted_events;
use crate::view::{self, Subgraphs};

impl Engine {
    /// Returns the state of a thread, or of one of its subgraphs, at a checkpoint: without
    /// `checkpoint`, at the current checkpoint.
    ///
    /// # Errors
    ///
    /// `not-found` if the thread or the checkpoint does not exist.
    pub async fn state(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        checkpoint: Option<CheckpointId>,
    ) -> Result<StateView, Failure> {
        check_namespace(namespace)?;
        let head = self.visible_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        let is_root = namespace.is_root();
        let id = checkpoint.or(if is_root { head.current } else { None });
        let found = match id {
            Some(id) => self.0.states.checkpoint(thread, namespace, id).await?,
            None if is_root => None,
            None => self.0.ports.store.checkpoint(thread, namespace, None).await?,
        };
        let tuple = found.ok_or_else(|| checkpoint_not_found(thread, namespace, id))?;
        let code = self.loaded_code(&head.record).await;
        self.state_view(&head, &code, tuple).await
    }

    /// Returns the states of a thread at its checkpoints, newest first. A page has at most
    /// [`HISTORY_BYTES`](limit::HISTORY_BYTES), unless its first state alone is larger. If the
    /// query excludes states, no channel values are read.
    ///
    /// # Errors
    ///
    /// `not-found` if the thread does not exist.
    pub async fn history(
        &self,
        thread: &ThreadId,
        query: HistoryQuery,
    ) -> Result<ListPage<StateView>, Failure> {
        check_namespace(&query.namespace)?;
        let head = self.visible_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        let has_states = !query.without_states;
        let query = CheckpointQuery {
            namespace: Some(query.namespace),
            before: query.before,
            filter: query.filter,
            limit: query.limit,
            parts: if has_states { CheckpointParts::All } else { CheckpointParts::WithoutValues },
        };
        let store = self.0.ports.store.as_ref();
        let page = store.checkpoints(thread, &query).await?;
        let code = self.loaded_code(&head.record).await;
        let mut items = Vec::with_capacity(page.items.len());
        for tuple in page.items {
            let mut view = self.state_view(&head, &code, tuple).await?;
            if !has_states {
                view.values = Value::Null;
            }
            items.push(view);
        }
        Ok(ListPage { items, is_last: page.is_last })
    }

    /// Returns the channels of the graph in a namespace of a thread, in the version of the code
    /// that the thread is pinned to. Returns `None` if that graph is unknown: the code cannot
    /// be loaded now, or no call since the current checkpoint started a subgraph with this namespace.
    ///
    /// # Errors
    ///
    /// `not-found` if the thread does not exist.
    pub async fn channels(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
    ) -> Result<Option<BTreeSet<ChannelName>>, Failure> {
        check_namespace(namespace)?;
        let head = self.visible_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        let Some((app, graph_version)) = self.loaded_code(&head.record).await else {
            return Ok(None);
        };
        // The code names the graphs that nodes run; the log names the graphs that calls started.
        let is_started = namespace.ancestors().any(|graph| graph.call_path().is_some());
        let events = if is_started {
            let tuple = view::current_checkpoint(&self.0.states, &head).await?;
            tuple.map(|tuple| tuple.events).unwrap_or_default()
        } else {
            Vec::new()
        };
        let found = graph_at(&app, &graph_version, &events, namespace);
        Ok(found.map(|found| found.graph.channels().keys().cloned().collect()))
    }

    /// Returns a checkpoint of the root graph.
    pub(super) async fn root_checkpoint(
        &self,
        thread: &ThreadId,
        id: CheckpointId,
    ) -> Result<CheckpointTuple, Failure> {
        let root = Namespace::root();
        let found = self.0.states.checkpoint(thread, &root, id).await?;
        found.ok_or_else(|| checkpoint_not_found(thread, &root, Some(id)))
    }

    async fn state_view(
        &self,
        head: &ThreadHead,
        code: &LoadedCode,
        tuple: CheckpointTuple,
    ) -> Result<StateView, Failure> {
        let record = &head.record;
        let log = self.checkpoint_log(head, tuple).await?;
        let CheckpointLog { events, subgraphs, lineage, pending: interrupts, asked } = log;
        let namespace = &lineage.checkpoint.meta.namespace;
        let graph_version = code
            .as_ref()
            .and_then(|(app, graph_version)| graph_at(app, graph_version, &events, namespace));
        let graph = graph_version.map(|graph_version| &graph_version.graph);
        let meta = &lineage.checkpoint.meta;
        let builder = TaskViewBuilder {
            graph,
            lineage: &lineage,
            subgraphs: &subgraphs,
            pending: &interrupts,
            asked: &asked,
        };
        let tasks = builder.tasks(record.origin());
        Ok(StateView {
            thread: record.id.clone(),
            namespace: meta.namespace.clone(),
            checkpoint: meta.id,
            parent: meta.parent,
            parents: meta.parent_graphs.clone(),
            source: meta.source,
            step: meta.step,
            run: meta.run.clone(),
            version: meta.version,
            at_ms: meta.at_ms,
            values: lineage.checkpoint.state(),
            changed: meta.written_channels().cloned().collect(),
            writers: meta.writers.clone(),
            next: meta.next.iter().map(|trigger| trigger.node.clone()).collect(),
            tasks,
            interrupts,
            asked,
            metadata: meta.metadata.clone(),
        })
    }

    /// Returns the interrupts at which a thread stopped at a checkpoint of its root graph. Does not
    /// load the code of the thread.
    pub(super) async fn interrupts_of_stop(
        &self,
        head: &ThreadHead,
        tuple: CheckpointTuple,
    ) -> Result<Vec<InterruptView>, Failure> {
        Ok(self.checkpoint_log(head, tuple).await?.asked)
    }

    /// Reads the events since a checkpoint.
    async fn checkpoint_log(
        &self,
        head: &ThreadHead,
        tuple: CheckpointTuple,
    ) -> Result<CheckpointLog, Failure> {
        let is_current = head.current == Some(tuple.checkpoint.meta.id);
        let events = self.events_since(&head.record.id, &tuple, is_current).await?;
        let subgraphs = Subgraphs::new(&events);
        let mut lineage = Lineage::new(tuple.checkpoint);
        for event in &events {
            lineage.apply(event);
        }
        let (pending, asked) = interrupts_at(head, &lineage, &subgraphs, &events);
        Ok(CheckpointLog { events, subgraphs, lineage, pending, asked })
    }

    /// Returns the events since a checkpoint. The events of a subgraph belong to the checkpoint of
    /// the root graph. `is_current` is true if the thread is at the checkpoint.
    async fn events_since(
        &self,
        thread: &ThreadId,
        tuple: &CheckpointTuple,
        is_current: bool,
    ) -> Result<Vec<Event>, Failure> {
        let store = self.0.ports.store.as_ref();
        let root = Namespace::root();
        let meta = &tuple.checkpoint.meta;
        let whole = match meta.parent_graphs.get(&root).filter(|_| !meta.namespace.is_root()) {
            Some(above) => {
                let outline = store.checkpoint_outline(thread, &root, *above).await;
                outline.map(|outline| outline.map(|outline| outline.tuple))
            }
            None if is_current => {
                unpersisted_events::with_earlier_events(store, tuple.clone(), thread)
                    .await
                    .map(Some)
            }
            None => return Ok(tuple.events.clone()),
        };
        Ok(whole?.map(|tuple| tuple.events).unwrap_or_default())
    }
}

/// A checkpoint with the events since it. The code of the thread is not needed to read it.
struct CheckpointLog {
    events: Vec<Event>,
    subgraphs: Subgraphs,
    lineage: Lineage,
    /// The pending interrupts.
    pending: Vec<InterruptView>,
    /// The interrupts that the thread waited for when it last stopped at the checkpoint.
    asked: Vec<InterruptView>,
}

/// Rejects a namespace that is deeper than any subgraph, before its levels are traversed.
pub(super) fn check_namespace(namespace: &Namespace) -> Result<(), Failure> {
    let depth = namespace.depth();
    if depth <= limit::GRAPH_DEPTH {
        return Ok(());
    }
    let text = format!(
        "there is no subgraph at depth {depth}: the maximum depth of subgraphs is {}",
        limit::GRAPH_DEPTH
    );
    Err(Failure::new(code::NOT_FOUND, text))
}

pub(super) fn checkpoint_not_found(
    thread: &ThreadId,
    namespace: &Namespace,
    id: Option<CheckpointId>,
) -> Failure {
    let place = match namespace.as_str() {
        "" => " of its root graph".to_owned(),
        name => format!(" of the subgraph `{name}`"),
    };
    let what = id.map_or_else(|| "no checkpoint".to_owned(), |id| format!("no checkpoint {id}"));
    Failure::new(
        code::NOT_FOUND,
        format!(
            "thread `{thread}` has {what}{place}; pruned checkpoints are gone, and the history of \
             the thread lists those that remain"
        ),
    )
}

/// Returns the pending interrupts of a checkpoint, and the interrupts that the thread waited for
/// when it last stopped there.
fn interrupts_at(
    head: &ThreadHead,
    lineage: &Lineage,
    subgraphs: &Subgraphs,
    events: &[Event],
) -> (Vec<InterruptView>, Vec<InterruptView>) {
    let meta = &lineage.checkpoint.meta;
    let expires_ms = head.record.expires_ms.filter(|_| head.current == Some(meta.id));
    let open = if meta.namespace.is_root() {
        view::pending_interrupts(lineage, subgraphs, expires_ms)
    } else {
        view::graph_interrupts(lineage, expires_ms)
    };
    if !is_past(head, lineage, subgraphs) {
        return (open.clone(), open);
    }
    let asked = view::past_interrupts(&meta.namespace, meta.id, events).into_iter();
    let asked = asked.map(|(graph, question)| view::interrupt_view(&graph, &question, None));
    (open, asked.collect())
}

/// Returns true if a checkpoint is no longer the current one of its graph.
fn is_past(head: &ThreadHead, lineage: &Lineage, subgraphs: &Subgraphs) -> bool {
    let meta = &lineage.checkpoint.meta;
    if meta.namespace.is_root() {
        return head.current != Some(meta.id);
    }
    let stands = subgraphs
        .get(&meta.namespace)
        .is_some_and(|subgraph_log| subgraph_log.checkpoint == Some(meta.id));
    !stands || meta.parent_graphs.get(&Namespace::root()).copied() != head.current
}

/// The parts of a checkpoint from which its task views are built.
struct TaskViewBuilder<'a> {
    graph: Option<&'a Graph>,
    lineage: &'a Lineage,
    subgraphs: &'a Subgraphs,
    pending: &'a [InterruptView],
    asked: &'a [InterruptView],
}

impl TaskViewBuilder<'_> {
    /// Returns the tasks that start from the checkpoint. Without the graph, these are the tasks
    /// with events in the log.
    fn tasks(&self, origin: &ThreadId) -> Vec<TaskView> {
        let lineage = self.lineage;
        let planned: Vec<(TaskId, NodeName, u32)> = match self.graph {
            None => tasks_in_log(lineage),
            // The new lineage has no events, so the plan contains every task of the superstep.
            Some(graph) => {
                match plan(graph, origin, &Lineage::new(lineage.checkpoint.clone()), 1) {
                    Plan::Tasks { runnable, .. } => {
                        runnable.into_iter().map(|task| (task.id, task.node, task.index)).collect()
                    }
                    _ => Vec::new(),
                }
            }
        };
        planned.into_iter().map(|(id, node, index)| self.task(id, node, index)).collect()
    }

    fn task(&self, id: TaskId, node: NodeName, index: u32) -> TaskView {
        let lineage = self.lineage;
        let finished = lineage.finished.get(&id);
        let failure = lineage.failed.get(&id).map(|failed| failed.failure.clone());
        let own = |questions: &[InterruptView]| {
            let own = questions.iter().filter(|question| self.belongs_to(question, &id, &node));
            own.cloned().collect::<Vec<_>>()
        };
        let (interrupts, asked) = (own(self.pending), own(self.asked));
        let runs = self.graph.and_then(|graph| subgraph_namespace(graph, lineage, &node, &id));
        let namespace = runs.or_else(|| self.started_subgraph(&id, &asked));
        let ended = finished.and_then(|finished| finished.child.as_ref()?.checkpoint);
        let stands = || self.subgraphs.get(namespace.as_ref()?)?.checkpoint;
        TaskView {
            writes: finished.map(|finished| finished.writes.clone()),
            failure: failure.filter(|_| finished.is_none()),
            child: ended.or_else(stands),
            interrupts,
            asked,
            namespace,
            id,
            node,
            index,
        }
    }

    /// Returns true if an interrupt belongs to a task, or to a subgraph inside of it.
    fn belongs_to(&self, question: &InterruptView, task: &TaskId, node: &NodeName) -> bool {
        let above = &self.lineage.checkpoint.meta.namespace;
        match question.namespace.child_of(above) {
            Some(level) => level.task().map_or(level.node() == node.as_str(), |it| it == *task),
            None => {
                let mut known = self.lineage.interrupts.iter();
                known.any(|(id, known)| id.as_str() == question.id && known.raised.task == *task)
            }
        }
    }

    /// Returns the subgraph that a call of a task started, if its checkpoints are stored: of
    /// several, one that raised an interrupt, or else the newest.
    fn started_subgraph(&self, task: &TaskId, asked: &[InterruptView]) -> Option<Namespace> {
        let above = &self.lineage.checkpoint.meta.namespace;
        let started = self.subgraphs.iter().filter(|(graph, subgraph_log)| {
            graph.parent().as_ref() == Some(above)
                && graph.task().as_ref() == Some(task)
                && graph.call_path().is_some()
                && subgraph_log.checkpoint.is_some()
        });
        let newest = started.max_by_key(|(graph, subgraph_log)| {
            let has_asked = asked.iter().any(|question| {
                question.namespace == **graph || question.namespace.is_nested_in(graph)
            });
            (has_asked, subgraph_log.checkpoint_seq())
        });
        newest.map(|(graph, _)| graph.clone())
    }
}

/// Returns the graph of a namespace. A node names the subgraph that it runs. For a graph that a
/// call started, the call is found in `events`: the events since the checkpoint of the root graph.
pub(super) fn graph_at<'c>(
    app: &'c App,
    graph_version: &'c GraphVersion,
    events: &[Event],
    namespace: &Namespace,
) -> Option<&'c GraphVersion> {
    let Some(around) = namespace.parent() else { return Some(graph_version) };
    let graph = match (namespace.task(), namespace.call_path()) {
        (Some(task), Some(place)) => started_graph(events, &task, &place)?,
        _ => {
            let around = graph_at(app, graph_version, events, &around)?;
            let node = NodeName::new(namespace.node()).ok()?;
            match &around.graph.node(&node)?.body {
                NodeKind::Graph { graph, .. } => graph.clone(),
                NodeKind::Plugin { .. } => return None,
            }
        }
    };
    app.graphs.get(&graph).map(AsRef::as_ref)
}

/// Returns the name of the graph that a call of a task started.
fn started_graph(events: &[Event], task: &TaskId, place: &[u32]) -> Option<GraphName> {
    let (number, scope) = place.split_last()?;
    events.iter().find_map(|event| match &event.kind {
        EventKind::Called(called)
            if called.task == *task && called.scope == scope && called.call == *number =>
        {
            GraphName::new(called.request["graph"].as_str()?).ok()
        }
        _ => None,
    })
}

/// Returns the namespace of the subgraph that runs as a task, if it has checkpoints.
fn subgraph_namespace(
    graph: &Graph,
    lineage: &Lineage,
    node: &NodeName,
    task: &TaskId,
) -> Option<Namespace> {
    let NodeKind::Graph { state, .. } = &graph.node(node)?.body else { return None };
    let above = &lineage.checkpoint.meta.namespace;
    match state {
        SubgraphState::Inherit => Some(above.for_task(node, task)),
        SubgraphState::Own => Some(above.for_node(node)),
        SubgraphState::None => None,
    }
}

fn tasks_in_log(lineage: &Lineage) -> Vec<(TaskId, NodeName, u32)> {
    let finished = lineage.finished.values();
    let mut known: Vec<(TaskId, NodeName, u32)> =
        finished.map(|task| (task.task.clone(), task.node.clone(), task.index)).collect();
    let failed = lineage.failed.values().map(|task| (task.task.clone(), task.node.clone(), 0));
    let raised = lineage.interrupts.values().map(|question| &question.raised);
    let raised = raised.map(|raised| (raised.task.clone(), raised.node.clone(), 0));
    for task in failed.chain(raised) {
        if !known.iter().any(|(id, ..)| *id == task.0) {
            known.push(task);
        }
    }
    known.sort_by(|one, other| (&one.1, one.2).cmp(&(&other.1, other.2)));
    known
}
