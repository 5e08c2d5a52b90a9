//! Builds a trace from events.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use wattle_graph::call::CallKind;
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{
    Called, Checkpointed, Decision, Event, EventKind, Migrated, RunReason, RunStarted, Settled,
    TaskFailed, TaskFinished, TaskStarted,
};
use wattle_graph::id::{ChannelName, Digest, Namespace, RunId, TaskId, ThreadId};
use wattle_graph::principal::Principal;

use crate::trace::{
    AnswerTrace, AttemptTrace, CallTrace, ChangeTrace, GraphTrace, RunTrace, StepTrace, TaskTrace,
    Totals, Trace,
};

/// Name of the change of an edit, which the log records as `checkpointed`.
const EDITED: &str = "edited";

/// Name of the event of a migration.
const MIGRATED: &str = "migrated";

/// Builds the trace of a thread from its events, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Tracer {
    runs: Vec<RunTrace>,
    changes: Vec<ChangeTrace>,
    totals: Totals,
    /// Successful calls of each task. A re-execution of the task replays them.
    answered: BTreeMap<TaskId, BTreeSet<(Vec<u32>, u32)>>,
}

impl Tracer {
    /// Returns the trace of the events so far.
    pub fn finish(self, thread: &ThreadId) -> Trace {
        let Self { runs, changes, totals, .. } = self;
        Trace { thread: thread.to_string(), runs, changes, totals }
    }

    /// Applies the next event.
    pub fn take(&mut self, event: &Event) {
        let at_ms = event.at_ms;
        match &event.kind {
            EventKind::RunStarted(started) => self.run_started(&event.run, at_ms, started),
            EventKind::RunEnded(ended) => {
                if let Some(run) = self.run(&event.run) {
                    run.status = word(&ended.status);
                    run.ended_ms = Some(at_ms);
                    run.failure = ended.failure.as_ref().map(ToString::to_string);
                    run.cancelled_by = ended.principal.as_ref().map(Into::into);
                }
            }
            EventKind::TaskStarted(started) => self.task_started(event, started),
            EventKind::TaskFinished(finished) => self.task_finished(event, finished),
            EventKind::TaskFailed(failed) => self.task_failed(event, failed),
            EventKind::CallStarted(started) => {
                let call = CallTrace {
                    call: started.call,
                    function: started.function.clone(),
                    summary: started.summary.clone(),
                    started_ms: at_ms,
                    ..CallTrace::default()
                };
                if let Some(attempt) = self.attempt(event, &started.task) {
                    put_call(&mut attempt.calls, &started.scope, call);
                }
            }
            EventKind::Called(called) => self.called(event, called),
            EventKind::Asked(asked) => {
                if let Some(attempt) = self.attempt(event, &asked.task) {
                    attempt.outcome = "asked".into();
                    attempt.questions.push(asked.interrupt.to_string());
                }
            }
            EventKind::Answered(answered) => {
                if let Some(run) = self.run(&event.run) {
                    run.answers.push(AnswerTrace {
                        question: answered.interrupt.to_string(),
                        answer: answered.answer.clone(),
                        principal: answered.principal.as_ref().map(Into::into),
                    });
                }
            }
            EventKind::Checkpointed(made) => {
                // The checkpoint of an input precedes the first superstep and belongs to none.
                if let Some(step) = self.steps(event).and_then(|steps| steps.last_mut()) {
                    step.changed = made.changed.iter().map(ToString::to_string).collect();
                }
                self.edited(event, made);
            }
            EventKind::Settled(settled) => {
                let Settled { task, call, decision, by, principal, .. } = settled;
                let word = kind_of(decision);
                let by = if by.is_empty() { String::new() } else { format!(", as `{by}` says") };
                let summary = format!("call {call} of task {task}: {word}{by}");
                self.changed(event, summary, principal.as_ref());
            }
            EventKind::Migrated(Migrated { from, to, principal }) => {
                let summary = format!("from {} to {}", shortened(from), shortened(to));
                self.changed(event, summary, principal.as_ref());
            }
            EventKind::Progress(progress) => {
                self.message(event, &progress.task, progress.message.clone());
            }
            EventKind::Log(log) => {
                let text = format!("{}: {}", log.level, log.message);
                self.message(event, &log.task, text);
            }
            EventKind::Custom(custom) => {
                let text = format!("event `{}`", custom.name);
                self.message(event, &custom.task, text);
            }
            _ => {}
        }
    }

