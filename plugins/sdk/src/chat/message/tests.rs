//! Logs, and the messages that they become.

use serde_json::{Value, json};

use crate::chat::testing::{
    AGENT, bad, called, completed, completion, deltas, ended, good, recovery, requested, results,
    returned, run,
};

/// Checks the parts of the message of a run. Outputs are stored as their lengths.
fn check(events: &[Value], expected: Value) {
    let events = run(events);
    let length = |output: &Value| json!(output.to_string().len());
    let message = AGENT.message(&events, &AGENT.steps(&events), length);
    assert!(message.iter().all(|it| it.id == "msg_r" && it.role.name() == "assistant"));
    assert_eq!(json!(message.map(|message| message.parts)), expected);
}

fn begin() -> Value {
    json!({"type": "step-start"})
}

fn thought() -> Value {
    json!({"type": "reasoning", "text": "hm", "state": "done"})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text, "state": "done"})
}

fn failed(tool: &str, id: &str, input: Value, error: &str) -> Value {
    json!({"type": format!("tool-{tool}"), "toolCallId": id, "state": "output-error",
        "input": input, "errorText": error})
}

#[test]
fn run_is_one_message_with_its_steps() {
    let tool = json!({"type": "tool-search", "toolCallId": "c", "state": "output-available",
        "input": {"n": 2}, "output": 11});
    check(
        &[
            deltas(0, "Let me "),
            completed(0, completion("Let me see.")),
            requested(0, &[("c", "search", json!({"n": 2}))]),
            called(0, &[], "search", 0),
            returned(0, &[], "search", 0, good(&json!({"count": 1}))),
            results(0, &[("c", "short")]),
            deltas(1, "Done."),
            completed(1, completion("Done.")),
            requested(1, &[]),
            ended("completed"),
        ],
        json!([begin(), thought(), text("Let me see."), tool, begin(), thought(), text("Done.")]),
    );
}

#[test]
fn output_before_the_end_of_a_run_is_kept() {
    check(
        &[deltas(0, "In the mid"), ended("cancelled")],
        json!([begin(), thought(), text("In the mid")]),
    );
    let asked = [
        completed(0, completion("First.")),
        requested(0, &[("c", "search", json!({}))]),
        called(0, &[], "search", 0),
    ];
    for (status, error) in [
        ("cancelled", "the step was cancelled"),
        ("failed", "the run ended before the step was finished"),
    ] {
        let events = [&asked[..], &[ended(status)][..]].concat();
        let tool = failed("search", "c", json!({}), error);
        check(&events, json!([begin(), thought(), text("First."), tool]));
    }
    // The tool has not begun.
    let tool = failed("search", "c", json!({}), "the step was cancelled");
    let expected = json!([begin(), thought(), text("First."), tool]);
    check(&[&asked[..2], &[ended("cancelled")][..]].concat(), expected);
}

#[test]
fn calls_of_an_active_run_are_pending() {
    let asked = [
        completed(0, completion("First.")),
        requested(0, &[("c", "search", json!({}))]),
        called(0, &[], "search", 0),
    ];
    let tool = json!({"type": "tool-search", "toolCallId": "c", "state": "input-available",
        "input": {}});
    let expected = json!([begin(), thought(), text("First."), tool]);
    // The second log ends before the tool begins.
    for events in [&asked[..], &asked[..2], &[&asked[..], &[recovery()][..]].concat()[..]] {
        check(events, expected.clone());
    }
}

#[test]
fn failed_calls_have_their_errors() {
    check(
        &[
            completed(0, completion("")),
            requested(0, &[("a", "fly", json!({})), ("b", "search", json!({}))]),
            called(0, &[], "search", 0),
            returned(0, &[], "search", 0, bad("none")),
            results(0, &[("a", "no tool `fly`"), ("b", "none")]),
        ],
        json!([
            begin(),
            thought(),
            failed("fly", "a", json!({}), "no tool `fly`"),
            failed("search", "b", json!({}), "none"),
        ]),
    );
}

#[test]
fn results_in_the_conversation_replace_missing_steps() {
    let events = run(&[
        completed(0, completion("")),
        requested(0, &[("a", "fly", json!({}))]),
        results(0, &[("a", "no tool `fly`")]),
    ]);
    let message = AGENT.message(&events, &[], Value::clone).unwrap();
    assert_eq!(message.parts[2]["errorText"], "no tool `fly`");
}

#[test]
fn repeated_output_appears_once() {
    let again = json!({"type": "call_started", "task": "a0", "call": 1,
        "function": "llm.stream", "summary": "x"});
    let restart = json!({"type": "streamed", "task": "a0", "node": "agent", "call": 1,
        "deltas": [{"kind": "restart"}, {"kind": "text", "text": "Hello"}]});
    check(
        &[deltas(0, "Hel"), recovery(), deltas(0, "Hello")],
        json!([begin(), thought(), text("Hello")]),
    );
    check(
        &[deltas(0, "Hel"), again, deltas(0, "Hello")],
        json!([begin(), thought(), text("Hello")]),
    );
    check(&[deltas(0, "Hel"), restart], json!([begin(), text("Hello")]));
}

#[test]
fn unreadable_call_is_shown_before_the_repeated_one() {
    let unreadable = json!("{\"n\": ");
    let call = json!({"id": "a", "name": "search", "arguments": unreadable});
    let mut first = completed(0, json!({"Ok": {"parts": [{"text": "One."}, {"tool_call": call}]}}));
    first["call"] = json!(0);
    let tool = json!({"type": "tool-search", "toolCallId": "b", "state": "output-available",
        "input": {"n": 2}, "output": 1});
    check(
        &[
            first,
            completed(0, completion("Two.")),
            requested(0, &[("b", "search", json!({"n": 2}))]),
            called(0, &[], "search", 0),
            returned(0, &[], "search", 0, good(&json!(7))),
        ],
        json!([
            begin(),
            text("One."),
            failed("search", "a", unreadable, "the arguments of the call are not valid JSON"),
            begin(),
            thought(),
            text("Two."),
            tool,
        ]),
    );
}

#[test]
fn calls_stay_if_the_agent_ends_without_a_model_call() {
    let mut at_limit = requested(1, &[]);
    at_limit["writes"] = json!([]);
    let tool = json!({"type": "tool-search", "toolCallId": "c", "state": "output-available",
        "input": {}, "output": 1});
    check(
        &[
            completed(0, completion("First.")),
            requested(0, &[("c", "search", json!({}))]),
            called(0, &[], "search", 0),
            returned(0, &[], "search", 0, good(&json!(7))),
            results(0, &[("c", "7")]),
            at_limit,
            ended("completed"),
        ],
        json!([begin(), thought(), text("First."), tool]),
    );
}

#[test]
fn run_without_output_has_no_message() {
    let down = json!({"Err": {"code": "unavailable", "message": "down"}});
    check(&[completed(0, down), ended("failed")], json!(null));
    check(&[], json!(null));
    let mut inner = deltas(0, "for a tool");
    inner["scope"] = json!([0]);
    check(&[inner], json!(null));
}
