//! Projection of a run as events of AG-UI 1.0, and conversion of [requests](inward) of AG-UI
//! clients.
//!
//! A step of AG-UI is a task of a node. AG-UI has no event that discards arguments of a tool call.
//! If a completion restarts and the model generates the arguments again, the tool call therefore
//! ends and starts again under another id.
//!
//! A client appends arguments to a tool call whose id it already has. A client that continues a
//! thread has the tool calls of earlier runs; see [`AgUiProjection::with_known_calls`].

pub mod inward;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};
use wattle_graph::event::{Event, EventKind, InterruptRaised, RunStatus};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{InterruptId, Namespace, NodeName, RunId, TaskId, ThreadId};

use crate::projection::{EventState, NeededState, Projection};
use crate::time::format_time_with_millis;
use crate::transcript::{ContentKind, ToolCallResult, Transcript, TranscriptEvent};

/// Version of AG-UI that the stream follows.
pub const PROTOCOL_VERSION: &str = "1.0";

/// The [`Interrupt::reason`] of every interrupt.
const INPUT_REQUIRED: &str = "input_required";

/// Name of the AG-UI custom event that reports the progress of a node.
const PROGRESS: &str = "progress";

/// One event of AG-UI.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's, which documents them")]
pub enum AgUiEvent {
    RunStarted { thread_id: ThreadId, run_id: RunId, protocol_version: &'static str },
    StepStarted { step_name: String },
    StepFinished { step_name: String },
    TextMessageStart { message_id: String, role: &'static str },
    TextMessageContent { message_id: String, delta: String },
    TextMessageEnd { message_id: String },
    ReasoningStart { message_id: String },
    ReasoningMessageStart { message_id: String, role: &'static str },
    ReasoningMessageContent { message_id: String, delta: String },
    ReasoningMessageEnd { message_id: String },
    ReasoningEnd { message_id: String },
    ToolCallStart { tool_call_id: String, tool_call_name: String },
    ToolCallArgs { tool_call_id: String, delta: String },
    ToolCallEnd { tool_call_id: String },
    ToolCallResult { message_id: String, tool_call_id: String, content: String, role: &'static str },
    StateSnapshot { snapshot: Value },
    Custom { name: String, value: Value },
    RunFinished { thread_id: ThreadId, run_id: RunId, outcome: Outcome },
    RunError { message: String, code: String },
}

/// The outcome in [`AgUiEvent::RunFinished`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the protocol's, which documents them")]
pub enum Outcome {
    Success,
    Interrupt { interrupts: Vec<Interrupt> },
    Cancelled,
}

/// A pending interrupt in the form of AG-UI.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Interrupt {
    /// Id of the interrupt, which the answer must contain.
    pub id: String,
    /// Why the run waits; always `input_required`.
    pub reason: &'static str,
    /// Text of the question: the payload of the interrupt, or the `message` of the payload, if that
    /// is a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// JSON Schema for the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// Time at which the interrupt expires, as RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// `node` that raised the interrupt, and `payload` of the question.
    pub metadata: Value,
}

/// A tool call of the run, under the id that the stream uses for the call.
#[derive(Clone, Debug)]
struct OpenToolCall {
    id: String,
    is_open: bool,
    has_arguments: bool,
}

/// The projection of one run. It takes the events of the run in order, from the first.
#[derive(Clone, Debug)]
pub struct AgUiProjection {
    transcript: Transcript,
    thread: ThreadId,
    run: Option<RunId>,
    /// Names of the running steps.
    steps: BTreeMap<TaskId, String>,
    calls: BTreeMap<String, OpenToolCall>,
    /// Number of starts of each tool call; the keys are the ids that models gave.
    start_counts: BTreeMap<String, u32>,
    names: BTreeMap<String, String>,
    /// Ids of tool calls that the client has from earlier runs.
    known_calls: BTreeSet<String>,
    /// Tool calls of earlier runs that the client has, by the ids that models gave. The stream
    /// contains only the results of these calls.
    inherited: BTreeSet<String>,
    interrupts: BTreeMap<InterruptId, Interrupt>,
}

impl AgUiProjection {
    /// Creates the stream of a run before its first event. The stream contains only model calls of
    /// `nodes`, or of all nodes if `nodes` is empty.
    pub fn new(thread: ThreadId, nodes: impl IntoIterator<Item = NodeName>) -> Self {
        Self {
            transcript: Transcript::new(nodes),
            thread,
            run: None,
            steps: BTreeMap::new(),
            calls: BTreeMap::new(),
            start_counts: BTreeMap::new(),
            names: BTreeMap::new(),
            known_calls: BTreeSet::new(),
            inherited: BTreeSet::new(),
            interrupts: BTreeMap::new(),
        }
    }

    /// Sets the ids of tool calls that the client has from earlier runs. If the run has the result
    /// of such a call, the stream contains the result without the call. Another call of this run
    /// with one of these ids gets an id that the client does not have.
    #[must_use]
    pub fn with_known_calls(mut self, calls: impl IntoIterator<Item = String>) -> Self {
        self.known_calls.extend(calls);
        self
    }

    fn push_events(&mut self, said: TranscriptEvent, events: &mut Vec<AgUiEvent>) {
        match said {
            TranscriptEvent::RunStarted(run) => events.push(self.run_started(run)),
            TranscriptEvent::TaskStarted(task, node) => events.push(self.start_step(task, &node)),
            TranscriptEvent::TaskFinished(task) => {
                let step = self.steps.remove(&task);
                events.extend(step.map(|step_name| AgUiEvent::StepFinished { step_name }));
            }
            TranscriptEvent::TurnStarted | TranscriptEvent::TurnFinished => {}
            TranscriptEvent::TextStart(voice, id) => begin_text(voice, self.id_of(&id), events),
            TranscriptEvent::TextDelta(voice, id, delta) => {
                events.push(text(voice, self.id_of(&id), delta));
            }
            TranscriptEvent::TextEnd(voice, id) => end_text(voice, self.id_of(&id), events),
            TranscriptEvent::ToolCallStart { id, name, is_inherited } => {
                if !(is_inherited && self.inherit(&id)) {
                    self.start_tool_call(&id, &name, events);
                }
            }
            TranscriptEvent::ToolCallDelta { id, text } => self.append_arguments(&id, text, events),
            TranscriptEvent::ToolCallReset(id) => self.end_tool_call(&id, events),
            TranscriptEvent::ToolCallReady { id, name, arguments } => {
                self.finish_tool_call(&id, &name, &arguments, events);
            }
            TranscriptEvent::ToolCallInvalid { id, name, arguments, why } => {
                self.finish_tool_call(&id, &name, &arguments, events);
                events.extend(self.result(&id, why));
            }
            TranscriptEvent::ToolResult(id, ToolCallResult::Error(text)) => {
                events.extend(self.result(&id, text));
            }
            TranscriptEvent::ToolResult(id, ToolCallResult::Output(output)) => {
                let content = match output {
                    Value::String(text) => text,
                    output => output.to_string(),
                };
                events.extend(self.result(&id, content));
            }
            TranscriptEvent::Custom { name, data } => {
                events.push(AgUiEvent::Custom { name, value: data });
            }
            TranscriptEvent::Progress { node, message, fraction } => {
                events.push(AgUiEvent::Custom {
                    name: PROGRESS.to_owned(),
                    value: json!({ "node": node, "message": message, "fraction": fraction }),
                });
            }
            TranscriptEvent::Interrupted(raised) => {
                self.interrupts.insert(raised.interrupt.clone(), interrupt(*raised));
            }
            TranscriptEvent::RunEnded { status, failure, .. } => {
                events.extend(self.run_finished(status, failure));
            }
        }
    }

    fn run_started(&mut self, run: RunId) -> AgUiEvent {
        self.run = Some(run.clone());
        let thread_id = self.thread.clone();
        AgUiEvent::RunStarted { thread_id, run_id: run, protocol_version: PROTOCOL_VERSION }
    }

    /// Starts a step. The names of all running steps are distinct.
    fn start_step(&mut self, task: TaskId, node: &NodeName) -> AgUiEvent {
        let taken: BTreeSet<&String> = self.steps.values().collect();
        let mut step_name = node.to_string();
        let mut number = 2_u32;
        while taken.contains(&step_name) {
            step_name = format!("{node} {number}");
            number += 1;
        }
        self.steps.insert(task, step_name.clone());
        AgUiEvent::StepStarted { step_name }
    }

    /// Returns the id of a message, which is unique among all runs of a thread.
    fn id_of(&self, local: &str) -> String {
        self.run.as_ref().map_or_else(|| local.to_owned(), |run| format!("{run}:{local}"))
    }

    /// Maps a tool call of an earlier run to the id under which the client has the call. Returns
    /// false if the client does not have the call.
    fn inherit(&mut self, id: &str) -> bool {
        if !self.known_calls.contains(id) {
            return false;
        }
        // A call that was started again is complete only under the id of its last start.
        let restarts = (2_u32..).map(|number| restarted_id(id, number));
        let last = restarts.take_while(|shown| self.known_calls.contains(shown)).last();
        let shown = last.unwrap_or_else(|| id.to_owned());
        let call = OpenToolCall { id: shown, is_open: false, has_arguments: true };
        self.calls.insert(id.to_owned(), call);
        self.inherited.insert(id.to_owned())
    }

    fn start_tool_call(&mut self, id: &str, name: &str, events: &mut Vec<AgUiEvent>) {
        let times = self.start_counts.entry(id.to_owned()).or_default();
        let shown = loop {
            *times += 1;
            let shown = restarted_id(id, *times);
            if !self.known_calls.contains(&shown) {
                break shown;
            }
        };
        self.names.insert(id.to_owned(), name.to_owned());
        events.push(AgUiEvent::ToolCallStart {
            tool_call_id: shown.clone(),
            tool_call_name: name.to_owned(),
        });
        let shown = OpenToolCall { id: shown, is_open: true, has_arguments: false };
        self.calls.insert(id.to_owned(), shown);
    }

    fn append_arguments(&mut self, id: &str, delta: String, events: &mut Vec<AgUiEvent>) {
        self.ensure_tool_call_open(id, events);
        if let Some(call) = self.calls.get_mut(id) {
            call.has_arguments = true;
            events.push(AgUiEvent::ToolCallArgs { tool_call_id: call.id.clone(), delta });
        }
    }

    /// Starts a tool call again if its arguments were discarded.
    fn ensure_tool_call_open(&mut self, id: &str, events: &mut Vec<AgUiEvent>) {
        if !self.calls.get(id).is_some_and(|call| call.is_open)
            && let Some(name) = self.names.get(id).cloned()
        {
            self.start_tool_call(id, &name, events);
        }
    }

    fn end_tool_call(&mut self, id: &str, events: &mut Vec<AgUiEvent>) {
        if let Some(call) = self.calls.get_mut(id).filter(|call| call.is_open) {
            call.is_open = false;
            events.push(AgUiEvent::ToolCallEnd { tool_call_id: call.id.clone() });
        }
    }

    fn finish_tool_call(
        &mut self,
        id: &str,
        name: &str,
        arguments: &Value,
        events: &mut Vec<AgUiEvent>,
    ) {
        if self.inherited.contains(id) {
            return;
        }
        self.names.insert(id.to_owned(), name.to_owned());
        self.ensure_tool_call_open(id, events);
        if self.calls.get(id).is_some_and(|call| !call.has_arguments) {
            let text = match arguments {
                Value::String(text) => text.clone(),
                arguments => arguments.to_string(),
            };
            self.append_arguments(id, text, events);
        }
        self.end_tool_call(id, events);
    }

    fn result(&self, id: &str, content: String) -> Option<AgUiEvent> {
        let tool_call_id = self.calls.get(id)?.id.clone();
        let message_id = self.id_of(&format!("result-{tool_call_id}"));
        Some(AgUiEvent::ToolCallResult { message_id, tool_call_id, content, role: "tool" })
    }

    fn run_finished(&self, status: RunStatus, failure: Option<Failure>) -> Option<AgUiEvent> {
        let outcome = match status {
            RunStatus::Failed => {
                let failure =
                    failure.unwrap_or_else(|| Failure::new(code::INTERNAL, "the run failed"));
                return Some(AgUiEvent::RunError { message: failure.message, code: failure.code });
            }
            RunStatus::Cancelled => Outcome::Cancelled,
            // An interrupted run without interrupts has no question that a person can answer.
            RunStatus::Interrupted if !self.interrupts.is_empty() => {
                Outcome::Interrupt { interrupts: self.interrupts.values().cloned().collect() }
            }
            RunStatus::Pending
            | RunStatus::Running
            | RunStatus::Completed
            | RunStatus::Interrupted => Outcome::Success,
        };
        let (thread_id, run_id) = (self.thread.clone(), self.run.clone()?);
        Some(AgUiEvent::RunFinished { thread_id, run_id, outcome })
    }
}

impl Projection for AgUiProjection {
    type Output = Vec<AgUiEvent>;

    /// Requests the state after the end of a run that did not fail, which the stream sends as a
    /// snapshot.
    fn needs(&self, event: &Event) -> Option<NeededState> {
        let EventKind::RunEnded(ended) = &event.kind else { return None };
        let is_end = event.namespace == Namespace::root() && !self.is_over();
        (is_end && ended.status != RunStatus::Failed).then_some(NeededState::Current)
    }

    fn apply(&mut self, event: &Event, state: &EventState) -> Vec<AgUiEvent> {
        let mut events = Vec::new();
        for said in self.transcript.apply(event) {
            if let (TranscriptEvent::RunEnded { .. }, Some(after)) = (&said, &state.checkpoint) {
                events.push(AgUiEvent::StateSnapshot { snapshot: after.state() });
            }
            self.push_events(said, &mut events);
        }
        events
    }

    fn is_over(&self) -> bool {
        self.transcript.is_finished()
    }
}

/// Returns the events of a run that ended before it started: a pending run that could not start, or
/// that was cancelled.
pub fn unstarted(thread_id: ThreadId, run_id: RunId, failure: Option<Failure>) -> [AgUiEvent; 2] {
    let started = AgUiEvent::RunStarted {
        thread_id: thread_id.clone(),
        run_id: run_id.clone(),
        protocol_version: PROTOCOL_VERSION,
    };
    let ended = match failure {
        Some(failure) => AgUiEvent::RunError { message: failure.message, code: failure.code },
        None => AgUiEvent::RunFinished { thread_id, run_id, outcome: Outcome::Cancelled },
    };
    [started, ended]
}

/// Returns the id under which the stream contains start `number` of a tool call, from 1.
fn restarted_id(id: &str, number: u32) -> String {
    if number == 1 { id.to_owned() } else { format!("{id}~{number}") }
}

fn begin_text(voice: ContentKind, message_id: String, events: &mut Vec<AgUiEvent>) {
    match voice {
        ContentKind::Text => {
            events.push(AgUiEvent::TextMessageStart { message_id, role: "assistant" });
        }
        ContentKind::Reasoning => {
            events.push(AgUiEvent::ReasoningStart { message_id: message_id.clone() });
            events.push(AgUiEvent::ReasoningMessageStart { message_id, role: "reasoning" });
        }
    }
}

fn text(voice: ContentKind, message_id: String, delta: String) -> AgUiEvent {
    match voice {
        ContentKind::Text => AgUiEvent::TextMessageContent { message_id, delta },
        ContentKind::Reasoning => AgUiEvent::ReasoningMessageContent { message_id, delta },
    }
}

fn end_text(voice: ContentKind, message_id: String, events: &mut Vec<AgUiEvent>) {
    match voice {
        ContentKind::Text => events.push(AgUiEvent::TextMessageEnd { message_id }),
        ContentKind::Reasoning => {
            events.push(AgUiEvent::ReasoningMessageEnd { message_id: message_id.clone() });
            events.push(AgUiEvent::ReasoningEnd { message_id });
        }
    }
}

fn interrupt(raised: InterruptRaised) -> Interrupt {
    let words = |value: &Value| value.as_str().map(str::to_owned);
    let message = words(&raised.payload).or_else(|| words(raised.payload.get("message")?));
    Interrupt {
        id: raised.interrupt.to_string(),
        reason: INPUT_REQUIRED,
        message,
        // AG-UI has no boolean schemas.
        response_schema: raised.response_schema.filter(Value::is_object),
        expires_at: raised.expires_ms.map(format_time_with_millis),
        metadata: json!({ "node": raised.node, "payload": raised.payload }),
    }
}
