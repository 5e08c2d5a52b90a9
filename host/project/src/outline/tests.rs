//! The outline of each type of event, and the limits of values and texts.

use serde_json::json;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::Digest;

use super::*;
use crate::limit::{OUTLINE_TEXT_BYTES, OUTLINE_VALUE_BYTES};

/// Returns the event with a payload.
fn event(payload: &Value) -> Event {
    let mut document = json!({ "seq": 7, "at_ms": 1000, "run": "r" });
    document.as_object_mut().unwrap().extend(payload.as_object().unwrap().clone());
    serde_json::from_value(document).unwrap()
}

/// Returns the outline of the event with a payload, without the fields that all events have.
fn outline(payload: &Value) -> Value {
    let mut outline = serde_json::to_value(EventOutline::from(&event(payload))).unwrap();
    for (name, value) in [("seq", json!(7)), ("at_ms", json!(1000)), ("run", json!("r"))] {
        assert_eq!(outline.as_object_mut().unwrap().remove(name), Some(value), "{name}");
    }
    outline
}

fn digest() -> String {
    "0".repeat(64)
}

/// Returns a value that is too large for an outline.
fn large() -> Value {
    json!("x".repeat(10_000))
}

const LARGE_BYTES: u64 = 10_002;

fn principal() -> Value {
    json!({ "key": "k1", "tenant": "acme" })
}

fn failure() -> Value {
    json!({ "code": "timeout", "message": "slow", "retryable": true, "details": { "x": 1 } })
}

/// Returns payloads of events of runs and tasks, each with its outline.
fn of_runs_and_tasks() -> Vec<(Value, Value)> {
    let short = json!({ "code": "timeout", "message": "slow" });
    vec![
        (
            json!({ "type": "run_started", "graph": "g", "digest": digest(), "reason": "resume",
                "context": large(), "principal": principal() }),
            json!({ "type": "run_started", "graph": "g", "digest": digest(), "reason": "resume",
                "context_bytes": LARGE_BYTES, "principal": principal() }),
        ),
        (
            json!({ "type": "run_ended", "status": "failed", "failure": failure(), "store_us": 4 }),
            json!({ "type": "run_ended", "status": "failed", "failure": short, "store_us": 4 }),
        ),
        (
            json!({ "type": "task_started", "task": "t", "node": "n", "step": 2, "attempt": 1 }),
            json!({ "type": "task_started", "task": "t", "node": "n", "step": 2, "attempt": 1 }),
        ),
        (
            json!({ "type": "task_finished", "task": "t", "node": "n", "base": 3, "writes": [
                { "channel": "a", "value": large() },
                { "channel": "b", "value": [1], "overwrite": true },
            ], "goto": ["m"], "sends": [{ "node": "m", "input": large() }],
                "child": { "namespace": "n:t", "checkpoint": 4, "keeps": true },
                "duration_us": 5 }),
            json!({ "type": "task_finished", "task": "t", "node": "n", "index": 0, "base": 3,
                "written": [
                    { "channel": "a", "bytes": LARGE_BYTES },
                    { "channel": "b", "bytes": 3, "overwrite": true },
                ], "goto": ["m"], "sends": [{ "node": "m", "bytes": LARGE_BYTES }],
                "child": { "namespace": "n:t", "checkpoint": 4, "keeps": true },
                "duration_us": 5 }),
        ),
        (
            json!({ "type": "task_failed", "task": "t", "node": "n", "attempt": 2,
                "fault": "timeout", "failure": failure(), "retry_in_ms": 9 }),
            json!({ "type": "task_failed", "task": "t", "node": "n", "attempt": 2,
                "fault": "timeout", "failure": short, "retry_in_ms": 9 }),
        ),
    ]
}

/// Returns payloads of events of host calls, each with its outline.
fn of_calls() -> Vec<(Value, Value)> {
    let attempts = json!([
        { "provider": "far", "model": "big", "tries": 3, "error": failure() },
        { "provider": "near", "model": "small" },
    ]);
    let completion = json!({ "parts": [{ "text": "hello" }], "finish_reason": "stop", "usage": {},
        "model": "small-1", "attempts": attempts });
    let deltas = json!([{ "kind": "text", "text": "hi" }, { "kind": "restart" },
        { "kind": "tool_call", "index": 0, "id": "a", "name": "find", "arguments": "{" }]);
    vec![
        (
            json!({ "type": "call_started", "task": "t", "scope": [1], "call": 0,
                "function": "tools.call", "summary": "find", "again": 2, "request": large() }),
            json!({ "type": "call_started", "task": "t", "scope": [1], "call": 0,
                "function": "tools.call", "summary": "find", "again": 2,
                "request_bytes": LARGE_BYTES }),
        ),
        (
            json!({ "type": "streamed", "task": "t", "node": "n", "call": 0, "deltas": deltas }),
            json!({ "type": "streamed", "task": "t", "node": "n", "call": 0, "deltas": deltas }),
        ),
        (
            json!({ "type": "called", "task": "t", "node": "n", "call": 4, "batch": 3,
                "function": "llm.complete", "digest": digest(), "request": large(),
                "result": { "Ok": completion }, "started_ms": 900, "duration_us": 8,
                "store_us": 7, "summary": "chat", "tokens": { "input": 5, "output": 6 }, "reused": 2 }),
            json!({ "type": "called", "task": "t", "node": "n", "call": 4, "batch": 3,
                "function": "llm.complete", "digest": digest(), "request_bytes": LARGE_BYTES,
                "result_bytes": completion.to_string().len(),
                "result_digest": Digest::of(completion.to_string().as_bytes()), "ok": true, "started_ms": 900,
                "duration_us": 8, "store_us": 7, "summary": "chat",
                "tokens": { "input": 5, "output": 6 }, "reused": 2, "model": "small-1", "provider": "near", "tries": 4 }),
        ),
    ]
}

