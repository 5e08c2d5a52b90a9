//! Projection of a run as OpenTelemetry spans.
//!
//! The run is the root span. Tasks are children of the root span. Host calls (model, tool, HTTP,
//! SQL) are children of their task, or of the tool call that made them. All ids are derived from
//! the log, so the spans of a log always have the same ids. Attributes follow the OpenTelemetry
//! conventions for generative AI, and include the attributes that Langfuse reads.
//!
//! * [`spans`] builds the spans of a [`Run`] from its events and a [`View`].
//! * [`Span`] is one span, with its [`Attributes`].

mod attribute;
mod call;
mod content;
mod ids;
mod span;
mod view;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use wattle_graph::event::{
    CallStarted, Called, Event, EventKind, RunStatus, TaskFailed, TaskFinished, TaskStarted,
};
use wattle_graph::failure::Failure;
use wattle_graph::id::{CallKey, Namespace, NodeName, TaskId};

pub use self::attribute::{Attribute, Attributes};
pub use self::span::{SPAN_BYTES, Span, SpanEvent, SpanId, SpanKind, TRACE_BYTES, TraceId};
pub use self::view::{Route, Run, View};

use self::span::nanos;
use crate::projection::{EventState, Projection};

/// Maximum number of events of one span. A span only counts further events, which the log contains.
const MAX_SPAN_EVENTS: usize = 128;

/// Outcome of a task whose last attempt has no end in the run: the run or the host stopped first.
const CUT: &str = "cut";

/// Returns the spans of a run, the root first.
pub fn spans(run: &Run<'_>, events: &[Event], view: &View<'_>) -> Vec<Span> {
    let mut builder = SpanBuilder::new(run, view);
    for event in events {
        builder.apply(event, &EventState::default());
    }
    builder.finish()
}

/// Builds the spans of a run from its events, oldest first.
#[derive(Clone)]
pub(crate) struct SpanBuilder<'a> {
    run: &'a Run<'a>,
    view: &'a View<'a>,
    begun_ms: Option<i64>,
    /// Time of the last event, in milliseconds since 1970.
    ended_ms: i64,
    tasks: BTreeMap<TaskId, Task>,
    /// Calls without a result, with the time of their start in milliseconds since 1970.
    open: BTreeMap<CallKey, (i64, CallStarted)>,
    /// Number of results of each call. A failed call may be repeated under the same number.
    answered: BTreeMap<CallKey, u32>,
    spans: Vec<Span>,
}

/// A task of the run with all its attempts.
#[derive(Clone)]
struct Task {
    node: NodeName,
    /// Namespace of the graph that the task belongs to.
    namespace: Namespace,
    /// The task that runs the graph in `namespace`; `None` for the root graph.
    around: Option<TaskId>,
    step: u32,
    attempts: u32,
    begun_ms: i64,
    ended_ms: Option<i64>,
    outcome: &'static str,
    failure: Option<Failure>,
    output: Option<Value>,
    events: Vec<SpanEvent>,
    dropped: u32,
}

impl<'a> SpanBuilder<'a> {
    /// Creates the builder of a run before its first event.
    pub(crate) fn new(run: &'a Run<'a>, view: &'a View<'a>) -> Self {
        Self {
            run,
            view,
            begun_ms: None,
            ended_ms: 0,
            tasks: BTreeMap::new(),
            open: BTreeMap::new(),
            answered: BTreeMap::new(),
            spans: Vec::new(),
        }
    }

    fn task_started(&mut self, event: &Event, started: &TaskStarted) {
        let (at_ms, around) = (event.at_ms, self.around(&event.namespace));
        let task = self.tasks.entry(started.task.clone()).or_insert_with(|| Task {
            node: started.node.clone(),
            namespace: event.namespace.clone(),
            around,
            step: started.step,
            attempts: 0,
            begun_ms: at_ms,
            ended_ms: None,
            outcome: CUT,
            failure: None,
            output: None,
            events: Vec::new(),
            dropped: 0,
        });
        task.attempts += 1;
        task.ended_ms = None;
        // The failure of an earlier attempt remains as an event of the span.
        task.outcome = CUT;
        task.failure = None;
    }

    /// Returns the task that runs the graph of a namespace.
    fn around(&self, namespace: &Namespace) -> Option<TaskId> {
        let above = namespace.parent()?;
        // The namespace of a subgraph that keeps its state names the node. The subgraph runs in one
        // task at a time.
        namespace.task().or_else(|| {
            let its = self.tasks.iter().filter(|(_, task)| {
                task.namespace == above && task.node.as_str() == namespace.node()
            });
            its.max_by_key(|(_, task)| task.begun_ms).map(|(id, _)| id.clone())
        })
    }

