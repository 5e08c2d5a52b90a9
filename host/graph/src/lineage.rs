//! State of one namespace of a thread, folded from events.
//!
//! A lineage is a checkpoint and the events since it, folded: finished and failed tasks, and
//! interrupts. Events become state only here. Time travel creates a lineage at an earlier
//! checkpoint and folds the events that belong to that checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::checkpoint::Checkpoint;
use crate::event::{Event, EventKind, InterruptRaised, Reopened, TaskFailed, TaskFinished};
use crate::id::{CheckpointId, InterruptId, RunId, TaskId};
use crate::interrupt::Interrupt;

/// A checkpoint, folded with the events since it.
#[derive(Clone, Debug, PartialEq)]
pub struct Lineage {
    /// The checkpoint from which the current superstep starts.
    pub checkpoint: Checkpoint,
    /// Finished tasks of the superstep.
    pub finished: BTreeMap<TaskId, Arc<TaskFinished>>,
    /// The last failure of each task that has not finished. A failure with an error handler is
    /// permanent: the handler runs in place of the task.
    pub failed: BTreeMap<TaskId, TaskFailed>,
    /// Interrupts that tasks of the superstep have raised, answered or not.
    pub interrupts: BTreeMap<InterruptId, Interrupt>,
    /// True unless the last applied `checkpointed` or `reopened` event names another checkpoint.
    is_current: bool,
}

impl Lineage {
    /// Creates a lineage at a checkpoint without later events.
    pub fn new(checkpoint: Checkpoint) -> Self {
        Self {
            checkpoint,
            finished: BTreeMap::new(),
            failed: BTreeMap::new(),
            interrupts: BTreeMap::new(),
            is_current: true,
        }
    }

    /// Applies one event.
    ///
    /// Events of other namespaces and of other checkpoints have no effect. A log may therefore be
    /// applied from any point before the checkpoint, and any part of it may be applied again.
    pub fn apply(&mut self, event: &Event) {
        if event.namespace != self.checkpoint.meta.namespace {
            return;
        }
        match &event.kind {
            EventKind::Checkpointed(made) => self.enter_checkpoint(made.checkpoint),
            EventKind::Reopened(reopened) => self.reopen(reopened, &event.run),
            kind if self.is_current => self.apply_task_event(kind, event),
            _ => {}
        }
    }

    /// Moves to a new checkpoint and drops the finished and failed tasks and the interrupts of the
    /// old checkpoint.
    pub fn advance_to(&mut self, checkpoint: Checkpoint) {
        *self = Self::new(checkpoint);
    }

    /// Returns the pending interrupts in the order in which they were raised.
    pub fn pending_interrupts(&self) -> Vec<&Interrupt> {
        let mut open: Vec<&Interrupt> =
            self.interrupts.values().filter(|question| self.is_pending(question)).collect();
        open.sort_by_key(|question| {
            (
                question.raised_seq,
                &question.raised.node,
                question.raised.call,
                &question.raised.task,
            )
        });
        open
    }

    /// Returns the answer to an interrupt, if there is one.
    pub fn answer_to(&self, interrupt: &InterruptId) -> Option<&Value> {
        self.interrupts.get(interrupt)?.answer.as_ref()
    }

    /// Returns true if a task has a pending interrupt.
    pub fn is_waiting(&self, task: &TaskId) -> bool {
        self.interrupts
            .values()
            .any(|question| question.raised.task == *task && self.is_pending(question))
    }

    /// Returns the tasks that have a pending interrupt.
    pub(crate) fn waiting(&self) -> BTreeSet<&TaskId> {
        let open = self.interrupts.values().filter(|question| self.is_pending(question));
        open.map(|question| &question.raised.task).collect()
    }

    /// Returns the interrupts of tasks that have not ended, answered or not.
    pub fn live_questions(&self) -> impl Iterator<Item = &Interrupt> {
        self.interrupts.values().filter(|question| !self.has_ended(&question.raised.task))
    }

    /// Returns true if a task has finished, or if an error handler has replaced it.
    pub fn has_ended(&self, task: &TaskId) -> bool {
        self.finished.contains_key(task) || self.is_handled(task)
    }