/// Returns payloads of events of interrupts, checkpoints and guests, each with its outline.
fn of_others() -> Vec<(Value, Value)> {
    let elicited = json!({ "round": 0, "digest": digest(), "server": "s", "tool": "book",
        "asked": { "questions": {}, "state": "opaque" } });
    let short = json!({ "code": "timeout", "message": "slow" });
    let call = json!({ "task": "t", "call": 1, "seq": 5 });
    vec![
        (
            json!({ "type": "asked", "interrupt": "i", "task": "t", "node": "n", "call": 0,
                "payload": { "message": "Sure?" }, "response_schema": large(),
                "elicited": elicited }),
            json!({ "type": "asked", "interrupt": "i", "task": "t", "node": "n", "call": 0,
                "payload": { "bytes": 19, "value": { "message": "Sure?" } },
                "response_schema": { "bytes": LARGE_BYTES } }),
        ),
        (
            json!({ "type": "answered", "interrupt": "i", "task": "t", "answer": null,
                "principal": principal() }),
            json!({ "type": "answered", "interrupt": "i", "task": "t",
                "answer": { "bytes": 4, "value": null }, "principal": principal() }),
        ),
        (
            json!({ "type": "checkpointed", "checkpoint": 2, "step": 1, "source": "loop",
                "changed": ["a"], "next": ["n"], "taken": [{ "branch": "b", "case": 1 }] }),
            json!({ "type": "checkpointed", "checkpoint": 2, "step": 1, "source": "loop",
                "changed": ["a"], "next": ["n"], "taken": [{ "branch": "b", "case": 1 }] }),
        ),
        (
            json!({ "type": "reopened", "to": 2, "interrupts": ["i"], "tasks": ["t"],
                "failure": failure() }),
            json!({ "type": "reopened", "to": 2, "interrupts": ["i"], "tasks": ["t"],
                "failure": short }),
        ),
        (
            json!({ "type": "forked", "from": 3, "call": call }),
            json!({ "type": "forked", "from": 3, "call": call }),
        ),
        (
            json!({ "type": "settled", "task": "t", "call": 0, "by": "jane",
                "decision": { "kind": "answer", "answer": large() } }),
            json!({ "type": "settled", "task": "t", "call": 0, "by": "jane",
                "decision": { "kind": "answer", "answer": { "bytes": LARGE_BYTES } } }),
        ),
        (
            json!({ "type": "migrated", "from": digest(), "to": digest() }),
            json!({ "type": "migrated", "from": digest(), "to": digest() }),
        ),
        (
            json!({ "type": "custom", "task": "t", "node": "n", "name": "x", "data": large() }),
            json!({ "type": "custom", "task": "t", "node": "n", "name": "x",
                "data": { "bytes": LARGE_BYTES } }),
        ),
        (
            json!({ "type": "progress", "task": "t", "node": "n", "message": "half",
                "fraction": 0.5 }),
            json!({ "type": "progress", "task": "t", "node": "n", "message": "half",
                "fraction": 0.5 }),
        ),
        (
            json!({ "type": "log", "task": "t", "node": "n", "level": "info", "message": "hi",
                "fields": [1] }),
            json!({ "type": "log", "task": "t", "node": "n", "level": "info", "message": "hi",
                "fields": { "bytes": 3, "value": [1] } }),
        ),
    ]
}

#[test]
fn every_type_of_event_has_an_outline_without_large_values() {
    let samples = [of_runs_and_tasks(), of_calls(), of_others()].concat();
    let mut types = Vec::new();
    for (payload, expected) in &samples {
        assert_eq!(outline(payload), *expected);
        types.push(expected["type"].as_str().unwrap());
    }
    assert_eq!(types, EventKind::NAMES);
}

