//! The body of a request.

use serde_json::{Map, Value, json};
use wattle_graph::llm::{Part, ToolChoice, ToolDefinition, ToolResult};

use crate::chat::{Chat, ChatMessage, ImageData, MessageImage, UserPart};
use crate::provider::names;
use crate::provider::optional_fields::{OptionalField, TurnFields};
use crate::provider::provider_state::{SentMessage, SentPart, StateOwner, merge_fields};
use crate::provider::schema::{SchemaAdapter, closed};
use crate::provider::{ResponseFormat, TurnRequest};
use crate::structured::strict;

/// Maximum output tokens by prefix of the model name. The API requires `max_tokens` in every
/// request. Source: "Models overview" of Anthropic's documentation.
const MAX_OUTPUT_TOKENS: [(&str, u32); 5] = [
    ("claude-3-opus", 4_096),
    ("claude-3-haiku", 4_096),
    ("claude-3-5", 8_192),
    ("claude-opus-4-0", 32_000),
    ("claude-opus-4-1", 32_000),
];

/// Maximum output tokens of all other models.
const DEFAULT_MAX_OUTPUT_TOKENS: u32 = 64_000;

/// Returns the body of a request. Settings of the request override those of the route.
pub(super) fn build(
    ask: &TurnRequest<'_>,
    owner: &StateOwner,
    model: &str,
    stream: bool,
    optional: &mut TurnFields,
    schemas: &SchemaAdapter,
) -> Value {
    let request = ask.request;
    let mut body = Map::new();
    body.insert("model".into(), json!(model));
    let max = request.max_output_tokens.or(ask.route.max_output_tokens);
    body.insert("max_tokens".into(), json!(max.unwrap_or_else(|| max_output_tokens(model))));
    body.insert("messages".into(), messages(ask.chat, owner));
    body.insert("stream".into(), json!(stream));
    let temperature = request.temperature.or(ask.route.temperature);
    let temperature = optional.value(OptionalField::Temperature, temperature);
    let tools = Some(ask.chat.tools).filter(|tools| !tools.is_empty());
    let format = match ask.format {
        // The API has no JSON mode; the system instructions have the schema.
        ResponseFormat::Text | ResponseFormat::JsonObject => None,
        ResponseFormat::Schema(shape) => {
            let closed = closed::to_closed(&shape.schema);
            let schema = closed.unwrap_or_else(|| strict::without_dialect(&shape.schema));
            Some(json!({ "format": { "type": "json_schema", "schema": schema } }))
        }
    };
    let fields = [
        ("system", ask.chat.instructions().map(Value::from)),
        ("tools", tools.map(|tools| schemas.write_tools(tools, tool_definition))),
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

fn max_output_tokens(model: &str) -> u32 {
    let known = MAX_OUTPUT_TOKENS.iter().find(|(start, _)| model.starts_with(start));
    known.map_or(DEFAULT_MAX_OUTPUT_TOKENS, |(_, tokens)| *tokens)
}

/// Returns the messages. The API rejects messages without content, so such messages are left out.
fn messages(chat: &Chat<'_>, owner: &StateOwner) -> Value {
    let mut messages = Vec::new();
    for turn in &chat.messages {
        let (role, content) = match turn {
            ChatMessage::System(_) => continue,
            ChatMessage::User(parts) => ("user", user_content(parts)),
            ChatMessage::Assistant(parts) => ("assistant", assistant_content(parts, owner)),
            ChatMessage::Results(results) => {
                ("user", results.iter().map(|it| tool_result(it)).collect())
            }
        };
        if !content.is_empty() {
            messages.push(json!({ "role": role, "content": content }));
        }
    }
    messages.into()
}

/// Returns the blocks of a user message. The API rejects a text of white space only, so such a text
/// is left out.
fn user_content(parts: &[UserPart<'_>]) -> Vec<Value> {
    let part = |part: &UserPart<'_>| match part {
        UserPart::Text(text) if text.trim().is_empty() => None,
        UserPart::Text(text) => Some(json!({ "type": "text", "text": text })),
        UserPart::Image(MessageImage { media_type, source }) => Some(match source {
            ImageData::Base64(data) => json!({ "type": "image", "source": {
                "type": "base64", "media_type": media_type, "data": data.as_ref(),
            } }),
            ImageData::Url(url) => {
                json!({ "type": "image", "source": { "type": "url", "url": url } })
            }
        }),
    };
    parts.iter().filter_map(part).collect()
}

/// Returns the blocks of an assistant message. The API rejects reasoning without a signature, so
/// such reasoning is left out.
fn assistant_content(parts: &[Part], owner: &StateOwner) -> Vec<Value> {
    let pieces = SentMessage::new(parts, owner).parts.into_iter();
    let block = |piece: SentPart<'_>| match piece {
        SentPart::Text(text, _) if text.trim().is_empty() => None,
        SentPart::Text(text, fields) => {
            Some(merge_fields(json!({ "type": "text", "text": text }), fields))
        }
        SentPart::Reasoning(text, fields) => fields
            .contains_key("signature")
            .then(|| merge_fields(json!({ "type": "thinking", "thinking": text }), fields)),
        SentPart::Call(call, fields) => {
            let request = json!({
                "type": "tool_use",
                "id": names::sanitize_id(&call.id),
                "name": names::tool_name(&call.name),
                "input": names::arguments_object(&call.arguments),
            });
            Some(merge_fields(request, fields))
        }
        SentPart::Opaque(value) => Some(value),
    };
    pieces.filter_map(block).collect()
}

fn tool_result(result: &ToolResult) -> Value {
    let mut block = json!({
        "type": "tool_result", "tool_use_id": names::sanitize_id(&result.call_id),
        "content": result.content,
    });
    if result.is_error {
        block["is_error"] = json!(true);
    }
    block
}

fn tool_definition(tool: &ToolDefinition, schema: &Value) -> Value {
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
