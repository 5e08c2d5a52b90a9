//! Tests of the transcript events that follow from each event.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::event::{Event, EventKind, InterruptRaised, RunReason, RunStatus, SubgraphEnd};
use wattle_graph::id::{Namespace, NodeName, TaskId};
use wattle_graph::llm::Delta;

use super::{CompletionEnd, ContentKind, ToolCallResult, Transcript, TranscriptEvent};
use crate::sample::{
    call_piece, call_started, completed, event, interrupt_raised, not_completed, run_ended,
    run_started, streamed, task_failed, task_finished, task_started, text, tool_call, tool_called,
};

fn say(events: &[Event]) -> Vec<TranscriptEvent> {
    let mut transcript = Transcript::default();
    events.iter().flat_map(|event| transcript.apply(event)).collect()
}

fn texts(said: &[TranscriptEvent]) -> String {
    let text = |said: &TranscriptEvent| match said {
        TranscriptEvent::TextDelta(ContentKind::Text, _, text) => Some(text.clone()),
        _ => None,
    };
    said.iter().filter_map(text).collect()
}

#[test]
fn transcript_omits_structured_output_and_unselected_nodes() {
    let log = [
        task_started(0),
        call_started(0, 0, true),
        streamed(0, 0, vec![text("{}")]),
        completed(0, 0, json!([{ "text": "{}" }])),
        task_started(1),
        call_started(1, 0, false),
        streamed(1, 0, vec![text("behind the scenes")]),
        task_started(2),
        call_started(2, 0, false),
        streamed(2, 0, vec![text("hello")]),
    ];
    let mut transcript = Transcript::new([NodeName::new("agent").unwrap()]);
    let said: Vec<TranscriptEvent> = log.iter().flat_map(|event| transcript.apply(event)).collect();
    assert_eq!(texts(&said), "hello");
    assert_eq!(said.iter().filter(|it| **it == TranscriptEvent::TurnStarted).count(), 1);
}

