//! Tests of the projection with arbitrary logs: all tasks and completions that start also end, and
//! the deltas add up to the completion.

use std::collections::BTreeMap;

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use serde_json::json;
use wattle_graph::event::{Event, EventKind, RunStatus};
use wattle_graph::id::TaskId;
use wattle_graph::llm::Delta;

use super::{ChangeKind, CompletionDelta, CompletionStep, TaskStream};
use crate::sample::{
    call_piece, call_started, completed, log, not_completed, run_ended, streamed, task_failed,
    task_started, text, tool_call,
};

/// Returns the changes of completions, one line each.
fn heard(events: &[Event]) -> Vec<String> {
    let mut stream = TaskStream::default();
    let changes = events.iter().flat_map(|event| stream.apply(event));
    let answers = changes.filter_map(|change| match change.kind {
        ChangeKind::Completion { id, step, .. } => Some((id, step)),
        ChangeKind::TaskStarted { .. } | ChangeKind::TaskEnded => None,
    });
    let line = |(id, step): (String, CompletionStep)| {
        let id = id.replace("run--task-0-", "");
        match step {
            CompletionStep::Started => format!("{id} began"),
            CompletionStep::Delta(CompletionDelta::Text(text)) => format!("{id} text {text}"),
            CompletionStep::Delta(CompletionDelta::Reasoning(text)) => {
                format!("{id} reasoning {text}")
            }
            CompletionStep::Delta(CompletionDelta::ToolCall { index, .. }) => {
                format!("{id} call {index}")
            }
            CompletionStep::Restarted(told) => format!("{id} void, told: {}", told.is_some()),
            CompletionStep::Done { completion, told, .. } => {
                format!("{id} done, {} left to tell", told.rest(&completion).count())
            }
            CompletionStep::Failed(told) => format!("{id} failed, told: {}", told.is_some()),
        }
    };
    answers.map(line).collect()
}

#[test]
fn completion_arrives_as_deltas_and_then_whole() {
    let log = [
        task_started(0),
        call_started(0, 0, false),
        streamed(0, 0, vec![text("Hel"), text("lo"), call_piece(Some("a"), "{}")]),
        completed(
            0,
            0,
            json!([{ "text": "Hello" }, tool_call("a", json!({})), tool_call("b", json!({}))]),
        ),
    ];
    assert_eq!(heard(&log), ["0 began", "0 text Hello", "0 call 0", "0 done, 1 left to tell"]);
}

#[test]
fn restarted_completion_has_another_id() {
    let restarted = [
        task_started(0),
        call_started(0, 0, false),
        streamed(0, 0, vec![text("Wro"), Delta::Restart, Delta::Restart, text("Right")]),
        completed(0, 0, json!([{ "text": "Right" }])),
    ];
    let expected = [
        "0 began",
        "0 text Wro",
        "0 void, told: true",
        "0-0.1 void, told: false",
        "0-0.2 text Right",
        "0-0.2 done, 0 left to tell",
    ];
    assert_eq!(heard(&restarted), expected);
    let crashed = [
        task_started(0),
        call_started(0, 0, false),
        streamed(0, 0, vec![text("He")]),
        task_started(0),
        call_started(0, 0, false),
        completed(0, 0, json!([{ "text": "Hello" }])),
    ];
    let expected = ["0 began", "0 text He", "0 void, told: true", "0-1.0 done, 1 left to tell"];
    assert_eq!(heard(&crashed), expected);
}

#[test]
fn completion_without_a_result_fails() {
    let begun = [task_started(0), call_started(0, 0, false), streamed(0, 0, vec![text("He")])];
    let ends = [
        not_completed(0, 0),
        task_failed(0),
        run_ended(RunStatus::Failed),
        run_ended(RunStatus::Cancelled),
        // The completion is invalid, so the projection reports a failure. Clients see the message
        // that the node writes.
        completed(0, 0, json!("no list of parts")),
    ];
    for end in ends {
        let log = begun.iter().cloned().chain([end]).collect::<Vec<_>>();
        assert_eq!(heard(&log).last().unwrap(), "0 failed, told: true");
    }
    let waits = begun.iter().cloned().chain([run_ended(RunStatus::Interrupted)]);
    assert_eq!(heard(&waits.collect::<Vec<_>>()).len(), 2, "the next run continues the completion");
}

#[test]
fn structured_output_is_not_part_of_the_stream() {
    let log = [
        task_started(0),
        call_started(0, 0, true),
        streamed(0, 0, vec![text("{}")]),
        completed(0, 0, json!([{ "text": "{}" }])),
    ];
    assert_eq!(heard(&log), [""; 0]);
}

proptest! {
    #[test]
    fn all_tasks_and_completions_that_start_end(log in log()) {
        let mut stream = TaskStream::default();
        let mut tasks: BTreeMap<TaskId, bool> = BTreeMap::new();
        let mut open: BTreeMap<(TaskId, u32), (String, String)> = BTreeMap::new();
        for event in &log {
            for change in stream.apply(event) {
                let task = change.task.task;
                match change.kind {
                    ChangeKind::TaskStarted { again } => {
                        prop_assert_eq!(tasks.insert(task, true).is_some(), again);
                    }
                    ChangeKind::TaskEnded => {
                        prop_assert!(tasks.remove(&task).is_some());
                        prop_assert!(!open.keys().any(|(of, _)| *of == task));
                    }
                    ChangeKind::Completion { call, id, step } => {
                        let key = (task, call);
                        match step {
                            CompletionStep::Started => {
                                open.insert(key, (id, String::new()));
                            }
                            // The start of a call by an unknown task makes no change, so the first
                            // delta counts as the start.
                            CompletionStep::Delta(piece) => {
                                let told = open.entry(key).or_insert((id.clone(), String::new()));
                                if told.0 != id {
                                    *told = (id, String::new());
                                }
                                if let CompletionDelta::Text(text) = piece {
                                    told.1.push_str(&text);
                                }
                            }
                            CompletionStep::Done { completion, told, .. } => {
                                let before = open.remove(&key).filter(|(of, _)| *of == id);
                                let mut text = before.unwrap_or_default().1;
                                for piece in told.rest(&completion) {
                                    if let CompletionDelta::Text(rest) = piece {
                                        text.push_str(&rest);
                                    }
                                }
                                prop_assert!(told.text || text == completion.text());
                            }
                            CompletionStep::Restarted(_) | CompletionStep::Failed(_) => drop(open.remove(&key)),
                        }
                    }
                }
            }
        }
        let waits = matches!(&log.last().unwrap().kind,
            EventKind::RunEnded(end) if end.status == RunStatus::Interrupted);
        let known = open.keys().filter(|(task, _)| tasks.contains_key(task)).count();
        prop_assert!(waits || known == 0);
    }
}
