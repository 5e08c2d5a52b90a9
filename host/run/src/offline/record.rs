//! What an export says happened, sorted by the checkpoints from which it started.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, Source, Values};
use wattle_graph::event::{Called, Event, EventKind, Reopened};
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::Body;
use wattle_graph::id::{ChannelName, CheckpointId, GraphName, Namespace, RunId};

use crate::app::{App, GraphPack};
use crate::export::Export;
use crate::ports::store::{StoredBatch, StoredValue};
use crate::view::Answers;

/// What happened on a thread.
pub(super) struct Record {
    checkpoints: BTreeMap<CheckpointId, Checkpoint>,
    /// Events since each checkpoint, in the graph that made it.
    since: BTreeMap<CheckpointId, Vec<Event>>,
    /// Graphs that calls of tasks started, by where they ran.
    started: BTreeMap<Namespace, Started>,
    /// The newest checkpoint there was when the thread, or a graph in it, went back to one.
    undone: BTreeMap<CheckpointId, CheckpointId>,
    /// The run context of each run.
    contexts: BTreeMap<RunId, Value>,
}

/// A graph that a call of a task started.
struct Started {
    graph: GraphName,
    /// Its run context; null if it has that of its run.
    context: Value,
}

/// Where graphs stand while their past is read.
#[derive(Default)]
struct Course {
    at: BTreeMap<Namespace, CheckpointId>,
    /// Checkpoints of each graph, with their places in the log.
    made: BTreeMap<Namespace, Vec<(u64, CheckpointId)>>,
    newest: CheckpointId,
    answers: Answers,
}

/// One superstep: where it started, what happened, and what was made of it.
pub(super) struct Segment<'r> {
    pub(super) checkpoint: &'r Checkpoint,
    pub(super) events: &'r [Event],
    /// The checkpoint that applied its writes; `None` if it is not over, or that is not stored.
    pub(super) next: Option<&'r Checkpoint>,
    /// Whether only a checkpoint several supersteps later is stored.
    pub(super) leaps: bool,
}

impl Record {
    /// Reads an export.
    pub(super) fn of(export: &Export) -> Result<Self, Failure> {
        let mut record = Self {
            checkpoints: BTreeMap::new(),
            since: BTreeMap::new(),
            started: BTreeMap::new(),
            undone: BTreeMap::new(),
            contexts: BTreeMap::new(),
        };
        let mut written: BTreeMap<(ChannelName, CheckpointId), Arc<Value>> = BTreeMap::new();
        let mut course = Course::default();
        for batch in &export.batches {
            keep_values(batch, &mut written)?;
            if let Some(meta) = &batch.checkpoint {
                record.keep_checkpoint(meta, &written);
            }
            for event in &batch.events {
                record.see(event, &mut course);
            }
        }
        Ok(record)
    }

    /// A checkpoint that refers to values from before the thread was pruned is left out.
    fn keep_checkpoint(
        &mut self,
        meta: &CheckpointMeta,
        written: &BTreeMap<(ChannelName, CheckpointId), Arc<Value>>,
    ) {
        let value = |(name, version): (&ChannelName, &CheckpointId)| {
            let value = written.get(&(name.clone(), *version))?;
            Some((name.clone(), value.clone()))
        };
        let values: Option<Values> = meta.versions.iter().map(value).collect();
        if let Some(values) = values {
            let checkpoint = Checkpoint { meta: meta.clone(), values, tails: BTreeMap::new() };
            self.checkpoints.insert(meta.id, checkpoint);
        }
    }

    fn see(&mut self, event: &Event, course: &mut Course) {
        course.answers.see(event);
        match &event.kind {
            EventKind::Checkpointed(made) => {
                course.at.insert(event.namespace.clone(), made.checkpoint);
                let all = course.made.entry(event.namespace.clone()).or_default();
                all.push((event.seq, made.checkpoint));
                course.newest = course.newest.max(made.checkpoint);
                return;
            }
            EventKind::Reopened(reopened) => {
                self.go_back(reopened, course);
                course.at.insert(event.namespace.clone(), reopened.to);
            }
            EventKind::RunStarted(started) => {
                self.contexts.insert(event.run.clone(), started.context.clone());
            }
            EventKind::Called(called) if called.function == "runs.start" => {
                self.start(&event.namespace, called);
            }
            _ => {}
        }
        if let Some(checkpoint) = course.at.get(&event.namespace) {
            self.since.entry(*checkpoint).or_default().push(event.clone());
        }
    }

    /// A graph whose request is cut in the journal stays unknown.
    fn start(&mut self, around: &Namespace, called: &Called) {
        let path = called.scope.iter().chain([&called.call]).map(ToString::to_string);
        let place = path.collect::<Vec<_>>().join(".");
        if let Some(graph) = called.request["graph"].as_str().and_then(|it| it.parse().ok()) {
            let inside = around.of_call(&called.node, &called.task, &place);
            let context = called.request["context"].clone();
            self.started.insert(inside, Started { graph, context });
        }
    }