#[test]
fn restart_starts_a_new_text() {
    let said = say(&[
        task_started(0),
        call_started(0, 0, false),
        streamed(0, 0, vec![text("Hel"), Delta::Restart, text("Hello")]),
        completed(0, 0, json!([{ "text": "Hello" }])),
    ]);
    let ids: Vec<&str> = said
        .iter()
        .filter_map(|said| match said {
            TranscriptEvent::TextStart(_, id) => Some(id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["text-1", "text-2"]);
    assert_eq!(said.last(), Some(&TranscriptEvent::TurnFinished));
}

#[test]
fn repeated_tool_calls_keep_their_ids_after_a_restart() {
    let save = Delta::ToolCall {
        index: 1,
        id: Some("b".to_owned()),
        name: Some("save".to_owned()),
        arguments: String::new(),
    };
    let said = say(&[
        task_started(0),
        call_started(0, 0, false),
        streamed(0, 0, vec![call_piece(Some("a"), "{"), save, Delta::Restart]),
        streamed(0, 0, vec![call_piece(Some("c"), "{}")]),
        completed(0, 0, json!([tool_call("c", json!({}))])),
        tool_called(1, "c", Ok(json!({ "content": [{ "text": "x" }] }))),
    ]);
    let begun =
        said.iter().filter(|said| matches!(said, TranscriptEvent::ToolCallStart { .. })).count();
    assert_eq!(begun, 2, "the two calls before the restart");
    let made = |said: &TranscriptEvent| matches!(said, TranscriptEvent::ToolCallReady { id, .. } if id == "a");
    assert!(said.iter().any(made));
    let withdrawn = |said: &TranscriptEvent| matches!(said, TranscriptEvent::ToolCallInvalid { id, .. } if id == "b");
    assert!(said.iter().any(withdrawn));
    let answer = TranscriptEvent::ToolResult("a".to_owned(), ToolCallResult::Output("x".into()));
    assert_eq!(said[said.len() - 2..], [answer, TranscriptEvent::TurnFinished]);
}

#[test]
fn tool_call_with_invalid_arguments_gets_no_result() {
    let refused =
        json!({ "role": "tool", "tool_call_id": "a", "status": "error", "content": "no" });
    let said = say(&[
        task_started(0),
        call_started(0, 0, false),
        completed(0, 0, json!([tool_call("a", json!("{\"q\""))])),
        task_finished(1, refused),
    ]);
    let broken = said.iter().find_map(|said| match said {
        TranscriptEvent::ToolCallInvalid { arguments, .. } => Some(arguments.clone()),
        _ => None,
    });
    assert_eq!(broken, Some(json!("{\"q\"")));
    assert!(!said.iter().any(|said| matches!(said, TranscriptEvent::ToolResult(..))));
}

#[test]
fn failed_and_cancelled_runs_end_tool_calls_with_an_error() {
    let begin = [
        task_started(0),
        call_started(0, 0, false),
        completed(0, 0, json!([tool_call("a", json!({}))])),
        task_started(1),
    ];
    let end = |status| {
        let mut log = begin.to_vec();
        log.push(run_ended(status));
        say(&log)
    };
    let cut = |said: &TranscriptEvent| {
        matches!(said, TranscriptEvent::ToolResult(_, ToolCallResult::Error(_)))
    };
    for status in [RunStatus::Failed, RunStatus::Cancelled] {
        assert!(end(status).iter().any(cut), "{status:?}");
    }
    let waiting = end(RunStatus::Interrupted);
    assert!(!waiting.iter().any(cut), "an interrupted run keeps the call open");
    let reason = |said: &[TranscriptEvent]| match said.last() {
        Some(TranscriptEvent::RunEnded { reason, .. }) => Some(*reason),
        _ => None,
    };
    assert_eq!(reason(&waiting), Some(CompletionEnd::ToolCalls));
    assert_eq!(reason(&say(&[run_ended(RunStatus::Completed)])), Some(CompletionEnd::Stop));
}

#[test]
fn failed_model_call_ends_its_turn() {
    let said = say(&[
        task_started(0),
        call_started(0, 0, false),
        streamed(0, 0, vec![text("Hel"), call_piece(Some("a"), "{")]),
        not_completed(0, 0),
        task_failed(0),
    ]);
    let end = &said[said.len() - 3..];
    assert!(matches!(&end[0], TranscriptEvent::ToolCallInvalid { id, .. } if id == "a"));
    assert_eq!(end[1], TranscriptEvent::TurnFinished);
    assert!(matches!(end[2], TranscriptEvent::TaskFinished(_)));
}

#[test]
fn resumed_run_has_the_results_of_tool_calls_of_the_earlier_run() {
    let answer = json!({
        "role": "tool", "tool_call_id": "a", "name": "find", "content": "x", "status": "success",
    });
    let log = |reason| {
        [
            run_started(reason),
            task_started(1),
            tool_called(1, "a", Ok(json!({ "content": [{ "text": "x" }] }))),
            task_finished(1, answer.clone()),
        ]
    };
    let id = || "a".to_owned();
    let call = [
        TranscriptEvent::ToolCallStart { id: id(), name: "find".to_owned(), is_inherited: true },
        TranscriptEvent::ToolCallReady {
            id: id(),
            name: "find".to_owned(),
            arguments: json!({ "q": 1 }),
        },
        TranscriptEvent::ToolResult(id(), ToolCallResult::Output("x".into())),
    ];
    let said = say(&log(RunReason::Resume));
    assert_eq!(said[2..5], call);
    let history = say(&log(RunReason::Input));
    assert!(!history.iter().any(|said| matches!(said, TranscriptEvent::ToolCallStart { .. })));
}

#[test]
fn completion_without_deltas_is_emitted_whole() {
    let said = say(&[
        task_started(0),
        call_started(0, 0, false),
        completed(0, 0, json!([{ "reasoning": "hm" }, { "text": "Hello" }])),
    ]);
    assert_eq!(texts(&said), "Hello");
    let thought =
        TranscriptEvent::TextDelta(ContentKind::Reasoning, "text-1".to_owned(), "hm".to_owned());
    assert!(said.contains(&thought));
    assert_eq!(said.last(), Some(&TranscriptEvent::TurnFinished));
    assert_eq!(say(&[completed(0, 0, Value::Null)]).len(), 1, "a call without a start");
}

/// Moves an event into the subgraph that task 0 runs.
fn inside(mut event: Event) -> Event {
    let (node, task) = (NodeName::new("agent").unwrap(), TaskId::new("task-0").unwrap());
    event.namespace = Namespace::root().for_task(&node, &task);
    event
}

#[test]
fn messages_of_a_subgraph_are_not_repeated_by_its_parent_graph() {
    let answer = json!({ "role": "tool", "tool_call_id": "old", "name": "find", "content": "x" });
    let mut outer = task_finished(0, json!([answer, { "role": "assistant", "content": "Hello" }]));
    let namespace = inside(outer.clone()).namespace;
    if let EventKind::TaskFinished(finished) = &mut outer.kind {
        let child = SubgraphEnd { namespace, checkpoint: None, persists: false };
        Arc::make_mut(finished).child = Some(child);
    }
    let log = [
        run_started(RunReason::Resume),
        task_started(0),
        inside(task_started(1)),
        inside(call_started(1, 0, false)),
        inside(streamed(1, 0, vec![text("Hello")])),
        inside(completed(1, 0, json!([{ "text": "Hello" }]))),
        inside(task_finished(1, json!({ "role": "assistant", "content": "Hello" }))),
        inside(run_ended(RunStatus::Completed)),
        outer,
        run_ended(RunStatus::Completed),
    ];
    let said = say(&log);
    assert_eq!(texts(&said), "Hello");
    assert!(
        !said.iter().any(|said| matches!(said, TranscriptEvent::ToolCallStart { .. })),
        "history is not repeated"
    );
    let ends = said.iter().filter(|said| matches!(said, TranscriptEvent::RunEnded { .. })).count();
    assert_eq!((ends, matches!(said.last(), Some(TranscriptEvent::RunEnded { .. }))), (1, true));
    // `nodes` selects a node by its name, or by the name of the node that runs its graph.
    for (named, wanted) in [("tools", "Hello"), ("agent", "Hello"), ("other", "")] {
        let mut transcript = Transcript::new([NodeName::new(named).unwrap()]);
        let said: Vec<TranscriptEvent> =
            log.iter().flat_map(|event| transcript.apply(event)).collect();
        assert_eq!(texts(&said), wanted, "{named}");
    }
}

#[test]
fn failed_task_ends_the_tasks_of_its_subgraph() {
    let said = say(&[
        task_started(0),
        inside(task_started(1)),
        inside(call_started(1, 0, false)),
        inside(streamed(1, 0, vec![text("Hel")])),
        task_failed(0),
    ]);
    let end = &said[said.len() - 4..];
    assert!(matches!(end[0], TranscriptEvent::TextEnd(..)));
    let ended: Vec<&str> = end
        .iter()
        .filter_map(|said| match said {
            TranscriptEvent::TaskFinished(task) => Some(task.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ended, ["task-1", "task-0"]);
}

#[test]
fn transcript_omits_the_answered_interrupt_of_a_fork() {
    let task = TaskId::new("task-0").unwrap();
    let told = |answered| {
        let question = InterruptRaised { answered, ..interrupt_raised(&task, "agent", 0) };
        let said =
            say(&[run_started(RunReason::Fork), event(EventKind::InterruptRaised(question))]);
        said.iter().any(|said| matches!(said, TranscriptEvent::Interrupted(_)))
    };
    assert!(told(false));
    assert!(!told(true));
}
