//! The body of a request.

use serde_json::{Map, Value, json};
use wattle_graph::llm::{Part, ToolChoice, ToolDefinition, ToolResult};

use crate::chat::{Chat, Picture, Shown, Source, Turn};
use crate::provider::names;
use crate::provider::schema::Schemas;
use crate::provider::state::{Owner, Piece, Said, with};
use crate::provider::{Ask, Format};
use crate::structured::strict;

/// Maximum output tokens by prefix of the model name. The API requires `max_tokens` in every request. Source: "Models
/// overview" of Anthropic's documentation.
const LONGEST: [(&str, u32); 5] = [
    ("claude-3-opus", 4_096),
    ("claude-3-haiku", 4_096),
    ("claude-3-5", 8_192),
    ("claude-opus-4-0", 32_000),
    ("claude-opus-4-1", 32_000),
];

/// Maximum output tokens of all other models.
const LONGEST_OF_OTHERS: u32 = 64_000;

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
    let max = request.max_output_tokens.or(ask.route.max_output_tokens);
    body.insert("max_tokens".into(), json!(max.unwrap_or_else(|| longest(model))));
    body.insert("messages".into(), messages(ask.chat, owner));
    body.insert("stream".into(), json!(stream));
    let temperature = request.temperature.or(ask.route.temperature);
    let tools = Some(ask.chat.tools).filter(|tools| !tools.is_empty());
    let format = match ask.format {
        // The API has no JSON mode; the system instructions have the schema.
        Format::Free | Format::JsonObject => None,
        Format::Schema(shape) => Some(json!({ "format": {
            "type": "json_schema", "schema": strict::without_dialect(&shape.schema),
        } })),
    };
    let fields = [
        ("system", ask.chat.instructions().map(Value::from)),
        ("tools", tools.map(|tools| schemas.written(tools, tool))),
        ("tool_choice", tools.and(tool_choice(&request.tool_choice))),
        ("output_config", format),
        ("temperature", temperature.map(Value::from)),
        ("stop_sequences", (!request.stop.is_empty()).then(|| json!(request.stop))),
    ];
    for (name, value) in fields {
        body.extend(value.map(|value| (name.to_owned(), value)));
    }
    Value::Object(body)
}

fn longest(model: &str) -> u32 {
    let known = LONGEST.iter().find(|(start, _)| model.starts_with(start));
    known.map_or(LONGEST_OF_OTHERS, |(_, tokens)| *tokens)
}

/// Returns the messages. The API rejects messages without content, so such messages are left out.
fn messages(chat: &Chat<'_>, owner: &Owner) -> Value {
    let mut messages = Vec::new();
    for turn in &chat.turns {
        let (role, content) = match turn {
            Turn::System(_) => continue,
            Turn::User(parts) => ("user", user(parts)),
            Turn::Assistant(parts) => ("assistant", said(parts, owner)),
            Turn::Results(results) => ("user", results.iter().map(|it| answer(it)).collect()),
        };
        if !content.is_empty() {
            messages.push(json!({ "role": role, "content": content }));
        }
    }
    messages.into()
}

fn user(parts: &[Shown<'_>]) -> Vec<Value> {
    let part = |part: &Shown<'_>| match part {
        Shown::Text(text) if text.is_empty() => None,
        Shown::Text(text) => Some(json!({ "type": "text", "text": text })),
        Shown::Picture(Picture { media_type, source }) => Some(match source {
            Source::Base64(data) => json!({ "type": "image", "source": {
                "type": "base64", "media_type": media_type, "data": data.as_ref(),
            } }),
            Source::Address(url) => {
                json!({ "type": "image", "source": { "type": "url", "url": url } })
            }
        }),
    };
    parts.iter().filter_map(part).collect()
}

/// Returns the blocks of an assistant message. The API rejects reasoning without a signature, so such reasoning is left
/// out.
fn said(parts: &[Part], owner: &Owner) -> Vec<Value> {
    let pieces = Said::new(parts, owner).pieces.into_iter();
    let block = |piece: Piece<'_>| match piece {
        Piece::Text(text, _) if text.trim().is_empty() => None,
        Piece::Text(text, fields) => Some(with(json!({ "type": "text", "text": text }), fields)),
        Piece::Reasoning(text, fields) => fields
            .contains_key("signature")
            .then(|| with(json!({ "type": "thinking", "thinking": text }), fields)),
        Piece::Call(call, fields) => {
            let request = json!({
                "type": "tool_use",
                "id": names::plain_id(&call.id),
                "name": names::tool(&call.name),
                "input": names::arguments(&call.arguments),
            });
            Some(with(request, fields))
        }
        Piece::Own(value) => Some(value),
    };
    pieces.filter_map(block).collect()
}

fn answer(result: &ToolResult) -> Value {
    let mut answer = json!({
        "type": "tool_result", "tool_use_id": names::plain_id(&result.call_id),
        "content": result.content,
    });
    if result.is_error {
        answer["is_error"] = json!(true);
    }
    answer
}

fn tool(tool: &ToolDefinition, schema: &Value) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": schema,
    })
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({ "type": "none" })),
        ToolChoice::Required => Some(json!({ "type": "any" })),
        ToolChoice::Tool(name) => Some(json!({ "type": "tool", "name": name })),
    }
}
