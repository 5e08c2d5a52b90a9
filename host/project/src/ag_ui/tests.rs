//! Tests of the stream against the rules that clients of the protocol verify.

use std::collections::BTreeSet;

use proptest::prelude::{prop_assert_eq, proptest};
use serde_json::{Value, json};
use wattle_graph::event::{Event, EventKind, RunReason, RunStatus};
use wattle_graph::failure::Failure;
use wattle_graph::id::RunId;

use super::{AgUiEvent, AgUiProjection, unstarted};
use crate::projection::{EventState, Projection as _};
use crate::sample::{
    checkpoint, cut_and_recovered, event, interrupt_raised, log, run_ended, run_started,
    task_finished, task_started, thread, tool_called, two_turns,
};

fn events(log: &[Event]) -> Vec<AgUiEvent> {
    events_for(&[], log)
}

/// Returns the events for a client that has calls of earlier runs.
fn events_for(known_calls: &[&str], log: &[Event]) -> Vec<AgUiEvent> {
    let known_calls = known_calls.iter().map(|id| (*id).to_owned());
    let mut stream = AgUiProjection::new(thread(), []).with_known_calls(known_calls);
    let current = checkpoint(json!({ "count": 1 }));
    let apply = |event| {
        let checkpoint = stream.needs(event).map(|_| current.clone());
        stream.apply(event, &EventState { checkpoint, ..EventState::default() })
    };
    log.iter().flat_map(apply).collect()
}

