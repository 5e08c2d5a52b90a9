//! Tests of the stream against the rules that the AI SDK documents. The SDK itself enforces only a
//! part of these rules.

use std::collections::BTreeMap;

use proptest::prelude::{prop_assert_eq, proptest};
use serde_json::{Value, json};
use wattle_graph::event::{Event, EventKind};
use wattle_graph::failure::Failure;

use super::{AiSdkProjection, Chunk, custom_part, part_name, unstarted};
use crate::projection::{EventState, Projection as _};
use crate::sample::{cut_and_recovered, interrupt_raised, log, two_turns};

fn chunks(events: &[Event]) -> Vec<Chunk> {
    let mut stream = AiSdkProjection::new([]);
    events.iter().flat_map(|event| stream.apply(event, &EventState::default())).collect()
}

/// State of a tool part.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Input {
    Streaming,
    Available,
    Closed,
}

/// A client that accepts only what the SDK documents.
#[derive(Default)]
struct Client {
    seen: usize,
    is_over: bool,
    steps: usize,
    in_step: bool,
    /// Ids of texts; true if the text is open.
    texts: BTreeMap<String, bool>,
    /// State of each tool part, and the number of the step that it belongs to.
    tools: BTreeMap<String, (Input, usize)>,
}

impl Client {
    fn take(&mut self, chunk: &Chunk) -> Result<(), String> {
        self.check(chunk).map_err(|why| format!("chunk {} {chunk:?}: {why}", self.seen))?;
        self.seen += 1;
        Ok(())
    }

    fn check(&mut self, chunk: &Chunk) -> Result<(), &'static str> {
        let is_start = matches!(chunk, Chunk::Start { .. });
        if is_start != (self.seen == 0) {
            return Err("the message must start once, with the first chunk");
        }
        if self.is_over {
            return Err("the message has ended");
        }
        match chunk {
            Chunk::Start { .. } | Chunk::Data(_) => Ok(()),
            Chunk::StartStep => {
                self.steps += 1;
                ensure(!std::mem::replace(&mut self.in_step, true), "a step is open")
            }
            Chunk::FinishStep => {
                ensure(std::mem::take(&mut self.in_step), "no step is open")?;
                self.nothing_open()
            }
            Chunk::TextStart { id } | Chunk::ReasoningStart { id } => {
                ensure(self.texts.insert(id.clone(), true).is_none(), "the id exists")
            }
            Chunk::TextDelta { id, delta } | Chunk::ReasoningDelta { id, delta } => {
                ensure(!delta.is_empty(), "the delta is empty")?;
                ensure(self.texts.get(id) == Some(&true), "the text is not open")
            }
            Chunk::TextEnd { id } | Chunk::ReasoningEnd { id } => {
                ensure(self.texts.insert(id.clone(), false) == Some(true), "the text is not open")
            }
            Chunk::ToolInputStart { tool_call_id, .. } => {
                let part = (Input::Streaming, self.steps);
                ensure(self.tools.insert(tool_call_id.clone(), part).is_none(), "the id exists")
            }
            Chunk::ToolInputDelta { tool_call_id, .. } => self.input(tool_call_id, None),
            Chunk::ToolInputAvailable { tool_call_id, .. } => {
                self.input(tool_call_id, Some(Input::Available))
            }
            Chunk::ToolInputError { tool_call_id, .. } => {
                self.input(tool_call_id, Some(Input::Closed))
            }
            Chunk::ToolOutputAvailable { tool_call_id, .. }
            | Chunk::ToolOutputError { tool_call_id, .. } => {
                let part = self.tools.get_mut(tool_call_id).ok_or("no such call")?;
                ensure(part.0 == Input::Available, "the call is not complete, or has a result")?;
                part.0 = Input::Closed;
                Ok(())
            }
            Chunk::Finish { .. } | Chunk::Abort | Chunk::Error { .. } => {
                self.is_over = true;
                ensure(!self.in_step, "a step is open")?;
                self.nothing_open()
            }
        }
    }

    /// Checks a change of the arguments of a tool call. The SDK searches only the current step for
    /// a part, and would create a second part in another step.
    fn input(&mut self, id: &str, next: Option<Input>) -> Result<(), &'static str> {
        let part = self.tools.get_mut(id).ok_or("no such call")?;
        ensure(part.0 == Input::Streaming, "the arguments are complete")?;
        ensure(part.1 == self.steps, "the call belongs to another step")?;
        part.0 = next.unwrap_or(part.0);
        Ok(())
    }

    fn nothing_open(&self) -> Result<(), &'static str> {
        ensure(!self.texts.values().any(|goes_on| *goes_on), "a text is open")?;
        let streaming = self.tools.values().any(|part| part.0 == Input::Streaming);
        ensure(!streaming, "a call is incomplete")
    }
}

fn ensure(holds: bool, why: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(why) }
}

proptest! {
    #[test]
    fn any_event_log_yields_a_valid_ai_sdk_message(log in log()) {
        let mut client = Client::default();
        for chunk in chunks(&log) {
            prop_assert_eq!(client.take(&chunk), Ok(()));
        }
        prop_assert_eq!(client.is_over, true);
    }
}

fn lines(events: &[Event]) -> String {
    let line = |chunk: Chunk| serde_json::to_string(&chunk).unwrap() + "\n";
    chunks(events).into_iter().map(line).collect()
}

#[test]
fn a_run_with_tool_calls_becomes_one_message() {
    insta::assert_snapshot!(lines(&two_turns()));
}

#[test]
fn a_crash_during_the_run_leaves_the_message_well_formed() {
    insta::assert_snapshot!(lines(&cut_and_recovered()));
}

#[test]
fn part_names_are_sanitized_and_avoid_reserved_names() {
    for (name, part) in [
        ("step", "data-step"),
        ("a b/c", "data-a-b-c"),
        ("", "data-event"),
        ("progress", "data-event-progress"),
    ] {
        assert_eq!(part_name(name), part);
    }
    let Chunk::Data(part) = custom_part("step", json!({ "id": "s1" })) else { panic!() };
    assert_eq!(part.id.as_deref(), Some("s1"), "a later part replaces it");
}

#[test]
fn run_that_never_started_ends_with_its_failure() {
    let failure = Failure::new("conflict", "too late");
    assert_eq!(unstarted(Some(failure)), Chunk::Error { error_text: "too late".to_owned() });
    assert_eq!(unstarted(None), Chunk::Abort);
}

#[test]
fn interrupt_becomes_a_data_part() {
    let task = "t".parse().unwrap();
    let mut question = interrupt_raised(&task, "agent", 0);
    question.payload = json!("sure?");
    question.expires_ms = Some(0);
    let event = crate::sample::event(EventKind::InterruptRaised(question));
    let chunk = serde_json::to_value(&chunks(&[event])[1]).unwrap();
    assert_eq!(chunk["type"], "data-interrupt");
    assert_eq!(chunk["id"], chunk["data"]["id"]);
    assert_eq!(chunk["data"]["expiresAt"], "1970-01-01T00:00:00.000Z");
    assert_eq!(chunk["data"]["responseSchema"], Value::Null);
}
