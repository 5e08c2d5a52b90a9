//! Steps: tool calls, folded from the event log. The fold is pure: the same events give the same
//! steps.
//!
//! A call that gets an error without its tool, because its arguments are unreadable, is a failed
//! step. A call of a tool that does not exist is not a step.

use std::collections::BTreeMap;

use wattle_plugin::prelude::{Deserialize, JsonSchema, Serialize, Value, log};
use wattle_plugin::runs::{CallStarted, Called, Event, EventKind, RunEnded, TaskFinished, Write};

use crate::channel;
use crate::session::log::{AGENT, TOOLS, begins_step, ends_step};
use crate::tool;

/// Error of a step that was cancelled.
pub(crate) const CANCELLED: &str = "the step was cancelled";

/// Error of a step whose run failed.
const LOST: &str = "the run ended before the step was finished";

/// The status of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum StepStatus {
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
    /// Returns the name in the database.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Success => "SUCCESS",
            Self::Error => "ERROR",
            Self::Cancelled => "CANCELLED",
        }
    }
}

/// A step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    /// Task and number of the call.
    pub(crate) id: String,
    /// Name of the tool.
    pub(crate) tool: String,
    /// Id that the model gave the call.
    pub(crate) call_id: Option<String>,
    pub(crate) status: StepStatus,
    /// Arguments of the call.
    pub(crate) input: Option<Value>,
    /// Output of the tool, not shortened.
    pub(crate) output: Option<Value>,
    pub(crate) error: Option<String>,
    pub(crate) duration_ms: Option<i64>,
    /// Sequence number of the event that started it.
    pub(crate) seq: u64,
    pub(crate) started_ms: i64,
    /// Sequence number of the event that ended it.
    pub(crate) ended_seq: Option<u64>,
    pub(crate) ended_ms: Option<i64>,
    /// Writes to the state.
    pub(crate) writes: Vec<Write>,
}

