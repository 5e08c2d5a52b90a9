//! Subgraphs, as the events since a checkpoint of the root graph show them.
//!
//! All events of a superstep of the root graph belong to that graph's checkpoint, whatever
//! checkpoints subgraphs make meanwhile. The events of one checkpoint therefore show the position
//! and the interrupts of every subgraph.

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{Event, EventKind, Reopened};
use wattle_graph::id::{CheckpointId, InterruptId, Namespace, NodeName, TaskId};
use wattle_graph::interrupt::Interrupt;

/// The subgraphs of a thread.
#[derive(Debug, Default)]
pub(crate) struct Subgraphs(BTreeMap<Namespace, SubgraphLog>);

/// One subgraph.
#[derive(Clone, Debug)]
pub(crate) struct SubgraphLog {
    /// Newest checkpoint; `None` if the subgraph makes no checkpoints.
    pub checkpoint: Option<CheckpointId>,
    /// Events of the subgraph.
    pub events: Vec<Event>,
    /// True while the parent graph waits for the subgraph.
    is_active: bool,
}

impl Subgraphs {
    /// Groups the events since a checkpoint of the root graph by subgraph.
    pub(crate) fn new<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut subgraphs = Self::default();
        let mut answers = AnswerIndex::default();
        // End of the first superstep of the root graph, if several supersteps were not persisted
        // (durability `exit`).
        let mut went_on = None;
        for event in events {
            answers.apply(event);
            match &event.kind {
                EventKind::Checkpointed(_) => {
                    if event.namespace.is_root() {
                        went_on.get_or_insert(event.seq);
                    }
                    subgraphs.deactivate(|known| known.is_nested_in(&event.namespace));
                }
                EventKind::TaskFinished(done) => {
                    subgraphs.on_task_end(event, &done.task, &done.node);
                }
                EventKind::TaskFailed(failed) if failed.handler.is_some() => {
                    subgraphs.on_task_end(event, &failed.task, &failed.node);
                }
                EventKind::Reopened(reopened) => {
                    if let Some(end) = went_on.take() {
                        subgraphs.truncate_from(end);
                    }
                    subgraphs.apply_reopen(&answers.reopened_by(reopened));
                }
                _ => {}
            }
            if !event.namespace.is_root() {
                subgraphs.push(event);
            }
        }
        subgraphs
    }

    /// Returns all subgraphs.
    pub(crate) fn into_logs(self) -> impl Iterator<Item = (Namespace, SubgraphLog)> {
        self.0.into_iter()
    }

    /// Returns a subgraph.
    pub(crate) fn get(&self, namespace: &Namespace) -> Option<&SubgraphLog> {
        self.0.get(namespace)
    }

    /// Returns all subgraphs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Namespace, &SubgraphLog)> {
        self.0.iter()
    }

    /// Returns the interrupts of tasks that have not ended, answered or not, each with the
    /// namespace of its graph.
    pub(crate) fn active_interrupts(&self) -> impl Iterator<Item = (Namespace, Interrupt)> {
        let live = self.0.iter().filter(|(_, subgraph_log)| subgraph_log.is_active);
        live.flat_map(|(namespace, subgraph_log)| {
            subgraph_log.interrupts().into_iter().map(|question| (namespace.clone(), question))
        })
    }

    fn push(&mut self, event: &Event) {
        let subgraph_log = self.0.entry(event.namespace.clone()).or_insert_with(|| SubgraphLog {
            checkpoint: None,
            events: Vec::new(),
            is_active: true,
        });
        if let EventKind::Checkpointed(made) = &event.kind {
            subgraph_log.checkpoint = Some(made.checkpoint);
            subgraph_log.is_active = true;
        }
        subgraph_log.events.push(event.clone());
    }

    /// Marks subgraphs that their parent graph no longer waits for.
    fn deactivate(&mut self, is_left: impl Fn(&Namespace) -> bool) {
        for (_, subgraph_log) in self.0.iter_mut().filter(|(namespace, _)| is_left(namespace)) {
            subgraph_log.is_active = false;
        }
    }

    fn on_task_end(&mut self, event: &Event, task: &TaskId, node: &NodeName) {
        self.deactivate(|known| known.is_run_by(&event.namespace, task, node));
    }

    /// Discards the events since the end of a superstep of the root graph, when a reopen discards
    /// the supersteps after that superstep.
    fn truncate_from(&mut self, seq: u64) {
        self.0.retain(|_, subgraph_log| {
            if subgraph_log.events.last().is_some_and(|event| event.seq >= seq) {
                subgraph_log.truncate_from(seq);
                subgraph_log.is_active = false;
            }
            !subgraph_log.events.is_empty()
        });
    }

    /// Discards the events that a reopen discards.
    fn apply_reopen(&mut self, undone: &ReopenedWork) {
        self.0.retain(|namespace, subgraph_log| {
            if undone.covers(namespace) {
                subgraph_log.truncate_from(undone.since);
                subgraph_log.is_active = true;
            }
            !subgraph_log.events.is_empty()
        });
    }
}

impl SubgraphLog {
    /// Returns true while the parent graph waits for the subgraph.
    pub(crate) fn is_active(&self) -> bool {
        self.is_active
    }

    /// Returns the sequence number at which the subgraph reached its newest checkpoint. Returns 0
    /// for a checkpoint that a fork copied, which counts as reached at the start of the fork.
    pub(crate) fn checkpoint_seq(&self) -> u64 {
        let mut made = self.events.iter().rev().filter_map(|event| match &event.kind {
            EventKind::Checkpointed(made) => Some((made.source, event.seq)),
            _ => None,
        });
        made.next()
            .map_or(0, |(source, seq)| if source == CheckpointSource::Fork { 0 } else { seq })
    }