    fn is_pending(&self, question: &Interrupt) -> bool {
        question.answer.is_none() && !self.has_ended(&question.raised.task)
    }

    /// Returns true if a task has failed permanently and an error handler runs in its place.
    fn is_handled(&self, task: &TaskId) -> bool {
        self.failed.get(task).is_some_and(|failed| failed.handler.is_some())
    }

    fn apply_task_event(&mut self, kind: &EventKind, event: &Event) {
        match kind {
            EventKind::TaskFinished(finished) => self.finish(finished),
            EventKind::TaskFailed(failed) => self.fail(failed),
            EventKind::InterruptRaised(raised) => self.record_interrupt(raised, event),
            EventKind::Answered(answered) => {
                if let Some(question) = self.interrupts.get_mut(&answered.interrupt) {
                    question.answer.get_or_insert_with(|| answered.answer.clone());
                }
            }
            _ => {}
        }
    }

    /// Records that a task has finished. The first end of a task counts, whether it is a success or
    /// a failure with an error handler. A later end of the same task has no effect.
    fn finish(&mut self, finished: &Arc<TaskFinished>) {
        if finished.base != self.checkpoint.meta.id || self.is_handled(&finished.task) {
            return;
        }
        self.failed.remove(&finished.task);
        self.finished.entry(finished.task.clone()).or_insert_with(|| finished.clone());
    }

    /// Records the failure of a task. The failure has no effect if the task has finished, or if an
    /// error handler has replaced it.
    fn fail(&mut self, failed: &TaskFailed) {
        if !self.finished.contains_key(&failed.task) && !self.is_handled(&failed.task) {
            self.failed.insert(failed.task.clone(), failed.clone());
        }
    }

    /// Records an interrupt. If a re-execution raises the interrupt again, the interrupt keeps its
    /// answer.
    fn record_interrupt(&mut self, raised: &InterruptRaised, event: &Event) {
        self.interrupts.entry(raised.interrupt.clone()).or_insert_with(|| Interrupt {
            raised: raised.clone(),
            raised_ms: event.at_ms,
            raised_seq: event.seq,
            run: event.run.clone(),
            answer: None,
        });
    }

    fn enter_checkpoint(&mut self, checkpoint: CheckpointId) {
        self.is_current = checkpoint == self.checkpoint.meta.id;
        if self.is_current {
            self.finished.clear();
            self.failed.clear();
            self.interrupts.clear();
        }
    }

    /// Removes the answers with which a run started. Also removes the results, failures and
    /// interrupts that the tasks of the answered interrupts produced in that run.
    fn reopen(&mut self, reopened: &Reopened, run: &RunId) {
        self.is_current = reopened.to == self.checkpoint.meta.id;
        if !self.is_current {
            return;
        }
        let Reopened { interrupts, tasks, .. } = reopened;
        let asking =
            interrupts.iter().filter_map(|it| Some(self.interrupts.get(it)?.raised.task.clone()));
        let undone: BTreeSet<TaskId> = asking.chain(tasks.iter().cloned()).collect();
        // Interrupts that these tasks raised in the run depend on the removed answers.
        self.interrupts.retain(|id, question| {
            interrupts.contains(id)
                || question.run != *run
                || !undone.contains(&question.raised.task)
        });
        for interrupt in interrupts {
            if let Some(question) = self.interrupts.get_mut(interrupt) {
                question.answer = None;
            }
        }
        for task in &undone {
            self.reset_task(task);
        }
        // A task with an error handler must not run again, so its failure stays.
        self.failed.retain(|_, failed| failed.handler.is_some());
    }

    /// Resets a task and all error handlers that have replaced it.
    fn reset_task(&mut self, task: &TaskId) {
        let mut task = task.clone();
        loop {
            self.finished.remove(&task);
            let failed = self.failed.remove(&task);
            let Some(handler) = failed.and_then(|failed| failed.handler) else { return };
            self.interrupts.retain(|_, question| question.raised.task != handler);
            task = handler;
        }
    }
}

#[cfg(test)]
mod tests;
