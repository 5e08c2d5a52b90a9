//! The content of an export, sorted by the checkpoints from which supersteps started.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, CheckpointSource};
use wattle_graph::event::{
    Called, Checkpointed, Event, EventKind, Reopened, RunReason, TaskFailed,
};
use wattle_graph::failure::Failure;
use wattle_graph::graph::NodeKind;
use wattle_graph::id::{CheckpointId, GraphName, Namespace, RunId, TaskId, call_path};

use super::values::StoredValues;
use crate::app::{App, GraphVersion};
use crate::export::Export;
use crate::hostcall::runs::START;
use crate::task::context::failure_json;
use crate::view::{AnswerIndex, Subgraphs};

/// The recorded log of a thread.
#[derive(Default)]
pub(super) struct Recording {
    checkpoints: BTreeMap<CheckpointId, CheckpointMeta>,
    values: StoredValues,
    /// Checkpoints of which some values are missing.
    incomplete: BTreeMap<CheckpointId, Namespace>,
    /// Events since each checkpoint, stored or not, of the graph that made it.
    events_since: BTreeMap<CheckpointId, Vec<Event>>,
    /// Checkpoint that the newest superstep from each checkpoint made, stored or not.
    successors: BTreeMap<CheckpointId, RecordedCheckpoint>,
    /// Events of subgraphs without checkpoints.
    unpersisted: BTreeMap<Namespace, Vec<Event>>,
    /// Subgraphs that calls of tasks started, by namespace.
    started_subgraphs: BTreeMap<Namespace, RecordedSubgraph>,
    /// Checkpoints that a reopen went back to, each with the newest checkpoint at that time.
    reopened: BTreeMap<CheckpointId, CheckpointId>,
    /// Run context of each run.
    contexts: BTreeMap<RunId, Value>,
    /// Runs of forks, which begin with copied tasks.
    forks: BTreeSet<RunId>,
    /// Failures, by the task of the error handler that handles them.
    handled_failures: BTreeMap<TaskId, TaskFailed>,
}

/// A checkpoint according to its event.
#[derive(Clone)]
pub(super) struct RecordedCheckpoint {
    pub(super) event: Checkpointed,
    pub(super) run: RunId,
    pub(super) at_ms: i64,
}

/// A subgraph that a call of a task started.
pub(super) struct RecordedSubgraph {
    pub(super) graph: GraphName,
    /// Input; `None` if it is too long for the journal.
    pub(super) input: Option<Value>,
    /// Run context; null if the subgraph uses the context of its run, `None` if the context is too
    /// long for the journal.
    context: Option<Value>,
    /// Id of the child run, by which `runs.wait` refers to it; null if the start failed.
    pub(super) run: Value,
}

/// The position up to which a log was read into a [`Recording`]: the state after the last event.
#[derive(Default)]
struct ReadPosition<'e> {
    current: BTreeMap<Namespace, CheckpointId>,
    /// Checkpoints of each graph, with their sequence numbers.
    checkpoints: BTreeMap<Namespace, Vec<(u64, CheckpointId)>>,
    newest: CheckpointId,
    answers: AnswerIndex,
    /// All events since each checkpoint of the root graph.
    since: BTreeMap<Option<CheckpointId>, Vec<&'e Event>>,
}

/// One superstep: the checkpoint at which it starts, and its events.
pub(super) struct RecordedSuperstep<'r> {
    pub(super) checkpoint: Checkpoint,
    pub(super) events: &'r [Event],
}

