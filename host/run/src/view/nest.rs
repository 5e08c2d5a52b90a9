//! Subgraphs, as the events since a checkpoint of the root graph show them.
//!
//! All events of a superstep of the root graph belong to that graph's checkpoint, whatever checkpoints subgraphs make
//! meanwhile. The events of one checkpoint therefore show the position and the interrupts of every subgraph.

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{Event, EventKind, Reopened};
use wattle_graph::id::{CheckpointId, InterruptId, Namespace, NodeName, TaskId};
use wattle_graph::interrupt::Interrupt;

/// The subgraphs of a thread.
#[derive(Debug, Default)]
pub(crate) struct Nest(BTreeMap<Namespace, Strand>);

/// One subgraph.
#[derive(Clone, Debug)]
pub(crate) struct Strand {
    /// Newest checkpoint; `None` if the subgraph makes none.
    pub at: Option<CheckpointId>,
    /// Events of the subgraph.
    pub events: Vec<Event>,
    /// True while the parent graph waits for the subgraph.
    is_live: bool,
}

impl Nest {
    /// Sorts the events since a checkpoint of the root graph by subgraph.
    pub(crate) fn new<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut nest = Self::default();
        let mut answers = Answers::default();
        // End of the first superstep of the root graph, if several supersteps were not persisted (durability `exit`).
        let mut went_on = None;
        for event in events {
            answers.see(event);
            match &event.kind {
                EventKind::Checkpointed(_) => {
                    if event.namespace.is_root() {
                        went_on.get_or_insert(event.seq);
                    }
                    nest.leave_behind(|known| known.is_nested_in(&event.namespace));
                }
                EventKind::TaskFinished(done) => nest.task_is_over(event, &done.task, &done.node),
                EventKind::TaskFailed(failed) if failed.handler.is_some() => {
                    nest.task_is_over(event, &failed.task, &failed.node);
                }
                EventKind::Reopened(reopened) => {
                    if let Some(end) = went_on.take() {
                        nest.forget_since(end);
                    }
                    nest.undo(&answers.undone_by(reopened));
                }
                _ => {}
            }
            if !event.namespace.is_root() {
                nest.push(event);
            }
        }
        nest
    }

    /// Returns all subgraphs.
    pub(crate) fn into_strands(self) -> impl Iterator<Item = (Namespace, Strand)> {
        self.0.into_iter()
    }

    /// Returns a subgraph.
    pub(crate) fn strand(&self, namespace: &Namespace) -> Option<&Strand> {
        self.0.get(namespace)
    }

    /// Returns all subgraphs.
    pub(crate) fn strands(&self) -> impl Iterator<Item = (&Namespace, &Strand)> {
        self.0.iter()
    }

    /// Returns the interrupts of tasks that have not ended, answered or not, each with the namespace of its graph.
    pub(crate) fn live_questions(&self) -> impl Iterator<Item = (Namespace, Interrupt)> {
        let live = self.0.iter().filter(|(_, strand)| strand.is_live);
        live.flat_map(|(namespace, strand)| {
            strand.questions().into_iter().map(|question| (namespace.clone(), question))
        })
    }

    fn push(&mut self, event: &Event) {
        let strand = self.0.entry(event.namespace.clone()).or_insert_with(|| Strand {
            at: None,
            events: Vec::new(),
            is_live: true,
        });
        if let EventKind::Checkpointed(made) = &event.kind {
            strand.at = Some(made.checkpoint);
            strand.is_live = true;
        }
        strand.events.push(event.clone());
    }

    /// Marks subgraphs that their parent graph no longer waits for.
    fn leave_behind(&mut self, is_left: impl Fn(&Namespace) -> bool) {
        for (_, strand) in self.0.iter_mut().filter(|(namespace, _)| is_left(namespace)) {
            strand.is_live = false;
        }
    }

    fn task_is_over(&mut self, event: &Event, task: &TaskId, node: &NodeName) {
        self.leave_behind(|known| known.is_run_by(&event.namespace, task, node));
    }

    /// Discards the events since the end of a superstep of the root graph, when a reopen discards the supersteps after
    /// it.
    fn forget_since(&mut self, seq: u64) {
        self.0.retain(|_, strand| {
            if strand.events.last().is_some_and(|event| event.seq >= seq) {
                strand.forget_since(seq);
                strand.is_live = false;
            }
            !strand.events.is_empty()
        });
    }

    /// Discards the events that a reopen discards.
    fn undo(&mut self, undone: &Undone) {
        self.0.retain(|namespace, strand| {
            if undone.covers(namespace) {
                strand.forget_since(undone.since);
                strand.is_live = true;
            }
            !strand.events.is_empty()
        });
    }
}

