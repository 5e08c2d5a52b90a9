//! Conversion of messages of clients to messages of the state.

use serde_json::{Map, Value, json};
use wattle_graph::llm::PROVIDER_STATE;

use super::read_context::{ParseText, ReadContext};
use super::{arguments, blocks, content, is_empty, role_of};

/// Fields of a client's message that the conversion handles.
const TAKEN: &[&str] = &[
    "role",
    "type",
    "content",
    "id",
    "name",
    "tool_calls",
    "tool_call_id",
    "artifact",
    "status",
    "additional_kwargs",
];

/// Converts an array of messages, or one message, to an array of messages of the state.
///
/// # Errors
///
/// Returns an error message that names the position of the invalid message.
pub fn from_wire_all(value: &Value, context: &mut ReadContext<'_>) -> Result<Value, String> {
    let messages = match value {
        Value::Array(pair) if is_pair(pair) => std::slice::from_ref(value),
        Value::Array(messages) => messages,
        one => std::slice::from_ref(one),
    };
    let read = |(index, message): (usize, &Value)| {
        from_wire(message, context).map_err(|why| format!("message at index {index}: {why}"))
    };
    messages.iter().enumerate().map(read).collect()
}

/// Converts one message: an object, a string that a user wrote, or a pair of role and content.
///
/// # Errors
///
/// Returns the reason why the message is invalid.
pub fn from_wire(message: &Value, context: &mut ReadContext<'_>) -> Result<Value, String> {
    match message {
        Value::String(text) => {
            from_fields(&fields(json!({ "role": "user", "content": text })), context)
        }
        Value::Array(pair) if is_pair(pair) => {
            from_fields(&fields(json!({ "role": pair[0], "content": pair[1] })), context)
        }
        Value::Object(message) => match constructor(message) {
            Some(message) => from_fields(&message, context),
            None => from_fields(message, context),
        },
        _ => Err("a message must be a string, or an object with `role` or `type`".to_owned()),
    }
}

fn fields(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Returns true for a pair such as `["user", "hi"]`.
fn is_pair(pair: &[Value]) -> bool {
    matches!(pair, [Value::String(role), Value::String(_)] if role_of(role).is_some())
}

/// Returns the fields of a message in the form in which LangChain libraries serialize objects:
/// `{"lc": 1, "type": "constructor", "id": [.., "HumanMessage"], "kwargs": {..}}`.
fn constructor(message: &Map<String, Value>) -> Option<Map<String, Value>> {
    let class = message.get("id")?.as_array()?.last()?;
    let mut fields = message.get("kwargs")?.as_object()?.clone();
    fields.insert("type".to_owned(), class.clone());
    Some(fields)
}

fn from_fields(
    message: &Map<String, Value>,
    context: &mut ReadContext<'_>,
) -> Result<Value, String> {
    let role = role(message)?;
    let mut ours = Map::from_iter([("id".to_owned(), id(message, role, context)?)]);
    ours.insert("role".to_owned(), role.into());
    if role == "remove" {
        return Ok(Value::Object(ours));
    }
    let said = message.get("content");
    let calls = calls(message, context.parse)?;
    if said.is_none_or(Value::is_null) && calls.is_empty() {
        return Err(format!("a message of role `{role}` needs `content`"));
    }
    let said = said.unwrap_or(&Value::Null);
    let content = content::from_wire(said)?;
    if !said.is_null() && !content::survives(said, &content) {
        ours.insert("blocks".to_owned(), blocks::fold(said, &content));
    }
    ours.insert("content".to_owned(), content);
    if let Some(name) = message.get("name").filter(|name| name.is_string()) {
        ours.insert("name".to_owned(), name.clone());
    }
    match role {
        "assistant" if !calls.is_empty() => {
            drop(ours.insert("tool_calls".to_owned(), calls.into()));
        }
        "tool" => answer(message, &mut ours)?,
        _ => {}
    }
    keep(message, &mut ours);
    Ok(Value::Object(ours))
}

fn role(message: &Map<String, Value>) -> Result<&'static str, String> {
    let name = message.get("role").or_else(|| message.get("type"));
    let name = name.and_then(Value::as_str).ok_or("a message needs a `role` or a `type`")?;
    role_of(name).ok_or_else(|| {
        format!("`{name}` is not a role of a message; use user, assistant, system, tool or remove")
    })
}

