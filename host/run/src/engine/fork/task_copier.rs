//! Rewrites the events of one task under the id of another task. A rewritten journal entry names
//! the original entry, so that the call is not counted twice.

use std::sync::Arc;

use wattle_graph::event::{
    Answered, CallStarted, Called, Event, EventKind, InterruptRaised, Settled, Streamed,
    TaskFailed, TaskFinished, TaskStarted,
};
use wattle_graph::id::{
    CheckpointId, InterruptId, Namespace, TaskId, completion_message_id, path_of_call,
};
use wattle_graph::interrupt::Interrupt;
use wattle_graph::lineage::Lineage;
use wattle_graph::principal::Principal;

use super::journal_prefix::JournalPrefix;
use super::overridden_call::OverriddenCall;
use crate::gate::LoggedCalls;
use crate::hostcall::result_override::{deltas, set_message_id};

/// Copies the events of one task to a task of the fork, with the ids of the fork.
pub(super) struct TaskCopier<'a> {
    pub events: &'a [Event],
    /// Namespace of the graph with the task.
    pub namespace: &'a Namespace,
    pub old: &'a TaskId,
    pub new: &'a TaskId,
}

/// Rewritten events, with the sequence numbers of the originals.
pub(super) type CopiedEvents = Vec<(u64, EventKind)>;

