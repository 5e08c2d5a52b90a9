//! Builds a trace from events.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use wattle_graph::call::CallKind;
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{
    Called, Checkpointed, Decision, Event, EventKind, Migrated, RunReason, RunStarted, Settled,
    TaskFailed, TaskFinished, TaskStarted,
};
use wattle_graph::failure::Failure;
use wattle_graph::id::{CallKey, ChannelName, Digest, Namespace, RunId, TaskId, ThreadId};
use wattle_graph::json_text;
use wattle_graph::principal::Principal;
use wattle_graph::weight::weight;

use crate::limit::{TRACE_BYTES, TRACE_ENTRIES};
use crate::projection::{EventState, Projection};
use crate::trace::{
    AnswerTrace, AttemptTrace, CallTrace, ChangeTrace, GraphTrace, RunTrace, StepTrace, TaskTrace,
    Totals, Trace,
};

/// The [`ChangeTrace::change`] of an edit. The log records an edit as `checkpointed`.
const EDITED: &str = "edited";

/// Maximum depth of the details of a failure, in levels. A guest may nest them deeper, but parsers
/// limit the depth of a document, and a trace with subgraphs is deep by itself.
const MAX_DETAILS_DEPTH: usize = 16;

/// Builds the trace of a thread from its events, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Tracer {
    runs: Vec<RunTrace>,
    changes: Vec<ChangeTrace>,
    /// Sequence number of the newest migration of the thread.
    migration_seq: Option<u64>,
    totals: Totals,
    /// Successful calls of each task. A re-execution of the task gets their results from the
    /// journal.
    answered: BTreeMap<TaskId, BTreeSet<CallKey>>,
    /// Number of entries of the trace, which [`TRACE_ENTRIES`] limits.
    entries: usize,
    /// Approximate length of all texts, in bytes, which [`TRACE_BYTES`] limits.
    bytes: u64,
    truncated: bool,
}

impl Tracer {
    /// Returns the trace of the events so far.
    pub fn finish(self, thread: &ThreadId) -> Trace {
        let Self { runs, changes, totals, truncated, .. } = self;
        let (thread, thread_id) = (thread.to_string(), thread.to_string());
        Trace { thread, thread_id, runs, changes, totals, truncated }
    }

