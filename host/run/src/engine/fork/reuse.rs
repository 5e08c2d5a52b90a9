//! What a fork inside of a superstep takes over from it: all that does not depend on the call whose
//! answer is replaced.
//!
//! The tasks of the fork have ids of their own, so what stands in the log of the old ones is
//! written again under the new ids. Entries of the journal name the entry that they repeat, so
//! nobody counts them twice.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{
    Answered, Asked, CallStarted, Called, Event, EventKind, Settled, Streamed, TaskFailed,
    TaskFinished, TaskStarted,
};
use wattle_graph::failure::{Failure, code};
use wattle_graph::graph::Graph;
use wattle_graph::id::{InterruptId, Namespace, TaskId, ThreadId};
use wattle_graph::interrupt::Question;
use wattle_graph::lineage::Lineage;
use wattle_graph::plan::{Planned, Task, plan};

use crate::call::replace::pieces;
use crate::driver::PastTask;
use crate::gate::PastCalls;
use crate::gate::stream::LOOK;
use crate::ports::store::CheckpointTuple;
use crate::view;

/// The call whose answer is replaced.
pub(super) struct Replaced {
    /// Sequence number of its entry.
    pub seq: u64,
    /// The entry.
    pub called: Called,
    /// The answer that it gets.
    pub result: Result<Value, Failure>,
    /// Milliseconds since 1970.
    pub at_ms: i64,
}

/// What happened on `fork` before anything runs there: what is taken over from the superstep of
/// `tuple`, and the call with its new answer. `origin` is the thread that ids derive from.
///
/// # Errors
///
/// `conflict` if the graph as it is now does not lead to the task of the call.
pub(super) fn taken_over(
    graph: &Graph,
    origin: &ThreadId,
    tuple: &CheckpointTuple,
    fork: &Checkpoint,
    replaced: &Replaced,
) -> Result<Vec<EventKind>, Failure> {
    let lineage = view::lineage(tuple.clone());
    let target = &replaced.called.task;
    let ids = ids(graph, origin, &lineage, fork, target);
    let Some(own) = ids.get(target) else {
        return Err(Failure::new(
            code::CONFLICT,
            format!(
                "task `{target}` of node `{}` does not start from checkpoint {}: its superstep was \
                 not stored (durability `exit`), or the graph has changed; fork from a checkpoint",
                replaced.called.node, tuple.checkpoint.meta.id
            ),
        ));
    };
    let past = view::past_tasks(tuple);
    let mut rows = Rows::new();
    for (old, new) in ids.iter().filter(|(old, _)| *old != target) {
        let copy = Copy { events: &tuple.events, old, new };
        let failed = lineage.failed.get(old);
        rows.extend(if let Some(finished) = lineage.finished.get(old) {
            copy.finished(finished, fork)
        } else if let Some(handler) = failed.and_then(|failed| failed.handler.as_ref()) {
            copy.failed(ids.get(handler))
        } else if let Some(past) = past.get(old) {
            copy.journal(past, &lineage, |_| true)
        } else {
            Rows::new()
        });
    }
    let copy = Copy { events: &tuple.events, old: target, new: own };
    let attempt = view::past_tasks(&attempt_of(tuple, replaced));
    if let Some(past) = attempt.get(target) {
        let order = Order::new(past, replaced);
        rows.extend(copy.journal(past, &lineage, |path| order.keeps(path)));
    }
    rows.sort_by_key(|(seq, _)| *seq);
    let mut kinds: Vec<EventKind> = rows.into_iter().map(|(_, kind)| kind).collect();
    if !kinds.iter().any(|kind| matches!(kind, EventKind::TaskStarted(it) if it.task == *own)) {
        kinds.extend(copy.begun().map(EventKind::TaskStarted));
    }
    copy.replaced(replaced, &mut kinds);
    Ok(kinds)
}

/// The tasks of a superstep, old and new. Who handles a failure stands beside who failed, unless
/// that is the task of the call.
fn ids(
    graph: &Graph,
    origin: &ThreadId,
    lineage: &Lineage,
    fork: &Checkpoint,
    target: &TaskId,
) -> BTreeMap<TaskId, TaskId> {
    let mut old = Lineage::new(lineage.checkpoint.clone());
    let mut new = Lineage::new(fork.clone());
    let mut ids = BTreeMap::new();
    loop {
        let tasks = planned(graph, origin, &old).into_iter().zip(planned(graph, origin, &new));
        let known = old.failed.len();
        for (before, now) in tasks {
            let failed = lineage.failed.get(&before.id).filter(|failed| failed.handler.is_some());
            if let Some(failed) = failed.filter(|_| before.id != *target) {
                let again =
                    TaskFailed { task: now.id.clone(), handler: now.handler, ..failed.clone() };
                old.failed.insert(before.id.clone(), failed.clone());
                new.failed.insert(now.id.clone(), again);
            }
            ids.insert(before.id, now.id);
        }
        if old.failed.len() == known {
            return ids;
        }
    }
}

