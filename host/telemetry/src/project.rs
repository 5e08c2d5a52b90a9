//! A run as spans.

mod attribute;
mod call;
mod content;
mod ids;

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::{Span, span};
use serde_json::{Map, Value};
use wattle_graph::event::{
    CallStarted, Called, Event, EventKind, RunStatus, TaskFailed, TaskFinished, TaskStarted,
};
use wattle_graph::failure::Failure;
use wattle_graph::id::{Namespace, NodeName, TaskId};
use wattle_run::ports::model::RouteInfo;

pub(crate) use self::attribute::Attributes;
use self::attribute::nanos;
use self::ids::CallKey;
use crate::source::Record;

/// Most events of one span; a task that says more has its say in the log.
const MAX_SPAN_EVENTS: usize = 128;

/// What decides how spans look, beside the run.
pub(crate) struct View<'a> {
    /// Whether to show what was read and said.
    pub(crate) content: bool,
    /// What stands behind a model route for the tenant of the run.
    pub(crate) route: &'a dyn Fn(&str) -> Option<RouteInfo>,
}

/// The spans of a run, the root first.
pub(crate) fn spans(record: &Record, view: &View<'_>) -> Vec<Span> {
    let mut projection = Projection::new(record, view);
    for event in &record.events {
        projection.add(event);
    }
    projection.finish()
}

struct Projection<'a> {
    record: &'a Record,
    view: &'a View<'a>,
    begun_ms: Option<i64>,
    ended_ms: i64,
    tasks: BTreeMap<TaskId, Task>,
    /// Calls that began and have no answer yet.
    open: BTreeMap<CallKey, (i64, CallStarted)>,
    /// How often a call was answered.
    answered: BTreeMap<CallKey, u32>,
    spans: Vec<Span>,
}

/// One task of the run, all its attempts together.
struct Task {
    node: NodeName,
    /// Its graph.
    namespace: Namespace,
    /// The task that its graph runs as; `None` in the thread's own.
    around: Option<TaskId>,
    step: u32,
    attempts: u32,
    begun_ms: i64,
    ended_ms: Option<i64>,
    outcome: &'static str,
    failure: Option<Failure>,
    output: Option<Value>,
    events: Vec<span::Event>,
    dropped: u32,
}

impl<'a> Projection<'a> {
    fn new(record: &'a Record, view: &'a View<'a>) -> Self {
        Self {
            record,
            view,
            begun_ms: None,
            ended_ms: record.events.last().map_or(0, |event| event.at_ms),
            tasks: BTreeMap::new(),
            open: BTreeMap::new(),
            answered: BTreeMap::new(),
            spans: Vec::new(),
        }
    }