#[test]
fn failed_call_has_its_failure_and_no_source() {
    let called = json!({ "type": "called", "task": "t", "node": "n", "scope": [0, 2], "call": 1,
        "batch": 1, "function": "llm.complete", "digest": digest(), "request": null,
        "result": { "Err": failure() }, "started_ms": 1, "duration_us": 2 });
    let expected = json!({ "type": "called", "task": "t", "node": "n", "scope": [0, 2], "call": 1,
        "batch": 1, "function": "llm.complete", "digest": digest(), "summary": "",
        "request_bytes": 4, "ok": false,
        "failure": { "code": "timeout", "message": "slow" }, "started_ms": 1, "duration_us": 2 });
    assert_eq!(outline(&called), expected);
}

#[test]
fn only_completions_have_a_model() {
    let answer = json!({ "model": "m", "attempts": [{ "provider": "p", "model": "m" }] });
    for (function, model) in [("llm.stream", json!("m")), ("http.send", Value::Null)] {
        let called = json!({ "type": "called", "task": "t", "node": "n", "call": 0, "batch": 0,
            "function": function, "digest": digest(), "request": null, "result": { "Ok": answer },
            "started_ms": 1, "duration_us": 2 });
        assert_eq!(outline(&called)["model"], model, "{function}");
    }
}

#[test]
fn digests_of_results_differ_with_the_results_but_not_with_ids_of_completions() {
    let digest_of = |function: &str, answer: Value| {
        let called = json!({ "type": "called", "task": "t", "node": "n", "call": 0, "batch": 0,
            "function": function, "digest": digest(), "request": null, "result": { "Ok": answer },
            "started_ms": 1, "duration_us": 2 });
        outline(&called)["result_digest"].clone()
    };
    let answer = |id: &str, text: &str| json!({ "id": id, "parts": [{ "text": text }] });
    for (function, has_derived_id) in
        [("llm.complete", true), ("llm.stream", true), ("http.send", false)]
    {
        let first = digest_of(function, answer("a", "yes"));
        assert_eq!(first, digest_of(function, answer("a", "yes")), "{function}");
        assert_ne!(first, digest_of(function, answer("a", "not")), "{function}");
        let is_same = first == digest_of(function, answer("b", "yes"));
        assert_eq!(is_same, has_derived_id, "{function}");
    }
}

#[test]
fn digests_of_completions_do_not_depend_on_ids_of_tool_calls() {
    let digest_of = |function: &str, part: Value| {
        let answer = json!({ "parts": [{ "text": "so" }, part], "finish_reason": "tool_calls" });
        let called = json!({ "type": "called", "task": "t", "node": "n", "call": 0, "batch": 0,
            "function": function, "digest": digest(), "request": null, "result": { "Ok": answer },
            "started_ms": 1, "duration_us": 2 });
        outline(&called)["result_digest"].clone()
    };
    let call = |id: &str, name: &str, arguments: Value| {
        let call = json!({ "id": id, "name": name, "arguments": arguments });
        json!({ "tool_call": call })
    };
    let first = || call("call_a", "find", json!({ "id": 1 }));
    let again = || call("call_b", "find", json!({ "id": 1 }));
    for (function, has_provider_ids) in
        [("llm.complete", true), ("llm.stream", true), ("http.send", false)]
    {
        let is_same = digest_of(function, first()) == digest_of(function, again());
        assert_eq!(is_same, has_provider_ids, "{function}");
    }
    for (part, other) in [
        (first(), call("call_a", "look", json!({ "id": 1 }))),
        (first(), call("call_a", "find", json!({ "id": 2 }))),
        (json!({ "other": { "id": "a" } }), json!({ "other": { "id": "b" } })),
    ] {
        assert_ne!(digest_of("llm.complete", part), digest_of("llm.complete", other));
    }
}

#[test]
fn event_of_a_subgraph_has_its_namespace() {
    let started = json!({ "type": "task_started", "task": "t", "node": "n", "step": 0,
        "attempt": 1, "namespace": "child" });
    assert_eq!(outline(&started)["namespace"], "child");
}

#[test]
fn outline_contains_values_up_to_the_limit() {
    let shown = |characters: usize| {
        let data = json!("x".repeat(characters));
        outline(&json!({ "type": "custom", "task": "t", "node": "n", "name": "x", "data": data }))
            ["data"]
            .clone()
    };
    let most = usize::try_from(OUTLINE_VALUE_BYTES).unwrap();
    let kept = json!({ "bytes": most, "value": "x".repeat(most - 2) });
    assert_eq!(shown(most - 2), kept);
    assert_eq!(shown(most - 1), json!({ "bytes": most + 1 }));
}

#[test]
fn long_texts_are_truncated_between_characters() {
    let shown = |message: &str| {
        let log = json!({ "type": "log", "task": "t", "node": "n", "level": "info",
            "message": message });
        outline(&log)["message"].as_str().unwrap().to_owned()
    };
    let most = "x".repeat(OUTLINE_TEXT_BYTES);
    assert_eq!(shown(&most), most);
    let truncated = shown(&"ü".repeat(OUTLINE_TEXT_BYTES));
    assert!(truncated.len() <= OUTLINE_TEXT_BYTES, "{}", truncated.len());
    assert!(truncated.ends_with("ü…"), "{truncated}");
}