    fn task_finished(&mut self, at_ms: i64, finished: &TaskFinished) {
        let Some(task) = self.tasks.get_mut(&finished.task) else { return };
        task.ended_ms = Some(at_ms);
        task.outcome = "finished";
        task.failure = None;
        let writes: Map<String, Value> = finished
            .writes
            .iter()
            .map(|write| (write.channel.to_string(), write.value.clone()))
            .collect();
        task.output = Some(Value::Object(writes));
    }

    fn task_failed(&mut self, at_ms: i64, failed: &TaskFailed) {
        let message = self.view.failure(&failed.failure);
        if let Some(task) = self.tasks.get_mut(&failed.task) {
            task.ended_ms = Some(at_ms);
            task.outcome = "failed";
            task.failure = Some(failed.failure.clone());
        }
        let mut attributes = Attributes::default();
        attributes.number("wattle.attempt", failed.attempt.into());
        attributes.text("exception.type", &failed.failure.code);
        attributes.text("exception.message", message);
        self.note(&failed.task, SpanEvent::new(at_ms, "exception", attributes));
    }

    /// Adds an event to the span of a task. Omits `content` unless the view includes content.
    fn happened(
        &mut self,
        task: &TaskId,
        at_ms: i64,
        name: String,
        content: Option<(&str, String)>,
    ) {
        let mut attributes = Attributes::default();
        if let Some((key, value)) = content.filter(|_| self.view.content) {
            attributes.text(&format!("wattle.{key}"), value);
        }
        self.note(task, SpanEvent::new(at_ms, name, attributes));
    }

    fn note(&mut self, task: &TaskId, event: SpanEvent) {
        let Some(task) = self.tasks.get_mut(task) else { return };
        if task.events.len() < MAX_SPAN_EVENTS {
            task.events.push(event);
        } else {
            task.dropped += 1;
        }
    }

    fn called(&mut self, called: &Called) {
        let key = called.key();
        self.open.remove(&key);
        let (id, parent) = self.place(&key);
        *self.answered.entry(key).or_default() += 1;
        let mut attributes = self.common();
        let Some(name) = call::describe(called, self.view, &mut attributes) else { return };
        let start_ns = nanos(called.started_ms);
        let error = called.result.as_ref().err().map(|failure| self.view.failure(failure));
        self.spans.push(Span {
            trace: ids::of_trace(self.run.run),
            id,
            parent: Some(parent),
            name,
            kind: SpanKind::Client,
            start_ns,
            end_ns: start_ns.saturating_add(called.duration_us.saturating_mul(1_000)),
            attributes,
            events: Vec::new(),
            dropped_events: 0,
            error,
        });
    }

    /// Adds the spans of calls without a result: the host stopped, or a tool waits for an answer.
    fn unanswered(&mut self) {
        for (key, (at_ms, started)) in std::mem::take(&mut self.open) {
            let (id, parent) = self.place(&key);
            let mut attributes = self.common();
            let observation = started.kind().and_then(call::observation).unwrap_or("span");
            attributes.text("langfuse.observation.type", observation);
            attributes.text("langfuse.observation.level", "WARNING");
            attributes.text("langfuse.observation.status_message", "no result in this run");
            attributes.text("wattle.summary", started.summary);
            self.spans.push(Span {
                trace: ids::of_trace(self.run.run),
                id,
                parent: Some(parent),
                name: started.function,
                kind: SpanKind::Client,
                start_ns: nanos(at_ms),
                end_ns: nanos(self.ended_ms.max(at_ms)),
                attributes,
                events: Vec::new(),
                dropped_events: 0,
                error: None,
            });
        }
    }

    /// Returns the span ids of a call and of its parent.
    fn place(&self, key: &CallKey) -> (SpanId, SpanId) {
        let run = self.run.run;
        let of = |key: &CallKey| {
            ids::of_call(run, key, self.answered.get(key).copied().unwrap_or_default())
        };
        let parent = key.outer().map_or_else(|| ids::of_task(run, &key.task), |outer| of(&outer));
        (of(key), parent)
    }

    /// Returns the spans, the root first.
    pub(crate) fn finish(mut self) -> Vec<Span> {
        self.unanswered();
        let mut spans = vec![self.root()];
        for (id, task) in std::mem::take(&mut self.tasks) {
            spans.push(self.task(&id, task));
        }
        spans.append(&mut self.spans);
        spans
    }