impl Strand {
    /// Returns true while the parent graph waits for the subgraph.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Returns the sequence number at which the subgraph reached its newest checkpoint. Returns 0 for a checkpoint that
    /// a fork copied, which counts as reached at the start of the fork.
    pub(crate) fn arrived(&self) -> u64 {
        let mut made = self.events.iter().rev().filter_map(|event| match &event.kind {
            EventKind::Checkpointed(made) => Some((made.source, event.seq)),
            _ => None,
        });
        made.next()
            .map_or(0, |(source, seq)| if source == CheckpointSource::Fork { 0 } else { seq })
    }

    fn forget_since(&mut self, seq: u64) {
        self.events.retain(|event| event.seq < seq);
        self.at = self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::Checkpointed(made) => Some(made.checkpoint),
            _ => None,
        });
    }

    /// Returns the interrupts of the current superstep, answered or not.
    fn questions(&self) -> Vec<Interrupt> {
        let mut asked: BTreeMap<&InterruptId, Interrupt> = BTreeMap::new();
        for event in &self.events {
            match &event.kind {
                EventKind::Checkpointed(_) => asked.clear(),
                EventKind::TaskFinished(done) => {
                    asked.retain(|_, question| question.asked.task != done.task);
                }
                EventKind::Asked(it) => {
                    asked.entry(&it.interrupt).or_insert_with(|| Interrupt {
                        asked: it.clone(),
                        asked_ms: event.at_ms,
                        asked_seq: event.seq,
                        run: event.run.clone(),
                        answer: None,
                    });
                }
                EventKind::Answered(answered) => {
                    if let Some(question) = asked.get_mut(&answered.interrupt) {
                        question.answer.get_or_insert_with(|| answered.answer.clone());
                    }
                }
                _ => {}
            }
        }
        asked.into_values().collect()
    }
}

/// The newest answer of each interrupt: its namespace, task and sequence number.
#[derive(Default)]
pub(crate) struct Answers(BTreeMap<InterruptId, (Namespace, TaskId, u64)>);

impl Answers {
    /// Applies the next event.
    pub(crate) fn see(&mut self, event: &Event) {
        if let EventKind::Answered(answered) = &event.kind {
            let place = (event.namespace.clone(), answered.task.clone(), event.seq);
            self.0.insert(answered.interrupt.clone(), place);
        }
    }

    /// Returns the work that a reopen discards together with the answers.
    pub(crate) fn undone_by(&self, reopened: &Reopened) -> Undone {
        let answers: Vec<_> =
            reopened.interrupts.iter().filter_map(|interrupt| self.0.get(interrupt)).collect();
        Undone {
            since: answers.iter().map(|(.., seq)| *seq).min().unwrap_or(u64::MAX),
            graphs: answers
                .iter()
                .flat_map(|(namespace, ..)| namespace.ancestors())
                .filter(|namespace| !namespace.is_root())
                .collect(),
            asking: answers.iter().map(|(_, task, _)| task.clone()).collect(),
            running: reopened.tasks.iter().cloned().collect(),
        }
    }
}

/// The work of a run that a reopen discards.
pub(crate) struct Undone {
    /// Sequence number of the first discarded answer. Earlier events are kept.
    pub(crate) since: u64,
    /// Tasks that raised the interrupts.
    pub(super) asking: BTreeSet<TaskId>,
    /// Tasks whose subgraphs raised the interrupts. Their results are discarded.
    pub(super) running: BTreeSet<TaskId>,
    /// Subgraphs that raised the interrupts, and their parent graphs.
    graphs: BTreeSet<Namespace>,
}

impl Undone {
    /// Returns true if the events of a subgraph are discarded: it or one of its parent graphs is in `graphs`, or it
    /// runs inside of a task that raised an interrupt.
    pub(crate) fn covers(&self, namespace: &Namespace) -> bool {
        namespace.ancestors().any(|around| {
            self.graphs.contains(&around)
                || around.task().is_some_and(|task| self.asking.contains(&task))
        })
    }
}
