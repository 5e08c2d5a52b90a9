//! Tests of message ids: the deltas of a completion and the message that the node writes have the
//! same id.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::checkpoint::{Checkpoint, CheckpointSource};
use wattle_graph::event::{Event, EventKind, RunReason, RunStatus};
use wattle_graph::llm::Delta;

use super::{MessageChangeKind, MessageProjection};
use crate::agent_server::sample::{self, Sample, thread_info};

/// Returns a run whose node has started.
fn begun() -> Sample {
    let mut log = Sample::new();
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 0, json!({ "messages": [] }), &["agent"]);
    log.begin("agent");
    log
}

fn text(text: &str) -> Delta {
    Delta::Text { text: text.to_owned() }
}

fn answer(text: &str) -> Value {
    sample::answer(&json!([{ "text": text }]))
}

/// Returns the changes of messages in order: the last part of the message id, and the kind of
/// change.
fn told(log: &Sample) -> Vec<(String, &'static str)> {
    let mut talk = MessageProjection::default();
    let start = format!("run--{}-", log.task());
    let spoken = log.events.iter().flat_map(|event| talk.apply(event, None, &thread_info()));
    let told = spoken.map(|spoken| {
        let what = match spoken.kind {
            MessageChangeKind::Delta(_) => "piece",
            MessageChangeKind::Done(_) => "done",
            MessageChangeKind::Discarded => "void",
            MessageChangeKind::Whole(_) => "whole",
        };
        (spoken.id.replace(&start, ""), what)
    });
    told.collect()
}

#[track_caller]
fn check(log: &Sample, expected: &[(&str, &str)]) {
    let expected: Vec<_> = expected.iter().map(|(id, what)| ((*id).to_owned(), *what)).collect();
    assert_eq!(told(log), expected);
}

fn said(log: &Sample, id: &str, text: &str) -> Value {
    let id = format!("run--{}-{id}", log.task());
    json!({ "messages": [{ "id": id, "role": "assistant", "content": text }] })
}

#[test]
fn message_with_the_id_of_a_completion_is_not_repeated() {
    let mut log = begun();
    log.call(0, "llm.complete");
    log.stream(0, vec![text("Hel"), text("lo")]);
    log.called(0, "llm.complete", Value::Null, Ok(answer("Hello")));
    log.finish(said(&log, "0", "Hello, in other words"));
    check(&log, &[("0", "piece"), ("0", "done")]);
}

#[test]
fn restarted_completion_has_another_id() {
    let mut log = begun();
    log.call(3, "llm.stream");
    log.stream(3, vec![text("Wro"), Delta::Restart, Delta::Restart, text("Right")]);
    log.called(3, "llm.stream", Value::Null, Ok(answer("Right")));
    log.finish(said(&log, "3-0.2", "Right"));
    let expected = [("3", "piece"), ("3", "void"), ("3-0.2", "piece"), ("3-0.2", "done")];
    check(&log, &expected);
}

#[test]
fn repeated_model_call_becomes_another_message() {
    let mut log = begun();
    log.call(0, "llm.complete");
    log.stream(0, vec![text("He")]);
    log.fail(Some(10));
    log.call_again(0, "llm.complete", 1);
    log.stream(0, vec![text("Hello")]);
    // The host crashed.
    log.call_again(0, "llm.complete", 2);
    log.called(0, "llm.complete", Value::Null, Ok(answer("Hello")));
    log.finish(said(&log, "0-2.0", "Hello"));
    let expected = [
        ("0", "piece"),
        ("0", "void"),
        ("0-1.0", "piece"),
        ("0-1.0", "void"),
        ("0-2.0", "piece"),
        ("0-2.0", "done"),
    ];
    check(&log, &expected);
}

#[test]
fn repeated_call_starts_without_a_number_get_distinct_message_ids() {
    let mut log = begun();
    log.call(0, "llm.complete");
    log.stream(0, vec![text("He")]);
    log.call(0, "llm.complete");
    log.called(0, "llm.complete", Value::Null, Ok(answer("Hello")));
    let said = json!({ "messages": [{ "role": "assistant", "content": "Hello" }] });
    log.finish(said);
    check(&log, &[("0", "piece"), ("0", "void"), ("0-1.0", "piece"), ("0-1.0", "done")]);
}

#[test]
fn open_completion_is_discarded_at_the_end_of_a_run_that_is_not_interrupted() {
    for (status, is_over) in
        [(RunStatus::Cancelled, true), (RunStatus::Failed, true), (RunStatus::Interrupted, false)]
    {
        let mut log = begun();
        log.call(0, "llm.stream");
        log.stream(0, vec![text("He")]);
        log.end(status);
        let expected = [("0", "piece"), ("0", "void")];
        check(&log, if is_over { &expected } else { &expected[..1] });
    }
}

#[test]
fn resume_after_a_cancel_does_not_repeat_messages() {
    let mut log = begun();
    log.call(0, "llm.complete");
    log.called(0, "llm.complete", Value::Null, Ok(answer("Hello")));
    log.end(RunStatus::Cancelled);
    log.start(RunReason::Resume);
    log.begin("agent");
    // The completion is in the journal.
    log.finish(said(&log, "0", "Hello"));
    check(&log, &[("0", "piece"), ("0", "done")]);
}