    /// Adds the change of an edit. The checkpoint that a migration makes is not a separate change.
    fn edited(&mut self, event: &Event, made: &Checkpointed) {
        let is_migrated = self
            .changes
            .last()
            .is_some_and(|last| last.change == MIGRATED && last.seq + 1 == event.seq);
        if made.source != CheckpointSource::Update || is_migrated {
            return;
        }
        let changed: Vec<&str> = made.changed.iter().map(ChannelName::as_str).collect();
        let graph = match event.namespace.as_str() {
            "" => String::new(),
            namespace => format!(" of graph {namespace}"),
        };
        let mut summary = format!("checkpoint {}{graph}", made.checkpoint);
        if !changed.is_empty() {
            summary.push_str(&format!(" -> {}", changed.join(", ")));
        }
        self.changes.push(ChangeTrace {
            change: EDITED.to_owned(),
            ..change(event, summary, made.principal.as_ref())
        });
    }

    fn changed(&mut self, event: &Event, summary: String, principal: Option<&Principal>) {
        // A policy settles calls while a run is active.
        if self.run(&event.run).is_none() {
            self.changes.push(change(event, summary, principal));
        }
    }

    fn run_started(&mut self, id: &RunId, at_ms: i64, started: &RunStarted) {
        if let Some(run) = self.run(id) {
            run.recoveries += u32::from(started.reason == RunReason::Recovery);
            return;
        }
        self.runs.push(RunTrace {
            run: id.to_string(),
            graph: started.graph.to_string(),
            reason: word(&started.reason),
            status: "running".into(),
            started_ms: at_ms,
            principal: started.principal.as_ref().map(Into::into),
            ..RunTrace::default()
        });
    }

    fn task_started(&mut self, event: &Event, started: &TaskStarted) {
        let replayed = self.answered.get(&started.task).map_or(0, BTreeSet::len);
        let Some(steps) = self.steps(event) else { return };
        let step = match steps.iter().position(|step| step.step == started.step) {
            Some(index) => index,
            None => {
                steps.push(StepTrace { step: started.step, ..StepTrace::default() });
                steps.len() - 1
            }
        };
        let tasks = &mut steps[step].tasks;
        let task = match tasks.iter().position(|task| task.task == started.task.as_str()) {
            Some(index) => index,
            None => {
                tasks.push(TaskTrace {
                    task: started.task.to_string(),
                    node: started.node.to_string(),
                    ..TaskTrace::default()
                });
                tasks.len() - 1
            }
        };
        tasks[task].attempts.push(AttemptTrace {
            attempt: started.attempt,
            outcome: "running".into(),
            started_ms: event.at_ms,
            replayed,
            ..AttemptTrace::default()
        });
    }

    fn task_finished(&mut self, event: &Event, finished: &TaskFinished) {
        let Some(attempt) = self.attempt(event, &finished.task) else { return };
        attempt.outcome = "finished".into();
        attempt.duration_us = Some(finished.duration_us);
        attempt.written_bytes =
            Some(finished.writes.iter().map(|write| json_bytes(&write.value)).sum());
    }

    fn task_failed(&mut self, event: &Event, failed: &TaskFailed) {
        let Some(attempt) = self.attempt(event, &failed.task) else { return };
        attempt.outcome = "failed".into();
        attempt.failure = Some(failed.failure.to_string());
        let took_ms = u64::try_from(event.at_ms - attempt.started_ms).unwrap_or(0);
        attempt.duration_us = Some(took_ms * 1_000);
    }

    fn called(&mut self, event: &Event, called: &Called) {
        self.totals.calls += 1;
        let is_model_call = called.kind().is_some_and(CallKind::is_model_call);
        if is_model_call && called.reused.is_none() {
            self.totals.model_calls += 1;
        }
        if let Some(tokens) = called.tokens {
            self.totals.input_tokens += tokens.input;
            self.totals.output_tokens += tokens.output;
        }
        if called.result.is_ok() {
            let answered = self.answered.entry(called.task.clone()).or_default();
            answered.insert((called.scope.clone(), called.call));
        }
        let call = CallTrace {
            call: called.call,
            function: called.function.clone(),
            summary: called.summary.clone(),
            started_ms: called.started_ms,
            duration_us: Some(called.duration_us),
            request_bytes: json_bytes(&called.request),
            answer_bytes: called.result.as_ref().map_or(0, json_bytes),
            input_tokens: called.tokens.map(|tokens| tokens.input),
            output_tokens: called.tokens.map(|tokens| tokens.output),
            reused: called.reused,
            failure: called.result.as_ref().err().map(ToString::to_string),
            calls: Vec::new(),
        };
        if let Some(attempt) = self.attempt(event, &called.task) {
            put_call(&mut attempt.calls, &called.scope, call);
        }
    }

