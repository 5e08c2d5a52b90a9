//! The output of a run as one message of the page. It equals the message that the page builds from
//! the stream, also if no client has read the stream.

use std::collections::BTreeMap;

use wattle_plugin::prelude::{Completion, Value, json};
use wattle_plugin::runs::{Called, Delta, Event, EventKind, TaskFinished};

use crate::message::{Role, UiMessage};
use crate::session::log::{AGENT, Run, TOOLS, begins_turn, ends_turn, is_talk};
use crate::session::step::{self, Step, StepStatus, messages, text_of};
use crate::session::stored;

/// Prefix of the id of the message, before the id of the run, as in the stream.
const PREFIX: &str = "msg_";

/// Error of a call whose arguments are not valid JSON, as in the stream.
const UNREADABLE: &str = "the arguments of the call are not valid JSON";

/// The output of one model call.
#[derive(Debug, Default)]
struct Turn {
    /// Task and number of the call.
    call: (String, u32),
    text: String,
    reasoning: String,
    /// The requested tool calls: id, tool and arguments.
    wanted: Vec<(String, String, Value)>,
    is_answered: bool,
}

/// Returns the message of a run; `None` if the run has no output.
pub(crate) fn said(run: &Run, steps: &[Step]) -> Option<UiMessage> {
    let mut folding = Folding::default();
    for event in &run.events {
        folding.add(event);
    }
    let Folding { turns, refused } = folding;
    let mut parts: Vec<Value> = Vec::new();
    for turn in turns {
        let answers = turn.wanted.iter().map(|(id, name, input)| {
            let step = steps.iter().find(|step| step.call_id.as_ref() == Some(id));
            tool_part(id, name, input, step, refused.get(id))
        });
        let answers: Vec<Value> = answers.collect();
        let texts = [("reasoning", turn.reasoning), ("text", turn.text)];
        let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let texts = texts.map(|(kind, text)| json!({"type": kind, "text": text, "state": "done"}));
        let said: Vec<Value> = texts.chain(answers).collect();
        if !said.is_empty() {
            parts.push(json!({ "type": "step-start" }));
            parts.extend(said);
        }
    }
    let id = format!("{PREFIX}{}", run.id);
    (!parts.is_empty()).then_some(UiMessage { id, role: Role::Assistant, parts })
}

#[derive(Default)]
struct Folding {
    turns: Vec<Turn>,
    /// Messages of calls that no tool executed, by the id of the call.
    refused: BTreeMap<String, Value>,
}

impl Folding {
    fn add(&mut self, event: &Event) {
        match &event.kind {
            // Model calls without a completion are made again.
            EventKind::RunStarted(run) if run.reason == "recovery" => {
                self.turns.retain(|turn| turn.is_answered);
            }
            EventKind::CallStarted(call) if begins_turn(call) => {
                let turn = self.turn(&call.task, call.call);
                (turn.text, turn.reasoning) = (String::new(), String::new());
            }
            EventKind::Streamed(pieces) if is_talk(pieces) => {
                let turn = self.turn(&pieces.task, pieces.call);
                pieces.deltas.iter().for_each(|delta| turn.hear(delta));
            }
            EventKind::Called(called) if ends_turn(called) => {
                self.turn(&called.task, called.call).end(called);
            }
            EventKind::TaskFinished(task) if task.node == AGENT => self.ask(task),
            EventKind::TaskFinished(task) if task.node == TOOLS => self.answer(task),
            _ => {}
        }
    }

    fn turn(&mut self, task: &str, call: u32) -> &mut Turn {
        let known = self.turns.iter().rposition(|turn| turn.call == (task.to_owned(), call));
        let place = known.unwrap_or_else(|| {
            self.turns.push(Turn { call: (task.to_owned(), call), ..Turn::default() });
            self.turns.len() - 1
        });
        &mut self.turns[place]
    }

    /// Replaces the requested calls by those of the conversation, which have unique ids.
    fn ask(&mut self, task: &TaskFinished) {
        let Some(turn) = self.turns.last_mut() else { return };
        let calls = messages(task).filter_map(|message| message["tool_calls"].as_array());
        turn.wanted = calls.flatten().map(call).collect();
    }

    fn answer(&mut self, task: &TaskFinished) {
        for message in messages(task) {
            if let Some(id) = message["tool_call_id"].as_str() {
                self.refused.insert(id.to_owned(), message.clone());
            }
        }
    }
}

impl Turn {
    fn hear(&mut self, delta: &Delta) {
        match delta {
            Delta::Text { text } => self.text.push_str(text),
            Delta::Reasoning { text } => self.reasoning.push_str(text),
            Delta::Restart => (self.text, self.reasoning) = (String::new(), String::new()),
            _ => {}
        }
    }

    /// Replaces the deltas by the whole completion. A failed call keeps its deltas.
    fn end(&mut self, called: &Called) {
        self.is_answered = true;
        if let Some(completion) = called.completion() {
            (self.text, self.reasoning) = (completion.text(), completion.reasoning());
            self.wanted = unreadable_calls(&completion);
        }
    }
}

/// Returns the calls of a completion with unreadable arguments. The agent may request them again
/// without keeping them in the conversation.
fn unreadable_calls(completion: &Completion) -> Vec<(String, String, Value)> {
    let unreadable = completion.tool_calls().filter(|call| call.arguments.is_string());
    let unreadable = unreadable.cloned().map(|call| (call.id, call.name, call.arguments));
    unreadable.collect()
}

/// Returns id, tool and arguments of a call in a message of the conversation.
fn call(call: &Value) -> (String, String, Value) {
    let text = |key: &str| call[key].as_str().unwrap_or_default().to_owned();
    (text("id"), text("name"), call["arguments"].clone())
}

fn tool_part(
    id: &str,
    name: &str,
    input: &Value,
    step: Option<&Step>,
    refused: Option<&Value>,
) -> Value {
    let mut part = json!({
        "type": format!("tool-{name}"), "toolCallId": id, "state": "output-error", "input": input,
    });
    let error = match (step, refused) {
        (Some(step), _) if step.status == StepStatus::Success => {
            part["state"] = json!("output-available");
            part["output"] = step.output.as_ref().map(stored::of_message).unwrap_or_default();
            return part;
        }
        (Some(step), _) => step.error.clone(),
        (None, Some(message)) => Some(text_of(&message["content"])),
        (None, None) => input.is_string().then(|| UNREADABLE.to_owned()),
    };
    part["errorText"] = json!(error.unwrap_or_else(|| step::CANCELLED.to_owned()));
    part
}

#[cfg(test)]
mod tests;