    fn task(&self, id: &TaskId, task: Task) -> Span {
        let run = self.run.run;
        let mut attributes = self.common();
        attributes.text("langfuse.observation.type", "chain");
        attributes.text("wattle.node", task.node.as_str());
        attributes.text("wattle.task", id.as_str());
        if !task.namespace.is_root() {
            attributes.text("wattle.namespace", task.namespace.as_str());
        }
        attributes.number("wattle.step", task.step.into());
        attributes.number("wattle.attempts", task.attempts.into());
        attributes.text("wattle.outcome", task.outcome);
        if let Some(output) = task.output.filter(|_| self.view.content) {
            attributes.text("langfuse.observation.output", content::json(&output));
        }
        let message = task.failure.map(|failure| self.view.failure(&failure));
        attributes.failed(message.as_deref());
        Span {
            trace: ids::of_trace(run),
            id: ids::of_task(run, id),
            parent: Some(match &task.around {
                Some(around) => ids::of_task(run, around),
                None => ids::of_run(run),
            }),
            name: task.node.to_string(),
            kind: SpanKind::Internal,
            start_ns: nanos(task.begun_ms),
            end_ns: nanos(task.ended_ms.unwrap_or(self.ended_ms).max(task.begun_ms)),
            attributes,
            events: task.events,
            dropped_events: task.dropped,
            error: message,
        }
    }

    fn root(&self) -> Span {
        let run = self.run;
        let mut attributes = self.common();
        attributes.text("langfuse.observation.type", "agent");
        attributes.text("gen_ai.operation.name", "invoke_agent");
        attributes.text("gen_ai.agent.name", run.app.as_str());
        attributes.text("gen_ai.conversation.id", run.thread.as_str());
        attributes.text("wattle.run", run.run.as_str());
        attributes.text("wattle.status", status_word(run.status));
        attributes.flag("wattle.truncated", run.truncated);
        if let Some(input) = run.input {
            attributes.text("langfuse.observation.input", content::json(input));
        }
        if let Some(output) = run.output {
            attributes.text("langfuse.observation.output", content::json(output));
        }
        let message = run.failure.map(|failure| self.view.failure(failure));
        attributes.failed(message.as_deref());
        let begun_ms = self.begun_ms.unwrap_or(self.ended_ms);
        Span {
            trace: ids::of_trace(run.run),
            id: ids::of_run(run.run),
            parent: None,
            name: self.trace_name(),
            kind: SpanKind::Server,
            start_ns: nanos(begun_ms),
            end_ns: nanos(self.ended_ms.max(begun_ms)),
            attributes,
            events: Vec::new(),
            dropped_events: 0,
            error: message,
        }
    }

    /// Returns the attributes of every span. Tracing backends query single spans, so each span has
    /// the attributes of the run.
    fn common(&self) -> Attributes {
        let run = self.run;
        let mut attributes = Attributes::default();
        attributes.text("session.id", run.thread.as_str());
        attributes.optional_text("user.id", run.tenant);
        attributes.text("langfuse.trace.name", self.trace_name());
        attributes.texts("langfuse.trace.tags", [run.app.as_str(), run.graph.as_str()]);
        attributes
    }

    fn trace_name(&self) -> String {
        format!("{}/{}", self.run.app, self.run.graph)
    }
}

impl Projection for SpanBuilder<'_> {
    type Output = ();

    fn apply(&mut self, event: &Event, _state: &EventState) {
        let at_ms = event.at_ms;
        self.ended_ms = at_ms;
        match &event.kind {
            EventKind::RunStarted(_) => {
                self.begun_ms.get_or_insert(at_ms);
            }
            EventKind::TaskStarted(started) => self.task_started(event, started),
            EventKind::TaskFinished(finished) => self.task_finished(at_ms, finished),
            EventKind::TaskFailed(failed) => self.task_failed(at_ms, failed),
            EventKind::CallStarted(started) => {
                self.open.insert(started.key(), (at_ms, started.clone()));
            }
            EventKind::Called(called) => self.called(called),
            EventKind::InterruptRaised(raised) => {
                if let Some(task) = self.tasks.get_mut(&raised.task) {
                    task.ended_ms = Some(at_ms);
                    task.outcome = event.kind.name();
                }
                let content = Some(("question", content::json(&raised.payload)));
                self.happened(&raised.task, at_ms, event.kind.name().into(), content);
            }
            EventKind::Custom(custom) => {
                let content = Some(("data", content::json(&custom.data)));
                self.happened(&custom.task, at_ms, custom.name.clone(), content);
            }
            EventKind::Progress(progress) => {
                let content = Some(("message", content::text(&progress.message)));
                self.happened(&progress.task, at_ms, event.kind.name().into(), content);
            }
            EventKind::Log(log) => {
                let content = Some(("message", content::text(&log.message)));
                let name = format!("{} {}", event.kind.name(), log.level);
                self.happened(&log.task, at_ms, name, content);
            }
            _ => {}
        }
    }
}

/// Returns the name that a run status has in the API.
pub fn status_word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Pending => "pending",
        RunStatus::Running => "running",
        RunStatus::Completed => "completed",
        RunStatus::Interrupted => "interrupted",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "cancelled",
    }
}
