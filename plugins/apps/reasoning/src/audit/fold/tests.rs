//! Events and their rows.

use wattle_plugin::prelude::{Value, json};
use wattle_plugin::runs::Event;

use super::{Folded, fold};

/// Returns the events with sequence numbers from `first`.
fn events(first: u64, kinds: &[Value]) -> Vec<Event> {
    let number = |(kind, seq): (&Value, u64)| {
        let mut event = kind.clone();
        event["seq"] = json!(seq);
        event["at_ms"] = json!(seq * 10);
        event["run"] = json!("r");
        Event::read(&event).unwrap()
    };
    kinds.iter().zip(first..).map(number).collect()
}

fn started(call: u32, function: &str, summary: &str) -> Value {
    json!({"type": "call_started", "task": "t", "call": call, "function": function, "summary": summary})
}

fn called(call: u32, function: &str, summary: &str, request: Value, result: Value) -> Value {
    json!({"type": "called", "task": "t", "node": "n", "call": call, "function": function,
           "digest": "d", "request": request, "result": result, "started_ms": 1,
           "duration_us": 7_000, "summary": summary, "batch": call})
}

fn tool(call: u32, result: Value) -> Value {
    called(
        call,
        "tools.call",
        "mcp.data.query",
        json!({"tool": "mcp.data.query", "arguments": {"page": 1}}),
        result,
    )
}

fn types(folded: &Folded) -> Vec<&str> {
    folded.rows.iter().map(|row| row.event_type.as_str()).collect()
}

#[test]
fn model_call_has_rows_with_prompt_and_completion() {
    let request = json!({"route": "reasoning", "messages": [{"role": "user", "parts": []}],
                         "response_schema": {"name": "reasoning_plan", "schema": {}}});
    let down = json!({"code": "unavailable", "message": "down", "retryable": true});
    let attempts = json!([{"provider": "a", "model": "m1", "tries": 2, "error": down},
                          {"provider": "b", "model": "m2", "tries": 1}]);
    let usage = json!({"input_tokens": 3, "output_tokens": null});
    let answer = json!({"Ok": {"parts": [], "structured": {"mode": "query"}, "model": "m2",
                               "finish_reason": "stop", "usage": usage, "attempts": attempts}});
    let log = events(
        1,
        &[
            json!({"type": "run_started", "graph": "g", "digest": "d", "reason": "input"}),
            started(0, "llm.complete", "reasoning -> reasoning_plan"),
            json!({"type": "streamed", "task": "t", "node": "n", "call": 0, "deltas": []}),
            called(0, "llm.complete", "", request, answer),
        ],
    );
    let folded = fold(&log);
    assert_eq!(types(&folded), ["llm_prompt_sent", "llm_response_received"]);
    assert_eq!(folded.cursor, 4);
    let (prompt, response) = (&folded.rows[0].payload, &folded.rows[1].payload);
    assert_eq!(prompt["purpose"], "reasoning_plan");
    assert_eq!(prompt["route"], "reasoning");
    assert_eq!(prompt["call_id"], response["call_id"]);
    assert_eq!(response["content"], json!({"mode": "query"}));
    assert_eq!((&response["model"], &response["fallback"]), (&json!("m2"), &json!(true)));
    assert_eq!((&response["finish_reason"], &response["usage"]), (&json!("stop"), &usage));
    assert_eq!(response["attempts"], attempts);
    assert_eq!(folded.rows[0].step, "llm");
}

#[test]
fn prompt_names_the_messages_that_the_host_added() {
    let history = json!({"channel": "messages", "at": 0, "from": 0, "to": 40});
    let messages = json!([{"role": "user", "parts": [{"text": "next"}]}]);
    let request = json!({"route": "reasoning", "history": history, "messages": messages});
    let log = events(
        1,
        &[
            started(0, "llm.complete", "reasoning"),
            called(0, "llm.complete", "", request, json!({"Ok": {"parts": []}})),
        ],
    );
    let prompt = &fold(&log).rows[0].payload;
    assert_eq!((&prompt["history"], &prompt["messages"]), (&history, &messages));
}