/// Every task of the superstep, in order.
fn planned(graph: &Graph, origin: &ThreadId, lineage: &Lineage) -> Vec<Task> {
    match plan(graph, origin, lineage, 1) {
        Planned::Tasks { run, .. } => run,
        _ => Vec::new(),
    }
}

/// The superstep as far as the attempt that made the call knew it.
fn attempt_of(tuple: &CheckpointTuple, replaced: &Replaced) -> CheckpointTuple {
    let ends = |event: &&Event| {
        event.seq > replaced.seq
            && match &event.kind {
                EventKind::TaskFailed(failed) => failed.task == replaced.called.task,
                EventKind::Reopened(_) => true,
                _ => false,
            }
    };
    let end = tuple.events.iter().find(ends).map_or(u64::MAX, |event| event.seq);
    let events = tuple.events.iter().filter(|event| event.seq < end);
    CheckpointTuple { checkpoint: tuple.checkpoint.clone(), events: events.cloned().collect() }
}

/// Which calls come before the replaced one, or were made together with it.
struct Order<'a> {
    past: &'a PastTask,
    /// Path of the replaced call.
    target: Vec<u32>,
    batch: u32,
}

impl<'a> Order<'a> {
    fn new(past: &'a PastTask, replaced: &Replaced) -> Self {
        let Called { scope, call, batch, .. } = &replaced.called;
        Self { past, target: path(scope, *call), batch: *batch }
    }

    /// Whether what stands at a path does not depend on the replaced call.
    fn keeps(&self, path: &[u32]) -> bool {
        let differs = path.iter().zip(&self.target).position(|(one, other)| one != other);
        // What is around the call runs again; what is inside of it is not needed.
        let Some(level) = differs else { return false };
        path[level] < self.target[level] || self.is_of_batch(&path[..=level], level)
    }

    /// Whether a later call was made together with the replaced one, or with one that is around it.
    fn is_of_batch(&self, path: &[u32], level: usize) -> bool {
        let batch = match self.target.len() - 1 {
            last if last == level => Some(self.batch),
            _ => called_at(self.past, &self.target[..=level]).map(|called| called.batch),
        };
        // Looks at a streamed answer show what was replaced.
        let other = called_at(self.past, path).filter(|called| called.function != LOOK);
        batch.is_some() && other.map(|called| called.batch) == batch
    }
}

fn path(scope: &[u32], call: u32) -> Vec<u32> {
    scope.iter().copied().chain([call]).collect()
}

fn called_at<'p>(past: &'p PastTask, path: &[u32]) -> Option<&'p Called> {
    let (call, scope) = path.split_last()?;
    past.scopes.get(scope)?.answered.get(call).map(|(_, called)| called)
}

/// Writes again what stands in the log of one task, under the id of another. Each row has the
/// sequence number of what it repeats.
struct Copy<'a> {
    events: &'a [Event],
    old: &'a TaskId,
    new: &'a TaskId,
}

type Rows = Vec<(u64, EventKind)>;