#[test]
fn projection_keeps_no_state_of_ended_tasks() {
    let mut log = begun();
    log.call(0, "llm.stream");
    log.stream(0, vec![text("He")]);
    log.fail(Some(10));
    log.begin("agent");
    log.finish(json!({ "messages": [] }));
    log.begin("outer");
    log.enter("outer");
    log.checkpoint(CheckpointSource::Input, 0, json!({ "messages": [] }), &["inner"]);
    log.begin("inner");
    log.call(0, "llm.stream");
    log.called(0, "llm.stream", Value::Null, Ok(answer("Hello")));
    log.call(1, "llm.stream");
    log.leave();
    log.end(RunStatus::Cancelled);
    log.start(RunReason::Input);
    log.checkpoint(CheckpointSource::Input, 1, json!({ "messages": [] }), &[]);
    let mut talk = MessageProjection::default();
    for event in &log.events {
        talk.apply(event, None, &thread_info());
    }
    assert!(talk.task_stream.is_idle() && talk.sent.is_empty());
}

/// Returns a state whose messages have these ids.
fn state(ids: &[&str]) -> Value {
    let message = |id: &&str| json!({ "id": id, "role": "user", "content": "Hello" });
    json!({ "messages": ids.iter().map(message).collect::<Vec<_>>() })
}

/// Returns the checkpoint that an event made.
fn made<'l>(log: &'l Sample, event: &Event) -> Option<&'l Checkpoint> {
    let EventKind::Checkpointed(made) = &event.kind else { return None };
    log.checkpoints.get(&(event.namespace.clone(), made.checkpoint))
}

/// Returns how many messages of each checkpoint the projection reads, and the ids that it has
/// recorded in the end.
fn learned(log: &Sample) -> (Vec<usize>, Vec<String>) {
    let mut talk = MessageProjection::default();
    let mut looked = Vec::new();
    for event in &log.events {
        let checkpoint = made(log, event);
        if let (EventKind::Checkpointed(made), Some(checkpoint)) = (&event.kind, checkpoint) {
            talk.keep_learned(&event.namespace, made.source);
            looked.push(talk.unlearned(&thread_info(), checkpoint).concat().len());
        }
        talk.apply(event, checkpoint, &thread_info());
    }
    (looked, talk.known_ids.into_iter().collect())
}

#[test]
fn ids_of_unchanged_messages_are_read_once() {
    let mut log = begun();
    for ids in [&["a", "b"][..], &["a", "b", "c"], &["a", "b", "c"], &["a", "b", "c", "d", "e"]] {
        log.finish(json!({}));
        log.checkpoint(CheckpointSource::Loop, 1, state(ids), &["agent"]);
        log.begin("agent");
    }
    let (looked, known) = learned(&log);
    assert_eq!(looked, [0, 2, 1, 0, 2]);
    assert_eq!(known, ["a", "b", "c", "d", "e"]);
}

#[test]
fn ids_of_replaced_messages_are_read_again() {
    let nothing = || state(&[]);
    let removal = json!({ "messages": [{ "role": "remove", "id": "__remove_all__" }] });
    let replacements: [(CheckpointSource, bool, Value, &[&str]); 6] = [
        (CheckpointSource::Loop, true, nothing(), &["x", "y", "c"]),
        (CheckpointSource::Loop, false, removal, &["x", "b", "c"]),
        (CheckpointSource::Loop, false, nothing(), &["x", "y"]),
        (CheckpointSource::Loop, false, nothing(), &["x", "y", "z", "c"]),
        (CheckpointSource::Input, false, nothing(), &["x", "y", "c"]),
        (CheckpointSource::Update, false, nothing(), &["x", "y", "c", "z"]),
    ];
    for (source, overwrites, writes, ids) in replacements {
        let mut log = begun();
        log.finish(json!({}));
        log.checkpoint(CheckpointSource::Loop, 1, state(&["a", "b", "c"]), &["agent"]);
        log.begin("agent");
        log.finish(writes);
        if let EventKind::TaskFinished(finished) = &mut log.events.last_mut().unwrap().kind {
            Arc::make_mut(finished).writes[0].overwrite = overwrites;
        }
        log.checkpoint(source, 2, state(ids), &[]);
        let (looked, known) = learned(&log);
        assert_eq!(looked, [0, 3, ids.len()], "{source:?} {ids:?}");
        assert!(ids.iter().all(|id| known.iter().any(|known| known == id)), "{known:?}");
    }
}

#[test]
fn message_without_an_id_is_sent_although_the_last_message_stays() {
    let mut log = begun();
    log.finish(state(&["a", "b", "c"]));
    log.checkpoint(CheckpointSource::Loop, 1, state(&["a", "b", "c"]), &["agent"]);
    log.begin("agent");
    let kept = |id: &str| json!({ "id": id, "role": "user", "content": "Hello" });
    let mut summary = json!({ "role": "system", "content": "In short" });
    let removal = json!({ "role": "remove", "id": "__remove_all__" });
    log.finish(json!({ "messages": [removal, summary, kept("b"), kept("c")] }));
    summary["id"] = "x".into();
    let rebuilt = json!({ "messages": [summary, kept("b"), kept("c")] });
    log.checkpoint(CheckpointSource::Loop, 2, rebuilt, &[]);
    let mut talk = MessageProjection::default();
    let spoken =
        log.events.iter().flat_map(|event| talk.apply(event, made(&log, event), &thread_info()));
    let whole = spoken.filter(|spoken| matches!(spoken.kind, MessageChangeKind::Whole(_)));
    assert_eq!(whole.map(|spoken| spoken.id).collect::<Vec<_>>(), ["a", "b", "c", "x"]);
}
