//! The body of a request.

use genai::chat::{ChatMessage, ChatRequest, ChatRole, ContentPart, Tool};
use serde_json::{Map, Value, json};
use wattle_graph::llm::{ResponseSchema, ToolChoice};

use crate::provider::{Ask, Format};
use crate::structured::strict;

/// Beginnings of the names of models that call the longest answer differently.
const COUNT_COMPLETION: [&str; 5] = ["gpt-5", "gpt-6", "o1", "o3", "o4"];

/// The whole body. What the guest says goes before what the route says.
pub(super) fn body(ask: &Ask<'_>, model: &str, stream: bool) -> Value {
    let request = ask.request;
    let mut body = Map::new();
    body.insert("model".into(), json!(model));
    body.insert("messages".into(), messages(ask.chat));
    body.insert("stream".into(), json!(stream));
    let longest = if COUNT_COMPLETION.iter().any(|name| model.starts_with(name)) {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    let max = request.max_output_tokens.or(ask.route.max_output_tokens);
    let temperature = request.temperature.or(ask.route.temperature);
    let tools = ask.chat.tools.as_deref().filter(|tools| !tools.is_empty());
    let fields = [
        ("stream_options", stream.then(|| json!({ "include_usage": true }))),
        ("tools", tools.map(|tools| tools.iter().map(tool).collect())),
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
    // None of these can be one of ours: that is checked when a route is set up.
    body.extend(ask.extra.clone());
    Value::Object(body)
}

fn messages(chat: &ChatRequest) -> Value {
    let system = chat.system.iter().map(|text| json!({ "role": "system", "content": text }));
    system.chain(chat.messages.iter().flat_map(message)).collect()
}

/// A message in this format; each result of a tool is one of its own.
fn message(message: &ChatMessage) -> Vec<Value> {
    let parts = message.content.parts();
    match message.role {
        ChatRole::System => {
            vec![json!({ "role": "system", "content": message.content.joined_texts() })]
        }
        ChatRole::User => vec![json!({ "role": "user", "content": user(message) })],
        ChatRole::Assistant => vec![assistant(message)],
        ChatRole::Tool => parts.iter().filter_map(ContentPart::as_tool_response).map(|result| {
            json!({ "role": "tool", "tool_call_id": result.call_id, "content": result.content })
        }).collect(),
    }
}

fn user(message: &ChatMessage) -> Value {
    if message.content.is_text_only() {
        return json!(message.content.joined_texts().unwrap_or_default());
    }
    let parts = message.content.parts().iter();
    parts
        .filter_map(|part| match part {
            ContentPart::Text(text) => Some(json!({ "type": "text", "text": text })),
            ContentPart::Binary(picture) => {
                let url = picture.clone().into_url();
                Some(json!({ "type": "image_url", "image_url": { "url": url } }))
            }
            _ => None,
        })
        .collect()
}

/// What the model said. Its reasoning goes back with requests for tools only: DeepSeek refuses
/// those without it, and others do not know the field.
fn assistant(message: &ChatMessage) -> Value {
    let parts = message.content.parts();
    let calls: Vec<Value> = parts
        .iter()
        .filter_map(ContentPart::as_tool_call)
        .map(|call| {
            let arguments = call.fn_arguments.to_string();
            json!({
                "id": call.call_id, "type": "function",
                "function": { "name": call.fn_name, "arguments": arguments },
            })
        })
        .collect();
    let mut said = json!({ "role": "assistant", "content": message.content.joined_texts() });
    if !calls.is_empty() {
        said["tool_calls"] = calls.into();
        let reasoning: String =
            parts.iter().filter_map(ContentPart::as_reasoning_content).collect();
        if !reasoning.is_empty() {
            said["reasoning_content"] = reasoning.into();
        }
    } else if said["content"].is_null() {
        said["content"] = "".into();
    }
    let details: Vec<Value> = parts.iter().filter_map(signed_reasoning).collect();
    if !details.is_empty() {
        said["reasoning_details"] = details.into();
    }
    said
}

fn signed_reasoning(part: &ContentPart) -> Option<Value> {
    let data = &part.as_custom()?.data;
    data.get("type")?.as_str()?.starts_with("reasoning.").then(|| data.clone())
}

fn tool(tool: &Tool) -> Value {
    let mut function = json!({ "name": tool.name.as_str(), "parameters": tool.schema });
    if let Some(description) = &tool.description {
        function["description"] = json!(description);
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

/// Strict decoding, where the schema can be expressed there.
fn json_schema(shape: &ResponseSchema) -> Value {
    let (schema, strict) = match strict::adapt(&shape.schema) {
        Some(schema) => (schema, true),
        None => (strict::without_dialect(&shape.schema), false),
    };
    json!({ "name": shape.name, "strict": strict, "schema": schema })
}
