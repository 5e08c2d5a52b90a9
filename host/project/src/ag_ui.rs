//! Projection of a run as events of AG-UI 1.0.
//!
//! A step is a task of a node. The protocol cannot discard arguments of a tool call. If the model
//! restarts and generates the arguments again, the tool call ends and starts again under another
//! id.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};
use wattle_graph::event::{Asked, Event, EventKind, RunStatus};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{InterruptId, Namespace, NodeName, RunId, TaskId, ThreadId};

use crate::time::utc;
use crate::transcript::{Answer, Said, Transcript, Voice};

/// The version of the protocol.
pub const PROTOCOL_VERSION: &str = "1.0";

/// Reason of every interrupt in the protocol.
const INPUT_REQUIRED: &str = "input_required";

/// Name of the custom event with the progress of a node.
const PROGRESS: &str = "progress";

/// One event of the protocol.
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

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the protocol's, which documents them")]
pub enum Outcome {
    Success,
    Interrupt { interrupts: Vec<Interrupt> },
    Cancelled,
}

/// An interrupt.
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

/// A tool call as the stream shows it.
#[derive(Clone, Debug)]
struct Shown {
    id: String,
    is_open: bool,
    has_arguments: bool,
}

/// The projection of one run. It takes the events of the run in order, from the first.
#[derive(Clone, Debug)]
pub struct EventStream {
    transcript: Transcript,
    thread: ThreadId,
    run: Option<RunId>,
    /// Names of the running steps.
    steps: BTreeMap<TaskId, String>,
    calls: BTreeMap<String, Shown>,
    /// Number of starts of each tool call.
    again: BTreeMap<String, u32>,
    names: BTreeMap<String, String>,
    asked: BTreeMap<InterruptId, Interrupt>,
}

impl EventStream {
    /// Creates the stream of a run before its first event. The stream contains only model calls of
    /// `nodes`, or of all nodes if `nodes` is empty.
    pub fn new(thread: ThreadId, nodes: impl IntoIterator<Item = NodeName>) -> Self {
        Self {
            transcript: Transcript::new(nodes),
            thread,
            run: None,
            steps: BTreeMap::new(),
            calls: BTreeMap::new(),
            again: BTreeMap::new(),
            names: BTreeMap::new(),
            asked: BTreeMap::new(),
        }
    }

    /// Returns true after the end of the run.
    pub fn is_over(&self) -> bool {
        self.transcript.is_over()
    }

    /// Returns true if [`apply`](Self::apply) needs the state for an event: the last event of a run
    /// that did not fail.
    pub fn wants_state(&self, event: &Event) -> bool {
        let EventKind::RunEnded(ended) = &event.kind else { return false };
        let is_end = event.namespace == Namespace::root() && !self.is_over();
        is_end && ended.status != RunStatus::Failed
    }

    /// Applies an event and returns the AG-UI events that follow from it. `state` has the values of
    /// the thread's channels after the event.
    pub fn apply(&mut self, event: &Event, state: Option<&Value>) -> Vec<AgUiEvent> {
        let mut events = Vec::new();
        for said in self.transcript.apply(event) {
            if let (Said::Ended { .. }, Some(state)) = (&said, state) {
                events.push(AgUiEvent::StateSnapshot { snapshot: state.clone() });
            }
            self.show(said, &mut events);
        }
        events
    }

    fn show(&mut self, said: Said, events: &mut Vec<AgUiEvent>) {
        match said {
            Said::Began(run) => events.push(self.began(run)),
            Said::TaskBegan(task, node) => events.push(self.begin_step(task, &node)),
            Said::TaskEnded(task) => {
                let step = self.steps.remove(&task);
                events.extend(step.map(|step_name| AgUiEvent::StepFinished { step_name }));
            }
            Said::TurnBegan | Said::TurnEnded => {}
            Said::TextBegan(voice, id) => begin_text(voice, self.id_of(&id), events),
            Said::Text(voice, id, delta) => events.push(text(voice, self.id_of(&id), delta)),
            Said::TextEnded(voice, id) => end_text(voice, self.id_of(&id), events),
            Said::CallBegan { id, name } => self.begin_call(&id, &name, events),
            Said::CallArguments { id, text } => self.grow_call(&id, text, events),
            Said::CallVoid(id) => self.end_call(&id, events),
            Said::CallMade { id, name, arguments } => {
                self.complete_call(&id, &name, &arguments, events);
            }
            Said::CallBroken { id, name, arguments, why } => {
                self.complete_call(&id, &name, &arguments, events);
                events.extend(self.result(&id, why));
            }
            Said::Answered(id, Answer::Error(text)) => events.extend(self.result(&id, text)),
            Said::Answered(id, Answer::Output(output)) => {
                let content = match output {
                    Value::String(text) => text,
                    output => output.to_string(),
                };
                events.extend(self.result(&id, content));
            }
            Said::Emitted { name, data } => events.push(AgUiEvent::Custom { name, value: data }),
            Said::Progress { node, message, fraction } => events.push(AgUiEvent::Custom {
                name: PROGRESS.to_owned(),
                value: json!({ "node": node, "message": message, "fraction": fraction }),
            }),
            Said::Asked(asked) => {
                self.asked.insert(asked.interrupt.clone(), interrupt(*asked));
            }
            Said::Ended { status, failure, .. } => events.extend(self.ended(status, failure)),
        }
    }

