//! Test support: the events of a run with an agent. Each model turn has a task of each node.

use serde_json::{Value, json};

use crate::chat::agent::Agent;
use crate::runs::Event;

pub(super) const AGENT: Agent = Agent::DEFAULT;

/// Reads the events of the run `r`, one second apart.
pub(super) fn run(events: &[Value]) -> Vec<Event> {
    let read = |(seq, event): (u64, &Value)| {
        let mut event = event.clone();
        (event["seq"], event["at_ms"], event["run"]) = (json!(seq), json!(seq * 1_000), json!("r"));
        AGENT.read(&event).unwrap()
    };
    (1..).zip(events).map(read).collect()
}

/// Deltas of reasoning and text.
pub(super) fn deltas(turn: u32, text: &str) -> Value {
    json!({"type": "streamed", "task": format!("a{turn}"), "node": "agent", "call": 1,
        "deltas": [{"kind": "reasoning", "text": "hm"}, {"kind": "text", "text": text}]})
}

/// The end of a model call.
pub(super) fn completed(turn: u32, result: Value) -> Value {
    json!({"type": "called", "task": format!("a{turn}"), "node": "agent", "call": 1,
        "function": "llm.complete", "request": {}, "result": result, "duration_us": 1})
}

/// The result of a model call with reasoning and text.
pub(super) fn completion(text: &str) -> Value {
    json!({"Ok": {"parts": [{"reasoning": "hm"}, {"text": text}]}})
}

/// The end of a model turn that requests tool calls: ids, names and arguments.
pub(super) fn requested(turn: u32, calls: &[(&str, &str, Value)]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(id, name, input)| json!({"id": id, "name": name, "arguments": input}))
        .collect();
    let message = json!({"role": "assistant", "content": "", "tool_calls": calls});
    json!({"type": "task_finished", "task": format!("a{turn}"), "node": "agent",
        "writes": [{"channel": "other", "value": 1}, {"channel": "messages", "value": message}]})
}

/// The start of a tool call. With a scope, a tool makes the call.
pub(super) fn called(turn: u32, scope: &[u32], tool: &str, call: u32) -> Value {
    json!({"type": "call_started", "task": format!("t{turn}"), "scope": scope, "call": call,
        "function": "tools.call", "summary": format!("notes/{tool}")})
}

/// The end of a tool call.
pub(super) fn returned(turn: u32, scope: &[u32], tool: &str, call: u32, result: Value) -> Value {
    json!({"type": "called", "task": format!("t{turn}"), "node": "tools", "scope": scope,
        "call": call, "function": "tools.call", "request": {}, "result": result,
        "duration_us": 1_500_000, "summary": format!("notes/{tool}")})
}

/// The end of the tool calls of a turn, with results for the model: ids of calls and texts.
pub(super) fn results(turn: u32, results: &[(&str, &str)]) -> Value {
    let message =
        |(id, text): &(&str, &str)| json!({"role": "tool", "tool_call_id": id, "content": text});
    let messages: Vec<Value> = results.iter().map(message).collect();
    json!({"type": "task_finished", "task": format!("t{turn}"), "node": "tools",
        "writes": [{"channel": "messages", "value": messages}]})
}

/// The result of a tool that succeeded.
pub(super) fn good(output: &Value) -> Value {
    let updates = json!([{"channel": "notes", "value": []}]);
    json!({"Ok": {"content": [{"text": "for the model"}], "structured": output,
        "updates": updates}})
}

/// A result that a model reads as an error.
pub(super) fn bad(text: &str) -> Value {
    json!({"Ok": {"content": [{"text": text}], "is_error": true}})
}

/// The continuation of the run after a restart of the host.
pub(super) fn recovery() -> Value {
    json!({"type": "run_started", "graph": "notes", "reason": "recovery"})
}

/// The end of the run.
pub(super) fn ended(status: &str) -> Value {
    json!({"type": "run_ended", "status": status})
}
