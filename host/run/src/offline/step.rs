//! One superstep, executed once more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use wattle_graph::event::{EventKind, TaskFinished};
use wattle_graph::failure::Failure;
use wattle_graph::graph::Body;
use wattle_graph::id::{RunId, TaskId};
use wattle_graph::lineage::Lineage;
use wattle_graph::plan::{Planned, Task, plan};
use wattle_graph::step::{Position, advance, plugin_reductions};

use super::record::{Record, Segment};
use super::{Divergence, Replay, Skipped};
use crate::app::{App, GraphPack};
use crate::cancel::Cancel;
use crate::driver::{PastTask, reduce};
use crate::export::Export;
use crate::gate::Journal;
use crate::gate::unwind::Unwind;
use crate::log::ThreadLog;
use crate::ports::Ports;
use crate::ports::sandbox::Ended;
use crate::ports::store::{CheckpointTuple, Epoch, RunRecord, ThreadHead, ThreadRecord};
use crate::task::{History, RunContext, once};
use crate::view;

/// One superstep with what is needed to execute it.
pub(super) struct Superstep<'r> {
    pub(super) app: Arc<App>,
    pub(super) pack: Arc<GraphPack>,
    pub(super) above: Option<Arc<GraphPack>>,
    pub(super) ports: Ports,
    pub(super) export: &'r Export,
    pub(super) record: &'r Record,
    pub(super) segment: &'r Segment<'r>,
}

