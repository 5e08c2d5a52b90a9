//! Logs, and the steps that they become.

use serde_json::{Value, json};

use super::{Step, StepStatus};
use crate::chat::testing::{
    AGENT, bad, called, ended, good, recovery, requested, results, returned, run,
};

fn steps(events: &[Value]) -> Vec<Step> {
    AGENT.steps(&run(events))
}

/// Checks the steps of a run: ids, status, input, output or error, and duration of each.
fn check(events: &[Value], expected: Value) {
    let step = |step: Step| {
        let output = step.output.or(step.error.map(Value::from));
        json!([step.id, step.call_id, step.status, step.input, output, step.duration_ms])
    };
    let found: Vec<Value> = steps(events).into_iter().map(step).collect();
    assert_eq!(json!(found), expected);
}

fn asked() -> Value {
    requested(0, &[("c", "search", json!({"n": 2}))])
}

#[test]
fn steps_run_from_their_calls_to_their_results() {
    let plain = json!({"Ok": {"content": [{"text": "a"}, {"text": "b"}]}});
    let down = json!({"Err": {"code": "timeout", "message": "too slow"}});
    let input = json!({"n": 2});
    for (end, status, output, ms) in [
        (None, "RUNNING", json!(null), json!(null)),
        (
            Some(returned(0, &[], "search", 0, good(&json!([7])))),
            "SUCCESS",
            json!([7]),
            json!(1500),
        ),
        (Some(returned(0, &[], "search", 0, plain)), "SUCCESS", json!("ab"), json!(1500)),
        (Some(returned(0, &[], "search", 0, bad("none"))), "ERROR", json!("none"), json!(1500)),
        (Some(returned(0, &[], "search", 0, down)), "ERROR", json!("too slow"), json!(1500)),
        (Some(ended("cancelled")), "CANCELLED", json!("the step was cancelled"), json!(1000)),
        (
            Some(ended("failed")),
            "ERROR",
            json!("the run ended before the step was finished"),
            json!(1000),
        ),
    ] {
        let mut events = vec![asked(), called(0, &[], "search", 0)];
        events.extend(end);
        check(&events, json!([["t0:0", "c", status, input, output, ms]]));
    }
}

#[test]
fn steps_have_the_events_that_changed_them() {
    let mut events = vec![asked(), called(0, &[], "search", 0)];
    let running = steps(&events).remove(0);
    assert_eq!((running.tool.as_str(), running.seq, running.started_ms), ("search", 2, 2_000));
    assert_eq!((running.last_seq(), running.ended_seq, running.ended_ms), (2, None, None));
    events.push(returned(0, &[], "search", 0, good(&json!({}))));
    let done = steps(&events).remove(0);
    assert_eq!((done.last_seq(), done.ended_seq, done.ended_ms), (3, Some(3), Some(3_000)));
    assert_eq!(done.writes[0].channel, "notes");
    assert!(!done.is_refused);
}

#[test]
fn calls_that_no_tool_executes_are_refused_steps() {
    let calls = [
        ("a", "search", json!("{\"n\": ")),
        ("b", "search", json!({"n": 2})),
        ("c", "fly", json!({})),
    ];
    let events = [
        requested(0, &calls),
        called(0, &[], "search", 0),
        returned(0, &[], "search", 0, good(&json!(1))),
        results(0, &[("a", "the arguments break off"), ("b", "short"), ("c", "no tool `fly`")]),
    ];
    check(
        &events,
        json!([
            ["t0:0", "b", "SUCCESS", {"n": 2}, 1, 1500],
            ["r:a", "a", "ERROR", "{\"n\": ", "the arguments break off", 0],
            ["r:c", "c", "ERROR", {}, "no tool `fly`", 0],
        ]),
    );
    let refused: Vec<bool> = steps(&events).iter().map(|step| step.is_refused).collect();
    assert_eq!(refused, [false, true, true]);
}

#[test]
fn calls_by_reference_are_those_of_their_tools() {
    let mut other = called(0, &[], "search", 1);
    other["summary"] = json!("maps/search");
    let events = [
        requested(
            0,
            &[
                ("a", "maps/search", json!(1)),
                ("b", "notes/search", json!(2)),
                ("c", "notes/fly", json!(3)),
            ],
        ),
        called(0, &[], "search", 0),
        other,
        returned(0, &[], "search", 0, good(&json!(7))),
        results(0, &[("a", "short"), ("b", "short"), ("c", "no tool `notes/fly`")]),
    ];
    check(
        &events,
        json!([
            ["t0:0", "b", "SUCCESS", 2, 7, 1500],
            ["t0:1", "a", "RUNNING", 1, null, null],
            ["r:c", "c", "ERROR", 3, "no tool `notes/fly`", 0],
        ]),
    );
    let tools = steps(&events).into_iter().map(|step| step.tool);
    assert!(tools.eq(["search", "search", "fly"]));
}

#[test]
fn calls_of_one_turn_have_their_own_inputs() {
    let calls = [("a", "search", json!(1)), ("b", "fly", json!(2)), ("c", "search", json!(3))];
    let events = [
        requested(0, &calls),
        called(0, &[], "search", 0),
        called(0, &[], "search", 1),
        requested(1, &[]),
        called(1, &[], "search", 0),
    ];
    check(
        &events,
        json!([
            ["t0:0", "a", "RUNNING", 1, null, null],
            ["t0:1", "c", "RUNNING", 3, null, null],
            ["t1:0", null, "RUNNING", null, null, null],
        ]),
    );
}

#[test]
fn call_that_starts_again_after_a_restart_is_one_step() {
    let call = called(0, &[], "search", 0);
    let end = returned(0, &[], "search", 0, good(&json!(1)));
    let events = [asked(), call.clone(), recovery(), call, end];
    check(&events, json!([["t0:0", "c", "SUCCESS", {"n": 2}, 1, 1500]]));
}

#[test]
fn call_that_succeeds_after_a_failed_attempt_has_no_error() {
    let call = called(0, &[], "search", 0);
    let end = |result| returned(0, &[], "search", 0, result);
    let down = json!({"Err": {"code": "timeout", "message": "too slow"}});
    let events = [asked(), call.clone(), end(down), call, end(good(&json!(1)))];
    let step = steps(&events).remove(0);
    let found = (step.status, step.output, step.error);
    assert_eq!(found, (StepStatus::Success, Some(json!(1)), None));
}

#[test]
fn calls_of_tools_are_no_steps() {
    let inner = [called(0, &[0], "load", 0), returned(0, &[0], "load", 0, good(&json!(1)))];
    check(&inner, json!([]));
    assert!(run(&inner).iter().all(|event| !AGENT.is_progress(event)));
}

#[test]
fn progress_begins_or_ends_a_run_or_a_step() {
    let events = [
        (recovery(), true),
        (asked(), false),
        (called(0, &[], "search", 0), true),
        (returned(0, &[], "search", 0, bad("none")), true),
        (results(0, &[("c", "none")]), false),
        (ended("completed"), true),
    ];
    for (event, is_progress) in events {
        let read = run(std::slice::from_ref(&event)).remove(0);
        assert_eq!(AGENT.is_progress(&read), is_progress, "{event}");
    }
}
