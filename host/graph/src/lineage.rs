//! State of one namespace of a thread, folded from events.
//!
//! A lineage stands at one checkpoint and holds what has happened since: what tasks have written
//! and asked. It is the only place where events become state. Time travel is nothing more
//! than a lineage at an earlier checkpoint with the events that belong to it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::checkpoint::Checkpoint;
use crate::event::{Asked, Event, EventKind, Reopened, TaskFailed, TaskFinished};
use crate::id::{CheckpointId, InterruptId, RunId, TaskId};
use crate::interrupt::Question;

/// A checkpoint and what has happened since.
#[derive(Clone, Debug, PartialEq)]
pub struct Lineage {
    /// Where the thread stands.
    pub checkpoint: Checkpoint,
    /// Tasks of the superstep that have ended well.
    pub finished: BTreeMap<TaskId, TaskFinished>,
    /// The last failure of tasks that have not ended well. One with a handler is for good: its
    /// handler runs in its place.
    pub failed: BTreeMap<TaskId, TaskFailed>,
    /// Questions that tasks of the superstep have asked, answered or not.
    pub questions: BTreeMap<InterruptId, Question>,
    /// Whether the log, as far as it was applied, stands at this checkpoint and not elsewhere.
    here: bool,
}

impl Lineage {
    /// A lineage at a checkpoint since which nothing has happened.
    pub fn new(checkpoint: Checkpoint) -> Self {
        Self {
            checkpoint,
            finished: BTreeMap::new(),
            failed: BTreeMap::new(),
            questions: BTreeMap::new(),
            here: true,
        }
    }

    /// Applies one event.
    ///
    /// Events of other namespaces and of other checkpoints change nothing, so a log may be
    /// applied from any point before the checkpoint on, again in part or to its end.
    pub fn apply(&mut self, event: &Event) {
        if event.namespace != self.checkpoint.meta.namespace {
            return;
        }
        match &event.kind {
            EventKind::Checkpointed(made) => self.arrive(made.checkpoint),
            EventKind::Reopened(reopened) => self.reopen(reopened, &event.run),
            kind if self.here => self.happen(kind, event),
            _ => {}
        }
    }

    /// Moves on to a new checkpoint. What was pending for the old one is dropped.
    pub fn advance_to(&mut self, checkpoint: Checkpoint) {
        *self = Self::new(checkpoint);
    }

    /// Questions without an answer, in the order in which they were asked.
    pub fn open_questions(&self) -> Vec<&Question> {
        let mut open: Vec<&Question> =
            self.questions.values().filter(|question| self.is_open(question)).collect();
        open.sort_by_key(|question| {
            (question.asked_seq, &question.asked.node, question.asked.call, &question.asked.task)
        });
        open
    }

    /// The answer to a question, if there is one.
    pub fn answer_of(&self, interrupt: &InterruptId) -> Option<&Value> {
        self.questions.get(interrupt)?.answer.as_ref()
    }

    /// Whether a task waits for an answer.
    pub fn is_waiting(&self, task: &TaskId) -> bool {
        self.questions
            .values()
            .any(|question| question.asked.task == *task && self.is_open(question))
    }

    /// The tasks that wait for an answer.
    pub(crate) fn waiting(&self) -> BTreeSet<&TaskId> {
        let open = self.questions.values().filter(|question| self.is_open(question));
        open.map(|question| &question.asked.task).collect()
    }

    /// Questions of tasks that have not ended, answered or not.
    pub fn live_questions(&self) -> impl Iterator<Item = &Question> {
        self.questions.values().filter(|question| !self.has_ended(&question.asked.task))
    }

    /// Whether a task has ended, well or by leaving it to another.
    pub fn has_ended(&self, task: &TaskId) -> bool {
        self.finished.contains_key(task) || self.is_handled(task)
    }

    fn is_open(&self, question: &Question) -> bool {
        question.answer.is_none() && !self.has_ended(&question.asked.task)
    }

    /// Whether a task has failed for good and another runs in its place.
    fn is_handled(&self, task: &TaskId) -> bool {
        self.failed.get(task).is_some_and(|failed| failed.handler.is_some())
    }

    fn happen(&mut self, kind: &EventKind, event: &Event) {
        match kind {
            EventKind::TaskFinished(finished) => self.finish(finished),
            EventKind::TaskFailed(failed) => self.fail(failed),
            EventKind::Asked(asked) => self.ask(asked, event),
            EventKind::Answered(answered) => {
                if let Some(question) = self.questions.get_mut(&answered.interrupt) {
                    question.answer.get_or_insert_with(|| answered.answer.clone());
                }
            }
            _ => {}
        }
    }

    /// The first end of a task counts, be it a success or a failure that a handler takes over: a
    /// second executor changes nothing.
    fn finish(&mut self, finished: &TaskFinished) {
        if finished.base != self.checkpoint.meta.id || self.is_handled(&finished.task) {
            return;
        }
        self.failed.remove(&finished.task);
        self.finished.entry(finished.task.clone()).or_insert_with(|| finished.clone());
    }

    /// A failure that another task handles stays: a second executor changes nothing.
    fn fail(&mut self, failed: &TaskFailed) {
        if !self.finished.contains_key(&failed.task) && !self.is_handled(&failed.task) {
            self.failed.insert(failed.task.clone(), failed.clone());
        }
    }

    /// A re-execution that asks again keeps the answer.
    fn ask(&mut self, asked: &Asked, event: &Event) {
        self.questions.entry(asked.interrupt.clone()).or_insert_with(|| Question {
            asked: asked.clone(),
            asked_ms: event.at_ms,
            asked_seq: event.seq,
            run: event.run.clone(),
            answer: None,
        });
    }

    fn arrive(&mut self, checkpoint: CheckpointId) {
        self.here = checkpoint == self.checkpoint.meta.id;
        if self.here {
            self.finished.clear();
            self.failed.clear();
            self.questions.clear();
        }
    }

    /// Takes back the answers to some questions, which a run began with, and all that their tasks did
    /// afterwards, in that run.
    fn reopen(&mut self, reopened: &Reopened, run: &RunId) {
        self.here = reopened.to == self.checkpoint.meta.id;
        if !self.here {
            return;
        }
        let Reopened { interrupts, tasks, .. } = reopened;
        let asking =
            interrupts.iter().filter_map(|it| Some(self.questions.get(it)?.asked.task.clone()));
        let undone: BTreeSet<TaskId> = asking.chain(tasks.iter().cloned()).collect();
        // What they asked since knew the answers.
        self.questions.retain(|id, question| {
            interrupts.contains(id)
                || question.run != *run
                || !undone.contains(&question.asked.task)
        });
        for interrupt in interrupts {
            if let Some(question) = self.questions.get_mut(interrupt) {
                question.answer = None;
            }
        }
        for task in &undone {
            self.take_back(task);
        }
        // What a handler has made good is no reason to run the task again.
        self.failed.retain(|_, failed| failed.handler.is_some());
    }

    /// Forgets how a task ended, and all of the tasks that ran in its place.
    fn take_back(&mut self, task: &TaskId) {
        let mut task = task.clone();
        loop {
            self.finished.remove(&task);
            let failed = self.failed.remove(&task);
            let Some(handler) = failed.and_then(|failed| failed.handler) else { return };
            self.questions.retain(|_, question| question.asked.task != handler);
            task = handler;
        }
    }
}

#[cfg(test)]
mod tests;
