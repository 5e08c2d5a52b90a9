//! Conversion of the messages of a completion request to messages of the Agent Server API.

use serde_json::{Map, Value, json};
use wattle_graph::llm::{Message, PROVIDER_STATE, Part, Role};

use super::to_wire;

/// Converts a message of a completion request. Each tool result in the message becomes a separate
/// message.
pub fn of_request(message: &Message) -> Vec<Value> {
    let (mut said, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
    let mut fields = Map::new();
    for part in &message.parts {
        match part {
            Part::ToolCall(call) => calls.push(json!(call)),
            Part::ToolResult(result) => {
                let status = if result.is_error { "error" } else { "success" };
                results.push(to_wire(&json!({
                    "role": "tool", "tool_call_id": result.call_id, "content": result.content,
                    "status": status,
                })));
            }
            Part::Reasoning(text) => {
                fields.insert("reasoning".to_owned(), json!(text));
            }
            Part::Other(state) if state["type"] == PROVIDER_STATE => {
                fields.insert(PROVIDER_STATE.to_owned(), state.clone());
            }
            Part::Text(_) | Part::Image(_) | Part::Other(_) => said.push(part),
        }
    }
    if !results.is_empty() && said.is_empty() && calls.is_empty() {
        return results;
    }
    let content = match &said[..] {
        [] => json!(""),
        [Part::Text(text)] => json!(text),
        parts => json!(parts),
    };
    fields.insert("role".to_owned(), role(&message.role).into());
    fields.insert("content".to_owned(), content);
    fields.insert("tool_calls".to_owned(), calls.into());
    results.insert(0, to_wire(&Value::Object(fields)));
    results
}

/// Returns the role under the name that messages of a channel use.
fn role(role: &Role) -> &str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::Other(name) => name,
    }
}