    fn began(&mut self, run: RunId) -> AgUiEvent {
        self.run = Some(run.clone());
        let thread_id = self.thread.clone();
        AgUiEvent::RunStarted { thread_id, run_id: run, protocol_version: PROTOCOL_VERSION }
    }

    /// Starts a step. Running steps have different names.
    fn begin_step(&mut self, task: TaskId, node: &NodeName) -> AgUiEvent {
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

    fn begin_call(&mut self, id: &str, name: &str, events: &mut Vec<AgUiEvent>) {
        let times = self.again.entry(id.to_owned()).or_default();
        *times += 1;
        let shown = if *times == 1 { id.to_owned() } else { format!("{id}~{times}") };
        self.names.insert(id.to_owned(), name.to_owned());
        events.push(AgUiEvent::ToolCallStart {
            tool_call_id: shown.clone(),
            tool_call_name: name.to_owned(),
        });
        let shown = Shown { id: shown, is_open: true, has_arguments: false };
        self.calls.insert(id.to_owned(), shown);
    }

    fn grow_call(&mut self, id: &str, delta: String, events: &mut Vec<AgUiEvent>) {
        self.open_call(id, events);
        if let Some(call) = self.calls.get_mut(id) {
            call.has_arguments = true;
            events.push(AgUiEvent::ToolCallArgs { tool_call_id: call.id.clone(), delta });
        }
    }

    /// Starts a tool call again if its arguments were discarded.
    fn open_call(&mut self, id: &str, events: &mut Vec<AgUiEvent>) {
        if !self.calls.get(id).is_some_and(|call| call.is_open)
            && let Some(name) = self.names.get(id).cloned()
        {
            self.begin_call(id, &name, events);
        }
    }

    fn end_call(&mut self, id: &str, events: &mut Vec<AgUiEvent>) {
        if let Some(call) = self.calls.get_mut(id).filter(|call| call.is_open) {
            call.is_open = false;
            events.push(AgUiEvent::ToolCallEnd { tool_call_id: call.id.clone() });
        }
    }

    fn complete_call(
        &mut self,
        id: &str,
        name: &str,
        arguments: &Value,
        events: &mut Vec<AgUiEvent>,
    ) {
        self.names.insert(id.to_owned(), name.to_owned());
        self.open_call(id, events);
        if self.calls.get(id).is_some_and(|call| !call.has_arguments) {
            let text = match arguments {
                Value::String(text) => text.clone(),
                arguments => arguments.to_string(),
            };
            self.grow_call(id, text, events);
        }
        self.end_call(id, events);
    }

    fn result(&self, id: &str, content: String) -> Option<AgUiEvent> {
        let tool_call_id = self.calls.get(id)?.id.clone();
        let message_id = self.id_of(&format!("result-{tool_call_id}"));
        Some(AgUiEvent::ToolCallResult { message_id, tool_call_id, content, role: "tool" })
    }

    fn ended(&self, status: RunStatus, failure: Option<Failure>) -> Option<AgUiEvent> {
        let outcome = match status {
            RunStatus::Failed => {
                let failure =
                    failure.unwrap_or_else(|| Failure::new(code::INTERNAL, "the run failed"));
                return Some(AgUiEvent::RunError { message: failure.message, code: failure.code });
            }
            RunStatus::Cancelled => Outcome::Cancelled,
            // An interrupted run without interrupts has no question that a person can answer.
            RunStatus::Interrupted if !self.asked.is_empty() => {
                Outcome::Interrupt { interrupts: self.asked.values().cloned().collect() }
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

fn begin_text(voice: Voice, message_id: String, events: &mut Vec<AgUiEvent>) {
    match voice {
        Voice::Words => {
            events.push(AgUiEvent::TextMessageStart { message_id, role: "assistant" });
        }
        Voice::Thoughts => {
            events.push(AgUiEvent::ReasoningStart { message_id: message_id.clone() });
            events.push(AgUiEvent::ReasoningMessageStart { message_id, role: "reasoning" });
        }
    }
}

fn text(voice: Voice, message_id: String, delta: String) -> AgUiEvent {
    match voice {
        Voice::Words => AgUiEvent::TextMessageContent { message_id, delta },
        Voice::Thoughts => AgUiEvent::ReasoningMessageContent { message_id, delta },
    }
}

fn end_text(voice: Voice, message_id: String, events: &mut Vec<AgUiEvent>) {
    match voice {
        Voice::Words => events.push(AgUiEvent::TextMessageEnd { message_id }),
        Voice::Thoughts => {
            events.push(AgUiEvent::ReasoningMessageEnd { message_id: message_id.clone() });
            events.push(AgUiEvent::ReasoningEnd { message_id });
        }
    }
}

fn interrupt(asked: Asked) -> Interrupt {
    let words = |value: &Value| value.as_str().map(str::to_owned);
    let message = words(&asked.payload).or_else(|| words(asked.payload.get("message")?));
    Interrupt {
        id: asked.interrupt.to_string(),
        reason: INPUT_REQUIRED,
        message,
        // The protocol has no boolean schemas.
        response_schema: asked.response_schema.filter(Value::is_object),
        expires_at: asked.expires_ms.map(utc),
        metadata: json!({ "node": asked.node, "payload": asked.payload }),
    }
}