    fn message(&mut self, event: &Event, task: &TaskId, text: String) {
        if let Some(attempt) = self.attempt(event, task) {
            attempt.messages.push(text);
        }
    }

    fn run(&mut self, id: &RunId) -> Option<&mut RunTrace> {
        self.runs.iter_mut().rev().find(|run| run.run == id.as_str())
    }

    /// Returns the supersteps of the graph that an event belongs to.
    fn steps(&mut self, event: &Event) -> Option<&mut Vec<StepTrace>> {
        let run = self.run(&event.run)?;
        steps_in(&mut run.steps, &event.namespace)
    }

    /// Returns the newest execution of a task of the graph that an event belongs to.
    fn attempt(&mut self, event: &Event, task: &TaskId) -> Option<&mut AttemptTrace> {
        let task = task.as_str();
        latest(self.steps(event)?, |known| known.task == task)
    }
}

/// Creates a change with the name of its event.
fn change(event: &Event, summary: String, principal: Option<&Principal>) -> ChangeTrace {
    ChangeTrace {
        seq: event.seq,
        change: event.kind.name().to_owned(),
        at_ms: event.at_ms,
        summary,
        principal: principal.map(Into::into),
    }
}

fn kind_of(decision: &Decision) -> &'static str {
    match decision {
        Decision::Retry => "retry",
        Decision::Answer { .. } => "answer",
        Decision::Fail => "fail",
    }
}

/// Returns the first 12 hexadecimal digits of a digest, which distinguish versions.
fn shortened(digest: &Digest) -> String {
    digest.to_hex()[..12].to_owned()
}

/// Returns the supersteps of a graph. They are part of the task that runs the graph.
fn steps_in<'s>(
    root: &'s mut Vec<StepTrace>,
    namespace: &Namespace,
) -> Option<&'s mut Vec<StepTrace>> {
    let Some(around) = namespace.parent() else { return Some(root) };
    let steps = steps_in(root, &around)?;
    let owner = namespace.task();
    let attempt = latest(steps, |known| match &owner {
        Some(task) => known.task == task.as_str(),
        // A subgraph that keeps its state belongs to its node, and runs in one task at a time.
        None => known.node == namespace.node(),
    })?;
    let place = attempt.graphs.iter().position(|graph| graph.namespace == namespace.as_str());
    let place = place.unwrap_or_else(|| {
        let namespace = namespace.as_str().to_owned();
        attempt.graphs.push(GraphTrace { namespace, steps: Vec::new() });
        attempt.graphs.len() - 1
    });
    Some(&mut attempt.graphs[place].steps)
}

/// Returns the newest execution of the newest task for which `is_meant` returns true.
fn latest(
    steps: &mut [StepTrace],
    is_meant: impl Fn(&TaskTrace) -> bool,
) -> Option<&mut AttemptTrace> {
    let mut tasks = steps.iter_mut().rev().flat_map(|step| step.tasks.iter_mut().rev());
    tasks.find(|known| is_meant(known))?.attempts.last_mut()
}

/// Inserts a call below the call that `scope` identifies, in the order of call numbers. The start
/// and the end of a call share one entry.
fn put_call(calls: &mut Vec<CallTrace>, scope: &[u32], call: CallTrace) {
    let number = scope.first().copied().unwrap_or(call.call);
    let place = calls.binary_search_by_key(&number, |known| known.call);
    match (scope, place) {
        ([], Ok(index)) => {
            let inner = std::mem::take(&mut calls[index].calls);
            calls[index] = CallTrace { calls: inner, ..call };
        }
        ([], Err(index)) => calls.insert(index, call),
        ([_, rest @ ..], Ok(index)) => put_call(&mut calls[index].calls, rest, call),
        ([outer, rest @ ..], Err(index)) => {
            // The outer call started in an earlier execution.
            let mut outer = CallTrace {
                call: *outer,
                function: CallKind::CallTool.name().into(),
                started_ms: call.started_ms,
                ..CallTrace::default()
            };
            put_call(&mut outer.calls, rest, call);
            calls.insert(index, outer);
        }
    }
}

fn json_bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |bytes| bytes.len())
}

