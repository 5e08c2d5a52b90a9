//! The body of a request.

use serde_json::{Map, Value, json};
use wattle_graph::llm::{Part, ResponseSchema, ToolChoice, ToolDefinition, ToolResult};

use crate::chat::{Chat, Shown, Turn};
use crate::provider::names;
use crate::provider::schema::Schemas;
use crate::provider::state::{Owner, Piece, Said, with};
use crate::provider::{Ask, Format};
use crate::structured::strict;

/// Prefixes of the models that expect `max_completion_tokens` instead of `max_tokens`.
const COUNT_COMPLETION: [&str; 5] = ["gpt-5", "gpt-6", "o1", "o3", "o4"];

/// Returns the body of a request. Settings of the request override those of the route.
pub(super) fn body(
    ask: &Ask<'_>,
    owner: &Owner,
    model: &str,
    stream: bool,
    schemas: &Schemas,
) -> Value {
    let request = ask.request;
    let mut body = Map::new();
    body.insert("model".into(), json!(model));
    body.insert("messages".into(), messages(ask.chat, owner));
    body.insert("stream".into(), json!(stream));
    let longest = if COUNT_COMPLETION.iter().any(|name| model.starts_with(name)) {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    let max = request.max_output_tokens.or(ask.route.max_output_tokens);
    let temperature = request.temperature.or(ask.route.temperature);
    let tools = Some(ask.chat.tools).filter(|tools| !tools.is_empty());
    let fields = [
        ("stream_options", stream.then(|| json!({ "include_usage": true }))),
        ("tools", tools.map(|tools| schemas.written(tools, tool))),
        ("tool_choice", tools.and(tool_choice(&request.tool_choice))),
        ("response_format", response_format(ask.format)),
        ("temperature", temperature.map(Value::from)),
        (longest, max.map(Value::from)),
        ("seed", request.seed.map(Value::from)),
        ("stop", (!request.stop.is_empty()).then(|| json!(request.stop))),
    ];
    for (name, value) in fields {
        body.extend(value.map(|value| (name.to_owned(), value)));
    }
    // The extra fields replace no field of the host: they were checked when the route was created.
    body.extend(ask.extra.clone());
    Value::Object(body)
}

fn messages(chat: &Chat<'_>, owner: &Owner) -> Value {
    let message = |turn: &Turn<'_>| match turn {
        Turn::System(text) => vec![json!({ "role": "system", "content": text })],
        Turn::User(parts) => vec![json!({ "role": "user", "content": user(parts) })],
        Turn::Assistant(parts) => vec![assistant(parts, owner)],
        Turn::Results(results) => results.iter().map(|result| answer(result)).collect(),
    };
    chat.turns.iter().flat_map(message).collect()
}

fn user(parts: &[Shown<'_>]) -> Value {
    let text = |part: &Shown<'_>| match part {
        Shown::Text(text) => Some(text.to_string()),
        Shown::Picture(_) => None,
    };
    if let Some(texts) = parts.iter().map(text).collect::<Option<Vec<String>>>() {
        return texts.join("\n\n").into();
    }
    let part = |part: &Shown<'_>| match part {
        Shown::Text(text) => json!({ "type": "text", "text": text }),
        Shown::Picture(picture) => {
            json!({ "type": "image_url", "image_url": { "url": picture.url() } })
        }
    };
    parts.iter().map(part).collect()
}

/// Returns an assistant message. Reasoning is sent back only with tool calls: DeepSeek rejects calls without it, and
/// other services do not know the field.
fn assistant(parts: &[Part], owner: &Owner) -> Value {
    let said = Said::new(parts, owner);
    let mut calls = Vec::new();
    let mut reasoning = String::new();
    let text = said.text();
    for piece in said.pieces {
        match piece {
            Piece::Call(call, fields) => {
                let arguments = names::arguments(&call.arguments).to_string();
                let request = json!({
                    "id": call.id, "type": "function",
                    "function": { "name": names::tool(&call.name), "arguments": arguments },
                });
                calls.push(with(request, fields));
            }
            Piece::Reasoning(text, _) => reasoning.push_str(text),
            Piece::Text(..) | Piece::Own(_) => {}
        }
    }
    let mut message = json!({ "role": "assistant", "content": text });
    if calls.is_empty() {
        return with(message, said.fields);
    }
    if text.is_empty() {
        message["content"] = Value::Null;
    }
    message["tool_calls"] = calls.into();
    if !reasoning.is_empty() {
        message["reasoning_content"] = reasoning.into();
    }
    with(message, said.fields)
}

/// Returns a tool result. The format has no flag for a failed tool, so the text starts with `error:`.
fn answer(result: &ToolResult) -> Value {
    let content =
        if result.is_error { format!("error: {}", result.content) } else { result.content.clone() };
    json!({ "role": "tool", "tool_call_id": result.call_id, "content": content })
}

fn tool(tool: &ToolDefinition, schema: &Value) -> Value {
    let mut function = json!({ "name": tool.name, "parameters": schema });
    if !tool.description.is_empty() {
        function["description"] = json!(tool.description);
    }
    json!({ "type": "function", "function": function })
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Tool(name) => Some(json!({ "type": "function", "function": { "name": name } })),
    }
}

fn response_format(format: Format<'_>) -> Option<Value> {
    match format {
        Format::Free => None,
        Format::JsonObject => Some(json!({ "type": "json_object" })),
        Format::Schema(shape) => Some(json!({
            "type": "json_schema", "json_schema": json_schema(shape),
        })),
    }
}

/// Returns the response schema for `response_format`: in strict mode if the subset of that mode can express it.
fn json_schema(shape: &ResponseSchema) -> Value {
    let (schema, strict) = match strict::adapt(&shape.schema) {
        Some(schema) => (schema, true),
        None => (strict::without_dialect(&shape.schema), false),
    };
    json!({ "name": shape.name, "strict": strict, "schema": schema })
}