#[test]
fn unreadable_completion_is_in_the_row_as_it_is() {
    let output = json!({"parts": "none"});
    let log = events(
        1,
        &[
            started(0, "llm.complete", "reasoning"),
            called(0, "llm.complete", "", json!({}), json!({"Ok": output})),
        ],
    );
    assert_eq!(fold(&log).rows[1].payload["content"], output);
}

#[test]
fn tool_calls_have_method_and_error() {
    let log = events(
        1,
        &[
            started(0, "tools.call", "mcp.data.query"),
            tool(0, json!({"Ok": {"content": [], "structured": {"total": 3}}})),
            started(1, "tools.call", "mcp.data.query"),
            tool(1, json!({"Err": {"code": "timeout", "message": "slow", "retryable": true}})),
            started(2, "tools.call", "mcp.data.query"),
            tool(2, json!({"Ok": {"content": [{"text": "no table"}], "is_error": true}})),
        ],
    );
    let folded = fold(&log);
    assert_eq!(folded.rows.len(), 6);
    let payload = |index: usize| &folded.rows[index].payload;
    assert_eq!(payload(0)["method"], "mcp.data.query");
    assert_eq!(payload(0)["arguments"], json!({"page": 1}));
    assert_eq!(payload(1)["result"], json!({"total": 3}));
    assert_eq!(payload(3)["error"], json!({"code": "timeout", "message": "slow"}));
    assert_eq!(payload(5)["error"]["message"], "no table");
    assert!(folded.rows.iter().all(|row| row.step == "executing"));
}

#[test]
fn fold_stops_before_a_pending_call() {
    let custom =
        json!({"type": "custom", "task": "t", "node": "n", "name": "intent_parsed", "data": {}});
    let log = [
        custom,
        started(0, "tools.call", "graph.list_ontologies"),
        started(1, "tools.call", "graph.list_ontologies"),
    ];
    let folded = fold(&events(5, &log));
    assert_eq!((types(&folded), folded.cursor), (vec!["intent_parsed"], 5));
    assert_eq!(fold(&events(6, &log[1..])), Folded::default());
    let other = fold(&events(1, &[started(0, "sql.transaction", "reasoning")]));
    assert_eq!((other.rows.len(), other.cursor), (0, 1), "calls without rows are not waited for");
}

#[test]
fn lost_call_has_two_rows() {
    let log = events(
        1,
        &[
            started(0, "llm.complete", "reasoning -> reasoning_plan"),
            json!({"type": "run_started", "graph": "g", "digest": "d", "reason": "recovery"}),
            started(0, "llm.complete", "reasoning -> reasoning_plan"),
            json!({"type": "run_ended", "status": "cancelled"}),
        ],
    );
    let folded = fold(&log);
    assert_eq!(
        types(&folded),
        [
            "llm_prompt_sent",
            "llm_response_received",
            "recovery_triggered",
            "llm_prompt_sent",
            "llm_response_received",
            "session_cancelled"
        ]
    );
    assert_eq!(folded.rows[1].payload["error"]["code"], "lost");
    assert_eq!(folded.run_end.unwrap().status, "cancelled");
}

#[test]
fn failed_run_has_a_row_with_its_error() {
    let failure = json!({"code": "llm", "message": "llm summary failed: down", "retryable": false});
    let log = events(1, &[json!({"type": "run_ended", "status": "failed", "failure": failure})]);
    let folded = fold(&log);
    assert_eq!(types(&folded), ["session_failed"]);
    assert_eq!(folded.rows[0].payload["error"]["message"], "llm summary failed: down");
    let well = fold(&events(1, &[json!({"type": "run_ended", "status": "completed"})]));
    assert!(well.rows.is_empty() && well.run_end.is_some());
}

#[test]
fn fold_stops_at_the_end_of_a_run() {
    let ended = |status: &str| json!({"type": "run_ended", "status": status});
    let log = events(1, &[ended("cancelled"), ended("completed")]);
    let folded = fold(&log);
    assert_eq!((folded.cursor, folded.run_end.unwrap().status.as_str()), (1, "cancelled"));
    let folded = fold(&log[1..]);
    assert_eq!((folded.cursor, folded.run_end.unwrap().status.as_str()), (2, "completed"));
}