    fn add(&mut self, event: &Event) {
        let at_ms = event.at_ms;
        match &event.kind {
            EventKind::RunStarted(started) => self.run_started(&event.run, at_ms, started),
            EventKind::RunEnded(ended) => {
                if let Some(run) = self.run(&event.run) {
                    run.status = word(&ended.status);
                    run.ended_ms = Some(at_ms);
                    run.failure = ended.failure.as_ref().map(ToString::to_string);
                    run.failure_details = ended.failure.as_ref().and_then(details);
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
                    self.entries += put_call(&mut attempt.calls, &started.scope, call);
                }
            }
            EventKind::Called(called) => self.called(event, called),
            EventKind::InterruptRaised(raised) => {
                if let Some(attempt) = self.attempt(event, &raised.task) {
                    attempt.outcome = event.kind.name().into();
                    attempt.questions.push(raised.interrupt.to_string());
                    self.entries += 1;
                }
            }
            EventKind::Answered(answered) => {
                if let Some(run) = self.run(&event.run) {
                    run.answers.push(AnswerTrace {
                        question: answered.interrupt.to_string(),
                        answer: answered.answer.clone(),
                        principal: answered.principal.as_ref().map(Into::into),
                    });
                    self.entries += 1;
                }
            }
            EventKind::Checkpointed(made) => {
                // The checkpoint of an input precedes the first superstep, so no superstep gets its
                // channels.
                if let Some(step) = self.steps(event).and_then(|steps| steps.last_mut()) {
                    step.changed = made.changed.iter().map(ToString::to_string).collect();
                }
                self.edited(event, made);
            }
            EventKind::Settled(settled) => {
                let Settled { task, call, decision, by, principal, .. } = settled;
                let word = kind_of(decision);
                let by = if by.is_empty() { String::new() } else { format!(", decided by `{by}`") };
                let summary = format!("call {call} of task {task}: {word}{by}");
                self.changed(event, summary, principal.as_ref());
            }
            EventKind::Migrated(Migrated { from, to, principal }) => {
                let summary = format!("from {} to {}", shortened(from), shortened(to));
                self.changed(event, summary, principal.as_ref());
                self.migration_seq = Some(event.seq);
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

    /// Adds the change of an edit. A migration also makes a checkpoint, which is not a separate
    /// change.
    fn edited(&mut self, event: &Event, made: &Checkpointed) {
        let is_of_migration = self
            .changes
            .last()
            .is_some_and(|last| self.migration_seq == Some(last.seq) && last.seq + 1 == event.seq);
        if made.source != CheckpointSource::Update || is_of_migration {
            return;
        }
        let changed: Vec<&str> = made.changed.iter().map(ChannelName::as_str).collect();
        let graph = match event.namespace.as_str() {
            "" => String::new(),
            namespace => format!(" of subgraph `{namespace}`"),
        };
        let mut summary = format!("checkpoint {}{graph}", made.checkpoint);
        if !changed.is_empty() {
            summary.push_str(&format!(" -> {}", changed.join(", ")));
        }
        self.changes.push(ChangeTrace {
            change: EDITED.to_owned(),
            ..change(event, summary, made.principal.as_ref())
        });
        self.entries += 1;
    }

    fn changed(&mut self, event: &Event, summary: String, principal: Option<&Principal>) {
        // A policy settles calls while a run is active. This is not a change between runs.
        if self.run(&event.run).is_none() {
            self.changes.push(change(event, summary, principal));
            self.entries += 1;
        }
    }

    fn run_started(&mut self, id: &RunId, at_ms: i64, started: &RunStarted) {
        if let Some(run) = self.run(id) {
            if started.reason == RunReason::Recovery {
                run.recoveries += 1;
                cut_running(&mut run.steps);
            }
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
        self.entries += 1;
    }

    fn task_started(&mut self, event: &Event, started: &TaskStarted) {
        let replayed = self.answered.get(&started.task).map_or(0, BTreeSet::len);
        let Some(steps) = self.steps(event) else { return };
        let mut added = 1;
        let step = match steps.iter().position(|step| step.step == started.step) {
            Some(index) => index,
            None => {
                steps.push(StepTrace { step: started.step, ..StepTrace::default() });
                added += 1;
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
                added += 1;
                tasks.len() - 1
            }
        };
        tasks[task].attempts.push(AttemptTrace {
            attempt: started.attempt,
            outcome: AttemptTrace::RUNNING.into(),
            started_ms: event.at_ms,
            replayed,
            ..AttemptTrace::default()
        });
        self.entries += added;
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
        attempt.failure_details = details(&failed.failure);
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
            answered.insert(called.key());
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
            failure_details: called.result.as_ref().err().and_then(details),
            calls: Vec::new(),
        };
        let added = match self.attempt(event, &called.task) {
            Some(attempt) => put_call(&mut attempt.calls, &called.scope, call),
            None => 1,
        };
        self.entries += added;
    }

    fn message(&mut self, event: &Event, task: &TaskId, text: String) {
        if let Some(attempt) = self.attempt(event, task) {
            attempt.messages.push(text);
            self.entries += 1;
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

impl Projection for Tracer {
    type Output = ();

    fn apply(&mut self, event: &Event, _state: &EventState) {
        self.truncated |= self.entries >= TRACE_ENTRIES || self.bytes >= TRACE_BYTES;
        if !self.truncated {
            self.bytes = self.bytes.saturating_add(text_bytes(&event.kind));
            self.add(event);
        }
    }

    /// Returns true if the trace is truncated: an event did not fit, and the trace omits it and all
    /// later events.
    fn is_over(&self) -> bool {
        self.truncated
    }
}

/// Creates a change with the name and the time of its event.
fn change(event: &Event, summary: String, principal: Option<&Principal>) -> ChangeTrace {
    ChangeTrace {
        seq: event.seq,
        change: event.kind.name().to_owned(),
        at_ms: event.at_ms,
        summary,
        principal: principal.map(Into::into),
    }
}

/// Returns the details of a failure, unless they are nested deeper than [`MAX_DETAILS_DEPTH`].
fn details(failure: &Failure) -> Option<Value> {
    let details = failure.details.as_ref()?;
    json_text::is_within_depth(details, MAX_DETAILS_DEPTH).then(|| details.clone())
}

fn kind_of(decision: &Decision) -> &'static str {
    match decision {
        Decision::Retry => "retry",
        Decision::Answer { .. } => "answer",
        Decision::Fail => "fail",
    }
}

/// Returns the first 12 hexadecimal digits of a digest, which suffice to distinguish versions.
fn shortened(digest: &Digest) -> String {
    digest.to_hex()[..12].to_owned()
}

/// Returns the supersteps of a graph. The trace contains them in the task that runs the graph.
fn steps_in<'s>(
    root: &'s mut Vec<StepTrace>,
    namespace: &Namespace,
) -> Option<&'s mut Vec<StepTrace>> {
    let Some(around) = namespace.parent() else { return Some(root) };
    let steps = steps_in(root, &around)?;
    let owner = namespace.task();
    let attempt = latest(steps, |known| match &owner {
        Some(task) => known.task == task.as_str(),
        // The namespace of a subgraph that keeps its state names the node. The subgraph runs in one
        // task at a time.
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

/// Sets the outcome of the executions that the stop of a host has cut. Only the last superstep of a
/// graph can have running tasks, and only the newest execution of a task can run.
fn cut_running(steps: &mut [StepTrace]) {
    let Some(step) = steps.last_mut() else { return };
    for attempt in step.tasks.iter_mut().filter_map(|task| task.attempts.last_mut()) {
        if attempt.outcome == AttemptTrace::RUNNING {
            attempt.outcome = AttemptTrace::CUT.into();
        }
        for graph in &mut attempt.graphs {
            cut_running(&mut graph.steps);
        }
    }
}

/// Inserts a call into the calls of the tool call that `scope` identifies, in the order of call
/// numbers. The start and the end of a call share one entry. Returns the number of new entries.
fn put_call(calls: &mut Vec<CallTrace>, scope: &[u32], call: CallTrace) -> usize {
    let number = scope.first().copied().unwrap_or(call.call);
    let place = calls.binary_search_by_key(&number, |known| known.call);
    match (scope, place) {
        ([], Ok(index)) => {
            let inner = std::mem::take(&mut calls[index].calls);
            calls[index] = CallTrace { calls: inner, ..call };
            0
        }
        ([], Err(index)) => {
            calls.insert(index, call);
            1
        }
        ([_, rest @ ..], Ok(index)) => put_call(&mut calls[index].calls, rest, call),
        ([outer, rest @ ..], Err(index)) => {
            // The log has no start of the outer call in this execution, because the call started in
            // an earlier one.
            let mut outer = CallTrace {
                call: *outer,
                function: CallKind::CallTool.name().into(),
                started_ms: call.started_ms,
                ..CallTrace::default()
            };
            let added = put_call(&mut outer.calls, rest, call);
            calls.insert(index, outer);
            1 + added
        }
    }
}

/// Returns the approximate length of the texts that the trace has for an event, in bytes.
fn text_bytes(kind: &EventKind) -> u64 {
    let failed = |failure: &Failure| {
        failure.message.len() as u64 + failure.details.as_ref().map_or(0, weight)
    };
    let texts = match kind {
        EventKind::RunEnded(ended) => return ended.failure.as_ref().map_or(0, failed),
        EventKind::TaskFailed(task) => return failed(&task.failure),
        EventKind::CallStarted(started) => started.summary.len(),
        EventKind::Called(called) => {
            return called.summary.len() as u64 + called.result.as_ref().err().map_or(0, failed);
        }
        EventKind::Checkpointed(made) => made.changed.iter().map(|it| it.as_str().len()).sum(),
        EventKind::Progress(progress) => progress.message.len(),
        EventKind::Log(log) => log.message.len(),
        EventKind::Custom(custom) => custom.name.len(),
        EventKind::Answered(answered) => return weight(&answered.answer),
        _ => 0,
    };
    texts as u64
}

fn json_bytes(value: &impl Serialize) -> usize {
    json_text::length(value).map_or(0, |bytes| bytes as usize)
}

/// Returns the string to which a value serializes.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