    /// Takes back what led nowhere: the thread, and graphs in it that had asked, stand where they
    /// stood before the answers.
    fn go_back(&mut self, reopened: &Reopened, course: &mut Course) {
        self.undone.insert(reopened.to, course.newest);
        let undone = course.answers.undone_by(reopened);
        let nested = course.made.iter().filter(|(namespace, _)| !namespace.is_root());
        for (namespace, made) in nested.filter(|(namespace, _)| undone.covers(namespace)) {
            let Some((_, at)) = made.iter().rev().find(|(seq, _)| *seq < undone.since) else {
                course.at.remove(namespace);
                continue;
            };
            course.at.insert(namespace.clone(), *at);
            self.undone.insert(*at, course.newest);
            if let Some(events) = self.since.get_mut(at) {
                events.retain(|event| event.seq < undone.since);
            }
        }
    }

    /// All supersteps, in the order of their checkpoints.
    pub(super) fn segments(&self) -> Vec<Segment<'_>> {
        let segment = |checkpoint: &'_ Checkpoint| {
            let id = checkpoint.meta.id;
            let events = self.since.get(&id).map(Vec::as_slice).unwrap_or_default();
            (id, events)
        };
        self.checkpoints
            .values()
            .map(|checkpoint| {
                let (id, events) = segment(checkpoint);
                let later = self.next(id);
                let follows = |next: &&Checkpoint| next.meta.step == checkpoint.meta.step + 1;
                let next = later.filter(follows);
                Segment { checkpoint, events, next, leaps: later.is_some() && next.is_none() }
            })
            .collect()
    }

    /// What was made from a checkpoint since it was last gone back to.
    fn next(&self, id: CheckpointId) -> Option<&Checkpoint> {
        let undone = self.undone.get(&id);
        self.checkpoints.values().rev().find(|checkpoint| {
            let meta = &checkpoint.meta;
            meta.parent == Some(id)
                && meta.source == Source::Loop
                && undone.is_none_or(|undone| meta.id > *undone)
        })
    }

    /// The graph that runs in a namespace.
    pub(super) fn graph_of(
        &self,
        app: &App,
        root: &Arc<GraphPack>,
        namespace: &Namespace,
    ) -> Option<Arc<GraphPack>> {
        let Some(around) = namespace.parent() else { return Some(root.clone()) };
        let name = match self.started.get(namespace) {
            Some(started) => started.graph.clone(),
            None => {
                let around = self.graph_of(app, root, &around)?;
                match &around.graph.nodes().get(namespace.node())?.body {
                    Body::Graph { graph, .. } => graph.clone(),
                    Body::Plugin { .. } => return None,
                }
            }
        };
        app.graphs.get(&name).cloned()
    }

    /// The run context of a graph: that which the call gave it that started it, or one around it,
    /// else that of the run.
    pub(super) fn context_of(&self, run: &RunId, namespace: &Namespace) -> Value {
        let mut around = std::iter::successors(Some(namespace.clone()), Namespace::parent);
        let given = around.find_map(|graph| {
            let started = self.started.get(&graph)?;
            (!started.context.is_null()).then(|| started.context.clone())
        });
        given.or_else(|| self.contexts.get(run).cloned()).unwrap_or_default()
    }

    /// How many supersteps a graph had taken in one run, or one invocation, before a checkpoint.
    pub(super) fn steps_before(&self, checkpoint: &Checkpoint, first_step: Option<u32>) -> u32 {
        let meta = &checkpoint.meta;
        if let Some(first) = first_step.filter(|_| meta.namespace.is_root()) {
            return meta.step.saturating_sub(first);
        }
        let began = self.checkpoints.values().rev().find(|it| {
            it.meta.namespace == meta.namespace
                && it.meta.id <= meta.id
                && it.meta.source != Source::Loop
        });
        began.map_or(0, |began| meta.step.saturating_sub(began.meta.step))
    }
}

/// Keeps the values that a batch wrote, each whole.
fn keep_values(
    batch: &StoredBatch,
    written: &mut BTreeMap<(ChannelName, CheckpointId), Arc<Value>>,
) -> Result<(), Failure> {
    let Some(meta) = &batch.checkpoint else { return Ok(()) };
    for (channel, stored) in &batch.values {
        let value = match stored {
            StoredValue::Whole(value) => value.clone(),
            StoredValue::Tail { base, keep, items } => {
                let before = written.get(&(channel.clone(), *base));
                let kept = before
                    .and_then(|before| before.as_array()?.get(..*keep as usize))
                    .ok_or_else(|| {
                        Failure::new(
                            code::BROKEN,
                            format!("the value of `{channel}` at {base} is not in the export"),
                        )
                    })?;
                Value::Array(kept.iter().chain(items).cloned().collect())
            }
        };
        written.insert((channel.clone(), meta.id), Arc::new(value));
    }
    Ok(())
}