/// A client that checks the order of events. It records which ids of each kind are open and which
/// were used.
#[derive(Default)]
struct Client {
    open: BTreeSet<(&'static str, String)>,
    used: BTreeSet<(&'static str, String)>,
    began: bool,
    is_over: bool,
}

impl Client {
    fn take(&mut self, event: &AgUiEvent) -> Result<(), String> {
        self.check(event).map_err(|why| format!("{event:?}: {why}"))
    }

    fn check(&mut self, event: &AgUiEvent) -> Result<(), &'static str> {
        let is_start = matches!(event, AgUiEvent::RunStarted { .. });
        if self.is_over || is_start == self.began {
            return Err("the run must start with its first event and end with its last");
        }
        self.began = true;
        match event {
            AgUiEvent::RunStarted { .. }
            | AgUiEvent::StateSnapshot { .. }
            | AgUiEvent::Custom { .. } => Ok(()),
            AgUiEvent::StepStarted { step_name } => self.begin("step", step_name, false),
            AgUiEvent::StepFinished { step_name } => self.end("step", step_name),
            AgUiEvent::TextMessageStart { message_id, .. } => self.begin("text", message_id, true),
            AgUiEvent::TextMessageContent { message_id, .. } => self.go_on("text", message_id),
            AgUiEvent::TextMessageEnd { message_id } => self.end("text", message_id),
            AgUiEvent::ReasoningStart { message_id } => self.begin("span", message_id, true),
            AgUiEvent::ReasoningMessageStart { message_id, .. } => {
                self.go_on("span", message_id)?;
                self.begin("thought", message_id, true)
            }
            AgUiEvent::ReasoningMessageContent { message_id, .. } => {
                self.go_on("thought", message_id)
            }
            AgUiEvent::ReasoningMessageEnd { message_id } => self.end("thought", message_id),
            AgUiEvent::ReasoningEnd { message_id } => self.end("span", message_id),
            AgUiEvent::ToolCallStart { tool_call_id, .. } => self.begin("call", tool_call_id, true),
            AgUiEvent::ToolCallArgs { tool_call_id, .. } => self.go_on("call", tool_call_id),
            AgUiEvent::ToolCallEnd { tool_call_id } => self.end("call", tool_call_id),
            AgUiEvent::ToolCallResult { message_id, tool_call_id, .. } => {
                let call = ("call", tool_call_id.clone());
                if !self.used.contains(&call) || self.open.contains(&call) {
                    return Err("no such call");
                }
                self.begin("result", message_id, true)?;
                self.end("result", message_id)
            }
            AgUiEvent::RunFinished { .. } | AgUiEvent::RunError { .. } => {
                self.is_over = true;
                if self.open.is_empty() { Ok(()) } else { Err("something is open") }
            }
        }
    }

    fn begin(&mut self, kind: &'static str, id: &str, once: bool) -> Result<(), &'static str> {
        let is_new = self.used.insert((kind, id.to_owned()));
        let opens = self.open.insert((kind, id.to_owned()));
        if opens && (is_new || !once) { Ok(()) } else { Err("the id exists") }
    }

    fn go_on(&self, kind: &'static str, id: &str) -> Result<(), &'static str> {
        if self.open.contains(&(kind, id.to_owned())) { Ok(()) } else { Err("it is not open") }
    }

    fn end(&mut self, kind: &'static str, id: &str) -> Result<(), &'static str> {
        if self.open.remove(&(kind, id.to_owned())) { Ok(()) } else { Err("it is not open") }
    }
}

proptest! {
    #[test]
    fn any_event_log_yields_a_valid_ag_ui_run(log in log()) {
        let mut client = Client::default();
        for event in events(&log) {
            prop_assert_eq!(client.take(&event), Ok(()));
        }
        prop_assert_eq!(client.is_over, true);
    }

    #[test]
    fn calls_of_earlier_runs_are_not_started_again(log in log()) {
        const KNOWN: &[&str] = &["a", "a~2", "run-1"];
        let mut client = Client::default();
        client.used.extend(KNOWN.iter().map(|id| ("call", (*id).to_owned())));
        for event in events_for(KNOWN, &log) {
            prop_assert_eq!(client.take(&event), Ok(()));
        }
        prop_assert_eq!(client.is_over, true);
    }
}

fn lines(log: &[Event]) -> String {
    let line = |event: AgUiEvent| serde_json::to_string(&event).unwrap() + "\n";
    events(log).into_iter().map(line).collect()
}

#[test]
fn a_run_with_tool_calls_has_the_expected_events() {
    insta::assert_snapshot!(lines(&two_turns()));
}

#[test]
fn tool_call_restarts_under_another_id_after_a_crash() {
    insta::assert_snapshot!(lines(&cut_and_recovered()));
}

/// Returns the events about tool calls: type and id.
fn calls(events: Vec<AgUiEvent>) -> Vec<(String, String)> {
    let documents = events.into_iter().map(|event| serde_json::to_value(event).unwrap());
    let text = |document: &Value, name: &str| Some(document[name].as_str()?.to_owned());
    documents.filter_map(|it| Some((text(&it, "type")?, text(&it, "toolCallId")?))).collect()
}

#[test]
fn client_with_the_call_of_an_earlier_run_receives_only_the_result() {
    let answer = json!({ "role": "tool", "tool_call_id": "a", "name": "find", "content": "x" });
    let log = [
        run_started(RunReason::Resume),
        task_started(1),
        tool_called(1, "a", Ok(json!({ "content": [{ "text": "x" }] }))),
        task_finished(1, answer),
        run_ended(RunStatus::Completed),
    ];
    let told = |kind: &str, id: &str| (format!("TOOL_CALL_{kind}"), id.to_owned());
    let whole = ["START", "ARGS", "END", "RESULT"].map(|kind| told(kind, "a"));
    assert_eq!(calls(events(&log)), whole, "without the call, the client could not show it");
    assert_eq!(calls(events_for(&["a"], &log)), [told("RESULT", "a")]);
    assert_eq!(calls(events_for(&["a", "a~2"], &log)), [told("RESULT", "a~2")]);
}

#[test]
fn new_tool_call_gets_another_id_than_an_earlier_call() {
    let told = calls(events_for(&["a", "a~2"], &two_turns()));
    let ids: BTreeSet<&str> = told.iter().map(|(_, id)| id.as_str()).collect();
    assert_eq!(Vec::from_iter(ids), ["a~3", "b"]);
}

#[test]
fn run_that_never_started_has_a_start_event_and_an_end_event() {
    let run = || RunId::new("run").unwrap();
    let mut client = Client::default();
    for event in unstarted(thread(), run(), None) {
        assert_eq!(client.take(&event), Ok(()));
    }
    assert!(client.is_over);
    let [_, end] = unstarted(thread(), run(), None);
    assert_eq!(serde_json::to_value(end).unwrap()["outcome"], json!({ "type": "cancelled" }));
    let failure = Failure::new("conflict", "too late");
    let [start, end] = unstarted(thread(), run(), Some(failure));
    assert_eq!(serde_json::to_value(start).unwrap()["runId"], "run");
    let expected = json!({ "type": "RUN_ERROR", "message": "too late", "code": "conflict" });
    assert_eq!(serde_json::to_value(end).unwrap(), expected);
}

#[test]
fn run_finished_lists_pending_interrupts() {
    let task = "t".parse().unwrap();
    let mut question = interrupt_raised(&task, "agent", 0);
    question.payload = json!({ "message": "sure?" });
    question.response_schema = Some(json!(true));
    let log = [event(EventKind::InterruptRaised(question)), run_ended(RunStatus::Interrupted)];
    let end = events(&log).pop().unwrap();
    let outcome = serde_json::to_value(&end).unwrap()["outcome"].take();
    assert_eq!(outcome["type"], "interrupt");
    assert_eq!(outcome["interrupts"][0]["message"], "sure?");
    assert_eq!(outcome["interrupts"][0].get("responseSchema"), None);
    let end = |status| {
        let last = events(&[run_ended(status)]).pop();
        serde_json::to_value(last).unwrap()
    };
    assert_eq!(end(RunStatus::Interrupted)["outcome"]["type"], "success");
    assert_eq!(end(RunStatus::Cancelled)["outcome"]["type"], "cancelled");
    assert_eq!(end(RunStatus::Failed)["message"], "not allowed");
}