    fn add(&mut self, event: &Event) {
        let at_ms = event.at_ms;
        match &event.kind {
            EventKind::RunStarted(_) => {
                self.begun_ms.get_or_insert(at_ms);
            }
            EventKind::TaskStarted(started) => self.task_started(event, started),
            EventKind::TaskFinished(finished) => self.task_finished(at_ms, finished),
            EventKind::TaskFailed(failed) => self.task_failed(at_ms, failed),
            EventKind::CallStarted(started) => {
                let key = CallKey::new(&started.task, &started.scope, started.call);
                self.open.insert(key, (at_ms, started.clone()));
            }
            EventKind::Called(called) => self.called(called),
            EventKind::Asked(asked) => {
                if let Some(task) = self.tasks.get_mut(&asked.task) {
                    task.ended_ms = Some(at_ms);
                    task.outcome = "asked";
                }
                let content = Some(("question", content::json(&asked.payload)));
                self.happened(&asked.task, at_ms, "asked".into(), content);
            }
            EventKind::Custom(custom) => {
                let content = Some(("data", content::json(&custom.data)));
                self.happened(&custom.task, at_ms, custom.name.clone(), content);
            }
            EventKind::Progress(progress) => {
                let content = Some(("message", content::text(&progress.message)));
                self.happened(&progress.task, at_ms, "progress".into(), content);
            }
            EventKind::Log(log) => {
                let content = Some(("message", content::text(&log.message)));
                self.happened(&log.task, at_ms, format!("log {}", log.level), content);
            }
            _ => {}
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
            outcome: "cut",
            failure: None,
            output: None,
            events: Vec::new(),
            dropped: 0,
        });
        task.attempts += 1;
        task.ended_ms = None;
    }

    /// The task that runs the graph of a namespace.
    fn around(&self, namespace: &Namespace) -> Option<TaskId> {
        let above = namespace.parent()?;
        // A graph with a state of its own is of the node, and of one task of it at a time.
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
        self.note(&failed.task, attribute::event(at_ms, "exception".into(), attributes));
    }

    /// Something that a task said; `content` is left out where content is.
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
        self.note(task, attribute::event(at_ms, name, attributes));
    }

    fn note(&mut self, task: &TaskId, event: span::Event) {
        let Some(task) = self.tasks.get_mut(task) else { return };
        if task.events.len() < MAX_SPAN_EVENTS {
            task.events.push(event);
        } else {
            task.dropped += 1;
        }
    }

    fn called(&mut self, called: &Called) {
        let key = CallKey::new(&called.task, &called.scope, called.call);
        self.open.remove(&key);
        let (id, parent) = self.place(&key);
        *self.answered.entry(key).or_default() += 1;
        let mut attributes = self.common();
        let Some(name) = call::describe(called, self.view, &mut attributes) else { return };
        let begun = nanos(called.started_ms);
        let status = called.result.as_ref().err().map(|failure| self.view.failure(failure));
        self.spans.push(Span {
            trace_id: ids::of_trace(&self.record.note.run),
            span_id: id,
            parent_span_id: parent,
            name,
            kind: SpanKind::Client.into(),
            start_time_unix_nano: begun,
            end_time_unix_nano: begun.saturating_add(called.duration_us.saturating_mul(1_000)),
            attributes: attributes.done(),
            status: status.map(attribute::error),
            ..Span::default()
        });
    }

    /// Calls that were never answered: the run was cut, or waits inside of a tool.
    fn unanswered(&mut self) {
        for (key, (at_ms, started)) in std::mem::take(&mut self.open) {
            let (id, parent) = self.place(&key);
            let mut attributes = self.common();
            attributes.text("langfuse.observation.type", call::kind(&started.function));
            attributes.text("langfuse.observation.level", "WARNING");
            attributes.text("langfuse.observation.status_message", "not answered in this run");
            attributes.text("wattle.summary", started.summary);
            self.spans.push(Span {
                trace_id: ids::of_trace(&self.record.note.run),
                span_id: id,
                parent_span_id: parent,
                name: started.function,
                kind: SpanKind::Client.into(),
                start_time_unix_nano: nanos(at_ms),
                end_time_unix_nano: nanos(self.ended_ms.max(at_ms)),
                attributes: attributes.done(),
                ..Span::default()
            });
        }
    }

    /// Ids of a call and of what it was made inside of.
    fn place(&self, key: &CallKey) -> (Vec<u8>, Vec<u8>) {
        let run = &self.record.note.run;
        let of = |key: &CallKey| {
            ids::of_call(run, key, self.answered.get(key).copied().unwrap_or_default())
        };
        let parent = key.outer().map_or_else(|| ids::of_task(run, &key.task), |outer| of(&outer));
        (of(key), parent)
    }

    fn finish(mut self) -> Vec<Span> {
        self.unanswered();
        let mut spans = vec![self.root()];
        for (id, task) in std::mem::take(&mut self.tasks) {
            spans.push(self.task(&id, task));
        }
        spans.append(&mut self.spans);
        spans
    }

    fn task(&self, id: &TaskId, task: Task) -> Span {
        let run = &self.record.note.run;
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
        failed(&mut attributes, message.as_deref());
        Span {
            trace_id: ids::of_trace(run),
            span_id: ids::of_task(run, id),
            parent_span_id: match &task.around {
                Some(around) => ids::of_task(run, around),
                None => ids::of_run(run),
            },
            name: task.node.to_string(),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: nanos(task.begun_ms),
            end_time_unix_nano: nanos(task.ended_ms.unwrap_or(self.ended_ms).max(task.begun_ms)),
            attributes: attributes.done(),
            events: task.events,
            dropped_events_count: task.dropped,
            status: message.map(attribute::error),
            ..Span::default()
        }
    }

    fn root(&self) -> Span {
        let note = &self.record.note;
        let mut attributes = self.common();
        attributes.text("langfuse.observation.type", "agent");
        attributes.text("gen_ai.operation.name", "invoke_agent");
        attributes.text("gen_ai.agent.name", note.app.as_str());
        attributes.text("gen_ai.conversation.id", note.thread.as_str());
        attributes.text("wattle.run", note.run.as_str());
        attributes.text("wattle.status", status_word(note.status));
        attributes.flag("wattle.truncated", self.record.cut);
        if let Some(input) = &self.record.input {
            attributes.text("langfuse.observation.input", content::json(input));
        }
        if let Some(output) = &self.record.output {
            attributes.text("langfuse.observation.output", content::json(output));
        }
        let message = note.failure.as_ref().map(|failure| self.view.failure(failure));
        failed(&mut attributes, message.as_deref());
        let begun_ms = self.begun_ms.unwrap_or(self.ended_ms);
        Span {
            trace_id: ids::of_trace(&note.run),
            span_id: ids::of_run(&note.run),
            name: self.trace_name(),
            kind: SpanKind::Server.into(),
            start_time_unix_nano: nanos(begun_ms),
            end_time_unix_nano: nanos(self.ended_ms.max(begun_ms)),
            attributes: attributes.done(),
            status: message.map(attribute::error),
            ..Span::default()
        }
    }

    /// What stands on every span: services build their views from single spans.
    fn common(&self) -> Attributes {
        let note = &self.record.note;
        let mut attributes = Attributes::default();
        attributes.text("session.id", note.thread.as_str());
        attributes.some_text("user.id", note.tenant.as_deref());
        attributes.text("langfuse.trace.name", self.trace_name());
        attributes.texts("langfuse.trace.tags", [note.app.as_str(), note.graph.as_str()]);
        attributes
    }

    fn trace_name(&self) -> String {
        format!("{}/{}", self.record.note.app, self.record.note.graph)
    }
}

impl View<'_> {
    /// Why something failed; only the code where content is left out.
    fn failure(&self, failure: &Failure) -> String {
        if self.content { content::text(&failure.to_string()) } else { failure.code.clone() }
    }
}

/// What Langfuse reads of something that failed.
fn failed(attributes: &mut Attributes, message: Option<&str>) {
    if let Some(message) = message {
        attributes.text("langfuse.observation.level", "ERROR");
        attributes.text("langfuse.observation.status_message", message);
    }
}

/// How a run ended, as a word.
pub(crate) fn status_word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "running",
        RunStatus::Completed => "completed",
        RunStatus::Interrupted => "interrupted",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "cancelled",
    }
}