impl Copy<'_> {
    fn finished(&self, finished: &TaskFinished, fork: &Checkpoint) -> Rows {
        let again = TaskFinished { task: self.new.clone(), base: fork.meta.id, ..finished.clone() };
        let end = self.newest(|kind| match kind {
            EventKind::TaskFinished(finished) if finished.task == *self.old => Some(()),
            _ => None,
        });
        let seq = end.map_or(u64::MAX, |(seq, ())| seq);
        self.once_begun(vec![(seq, EventKind::TaskFinished(again))])
    }

    fn failed(&self, handler: Option<&TaskId>) -> Rows {
        let failed = self.newest(|kind| match kind {
            EventKind::TaskFailed(failed) if failed.task == *self.old => {
                let (task, handler) = (self.new.clone(), handler.cloned());
                Some(EventKind::TaskFailed(TaskFailed { task, handler, ..failed.clone() }))
            }
            _ => None,
        });
        self.once_begun(failed.into_iter().collect())
    }

    /// What the task asked and was answered, as far as a path is kept.
    fn journal(&self, past: &PastTask, lineage: &Lineage, keeps: impl Fn(&[u32]) -> bool) -> Rows {
        let mut rows = Rows::new();
        // What was called inside of a tool that has answered has served.
        let has_served = |path: &[u32]| {
            (1..path.len()).map(|depth| &path[..depth]).any(|around| {
                keeps(around) && called_at(past, around).is_some_and(|it| it.result.is_ok())
            })
        };
        let keeps = |path: &[u32]| keeps(path) && !has_served(path);
        for (scope, calls) in &past.scopes {
            let keeps = |call: u32| keeps(&path(scope, call));
            self.answered(calls, keeps, &mut rows);
            self.in_doubt(scope, calls, keeps, &mut rows);
        }
        let questions = lineage.questions.values().filter(|it| it.asked.task == *self.old);
        // One about a call that was begun once more since has served.
        let has_served = |it: &Question| {
            let calls = past.scopes.get(&it.asked.scope);
            calls.and_then(|calls| calls.begun(it.asked.call)) > Some(it.asked_seq)
        };
        let questions = questions.filter(|it| !has_served(it));
        for question in questions.filter(|it| keeps(&path(&it.asked.scope, it.asked.call))) {
            self.question(question, &mut rows);
        }
        self.once_begun(rows)
    }

    fn answered(&self, calls: &PastCalls, keeps: impl Fn(u32) -> bool, rows: &mut Rows) {
        for (seq, called) in calls.answered.values().filter(|(_, called)| keeps(called.call)) {
            let again = Called {
                task: self.new.clone(),
                tokens: None,
                reused: called.reused.or(Some(*seq)),
                ..called.clone()
            };
            rows.push((*seq, EventKind::Called(Box::new(again))));
        }
    }

    /// Calls of which nobody knows whether they had their effect are no clearer in the fork.
    fn in_doubt(
        &self,
        scope: &[u32],
        calls: &PastCalls,
        keeps: impl Fn(u32) -> bool,
        rows: &mut Rows,
    ) {
        let open = calls.open.keys().filter(|call| !calls.answered.contains_key(call));
        for call in open.filter(|call| keeps(**call)) {
            rows.extend(self.call_started(scope, *call));
            if calls.settled.contains_key(call) {
                rows.extend(self.settled(scope, *call));
            }
        }
    }

    fn question(&self, question: &Question, rows: &mut Rows) {
        let Question { asked, asked_seq, answer, .. } = question;
        let interrupt = InterruptId::derive(self.new, &asked.scope, asked.call);
        let task = self.new.clone();
        let again = Asked { interrupt: interrupt.clone(), task: task.clone(), ..asked.clone() };
        rows.push((*asked_seq, EventKind::Asked(again)));
        if let Some(answer) = answer.clone() {
            rows.push((*asked_seq, EventKind::Answered(Answered { interrupt, task, answer })));
        }
    }

    /// The call with its new answer, for whoever follows the run as if it were given now.
    fn replaced(&self, replaced: &Replaced, kinds: &mut Vec<EventKind>) {
        let Called { node, scope, call, .. } = &replaced.called;
        let started = self.call_started(scope, *call);
        kinds.extend(started.map(|(_, kind)| kind));
        let called = Called {
            task: self.new.clone(),
            result: replaced.result.clone(),
            started_ms: replaced.at_ms,
            duration_us: 0,
            tokens: None,
            reused: None,
            ..replaced.called.clone()
        };
        let deltas = pieces(&called);
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
    }

    /// The same rows, after the beginning of the task.
    fn once_begun(&self, rows: Rows) -> Rows {
        let first = rows.iter().map(|(seq, _)| *seq).min();
        let begun = first.zip(self.begun().map(EventKind::TaskStarted));
        begun.into_iter().chain(rows).collect()
    }

    /// The newest attempt.
    fn begun(&self) -> Option<TaskStarted> {
        self.newest(|kind| match kind {
            EventKind::TaskStarted(begun) if begun.task == *self.old => {
                Some(TaskStarted { task: self.new.clone(), ..begun.clone() })
            }
            _ => None,
        })
        .map(|(_, begun)| begun)
    }

    fn call_started(&self, scope: &[u32], call: u32) -> Option<(u64, EventKind)> {
        self.newest(|kind| match kind {
            EventKind::CallStarted(begun)
                if begun.task == *self.old && begun.scope == scope && begun.call == call =>
            {
                let again = CallStarted { task: self.new.clone(), ..begun.clone() };
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

    /// The newest event of the thread's own graph of which something is taken.
    fn newest<T>(&self, take: impl Fn(&EventKind) -> Option<T>) -> Option<(u64, T)> {
        let mut own = self.events.iter().rev().filter(|event| event.namespace == Namespace::root());
        own.find_map(|event| Some((event.seq, take(&event.kind)?)))
    }
}