/// The successor of a checkpoint.
pub(super) enum Successor<'r> {
    /// A stored checkpoint.
    Stored(&'r CheckpointMeta),
    /// A checkpoint that only the log mentions.
    Logged(&'r RecordedCheckpoint),
    /// None: the superstep did not finish.
    Missing,
}

impl Recording {
    /// Reads an export.
    pub(super) fn of(export: &Export) -> Result<Self, Failure> {
        let mut record = Self::default();
        let mut position = ReadPosition::default();
        for batch in &export.batches {
            record.values.add_batch(batch)?;
            if let Some(meta) = &batch.checkpoint {
                record.add_checkpoint(meta);
            }
            for event in &batch.events {
                record.apply(event, &mut position);
            }
        }
        for events in position.since.into_values() {
            let subgraph_logs = Subgraphs::new(events).into_logs();
            let unpersisted =
                subgraph_logs.filter(|(_, subgraph_log)| subgraph_log.checkpoint.is_none());
            record.unpersisted.extend(
                unpersisted.map(|(namespace, subgraph_log)| (namespace, subgraph_log.events)),
            );
        }
        Ok(record)
    }

    /// Adds a checkpoint. A checkpoint that refers to values from before a prune cannot be
    /// replayed.
    fn add_checkpoint(&mut self, meta: &CheckpointMeta) {
        if self.values.has_all(meta) {
            self.checkpoints.insert(meta.id, meta.clone());
        } else {
            self.incomplete.insert(meta.id, meta.namespace.clone());
        }
    }

    fn apply<'e>(&mut self, event: &'e Event, position: &mut ReadPosition<'e>) {
        position.answers.apply(event);
        match &event.kind {
            EventKind::Checkpointed(made) => {
                self.apply_checkpoint(made, event, position);
                if !event.namespace.is_root() {
                    position.add_event(event);
                }
                return;
            }
            EventKind::Reopened(reopened) => {
                self.apply_reopened(reopened, position);
                position.current.insert(event.namespace.clone(), reopened.to);
            }
            EventKind::TaskFailed(failed) => {
                if let Some(handler) = &failed.handler {
                    self.handled_failures.insert(handler.clone(), failed.clone());
                }
            }
            EventKind::RunStarted(started) => {
                self.contexts.insert(event.run.clone(), started.context.clone());
                if started.reason == RunReason::Fork {
                    self.forks.insert(event.run.clone());
                }
            }
            EventKind::Called(called) if called.function == START => {
                self.add_started_subgraph(&event.namespace, called);
            }
            _ => {}
        }
        position.add_event(event);
        if let Some(checkpoint) = position.current.get(&event.namespace) {
            self.events_since.entry(*checkpoint).or_default().push(event.clone());
        }
    }

    fn apply_checkpoint(
        &mut self,
        facts: &Checkpointed,
        event: &Event,
        position: &mut ReadPosition<'_>,
    ) {
        let id = facts.checkpoint;
        let before = position.current.insert(event.namespace.clone(), id);
        if let Some(before) = before.filter(|_| facts.source == CheckpointSource::Loop) {
            let (run, at_ms) = (event.run.clone(), event.at_ms);
            self.successors.insert(before, RecordedCheckpoint { event: facts.clone(), run, at_ms });
        }
        position.checkpoints.entry(event.namespace.clone()).or_default().push((event.seq, id));
        position.newest = position.newest.max(id);
    }

    /// Adds a subgraph that a call started. The journal has the name of the graph, and each other
    /// field of the request that is not long.
    fn add_started_subgraph(&mut self, around: &Namespace, called: &Called) {
        let place = call_path(&called.scope, called.call);
        if let Some(graph) = called.request["graph"].as_str().and_then(|it| it.parse().ok()) {
            let inside = around.for_call(&called.node, &called.task, &place);
            let field = |name: &str| called.request.get(name).cloned();
            let (input, context) = (field("input"), field("context"));
            let run = called.result.as_ref().map_or(Value::Null, |run| run["run"].clone());
            self.started_subgraphs.insert(inside, RecordedSubgraph { graph, input, context, run });
        }
    }

    /// Applies a reopen: the thread and its interrupted subgraphs return to the checkpoints before
    /// the answers.
    fn apply_reopened(&mut self, reopened: &Reopened, position: &mut ReadPosition<'_>) {
        self.reopened.insert(reopened.to, position.newest);
        self.successors.remove(&reopened.to);
        let undone = position.answers.reopened_by(reopened);
        let nested = position.checkpoints.iter().filter(|(namespace, _)| !namespace.is_root());
        for (namespace, made) in nested.filter(|(namespace, _)| undone.covers(namespace)) {
            let Some((_, at)) = made.iter().rev().find(|(seq, _)| *seq < undone.since) else {
                position.current.remove(namespace);
                continue;
            };
            position.current.insert(namespace.clone(), *at);
            self.reopened.insert(*at, position.newest);
            self.successors.remove(at);
            if let Some(events) = self.events_since.get_mut(at) {
                events.retain(|event| event.seq < undone.since);
            }
        }
    }

    /// Returns the supersteps that start from stored checkpoints, in the order of the checkpoints.
    pub(super) fn supersteps(&self) -> impl Iterator<Item = RecordedSuperstep<'_>> {
        self.checkpoints.values().map(|meta| {
            let events = self.events_since(meta.id);
            RecordedSuperstep { checkpoint: self.with_values(meta), events }
        })
    }

    /// Returns the checkpoints that cannot be replayed, since some of their values were pruned.
    pub(super) fn incomplete(&self) -> impl Iterator<Item = (CheckpointId, &Namespace)> {
        self.incomplete.iter().map(|(id, namespace)| (*id, namespace))
    }

    /// Returns the events of a graph since a checkpoint, up to the next checkpoint.
    pub(super) fn events_since(&self, id: CheckpointId) -> &[Event] {
        self.events_since.get(&id).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns a stored checkpoint.
    pub(super) fn checkpoint(&self, id: CheckpointId) -> Option<Checkpoint> {
        self.checkpoints.get(&id).map(|meta| self.with_values(meta))
    }

    /// Returns true if a checkpoint is stored.
    pub(super) fn is_stored(&self, id: CheckpointId) -> bool {
        self.checkpoints.contains_key(&id)
    }

    /// Returns a stored checkpoint with its values.
    pub(super) fn with_values(&self, meta: &CheckpointMeta) -> Checkpoint {
        Checkpoint::new(meta.clone(), self.values.values_of(meta))
    }

    /// Returns the successor of a checkpoint since the last reopen that went back to it.
    pub(super) fn successor(&self, base: &CheckpointMeta) -> Successor<'_> {
        let undone = self.reopened.get(&base.id);
        let stored = self.checkpoints.values().rev().find(|meta| {
            meta.parent == Some(base.id)
                && meta.source == CheckpointSource::Loop
                && meta.step == base.step + 1
                && undone.is_none_or(|undone| meta.id > *undone)
        });
        match (stored, self.successors.get(&base.id)) {
            (Some(stored), _) => Successor::Stored(stored),
            (None, Some(made)) => Successor::Logged(made),
            (None, None) => Successor::Missing,
        }
    }

    /// Returns the events of a subgraph without checkpoints.
    pub(super) fn unpersisted(&self, namespace: &Namespace) -> Option<&[Event]> {
        self.unpersisted.get(namespace).map(Vec::as_slice)
    }

    /// Returns the subgraphs that calls of a task started.
    pub(super) fn started_by<'r>(
        &'r self,
        around: &'r Namespace,
        task: &'r TaskId,
    ) -> impl Iterator<Item = (&'r Namespace, &'r RecordedSubgraph)> {
        self.started_subgraphs.iter().filter(move |(inside, _)| {
            inside.parent().as_ref() == Some(around) && inside.task().as_ref() == Some(task)
        })
    }

    /// Returns the graph that runs in a namespace.
    pub(super) fn graph_of(
        &self,
        app: &App,
        root: &Arc<GraphVersion>,
        namespace: &Namespace,
    ) -> Option<Arc<GraphVersion>> {
        let Some(around) = namespace.parent() else { return Some(root.clone()) };
        let name = match self.started_subgraphs.get(namespace) {
            Some(started) => started.graph.clone(),
            None => {
                let around = self.graph_of(app, root, &around)?;
                match &around.graph.nodes().get(namespace.node())?.body {
                    NodeKind::Graph { graph, .. } => graph.clone(),
                    NodeKind::Plugin { .. } => return None,
                }
            }
        };
        app.graphs.get(&name).cloned()
    }

    /// Returns the context of a run.
    pub(super) fn run_context(&self, run: &RunId) -> Value {
        self.contexts.get(run).cloned().unwrap_or_default()
    }

    /// Returns the run context of a graph: the context from the call that started it or a parent
    /// graph, else that of the run. Returns `None` if that context is too long for the journal.
    pub(super) fn context_of(&self, run: &RunId, namespace: &Namespace) -> Option<Value> {
        for graph in namespace.ancestors() {
            let Some(started) = self.started_subgraphs.get(&graph) else { continue };
            let context = started.context.as_ref()?;
            if !context.is_null() {
                return Some(context.clone());
            }
        }
        Some(self.run_context(run))
    }

    /// Returns true if a run is a fork.
    pub(super) fn is_fork(&self, run: &RunId) -> bool {
        self.forks.contains(run)
    }

    /// Returns the failure that the graph of a checkpoint handles, if it or a parent graph runs as
    /// an error handler. A subgraph that a call started handles none.
    pub(super) fn handled_failure(&self, meta: &CheckpointMeta) -> Option<Value> {
        let mut inside = meta.namespace.clone();
        while inside.call_path().is_none() {
            let around = inside.parent()?;
            let task = inside.task().or_else(|| self.task_of(&inside, &around, meta));
            if let Some(failed) = task.and_then(|task| self.handled_failures.get(&task)) {
                return Some(failure_json(failed));
            }
            inside = around;
        }
        None
    }

    /// Returns the task that runs a subgraph with `state = "own"`, whose namespace does not contain
    /// the task id.
    fn task_of(
        &self,
        inside: &Namespace,
        around: &Namespace,
        meta: &CheckpointMeta,
    ) -> Option<TaskId> {
        let stored = meta.parent_graphs.get(around).and_then(|at| self.events_since.get(at));
        let events = stored.or_else(|| self.unpersisted.get(around))?;
        events.iter().rev().find_map(|event| match &event.kind {
            EventKind::TaskStarted(started) if started.node.as_str() == inside.node() => {
                Some(started.task.clone())
            }
            _ => None,
        })
    }

    /// Returns the number of supersteps that a graph executed in a run, or in an invocation, before
    /// a checkpoint.
    pub(super) fn steps_before(&self, meta: &CheckpointMeta, first_step: Option<u32>) -> u32 {
        if let Some(first) = first_step.filter(|_| meta.namespace.is_root()) {
            return meta.step.saturating_sub(first);
        }
        let began = self.checkpoints.values().rev().find(|it| {
            it.namespace == meta.namespace
                && it.id <= meta.id
                && it.source != CheckpointSource::Loop
        });
        began.map_or(0, |began| meta.step.saturating_sub(began.step))
    }
}

impl<'e> ReadPosition<'e> {
    /// Adds an event to the current checkpoint of the root graph.
    fn add_event(&mut self, event: &'e Event) {
        let at = self.current.get(&Namespace::root()).copied();
        self.since.entry(at).or_default().push(event);
    }
}
