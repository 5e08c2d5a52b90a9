//! Conversion of messages of the state to messages of the Agent Server API.

use serde_json::{Map, Value, json};

use wattle_graph::llm::PROVIDER_STATE;

use super::{blocks, content, type_of};

/// Fields that every message of the API has, and fields of the state that the conversion handles.
const TAKEN: &[&str] = &[
    "role",
    "content",
    "blocks",
    "id",
    "name",
    "reasoning",
    PROVIDER_STATE,
    "tool_calls",
    "tool_call_id",
    "status",
    "structured",
];

/// Converts an array of messages of the state, or one message, to the form of the Agent Server API.
/// Returns any other value unchanged.
pub fn to_wire_all(value: &Value) -> Value {
    match value {
        Value::Array(messages) => messages.iter().map(to_wire).collect(),
        one => to_wire(one),
    }
}

/// Converts one message of the state to the form of the Agent Server API. Returns any other value
/// unchanged.
pub fn to_wire(message: &Value) -> Value {
    let Some(fields) = message.as_object() else { return message.clone() };
    let Some(role) = fields.get("role").and_then(Value::as_str) else { return message.clone() };
    let of = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let mut shown = Map::new();
    shown.insert("content".to_owned(), said(fields));
    shown.insert("additional_kwargs".to_owned(), json!({}));
    shown.insert("response_metadata".to_owned(), json!({}));
    shown.insert("type".to_owned(), type_of(role).into());
    shown.insert("name".to_owned(), of("name"));
    shown.insert("id".to_owned(), of("id"));
    match role {
        "assistant" => {
            shown.insert("tool_calls".to_owned(), calls(&of("tool_calls")));
            shown.insert("invalid_tool_calls".to_owned(), json!([]));
            shown.insert("usage_metadata".to_owned(), Value::Null);
        }
        "tool" => {
            let status = fields.get("status").cloned().unwrap_or_else(|| "success".into());
            shown.insert("tool_call_id".to_owned(), of("tool_call_id"));
            shown.insert("artifact".to_owned(), of("structured"));
            shown.insert("status".to_owned(), status);
        }
        _ => {}
    }
    let kept = fields.iter().filter(|(name, _)| !TAKEN.contains(&name.as_str()));
    shown.extend(kept.map(|(name, value)| (name.clone(), value.clone())));
    add_reasoning_and_provider_state(fields, &mut shown);
    Value::Object(shown)
}

/// Returns the stored blocks of the client if they still convert to the content, and otherwise the
/// converted content.
fn said(fields: &Map<String, Value>) -> Value {
    let content = fields.get("content").unwrap_or(&Value::Null);
    let kept = fields.get("blocks").map(|kept| blocks::unfold(kept, content));
    kept.filter(|blocks| content::from_wire(blocks).is_ok_and(|again| again == *content))
        .unwrap_or_else(|| content::to_wire(content))
}

/// Adds the reasoning and the provider state to `additional_kwargs`. The message classes of client
/// libraries keep this field and drop unknown fields.
fn add_reasoning_and_provider_state(fields: &Map<String, Value>, shown: &mut Map<String, Value>) {
    let Some(kwargs) = shown.get_mut("additional_kwargs").and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(reasoning) = fields.get("reasoning").filter(|it| it.is_string()) {
        kwargs.insert("reasoning_content".to_owned(), reasoning.clone());
    }
    if let Some(state) = fields.get(PROVIDER_STATE).filter(|it| it.is_object()) {
        kwargs.insert(PROVIDER_STATE.to_owned(), state.clone());
    }
}

fn calls(calls: &Value) -> Value {
    let calls = calls.as_array().map(Vec::as_slice).unwrap_or_default();
    calls.iter().map(call).collect()
}

fn call(call: &Value) -> Value {
    let of = |name: &str| call.get(name).cloned();
    let args = of("arguments").or_else(|| of("args")).unwrap_or_else(|| json!({}));
    json!({
        "name": of("name").unwrap_or_default(),
        "args": args,
        "id": of("id").unwrap_or_default(),
        "type": "tool_call",
    })
}

/// Removes empty fields from the messages in a value, at any depth.
pub fn compact(value: &mut Value) {
    const OPTIONAL: &[&str] = &[
        "additional_kwargs",
        "response_metadata",
        "name",
        "tool_calls",
        "invalid_tool_calls",
        "usage_metadata",
        "id",
    ];
    match value {
        Value::Array(items) => items.iter_mut().for_each(compact),
        Value::Object(fields) => {
            if ["type", "content", "additional_kwargs"].iter().all(|key| fields.contains_key(*key))
            {
                fields.retain(|name, value| {
                    !OPTIONAL.contains(&name.as_str()) || !super::is_empty(value)
                });
            }
            fields.values_mut().for_each(compact);
        }
        _ => {}
    }
}