/// Returns the string that a value serializes to.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn build(log: &[Event]) -> Trace {
        let mut tracer = Tracer::default();
        for event in log {
            tracer.take(event);
        }
        tracer.finish(&ThreadId::new("thread").unwrap())
    }

    fn event(seq: u64, run: &str, kind: serde_json::Value) -> Event {
        let mut document = json!({ "seq": seq, "at_ms": 1_000 + seq * 10, "run": run });
        document.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        serde_json::from_value(document).unwrap()
    }

    fn call(seq: u64, run: &str, call: u32) -> Event {
        let digest = "0".repeat(64);
        event(
            seq,
            run,
            json!({
                "type": "called", "task": "t1", "node": "extract", "call": call,
                "function": "llm.complete", "digest": digest, "request": { "route": "chat" },
                "result": { "Ok": { "text": "hi" } }, "started_ms": 1_020, "duration_us": 5_000,
                "summary": "chat (small)", "tokens": { "input": 12, "output": 3 }, "batch": call,
            }),
        )
    }

    fn started(seq: u64, run: &str, attempt: u32) -> Event {
        event(
            seq,
            run,
            json!({
                "type": "task_started", "task": "t1", "node": "extract", "step": 1, "attempt": attempt,
            }),
        )
    }

    #[test]
    fn calls_of_a_tool_are_below_its_call() {
        let within = |seq, scope: serde_json::Value, number, function: &str| {
            let mut event = serde_json::to_value(call(seq, "r1", number)).unwrap();
            event["scope"] = scope;
            event["function"] = function.into();
            serde_json::from_value::<Event>(event).unwrap()
        };
        let log = [
            run_started(1, "r1", "input"),
            started(2, "r1", 1),
            within(3, json!([0]), 1, "http.send"),
            within(4, json!([0]), 0, "llm.complete"),
            within(5, json!([]), 0, "tools.call"),
        ];
        let trace = build(&log);
        let calls = &trace.runs[0].steps[0].tasks[0].attempts[0].calls;
        assert_eq!((calls.len(), calls[0].function.as_str()), (1, "tools.call"));
        let inner: Vec<&str> = calls[0].calls.iter().map(|call| call.function.as_str()).collect();
        assert_eq!(inner, ["llm.complete", "http.send"]);
    }

    fn run_started(seq: u64, run: &str, reason: &str) -> Event {
        event(
            seq,
            run,
            json!({
                "type": "run_started", "graph": "g", "digest": "0".repeat(64), "reason": reason,
            }),
        )
    }

    #[test]
    fn subgraphs_are_below_their_task() {
        let within = |mut event: Event, namespace: &str, task: &str| {
            event.namespace = Namespace::new(namespace);
            match &mut event.kind {
                EventKind::TaskStarted(started) => started.task = TaskId::new(task).unwrap(),
                EventKind::Called(called) => called.task = TaskId::new(task).unwrap(),
                _ => {}
            }
            event
        };
        let log = [
            run_started(1, "r1", "input"),
            started(2, "r1", 1),
            within(started(3, "r1", 1), "extract:t1", "t2"),
            within(started(4, "r1", 1), "extract:t1|extract", "t3"),
            within(call(5, "r1", 0), "extract:t1|extract", "t3"),
            within(started(6, "r1", 1), "extract:t1.0", "t4"),
        ];
        let trace = build(&log);
        let outer = &trace.runs[0].steps[0].tasks[0].attempts[0];
        let names: Vec<&str> = outer.graphs.iter().map(|graph| graph.namespace.as_str()).collect();
        assert_eq!(names, ["extract:t1", "extract:t1.0"]);
        let middle = &outer.graphs[0].steps[0].tasks[0];
        let inner = &middle.attempts[0].graphs[0].steps[0].tasks[0];
        assert_eq!((middle.task.as_str(), inner.task.as_str()), ("t2", "t3"));
        assert_eq!(inner.attempts[0].calls.len(), 1);
        assert_eq!((trace.runs[0].steps.len(), trace.totals.calls), (1, 1));
    }

    #[test]
    fn a_log_becomes_a_tree() {
        let log = [
            run_started(1, "r1", "input"),
            started(2, "r1", 1),
            event(
                3,
                "r1",
                json!({
                    "type": "call_started", "task": "t1", "call": 0, "function": "llm.complete",
                    "summary": "chat",
                }),
            ),
            call(4, "r1", 0),
            event(
                5,
                "r1",
                json!({
                    "type": "asked", "interrupt": "q", "task": "t1", "node": "extract", "call": 1,
                    "payload": {},
                }),
            ),
            event(6, "r1", json!({ "type": "run_ended", "status": "interrupted" })),
            run_started(7, "r2", "resume"),
            started(8, "r2", 1),
            event(
                9,
                "r2",
                json!({
                    "type": "task_finished", "task": "t1", "node": "extract", "base": 0,
                    "writes": [{ "channel": "x", "value": "y" }], "duration_us": 900,
                }),
            ),
            event(10, "r2", json!({ "type": "run_ended", "status": "completed" })),
        ];
        insta::assert_json_snapshot!(build(&log));
    }

    #[test]
    fn principals_are_shown() {
        let by = |name: &str, mut kind: serde_json::Value| {
            kind["principal"] = json!({ "key": name, "user": "jane" });
            kind
        };
        let started = json!({
            "type": "run_started", "graph": "g", "digest": "0".repeat(64), "reason": "resume",
        });
        let answered = json!({ "type": "answered", "interrupt": "q", "task": "t", "answer": 1 });
        let ended = json!({ "type": "run_ended", "status": "cancelled" });
        let settled = json!({
            "type": "settled", "task": "t", "call": 2, "decision": { "kind": "retry" }, "by": "",
        });
        let made = json!({
            "type": "checkpointed", "checkpoint": 4, "step": 1, "source": "update",
            "changed": ["x"], "next": [],
        });
        let migrated = json!({ "type": "migrated", "from": "0".repeat(64), "to": "1".repeat(64) });
        let log = [
            event(1, "r1", by("start", started)),
            event(2, "r1", by("answer", answered)),
            event(3, "r1", by("cancel", ended)),
            event(4, "e1", by("edit", made.clone())),
            event(5, "e2", by("settle", settled)),
            event(6, "e3", by("move", migrated)),
            event(7, "e3", made),
        ];
        let trace = build(&log);
        let key = |principal: &Option<crate::trace::PrincipalTrace>| {
            let principal = principal.as_ref().unwrap();
            assert_eq!(principal.user.as_deref(), Some("jane"));
            principal.key.clone().unwrap()
        };
        let run = &trace.runs[0];
        assert_eq!(key(&run.principal), "start");
        assert_eq!(key(&run.answers[0].principal), "answer");
        assert_eq!(key(&run.cancelled_by), "cancel");
        let told = trace.changes.iter().map(|it| (it.seq, it.change.as_str(), it.summary.as_str()));
        let told: Vec<_> = told.collect();
        assert_eq!(told[0], (4, "edited", "checkpoint 4 -> x"));
        assert_eq!(told[1], (5, "settled", "call 2 of task t: retry"));
        assert_eq!(told[2], (6, "migrated", "from 000000000000 to 111111111111"));
        let keys: Vec<_> = trace.changes.iter().map(|it| key(&it.principal)).collect();
        assert_eq!(keys, ["edit", "settle", "move"]);
    }

    #[test]
    fn reused_result_is_not_a_model_call() {
        let mut again = serde_json::to_value(call(6, "r2", 0)).unwrap();
        again["reused"] = 3.into();
        again.as_object_mut().unwrap().remove("tokens");
        let log = [
            run_started(1, "r1", "input"),
            started(2, "r1", 1),
            call(3, "r1", 0),
            run_started(4, "r2", "input"),
            started(5, "r2", 1),
            serde_json::from_value(again).unwrap(),
        ];
        let trace = build(&log);
        let call = &trace.runs[1].steps[0].tasks[0].attempts[0].calls[0];
        assert_eq!((call.reused, call.input_tokens), (Some(3), None));
        assert_eq!((trace.totals.calls, trace.totals.model_calls), (2, 1));
        assert_eq!(trace.totals.input_tokens, 12);
    }

    #[test]
    fn recovery_does_not_add_a_run() {
        let log = [
            run_started(1, "r1", "input"),
            started(2, "r1", 1),
            call(3, "r1", 0),
            run_started(4, "r1", "recovery"),
            started(5, "r1", 1),
        ];
        let trace = build(&log);
        assert_eq!(trace.runs.len(), 1);
        assert_eq!(trace.runs[0].recoveries, 1);
        let attempts = &trace.runs[0].steps[0].tasks[0].attempts;
        assert_eq!((attempts.len(), attempts[1].replayed), (2, 1));
    }
}