impl TaskCopier<'_> {
    /// Rewrites a finished task as a task that started at `base`. The new task does not run, and
    /// the journal stays with the old task.
    pub(super) fn finished(&self, finished: TaskFinished, base: CheckpointId) -> CopiedEvents {
        let again = TaskFinished { task: self.new.clone(), base, cached: true, ..finished };
        let end = self.newest(|kind| match kind {
            EventKind::TaskFinished(finished) if finished.task == *self.old => Some(()),
            _ => None,
        });
        let seq = end.map_or(u64::MAX, |(seq, ())| seq);
        self.with_task_start(vec![(seq, EventKind::TaskFinished(Arc::new(again)))])
    }

    /// Rewrites a task that has failed permanently and has an error handler.
    pub(super) fn failed(&self, handler: Option<&TaskId>) -> CopiedEvents {
        let failed = self.newest(|kind| match kind {
            EventKind::TaskFailed(failed) if failed.task == *self.old => {
                let (task, handler) = (self.new.clone(), handler.cloned());
                Some(EventKind::TaskFailed(TaskFailed { task, handler, ..failed.clone() }))
            }
            _ => None,
        });
        self.with_task_start(failed.into_iter().collect())
    }

    /// Copies a part of the journal, with the interrupts that still apply.
    pub(super) fn journal(&self, part: &JournalPrefix<'_>, lineage: &Lineage) -> CopiedEvents {
        let mut rows = CopiedEvents::new();
        for (scope, calls) in &part.task.calls_by_scope {
            let has = |call: u32| part.includes(&path_of_call(scope, call));
            self.add_called(calls, has, &mut rows);
            self.add_in_doubt(scope, calls, has, &mut rows);
        }
        let questions = lineage.interrupts.values().filter(|it| it.raised.task == *self.old);
        // An interrupt about a call does not apply once the call was started again. An elicitation
        // applies until its call has a result, however often the call is started.
        let has_served = |it: &Interrupt| {
            let InterruptRaised { scope, call, elicited, .. } = &it.raised;
            if elicited.is_some() {
                return part.has_succeeded(&path_of_call(scope, *call));
            }
            let calls = part.task.calls_by_scope.get(scope);
            calls.and_then(|calls| calls.last_start_seq(*call)) > Some(it.raised_seq)
        };
        let questions = questions.filter(|it| !has_served(it));
        for question in
            questions.filter(|it| part.includes(&path_of_call(&it.raised.scope, it.raised.call)))
        {
            self.add_interrupt(question, &mut rows);
        }
        self.with_task_start(rows)
    }

    /// Copies the interrupts that the task raised itself, with their answers. Omits the
    /// elicitations of its tool calls: the task makes each of these calls again, perhaps with other
    /// arguments.
    pub(super) fn answered_interrupts(&self, lineage: &Lineage) -> CopiedEvents {
        let mut rows = CopiedEvents::new();
        let own = lineage.interrupts.values().filter(|it| it.raised.task == *self.old);
        for question in own.filter(|it| it.answer.is_some() && it.raised.elicited.is_none()) {
            self.add_interrupt(question, &mut rows);
        }
        self.with_task_start(rows)
    }

    fn add_called(&self, calls: &LoggedCalls, has: impl Fn(u32) -> bool, rows: &mut CopiedEvents) {
        for (seq, called) in calls.results.values().filter(|(_, called)| has(called.call)) {
            let again = Called {
                task: self.new.clone(),
                tokens: None,
                reused: called.reused.or(Some(*seq)),
                ..called.clone()
            };
            rows.push((*seq, EventKind::Called(Box::new(again))));
        }
    }

    /// Copies calls in doubt, which stay in doubt in the fork.
    fn add_in_doubt(
        &self,
        scope: &[u32],
        calls: &LoggedCalls,
        has: impl Fn(u32) -> bool,
        rows: &mut CopiedEvents,
    ) {
        let open = calls.starts.keys().filter(|call| !calls.results.contains_key(call));
        for call in open.filter(|call| has(**call)) {
            rows.extend(self.call_started(scope, *call));
            if calls.decisions.contains_key(call) {
                rows.extend(self.settled(scope, *call));
            }
        }
    }

    fn add_interrupt(&self, question: &Interrupt, rows: &mut CopiedEvents) {
        let Interrupt { raised, raised_seq, answer, .. } = question;
        let interrupt = match &raised.elicited {
            Some(it) => InterruptId::elicited(self.new, &raised.scope, raised.call, it.round),
            None => InterruptId::derive(self.new, &raised.scope, raised.call),
        };
        let task = self.new.clone();
        let (answered, again) = (answer.is_some(), interrupt.clone());
        let again =
            InterruptRaised { interrupt: again, task: task.clone(), answered, ..raised.clone() };
        rows.push((*raised_seq, EventKind::InterruptRaised(again)));
        if let Some(answer) = answer.clone() {
            let principal = self.answered_by(&raised.interrupt);
            let again = Answered { interrupt, task, answer, principal };
            rows.push((*raised_seq, EventKind::Answered(again)));
        }
    }

    /// Returns the principal that gave an answer.
    fn answered_by(&self, interrupt: &InterruptId) -> Option<Principal> {
        let answered = self.newest(|kind| match kind {
            EventKind::Answered(answered) if answered.interrupt == *interrupt => {
                Some(answered.principal.clone())
            }
            _ => None,
        });
        answered.and_then(|(_, principal)| principal)
    }

    /// Returns the events of the call with its overriding result, which streams show as a new
    /// result.
    pub(super) fn overridden(&self, replaced: &OverriddenCall) -> Vec<EventKind> {
        let Called { node, scope, call, .. } = &replaced.called;
        let started = self.call_started(scope, *call);
        let mut kinds: Vec<EventKind> = started.into_iter().map(|(_, kind)| kind).collect();
        let mut called = Called {
            task: self.new.clone(),
            result: replaced.result.clone(),
            started_ms: replaced.at_ms,
            duration_us: 0,
            store_us: 0,
            tokens: None,
            reused: None,
            ..replaced.called.clone()
        };
        // The overriding output becomes a message of its own, with another id than the message of
        // the overridden output.
        set_message_id(&mut called, completion_message_id(self.new, scope, *call, 0, 0));
        let deltas = deltas(&called);
        if !deltas.is_empty() {
            kinds.push(EventKind::Streamed(Streamed {
                task: self.new.clone(),
                node: node.clone(),
                scope: scope.clone(),
                call: *call,
                deltas,
            }));
        }
        kinds.push(EventKind::Called(Box::new(called)));
        kinds
    }

    /// Adds the start of the task before its other events.
    fn with_task_start(&self, rows: CopiedEvents) -> CopiedEvents {
        let first = rows.iter().map(|(seq, _)| *seq).min();
        let begun = first.and_then(|first| Some((first, self.task_started()?.1)));
        begun.into_iter().chain(rows).collect()
    }

    /// Rewrites the start of the newest attempt, with the sequence number of the first one.
    pub(super) fn task_started(&self) -> Option<(u64, EventKind)> {
        let begun = |kind: &EventKind| match kind {
            EventKind::TaskStarted(begun) if begun.task == *self.old => {
                let again = TaskStarted { task: self.new.clone(), ..begun.clone() };
                Some(EventKind::TaskStarted(again))
            }
            _ => None,
        };
        let mut own = self.own();
        let (first, _) = own.find_map(|event| Some((event.seq, begun(&event.kind)?)))?;
        Some((first, self.newest(begun)?.1))
    }

    fn call_started(&self, scope: &[u32], call: u32) -> Option<(u64, EventKind)> {
        self.newest(|kind| match kind {
            EventKind::CallStarted(begun)
                if begun.task == *self.old && begun.scope == scope && begun.call == call =>
            {
                let again =
                    CallStarted { task: self.new.clone(), start_number: 0, ..begun.clone() };
                Some(EventKind::CallStarted(again))
            }
            _ => None,
        })
    }

    fn settled(&self, scope: &[u32], call: u32) -> Option<(u64, EventKind)> {
        self.newest(|kind| match kind {
            EventKind::Settled(settled)
                if settled.task == *self.old && settled.scope == scope && settled.call == call =>
            {
                let again = Settled { task: self.new.clone(), ..settled.clone() };
                Some(EventKind::Settled(again))
            }
            _ => None,
        })
    }

    /// Returns the newest event for which `take` returns a value.
    fn newest<T>(&self, take: impl Fn(&EventKind) -> Option<T>) -> Option<(u64, T)> {
        self.own().rev().find_map(|event| Some((event.seq, take(&event.kind)?)))
    }

    fn own(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.events.iter().filter(|event| event.namespace == *self.namespace)
    }
}