impl Superstep<'_> {
    /// Executes its tasks and makes its checkpoint, and notes what differs.
    pub(super) async fn execute(&self, replay: &mut Replay) {
        let mut lineage = Lineage::new(self.segment.checkpoint.clone());
        self.segment.events.iter().for_each(|event| lineage.apply(event));
        let tasks = self.tasks(&lineage);
        let tuple = CheckpointTuple {
            checkpoint: self.segment.checkpoint.clone(),
            events: self.segment.events.to_vec(),
        };
        let mut past = view::past_tasks(&tuple);
        for (id, finished) in &lineage.finished {
            let past = past.remove(id).unwrap_or_default();
            match tasks.get(id) {
                Some(task) => self.task(task, finished, past, &lineage, replay).await,
                None => replay.divergences.push(self.divergence(
                    Some(finished),
                    "the graph does not run this task here",
                    json!(finished.node),
                    Value::Null,
                )),
            }
        }
        if let Some(next) = self.segment.next {
            self.checkpoint(&lineage, next, replay).await;
        }
    }

    /// Every task of the superstep, those that ran in place of failed ones included.
    fn tasks(&self, lineage: &Lineage) -> BTreeMap<TaskId, Task> {
        let origin = self.export.header.thread.origin();
        let mut fresh = Lineage::new(self.segment.checkpoint.clone());
        let mut tasks = BTreeMap::new();
        // A handler may itself be handled, so failures are taken in until nothing new comes of it.
        loop {
            let known = tasks.len();
            if let Planned::Tasks { run, .. } = plan(&self.pack.graph, origin, &fresh, 1) {
                tasks.extend(run.into_iter().map(|task| (task.id.clone(), task)));
            }
            if tasks.len() == known {
                return tasks;
            }
            let handled = lineage.failed.iter().filter(|(_, failed)| failed.handler.is_some());
            fresh.failed = handled.map(|(id, failed)| (id.clone(), failed.clone())).collect();
        }
    }

    async fn task(
        &self,
        task: &Task,
        recorded: &TaskFinished,
        past: PastTask,
        lineage: &Lineage,
        replay: &mut Replay,
    ) {
        let Some(node) = self.pack.graph.node(&task.node) else { return };
        if let Body::Graph { .. } = node.body {
            // Its own supersteps are replayed one by one.
            return;
        }
        if recorded.cached {
            let reason = "it was taken over from the cache".to_owned();
            replay.skipped.push(self.skipped(recorded, reason));
            return;
        }
        let calls: usize = past.scopes.values().map(|calls| calls.answered.len()).sum();
        let context = self.context(&recorded.task, lineage);
        let questions = lineage.questions.iter();
        let own = questions.filter(|(_, question)| question.asked.task == task.id);
        let history = History {
            journal: Arc::new(Journal::sealed(past.scopes)),
            questions: Arc::new(own.map(|(id, it)| (id.clone(), it.clone())).collect()),
            failed_attempts: 0,
        };
        let number = self.attempt_of(&task.id);
        match once(&context, task, node, &history, number, Instant::now()).await {
            Ok(now) if is_same(recorded, &now) => {
                replay.tasks += 1;
                replay.calls += calls;
            }
            Ok(now) => replay.divergences.push(self.divergence(
                Some(recorded),
                "the node decides otherwise from the same answers",
                decided(recorded),
                decided(&now),
            )),
            Err(ended) => replay.divergences.push(self.ended(recorded, ended)),
        }
    }

    /// What the run told the task of itself.
    fn context(&self, task: &TaskId, lineage: &Lineage) -> RunContext {
        let header = &self.export.header;
        let run = self.run_of(task);
        let known: Option<&RunRecord> = header.runs.iter().find(|it| it.id == run);
        let options = known.map(|run| run.options.clone()).unwrap_or_default();
        let own = options.recursion_limit.filter(|_| self.above.is_none());
        let limit = own.unwrap_or(self.pack.graph.recursion_limit());
        let first_step = known.and_then(|run| run.first_step);
        let steps = self.record.steps_before(self.segment.checkpoint, first_step);
        let meta = &lineage.checkpoint.meta;
        let context = self.record.context_of(&run, &meta.namespace);
        let thread = ThreadRecord { context, ..header.thread.clone() };
        RunContext {
            app: self.app.clone(),
            pack: self.pack.clone(),
            above: self.above.clone(),
            log: Arc::new(self.log(&run).within(meta.namespace.clone())),
            record: Arc::new(thread),
            run,
            options: Arc::new(options),
            ports: self.ports.clone(),
            cancel: Cancel::default(),
            drain: Cancel::default(),
            halt: Cancel::default(),
            remaining_steps: limit.saturating_sub(steps + 1),
            base: meta.id,
            children: Arc::new(meta.children.clone()),
            parents: Arc::new(meta.parents.clone()),
            salvage: Arc::default(),
            past: Arc::default(),
            alive: None,
        }
    }

    /// A log that reaches no store: whatever is written to it is what the guest says to operators.
    fn log(&self, run: &RunId) -> ThreadLog {
        let head = ThreadHead::new(self.export.header.thread.clone());
        let (store, clock) = (self.ports.store.clone(), self.ports.clock.clone());
        ThreadLog::new(store, clock, &head, Epoch(0), run.clone())
    }

    /// The run under which a task ended.
    fn run_of(&self, task: &TaskId) -> RunId {
        let ended = self.segment.events.iter().rev().find(|event| {
            matches!(&event.kind, EventKind::TaskFinished(finished) if finished.task == *task)
        });
        ended.map_or_else(|| self.segment.checkpoint.meta.run.clone(), |event| event.run.clone())
    }

    /// The attempt in which a task ended.
    fn attempt_of(&self, task: &TaskId) -> u32 {
        let begun = self.segment.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::TaskStarted(started) if started.task == *task => Some(started.attempt),
            _ => None,
        });
        begun.unwrap_or(1)
    }

    async fn checkpoint(
        &self,
        lineage: &Lineage,
        next: &wattle_graph::checkpoint::Checkpoint,
        replay: &mut Replay,
    ) {
        let graph = &self.pack.graph;
        let reduced = match reduce(&self.app, plugin_reductions(graph, lineage)).await {
            Ok(reduced) => reduced,
            Err(failure) => {
                let now = json!(failure);
                let message = "its writes cannot be combined any more";
                replay.divergences.push(self.divergence(None, message, Value::Null, now));
                return;
            }
        };
        let at = Position {
            id: next.meta.id,
            run: next.meta.run.clone(),
            at_ms: next.meta.at_ms,
            version: self.pack.version,
            parents: next.meta.parents.clone(),
        };
        match advance(graph, lineage, &reduced, at) {
            Ok(now) if now.values == next.values && leads(&now) == leads(next) => {
                replay.checkpoints += 1;
            }
            Ok(now) => {
                let (recorded, now) = (shown(next), shown(&now));
                let message = "the writes lead to another checkpoint";
                replay.divergences.push(self.divergence(None, message, recorded, now));
            }
            Err(error) => {
                let now = json!(error.to_failure());
                let message = "the writes cannot be applied any more";
                replay.divergences.push(self.divergence(None, message, shown(next), now));
            }
        }
    }

    fn skipped(&self, task: &TaskFinished, reason: String) -> Skipped {
        let meta = &self.segment.checkpoint.meta;
        Skipped {
            namespace: meta.namespace.clone(),
            checkpoint: meta.id,
            node: Some(task.node.clone()),
            reason,
        }
    }

    fn divergence(
        &self,
        task: Option<&TaskFinished>,
        message: &str,
        recorded: Value,
        now: Value,
    ) -> Divergence {
        let meta = &self.segment.checkpoint.meta;
        Divergence {
            namespace: meta.namespace.clone(),
            checkpoint: meta.id,
            node: task.map(|task| task.node.clone()),
            task: task.map(|task| task.task.clone()),
            call: None,
            message: message.to_owned(),
            recorded,
            now,
        }
    }

    /// A task that ended well then, and does not now. Of a host call that differs, both requests
    /// are told.
    fn ended(&self, recorded: &TaskFinished, ended: Ended) -> Divergence {
        let failure = match ended {
            Ended::Unwound(Unwind::Divergence(failure)) => {
                let details = failure.details.unwrap_or_default();
                let (journal, now) = (details["journal"].clone(), details["now"].clone());
                let divergence = self.divergence(Some(recorded), &failure.message, journal, now);
                return Divergence { call: details["call"].as_u64(), ..divergence };
            }
            Ended::Unwound(Unwind::Suspended(_) | Unwind::Cancelled | Unwind::Drained) => {
                Failure::internal("it waits for an answer that is not recorded")
            }
            Ended::Unwound(Unwind::Limit(failure) | Unwind::Log(failure))
            | Ended::Failure(failure)
            | Ended::Trap(failure)
            | Ended::Limit(failure)
            | Ended::Host(failure) => failure,
        };
        let message = "the node ended well and fails now";
        self.divergence(Some(recorded), message, decided(recorded), json!(failure))
    }
}

/// Whether two executions of a task decided the same.
fn is_same(one: &TaskFinished, other: &TaskFinished) -> bool {
    decided(one) == decided(other)
}

fn decided(task: &TaskFinished) -> Value {
    json!({
        "writes": task.writes,
        "goto": task.goto,
        "sends": task.sends,
        "for_parent": task.for_parent,
    })
}

/// What a checkpoint leads to.
fn leads(checkpoint: &wattle_graph::checkpoint::Checkpoint) -> Value {
    let meta = &checkpoint.meta;
    json!([meta.next, meta.deferred, meta.barriers, meta.versions])
}

fn shown(checkpoint: &wattle_graph::checkpoint::Checkpoint) -> Value {
    json!({ "state": checkpoint.state(), "next": checkpoint.meta.next })
}
