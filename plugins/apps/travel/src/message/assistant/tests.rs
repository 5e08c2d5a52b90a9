//! Runs, and the messages that they become.

use wattle_plugin::prelude::{Value, json};

use super::said;
use crate::session::step::steps;
use crate::session::testing::{Log, bad, good};

fn parts(log: &Log) -> Vec<Value> {
    let run = log.run();
    let steps = steps(&run.events);
    said(&run, &steps).map(|message| message.parts).unwrap_or_default()
}

fn kinds(parts: &[Value]) -> Vec<&str> {
    parts.iter().filter_map(|part| part["type"].as_str()).collect()
}

#[test]
fn s3_49_a_run_is_one_message_with_its_steps() {
    let mut log = Log::of_run("r");
    log.says("Let me ");
    log.answers("Let me see.", &[("c1", "parse_youtube_input", json!({"userText": "x"}))]);
    log.calls("parse_youtube_input", 0);
    log.returns("parse_youtube_input", 0, good(json!({"count": 1}), json!([])));
    log.writes(json!([{"role": "tool", "tool_call_id": "c1", "content": "short"}]));
    log.says("Done.");
    log.answers("Done.", &[]);
    log.ends("completed");
    let run = log.run();
    let message = said(&run, &steps(&run.events)).unwrap();
    assert_eq!(message.id, "msg_r");
    assert_eq!(
        kinds(&message.parts),
        [
            "step-start",
            "reasoning",
            "text",
            "tool-parse_youtube_input",
            "step-start",
            "reasoning",
            "text"
        ]
    );
    assert_eq!(message.parts[2], json!({"type": "text", "text": "Let me see.", "state": "done"}));
    let tool = json!({"type": "tool-parse_youtube_input", "toolCallId": "c1",
        "state": "output-available", "input": {"userText": "x"}, "output": {"count": 1}});
    assert_eq!(message.parts[3], tool);
}

#[test]
fn s3_66_output_before_a_stop_is_kept() {
    let mut log = Log::of_run("r");
    log.answers("First.", &[("c1", "search_image", json!({}))]);
    log.calls("search_image", 0);
    log.ends("cancelled");
    let parts = parts(&log);
    assert_eq!(parts[3]["state"], "output-error");
    assert_eq!(parts[3]["errorText"], "the step was cancelled");

    let mut log = Log::of_run("r");
    log.says("In the mid");
    log.ends("cancelled");
    assert_eq!(self::parts(&log)[2]["text"], "In the mid");
}

#[test]
fn calls_without_a_tool_have_their_errors() {
    let mut log = Log::of_run("r");
    let calls = [("a", "fly", json!({})), ("b", "search_image", json!({}))];
    log.answers("", &calls);
    log.calls("search_image", 0);
    log.returns("search_image", 0, bad("no picture"));
    log.writes(json!([
        {"role": "tool", "tool_call_id": "a", "content": "there is no tool `fly`"},
        {"role": "tool", "tool_call_id": "b", "content": "no picture"},
    ]));
    let parts = parts(&log);
    assert_eq!(kinds(&parts), ["step-start", "reasoning", "tool-fly", "tool-search_image"]);
    assert_eq!(parts[2]["errorText"], "there is no tool `fly`");
    assert_eq!(parts[3]["errorText"], "no picture");
}

#[test]
fn repeated_output_after_a_restart_appears_once() {
    let mut log = Log::of_run("r");
    log.says("Hel");
    log.add(json!({"type": "run_started", "graph": "travel", "reason": "recovery"}));
    log.says("Hello");
    log.ends("cancelled");
    assert_eq!(parts(&log)[2]["text"], "Hello");

    let mut log = Log::of_run("r");
    log.says("Hel");
    log.add(json!({"type": "streamed", "task": "agent-r-0", "node": "agent", "call": 1,
        "deltas": [{"kind": "restart"}, {"kind": "text", "text": "Anew"}]}));
    log.ends("cancelled");
    assert_eq!(kinds(&parts(&log)), ["step-start", "text"]);
    assert_eq!(parts(&log)[1]["text"], "Anew");
}

#[test]
fn unreadable_call_is_shown_before_the_repeated_one() {
    let mut log = Log::of_run("r");
    let broken = json!({"id": "a", "name": "search_image", "arguments": "{\"count\": "});
    let parts = json!([{"text": "Pictures."}, {"tool_call": broken}]);
    log.add(json!({"type": "called", "task": "agent-r-0", "node": "agent", "call": 0,
        "function": "llm.complete", "request": {}, "result": {"Ok": {"parts": parts}},
        "duration_us": 1}));
    log.answers("Pictures!", &[("b", "search_image", json!({"count": 2}))]);
    log.calls("search_image", 0);
    log.returns("search_image", 0, good(json!({"count": 2}), json!([])));
    let parts = self::parts(&log);
    let tool = "tool-search_image";
    let expected = ["step-start", "text", tool, "step-start", "reasoning", "text", tool];
    assert_eq!(kinds(&parts), expected);
    assert_eq!(parts[2]["errorText"], "the arguments of the call are not valid JSON");
    assert_eq!(parts[6]["state"], "output-available");
}

#[test]
fn run_without_output_has_no_message() {
    let mut log = Log::of_run("r");
    log.add(json!({"type": "called", "task": "agent-r-0", "node": "agent", "call": 1,
        "function": "llm.complete", "request": {}, "duration_us": 1,
        "result": {"Err": {"code": "unavailable", "message": "no"}}}));
    log.ends("failed");
    let run = log.run();
    assert_eq!(said(&run, &[]), None);
}
