//! The output of a run as one message of the AI SDK, from the log of its thread.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::chat::agent::Agent;
use crate::chat::steps::{CANCELLED, Step, StepStatus};
use crate::chat::stored::{calls, text_of};
use crate::chat::ui::{CallState, Role, UiMessage, UiPart};
use crate::llm::Completion;
use crate::message::ToolCall;
use crate::runs::{Called, Delta, Event, EventKind};

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
    /// The requested tool calls.
    requested: Vec<ToolCall>,
    is_ended: bool,
}

impl Agent {
    /// Returns the output of a run as one message; `None` for a run without output. It equals the
    /// message that a page builds from the host's stream of the format
    /// [`AiSdk`](crate::web::StreamFormat::AiSdk), even if no client has read the stream. A model
    /// call that was cancelled has its text so far, and a tool call without a result is pending
    /// until the run ends.
    ///
    /// The events are those of the run, from its first one, and `steps` are its [`Agent::steps`].
    /// `output` returns the output of a tool as the app stores it.
    pub fn message(
        &self,
        events: &[Event],
        steps: &[Step],
        output: impl Fn(&Value) -> Value,
    ) -> Option<UiMessage> {
        let run = &events.first()?.run;
        let is_active = is_active(events);
        let mut folding = Folding::default();
        for event in events {
            folding.add(self, event);
        }
        let Folding { turns, results } = folding;
        let mut parts: Vec<Value> = Vec::new();
        for turn in turns {
            let texts = [("reasoning", turn.reasoning), ("text", turn.text)];
            let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
            let texts = texts.map(|(kind, text)| UiPart::assistant_text(kind, text));
            let tools = turn.requested.iter().map(|call| {
                let step = steps.iter().find(|step| step.call_id.as_ref() == Some(&call.id));
                let result = results.get(&call.id);
                UiPart::tool(call, call_state(call, step, result, is_active, &output))
            });
            let turn_parts: Vec<Value> = texts.chain(tools).collect();
            if !turn_parts.is_empty() {
                parts.push(UiPart::step_start());
                parts.extend(turn_parts);
            }
        }
        let id = format!("{PREFIX}{run}");
        (!parts.is_empty()).then_some(UiMessage { id, role: Role::Assistant, parts })
    }
}

#[derive(Default)]
struct Folding {
    turns: Vec<Turn>,
    /// Texts of the results in the conversation, by the id of the call. They have the errors of
    /// calls that no tool executed.
    results: BTreeMap<String, String>,
}

impl Folding {
    fn add(&mut self, agent: &Agent, event: &Event) {
        match &event.kind {
            // Model calls that have not ended are made again.
            EventKind::RunStarted(run) if run.reason == "recovery" => {
                self.turns.retain(|turn| turn.is_ended);
            }
            EventKind::CallStarted(call) if Agent::begins_turn(call) => {
                self.turn(&call.task, call.call).restart();
            }
            EventKind::Streamed(streamed) if agent.streams_turn(streamed) => {
                let turn = self.turn(&streamed.task, streamed.call);
                streamed.deltas.iter().for_each(|delta| turn.apply(delta));
            }
            EventKind::Called(called) if agent.ends_turn(called) => {
                self.turn(&called.task, called.call).end(called);
            }
            EventKind::TaskFinished(task) if task.node == agent.model_node => {
                // The calls of the conversation have unique ids. A task without a model call, such
                // as one at the turn limit, has no turn.
                if let Some(turn) = self.turns.iter_mut().rfind(|turn| turn.call.0 == task.task) {
                    turn.requested = agent.written_messages(task).flat_map(calls).collect();
                }
            }
            EventKind::TaskFinished(task) if task.node == agent.tool_node => {
                self.results.extend(agent.written_messages(task).filter_map(result));
            }
            _ => {}
        }
    }

    fn turn(&mut self, task: &str, call: u32) -> &mut Turn {
        let is_same = |turn: &Turn| turn.call.1 == call && turn.call.0 == task;
        let known = self.turns.iter().rposition(is_same);
        let place = known.unwrap_or_else(|| {
            self.turns.push(Turn { call: (task.to_owned(), call), ..Turn::default() });
            self.turns.len() - 1
        });
        &mut self.turns[place]
    }
}

impl Turn {
    fn restart(&mut self) {
        (self.text, self.reasoning) = (String::new(), String::new());
    }

    fn apply(&mut self, delta: &Delta) {
        match delta {
            Delta::Text { text } => self.text.push_str(text),
            Delta::Reasoning { text } => self.reasoning.push_str(text),
            Delta::Restart => self.restart(),
            Delta::Other => {}
        }
    }

    /// Replaces the deltas by the whole completion. A failed call keeps its deltas.
    fn end(&mut self, called: &Called) {
        self.is_ended = true;
        if let Some(completion) = called.completion() {
            (self.text, self.reasoning) = (completion.text(), completion.reasoning());
            self.requested = unreadable_calls(&completion);
        }
    }
}

/// Returns the calls of a completion with unreadable arguments. The agent may request them again
/// without keeping them in the conversation.
fn unreadable_calls(completion: &Completion) -> Vec<ToolCall> {
    completion.tool_calls().filter(|call| call.arguments.is_string()).cloned().collect()
}

/// Returns the id of the call and the text of a message with a result.
fn result(message: &Value) -> Option<(String, String)> {
    let call_id = message["tool_call_id"].as_str()?;
    Some((call_id.to_owned(), text_of(&message["content"])))
}

/// Returns true if the run of the events has not ended.
fn is_active(events: &[Event]) -> bool {
    let last = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::RunStarted(_) => Some(true),
        EventKind::RunEnded(_) => Some(false),
        _ => None,
    });
    last.unwrap_or(true)
}

fn call_state(
    call: &ToolCall,
    step: Option<&Step>,
    result: Option<&String>,
    is_active: bool,
    output: &impl Fn(&Value) -> Value,
) -> CallState {
    let error = match (step, result) {
        (Some(step), _) if step.status == StepStatus::Success => {
            return CallState::Output(step.output.as_ref().map(output).unwrap_or_default());
        }
        (Some(step), _) => step.error.clone(),
        (None, Some(error)) => Some(error.clone()),
        (None, None) => call.arguments.is_string().then(|| UNREADABLE.to_owned()),
    };
    match error {
        None if is_active => CallState::Pending,
        error => CallState::Error(error.unwrap_or_else(|| CANCELLED.to_owned())),
    }
}

#[cfg(test)]
mod tests;
