//! The tool calls of a run, from the log of its thread.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::agent::Agent;
use crate::chat::stored::{calls, text_of};
use crate::message::ToolCall;
use crate::runs::{CallStarted, Called, Event, EventKind, RunEnded, Write};

/// Error of a step that was cancelled.
pub(super) const CANCELLED: &str = "the step was cancelled";

/// Error of a step whose run failed.
const LOST: &str = "the run ended before the step was finished";

/// The status of a step.
// The schema of each app that names this type has the line above as its description, and those of
// the variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum StepStatus {
    /// The tool is running.
    Running,
    /// The tool succeeded.
    Success,
    /// The tool failed.
    Error,
    /// The run was cancelled.
    Cancelled,
}

impl StepStatus {
    /// Returns the name in JSON, for a column of a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Success => "SUCCESS",
            Self::Error => "ERROR",
            Self::Cancelled => "CANCELLED",
        }
    }
}

/// A tool call of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Unique in its thread: task and number of the call, or for a refused one the run and the id
    /// that the model gave the call.
    pub id: String,
    /// Name of the tool, without the app or plugin.
    pub tool: String,
    /// Id that the model gave the call.
    pub call_id: Option<String>,
    /// The status.
    pub status: StepStatus,
    /// True if no tool executed the call, because its arguments are unreadable, or because there is
    /// no such tool.
    pub is_refused: bool,
    /// Arguments of the call.
    pub input: Option<Value>,
    /// Structured output of the tool, or its text without one.
    pub output: Option<Value>,
    /// Error message of a step that has failed or was cancelled.
    pub error: Option<String>,
    /// Duration in milliseconds.
    pub duration_ms: Option<i64>,
    /// Sequence number of the event that started it.
    pub seq: u64,
    /// Time of that event, in milliseconds since 1970.
    pub started_ms: i64,
    /// Sequence number of the event that ended it.
    pub ended_seq: Option<u64>,
    /// Time of that event, in milliseconds since 1970.
    pub ended_ms: Option<i64>,
    /// Writes of the tool to the state.
    pub writes: Vec<Write>,
}

impl Step {
    fn begun(event: &Event, id: String, tool: &str, requested: Option<ToolCall>) -> Self {
        let (call_id, input) = requested.map(|call| (call.id, call.arguments)).unzip();
        Self {
            id,
            tool: tool.to_owned(),
            call_id,
            status: StepStatus::Running,
            is_refused: false,
            input,
            output: None,
            error: None,
            duration_ms: None,
            seq: event.seq,
            started_ms: event.at_ms,
            ended_seq: None,
            ended_ms: None,
            writes: Vec::new(),
        }
    }

    /// Returns the sequence number of the event that changed the step last.
    pub fn last_seq(&self) -> u64 {
        self.ended_seq.unwrap_or(self.seq)
    }

    /// Ends the step. Its call may have ended before with the failure of an earlier attempt, which
    /// `error` replaces.
    fn end(&mut self, event: &Event, status: StepStatus, error: Option<String>) {
        (self.status, self.error) = (status, error);
        (self.ended_seq, self.ended_ms) = (Some(event.seq), Some(event.at_ms));
    }

    fn fail(&mut self, event: &Event, error: impl Into<String>) {
        self.end(event, StepStatus::Error, Some(error.into()));
    }
}

impl Agent {
    /// Returns the steps of a run, in order: its tool calls, with those that got an error without a
    /// tool. A step without a result ends with its run. The events are those of the run, from its
    /// first one.
    pub fn steps(&self, events: &[Event]) -> Vec<Step> {
        let mut folding = Folding::default();
        for event in events {
            match &event.kind {
                EventKind::TaskFinished(task) if task.node == self.model_node => {
                    folding.requested = self.written_messages(task).flat_map(calls).collect();
                }
                EventKind::TaskFinished(task) if task.node == self.tool_node => {
                    self.written_messages(task).for_each(|message| folding.refuse(event, message));
                }
                EventKind::CallStarted(call) if Self::begins_step(call) => {
                    folding.begin(event, call);
                }
                EventKind::Called(called) if self.ends_step(called) => folding.end(event, called),
                EventKind::RunEnded(ended) => folding.end_unfinished(event, ended),
                _ => {}
            }
        }
        folding.steps
    }
}