    fn truncate_from(&mut self, seq: u64) {
        self.events.retain(|event| event.seq < seq);
        self.checkpoint = self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::Checkpointed(made) => Some(made.checkpoint),
            _ => None,
        });
    }

    /// Returns the interrupts of the tasks that have not ended in the current superstep, answered or
    /// not.
    fn interrupts(&self) -> Vec<Interrupt> {
        let mut raised: BTreeMap<&InterruptId, Interrupt> = BTreeMap::new();
        for event in &self.events {
            match &event.kind {
                EventKind::Checkpointed(_) => raised.clear(),
                EventKind::TaskFinished(done) => {
                    raised.retain(|_, question| question.raised.task != done.task);
                }
                EventKind::TaskFailed(failed) if failed.handler.is_some() => {
                    raised.retain(|_, question| question.raised.task != failed.task);
                }
                EventKind::InterruptRaised(it) => {
                    raised.entry(&it.interrupt).or_insert_with(|| Interrupt {
                        raised: it.clone(),
                        raised_ms: event.at_ms,
                        raised_seq: event.seq,
                        run: event.run.clone(),
                        answer: None,
                    });
                }
                EventKind::Answered(answered) => {
                    if let Some(question) = raised.get_mut(&answered.interrupt) {
                        question.answer.get_or_insert_with(|| answered.answer.clone());
                    }
                }
                _ => {}
            }
        }
        raised.into_values().collect()
    }
}

/// The newest answer of each interrupt: its namespace, task and sequence number.
#[derive(Default)]
pub(crate) struct AnswerIndex(BTreeMap<InterruptId, (Namespace, TaskId, u64)>);

impl AnswerIndex {
    /// Applies the next event.
    pub(crate) fn apply(&mut self, event: &Event) {
        if let EventKind::Answered(answered) = &event.kind {
            let place = (event.namespace.clone(), answered.task.clone(), event.seq);
            self.0.insert(answered.interrupt.clone(), place);
        }
    }

    /// Returns the work that a reopen discards together with the answers.
    pub(crate) fn reopened_by(&self, reopened: &Reopened) -> ReopenedWork {
        let answers: Vec<_> =
            reopened.interrupts.iter().filter_map(|interrupt| self.0.get(interrupt)).collect();
        ReopenedWork {
            since: answers.iter().map(|(.., seq)| *seq).min().unwrap_or(u64::MAX),
            graphs: answers
                .iter()
                .flat_map(|(namespace, ..)| namespace.ancestors())
                .filter(|namespace| !namespace.is_root())
                .collect(),
            interrupted_tasks: answers.iter().map(|(_, task, _)| task.clone()).collect(),
            subgraph_tasks: reopened.tasks.iter().cloned().collect(),
        }
    }
}

/// The work of a run that a reopen discards.
pub(crate) struct ReopenedWork {
    /// Sequence number of the first discarded answer. Earlier events are kept.
    pub(crate) since: u64,
    /// Tasks that raised the interrupts.
    pub(super) interrupted_tasks: BTreeSet<TaskId>,
    /// Tasks whose subgraphs raised the interrupts. Their results are discarded.
    pub(super) subgraph_tasks: BTreeSet<TaskId>,
    /// Subgraphs that raised the interrupts, and their parent graphs.
    graphs: BTreeSet<Namespace>,
}

impl ReopenedWork {
    /// Returns true if the events of a subgraph are discarded: the subgraph or one of its parent
    /// graphs is in `graphs`, or the subgraph runs inside of a task that raised an interrupt.
    pub(crate) fn covers(&self, namespace: &Namespace) -> bool {
        namespace.ancestors().any(|around| {
            self.graphs.contains(&around)
                || around.task().is_some_and(|task| self.interrupted_tasks.contains(&task))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(seq: u64, fields: &Value) -> Event {
        let mut event = json!({ "seq": seq, "at_ms": 0, "run": "r", "namespace": "sub" });
        for (name, value) in fields.as_object().into_iter().flatten() {
            event[name] = value.clone();
        }
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn interrupts_of_a_task_end_when_its_error_handler_replaces_it() {
        let raised = |seq, task: &str| {
            let fields = json!({
                "type": "asked", "interrupt": format!("of {task}"), "task": task, "node": "n",
                "call": 0, "payload": "?",
            });
            event(seq, &fields)
        };
        let failed = |seq, handler: Value| {
            let failure = json!({ "code": "timeout", "message": "late", "retryable": false });
            let fields = json!({
                "type": "task_failed", "task": "a", "node": "n", "attempt": 1,
                "fault": "timeout", "failure": failure, "handler": handler,
            });
            event(seq, &fields)
        };
        let pending = |events: &[Event]| -> Vec<TaskId> {
            let subgraphs = Subgraphs::new(events);
            subgraphs.active_interrupts().map(|(_, question)| question.raised.task).collect()
        };
        let [a, b] = ["a", "b"].map(|task| TaskId::new(task).unwrap());
        let unhandled = [raised(1, "a"), failed(2, Value::Null), raised(3, "b")];
        assert_eq!(pending(&unhandled), [a, b.clone()]);
        let handled = [raised(1, "a"), failed(2, json!("b")), raised(3, "b")];
        assert_eq!(pending(&handled), [b]);
    }
}