fn id(
    message: &Map<String, Value>,
    role: &str,
    context: &mut ReadContext<'_>,
) -> Result<Value, String> {
    match message.get("id") {
        Some(Value::String(id)) if !id.is_empty() => Ok(id.clone().into()),
        None | Some(Value::Null | Value::String(_)) if role == "remove" => {
            Err("a message that removes another must name its `id`".to_owned())
        }
        None | Some(Value::Null | Value::String(_)) => Ok((context.new_id)().into()),
        Some(_) => Err("the `id` of a message must be a string".to_owned()),
    }
}

fn answer(message: &Map<String, Value>, ours: &mut Map<String, Value>) -> Result<(), String> {
    let call = message.get("tool_call_id").filter(|id| id.is_string());
    let call = call.ok_or("a message of role `tool` needs `tool_call_id`")?;
    ours.insert("tool_call_id".to_owned(), call.clone());
    let status = message.get("status").filter(|status| status.is_string());
    ours.insert("status".to_owned(), status.cloned().unwrap_or_else(|| "success".into()));
    if let Some(artifact) = message.get("artifact").filter(|artifact| !artifact.is_null()) {
        ours.insert("structured".to_owned(), artifact.clone());
    }
    Ok(())
}

/// Returns the tool calls of a message. Older libraries of LangChain have them only in
/// `additional_kwargs`, in the format of a provider; an invalid one there is ignored.
fn calls(message: &Map<String, Value>, parse: ParseText<'_>) -> Result<Vec<Value>, String> {
    let call = |it: &Value| call(it, parse);
    let calls = match message.get("tool_calls") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(calls)) => calls.iter().map(call).collect::<Result<_, _>>()?,
        Some(_) => return Err("`tool_calls` must be an array".to_owned()),
    };
    if !calls.is_empty() {
        return Ok(calls);
    }
    let further = message.get("additional_kwargs").and_then(|further| further.get("tool_calls"));
    let further = further.and_then(Value::as_array).into_iter().flatten();
    Ok(further.filter_map(|it| call(it).ok()).collect())
}

fn call(call: &Value, parse: ParseText<'_>) -> Result<Value, String> {
    let function = call.get("function").filter(|it| it.is_object()).unwrap_or(call);
    let fields = function.as_object().ok_or("a tool call must be an object")?;
    let name = fields.get("name").and_then(Value::as_str);
    let name = name.ok_or("a tool call needs a `name`")?;
    let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
    Ok(json!({ "id": id, "name": name, "arguments": arguments::of_call(fields, parse) }))
}

/// Copies the fields that the conversion does not handle, except empty ones.
fn keep(message: &Map<String, Value>, ours: &mut Map<String, Value>) {
    if let Some(Value::Object(further)) = message.get("additional_kwargs") {
        let mut further = further.clone();
        let reasoning = further.get("reasoning_content").is_some_and(Value::is_string);
        if let Some(reasoning) = reasoning.then(|| further.remove("reasoning_content")).flatten() {
            ours.insert("reasoning".to_owned(), reasoning);
        }
        let state = further.get(PROVIDER_STATE).is_some_and(Value::is_object);
        if let Some(state) = state.then(|| further.remove(PROVIDER_STATE)).flatten() {
            ours.insert(PROVIDER_STATE.to_owned(), state);
        }
        if !further.is_empty() {
            ours.insert("additional_kwargs".to_owned(), further.into());
        }
    }
    let kept =
        message.iter().filter(|(name, value)| !TAKEN.contains(&name.as_str()) && !is_empty(value));
    for (name, value) in kept {
        ours.entry(name.clone()).or_insert_with(|| value.clone());
    }
}