#[derive(Default)]
struct Folding {
    steps: Vec<Step>,
    /// Indices of the steps that a tool executes, by their ids.
    places: BTreeMap<String, usize>,
    /// Calls that the model requested last and that have no step yet.
    requested: Vec<ToolCall>,
}

impl Folding {
    fn begin(&mut self, event: &Event, call: &CallStarted) {
        let id = format!("{}:{}", call.task, call.call);
        // A call may start again after a restart of the host.
        if !self.places.contains_key(&id) {
            self.add(event, id, &call.summary);
        }
    }

    fn add(&mut self, event: &Event, id: String, reference: &str) -> usize {
        let tool = bare(reference);
        // A conversation has the reference of a tool whose bare name is ambiguous.
        let is_named = |call: &ToolCall| call.name == reference || call.name == tool;
        let is_requested = |call: &ToolCall| is_named(call) && !call.arguments.is_string();
        let requested = self.requested.iter().position(is_requested);
        let requested = requested.map(|place| self.requested.remove(place));
        let place = self.steps.len();
        self.places.insert(id.clone(), place);
        self.steps.push(Step::begun(event, id, tool, requested));
        place
    }

    /// Adds the call of a message with a result, if no tool has executed the call.
    fn refuse(&mut self, event: &Event, message: &Value) {
        let is_result = |call: &ToolCall| message["tool_call_id"] == call.id.as_str();
        let place = self.requested.iter().position(is_result);
        let Some(place) = place.filter(|_| message["role"] == "tool") else { return };
        let call = self.requested.remove(place);
        let (id, name) = (format!("{}:{}", event.run, call.id), call.name.clone());
        let mut step = Step::begun(event, id, bare(&name), Some(call));
        step.fail(event, text_of(&message["content"]));
        step.is_refused = true;
        step.duration_ms = Some(0);
        self.steps.push(step);
    }

    fn end(&mut self, event: &Event, called: &Called) {
        let id = format!("{}:{}", called.task, called.call);
        let place = self.places.get(&id).copied();
        let place = place.unwrap_or_else(|| self.add(event, id, &called.summary));
        let step = &mut self.steps[place];
        step.duration_ms = i64::try_from(called.duration_us / 1_000).ok();
        match &called.result {
            Ok(result) if result["is_error"] == Value::Bool(true) => {
                step.fail(event, text_of(&result["content"]));
                step.writes = writes(&result["updates"]);
            }
            Ok(result) => {
                step.end(event, StepStatus::Success, None);
                step.output = Some(output(result));
                step.writes = writes(&result["updates"]);
            }
            Err(failure) => step.fail(event, failure.message.clone()),
        }
    }

    /// Ends the steps that have no result when their run ends.
    fn end_unfinished(&mut self, event: &Event, ended: &RunEnded) {
        for step in self.steps.iter_mut().filter(|step| step.status == StepStatus::Running) {
            if ended.status == "cancelled" {
                step.end(event, StepStatus::Cancelled, Some(CANCELLED.to_owned()));
            } else {
                step.fail(event, LOST);
            }
            step.duration_ms = Some((event.at_ms - step.started_ms).max(0));
        }
    }
}

/// Returns the name of a tool without the app or plugin.
fn bare(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

fn output(result: &Value) -> Value {
    match result.get("structured") {
        Some(structured) if !structured.is_null() => structured.clone(),
        _ => Value::String(text_of(&result["content"])),
    }
}

fn writes(updates: &Value) -> Vec<Write> {
    let updates = updates.as_array().into_iter().flatten();
    updates.filter_map(|update| Write::deserialize(update).ok()).collect()
}

#[cfg(test)]
mod tests;
