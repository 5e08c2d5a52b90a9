//! Tool calls, and the steps that they become.

use wattle_plugin::prelude::{Value, json};
use wattle_plugin::testing::FakeHost;

use super::{Step, StepStatus, check_name, steps};
use crate::session::testing::{Log, bad, good};

fn of(log: &Log) -> Vec<Step> {
    steps(&log.run().events)
}

fn asked(log: &mut Log, tool: &str) {
    log.answers("", &[("c1", tool, json!({"count": 2}))]);
    log.calls(tool, 0);
}

#[test]
fn s3_50_a_step_runs_from_its_call_to_its_result() {
    let mut log = Log::of_run("r");
    asked(&mut log, "crawl_youtube_videos");
    let running = of(&log).remove(0);
    assert_eq!((running.status, running.ended_seq), (StepStatus::Running, None));
    assert_eq!((running.id.as_str(), running.call_id.as_deref()), ("tools-r-1:0", Some("c1")));
    assert_eq!(running.input, Some(json!({"count": 2})));

    let updates = json!([{"channel": "videos", "value": []}]);
    log.returns("crawl_youtube_videos", 0, good(json!({"html": "<p>", "n": 1}), updates));
    let done = of(&log).remove(0);
    assert_eq!((done.status, done.duration_ms), (StepStatus::Success, Some(1_500)));
    assert_eq!(done.output, Some(json!({"html": "<p>", "n": 1})));
    assert_eq!(done.writes[0].channel, "videos");
    assert!(done.touched() > running.touched());
}

#[test]
fn s3_50_an_error_of_a_tool_is_a_failed_step() {
    for (answer, why) in [
        (bad("no video found"), "no video found"),
        (json!({"Err": {"code": "timeout", "message": "too slow"}}), "too slow"),
    ] {
        let mut log = Log::of_run("r");
        asked(&mut log, "crawl_youtube_videos");
        log.returns("crawl_youtube_videos", 0, answer);
        let step = of(&log).remove(0);
        assert_eq!((step.status, step.error.as_deref()), (StepStatus::Error, Some(why)));
        assert!(step.writes.is_empty());
    }
}

#[test]
fn s3_50_a_call_that_fails_without_its_tool_is_a_failed_step() {
    let mut log = Log::of_run("r");
    let (cut, whole) = (json!("{\"count\": "), json!({"count": 2}));
    log.answers(
        "",
        &[("a", "search_image", cut), ("b", "search_image", whole), ("c", "fly", json!({}))],
    );
    log.calls("search_image", 0);
    log.returns("search_image", 0, good(json!({}), json!([])));
    log.writes(json!([
        {"role": "tool", "tool_call_id": "a", "content": "the arguments break off"},
        {"role": "tool", "tool_call_id": "b", "content": "short"},
        {"role": "tool", "tool_call_id": "c", "content": "there is no tool `fly`"},
    ]));
    let steps = of(&log);
    let told: Vec<_> = steps.iter().map(|step| (step.call_id.as_deref(), step.status)).collect();
    let expected = [(Some("b"), StepStatus::Success), (Some("a"), StepStatus::Error)];
    assert_eq!(told, expected);
    assert_eq!(
        (&*steps[1].id, steps[1].error.as_deref()),
        ("r:a", Some("the arguments break off"))
    );
}

#[test]
fn s3_50_an_unfinished_step_ends_with_its_run() {
    for (status, expected) in [("cancelled", StepStatus::Cancelled), ("failed", StepStatus::Error)]
    {
        let mut log = Log::of_run("r");
        asked(&mut log, "search_image");
        log.ends(status);
        let step = of(&log).remove(0);
        assert_eq!(step.status, expected);
        assert_eq!(step.duration_ms, Some(2_000));
        assert!(step.error.is_some());
    }
}

#[test]
fn calls_of_one_turn_have_their_own_inputs() {
    let mut log = Log::of_run("r");
    let calls = [
        ("a", "search_image", json!({"count": 1})),
        ("b", "fly", json!({})),
        ("c", "search_image", json!({"count": 3})),
    ];
    log.answers("", &calls);
    for call in 0..2 {
        log.calls("search_image", call);
        log.returns("search_image", call, bad("no"));
    }
    let inputs: Vec<(Option<String>, Option<Value>)> =
        of(&log).into_iter().map(|step| (step.call_id, step.input)).collect();
    let expected = [
        (Some("a".to_owned()), Some(json!({"count": 1}))),
        (Some("c".to_owned()), Some(json!({"count": 3}))),
    ];
    assert_eq!(inputs, expected);
}

#[test]
fn call_that_starts_again_after_a_restart_is_one_step() {
    let mut log = Log::of_run("r");
    asked(&mut log, "search_image");
    log.add(json!({"type": "run_started", "graph": "travel", "reason": "recovery"}));
    log.calls("search_image", 0);
    log.returns("search_image", 0, good(json!({}), json!([])));
    assert_eq!(of(&log).len(), 1);
}

#[test]
fn s3_70_an_unknown_tool_is_no_step_and_is_logged() {
    let why = check_name("fly").unwrap_err();
    assert!(
        why.starts_with("Expected SessionToolName") && why.contains("0001_tables.sql"),
        "{why}"
    );
    let mut log = Log::of_run("r");
    asked(&mut log, "fly");
    let host = FakeHost::new();
    assert!(host.run(|| of(&log)).is_empty());
    assert!(host.logged()[0].message.contains("Expected SessionToolName"));
}