impl Step {
    fn begun(event: &Event, id: String, tool: &str, wanted: Option<Wanted>) -> Self {
        let (call_id, input) = wanted.map(|it| (it.id, it.arguments)).unzip();
        Self {
            id,
            tool: tool.to_owned(),
            call_id,
            status: StepStatus::Running,
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

    /// Returns the sequence number of the event that changed it last.
    pub(crate) fn touched(&self) -> u64 {
        self.ended_seq.unwrap_or(self.seq)
    }
}

/// A call that the model requested and that has no step yet.
struct Wanted {
    id: String,
    name: String,
    arguments: Value,
}

/// Returns the steps of a run, in order.
pub(crate) fn steps(events: &[Event]) -> Vec<Step> {
    let mut folding = Folding::default();
    for event in events {
        match &event.kind {
            EventKind::TaskFinished(task) if task.node == AGENT => folding.wanted = wanted(task),
            EventKind::TaskFinished(task) if task.node == TOOLS => folding.refuse(event, task),
            EventKind::CallStarted(call) if begins_step(call) => folding.begin(event, call),
            EventKind::Called(called) if ends_step(called) => folding.end(event, called),
            EventKind::RunEnded(ended) => folding.cut(event, ended),
            _ => {}
        }
    }
    folding.steps
}

#[derive(Default)]
struct Folding {
    steps: Vec<Step>,
    places: BTreeMap<String, usize>,
    wanted: Vec<Wanted>,
}

impl Folding {
    fn begin(&mut self, event: &Event, call: &CallStarted) {
        let id = format!("{}:{}", call.task, call.call);
        // A call may start again after a restart of the host.
        if !self.places.contains_key(&id) {
            self.add(event, id, &call.summary);
        }
    }

    fn add(&mut self, event: &Event, id: String, reference: &str) -> Option<usize> {
        let tool = reference.rsplit('/').next().unwrap_or(reference);
        if let Err(why) = check_name(tool) {
            log::error!("a step is not kept: {why}");
            return None;
        }
        let is_wanted = |wanted: &Wanted| wanted.name == tool && !wanted.arguments.is_string();
        let wanted = self.wanted.iter().position(is_wanted);
        let wanted = wanted.map(|place| self.wanted.remove(place));
        self.places.insert(id.clone(), self.steps.len());
        self.steps.push(Step::begun(event, id, tool, wanted));
        Some(self.steps.len() - 1)
    }

    /// Adds the calls that got an error without their tools.
    fn refuse(&mut self, event: &Event, task: &TaskFinished) {
        for answer in messages(task).filter(|message| message["role"] == "tool") {
            let is_answered = |call: &Wanted| answer["tool_call_id"] == call.id.as_str();
            let Some(place) = self.wanted.iter().position(is_answered) else { continue };
            let call = self.wanted.remove(place);
            if check_name(&call.name).is_err() {
                continue;
            }
            let (id, tool) = (format!("{}:{}", event.run, call.id), call.name.clone());
            let mut step = Step::begun(event, id, &tool, Some(call));
            step.status = StepStatus::Error;
            step.error = Some(text_of(&answer["content"]));
            (step.ended_seq, step.ended_ms) = (Some(event.seq), Some(event.at_ms));
            step.duration_ms = Some(0);
            self.steps.push(step);
        }
    }

    fn end(&mut self, event: &Event, called: &Called) {
        let id = format!("{}:{}", called.task, called.call);
        let place = self.places.get(&id).copied();
        let Some(place) = place.or_else(|| self.add(event, id, &called.summary)) else { return };
        let step = &mut self.steps[place];
        (step.ended_seq, step.ended_ms) = (Some(event.seq), Some(event.at_ms));
        step.duration_ms = i64::try_from(called.duration_us / 1_000).ok();
        match &called.result {
            Ok(answer) if answer["is_error"] == Value::Bool(true) => {
                step.status = StepStatus::Error;
                step.error = Some(text_of(&answer["content"]));
                step.writes = writes(&answer["updates"]);
            }
            Ok(answer) => {
                step.status = StepStatus::Success;
                step.output = Some(output(answer));
                step.writes = writes(&answer["updates"]);
            }
            Err(failure) => {
                step.status = StepStatus::Error;
                step.error = Some(failure.message.clone());
            }
        }
    }

    /// Ends the steps that have no result when their run ends.
    fn cut(&mut self, event: &Event, ended: &RunEnded) {
        let (status, error) = match ended.status.as_str() {
            "cancelled" => (StepStatus::Cancelled, CANCELLED),
            _ => (StepStatus::Error, LOST),
        };
        for step in self.steps.iter_mut().filter(|step| step.status == StepStatus::Running) {
            (step.status, step.error) = (status, Some(error.to_owned()));
            (step.ended_seq, step.ended_ms) = (Some(event.seq), Some(event.at_ms));
            step.duration_ms = Some((event.at_ms - step.started_ms).max(0));
        }
    }
}

/// Checks that a name is that of a tool, as `session_steps.tool_name` may have it.
///
/// # Errors
///
/// Returns a message for the developer who has added a tool.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if tool::NAMES.contains(&name) {
        return Ok(());
    }
    Err(format!(
        "Expected SessionToolName, found `{name}`; known are {}. A new tool is added to \
         `tool::NAMES`; the column is `session_steps.tool_name` of the migration `0001_tables.sql`",
        tool::NAMES.join(", ")
    ))
}

/// Returns the calls that an agent has written.
fn wanted(task: &TaskFinished) -> Vec<Wanted> {
    messages(task)
        .filter_map(|message| message["tool_calls"].as_array())
        .flatten()
        .map(|call| Wanted {
            id: call["id"].as_str().unwrap_or_default().to_owned(),
            name: call["name"].as_str().unwrap_or_default().to_owned(),
            arguments: call["arguments"].clone(),
        })
        .collect()
}

/// Returns the messages that a task has written.
pub(crate) fn messages(task: &TaskFinished) -> impl Iterator<Item = &Value> {
    let writes = task.writes.iter().filter(|write| write.channel == channel::MESSAGES);
    writes.flat_map(|write| match &write.value {
        Value::Array(messages) => messages.as_slice(),
        one => std::slice::from_ref(one),
    })
}

fn output(answer: &Value) -> Value {
    match answer.get("structured") {
        Some(structured) if !structured.is_null() => structured.clone(),
        _ => Value::String(text_of(&answer["content"])),
    }
}

fn writes(updates: &Value) -> Vec<Write> {
    let updates = updates.as_array().into_iter().flatten();
    updates.filter_map(|update| Write::deserialize(update).ok()).collect()
}

/// Returns the text of a list of parts, or a plain text.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
