//! The body of a request.

use serde_json::{Map, Value, json};
use wattle_graph::llm::{Part, ResponseSchema, ToolChoice, ToolDefinition, ToolResult};

use crate::chat::{Chat, ChatMessage, UserPart};
use crate::provider::names;
use crate::provider::openai::call_ids::CallIds;
use crate::provider::openai::content_parts;
use crate::provider::openai::reasoning_field::{self, ReasoningField};
use crate::provider::optional_fields::{OptionalField, TurnFields};
use crate::provider::provider_state::{Fields, SentMessage, SentPart, StateOwner, merge_fields};
use crate::provider::schema::SchemaAdapter;
use crate::provider::thought_signature;
use crate::provider::{ResponseFormat, TurnRequest};
use crate::structured::strict;

/// The field in which Google's endpoint for the format sends and expects signatures.
const SIGNED_FIELD: &str = "extra_content";

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
    body.insert("messages".into(), messages(ask.chat, owner, model));
    body.insert("stream".into(), json!(stream));
    let max = request.max_output_tokens.or(ask.route.max_output_tokens);
    let (longest, max) = optional.token_limit(model, max);
    let temperature = request.temperature.or(ask.route.temperature);
    let temperature = optional.value(OptionalField::Temperature, temperature);
    let options = stream.then(|| json!({ "include_usage": true }));
    let options = optional.value(OptionalField::StreamOptions, options);
    let tools = Some(ask.chat.tools).filter(|tools| !tools.is_empty());
    let fields = [
        ("stream_options", options),
        ("tools", tools.map(|tools| schemas.write_tools(tools, tool_definition))),
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
    // The extra fields cannot replace a field of the host, because they were checked when the route
    // was created.
    body.extend(ask.extra.clone());
    Value::Object(body)
}

fn messages(chat: &Chat<'_>, owner: &StateOwner, model: &str) -> Value {
    let wants_signatures = thought_signature::is_needed_in_openai_format(model);
    let mut ids = CallIds::for_model(model);
    let message = |turn: &ChatMessage<'_>| match turn {
        ChatMessage::System(text) => vec![json!({ "role": "system", "content": text })],
        ChatMessage::User(parts) => vec![json!({ "role": "user", "content": user_content(parts) })],
        ChatMessage::Assistant(parts) => {
            vec![assistant_message(parts, owner, wants_signatures, &mut ids)]
        }
        ChatMessage::Results(results) => {
            results.iter().map(|result| tool_result(result, &ids)).collect()
        }
    };
    chat.messages.iter().flat_map(message).collect()
}

fn user_content(parts: &[UserPart<'_>]) -> Value {
    let text = |part: &UserPart<'_>| match part {
        UserPart::Text(text) => Some(text.to_string()),
        UserPart::Image(_) => None,
    };
    if let Some(texts) = parts.iter().map(text).collect::<Option<Vec<String>>>() {
        return texts.join("\n\n").into();
    }
    let part = |part: &UserPart<'_>| match part {
        UserPart::Text(text) => json!({ "type": "text", "text": text }),
        UserPart::Image(picture) => {
            json!({ "type": "image_url", "image_url": { "url": picture.url() } })
        }
    };
    parts.iter().map(part).collect()
}

/// Returns an assistant message. Reasoning in a field or between tags is sent back only with tool
/// calls: DeepSeek rejects calls without reasoning, and other services do not know its field.
fn assistant_message(
    parts: &[Part],
    owner: &StateOwner,
    wants_signatures: bool,
    ids: &mut CallIds,
) -> Value {
    let said = SentMessage::new(parts, owner);
    let mut calls = Vec::new();
    let mut reasoning = String::new();
    let mut reasoning_field = ReasoningField::default();
    let has_calls = said.parts.iter().any(|piece| matches!(piece, SentPart::Call(..)));
    let content = content(&said.parts, has_calls);
    let may_add_signature = wants_signatures && !has_gateway_state(&said.fields);
    for piece in said.parts {
        match piece {
            SentPart::Call(call, fields) => {
                if said.is_own {
                    ids.add_own(&call.id);
                }
                let arguments = names::arguments_object(&call.arguments).to_string();
                let request = json!({
                    "id": ids.sent(&call.id), "type": "function",
                    "function": { "name": names::tool_name(&call.name), "arguments": arguments },
                });
                let may_add_signature = may_add_signature && !has_gateway_state(&fields);
                let mut request = merge_fields(request, fields);
                // Only the first call of a turn has a signature.
                if may_add_signature && calls.is_empty() {
                    request = merge_fields(request, placeholder_signature());
                }
                calls.push(request);
            }
            SentPart::Reasoning(text, state) => {
                if let Some(field) = ReasoningField::from_state(&state) {
                    reasoning_field = field;
                    reasoning.push_str(text);
                }
            }
            SentPart::Text(..) | SentPart::Opaque(_) => {}
        }
    }
    let mut message = json!({ "role": "assistant", "content": content });
    if calls.is_empty() {
        return merge_fields(message, said.fields);
    }
    if message["content"] == "" {
        message["content"] = Value::Null;
    }
    message["tool_calls"] = calls.into();
    if !reasoning.is_empty() {
        message[reasoning_field.name()] = reasoning.into();
    }
    merge_fields(message, said.fields)
}

/// Returns the content: an array of parts if the service sent it as one, or else a text. The text
/// includes the reasoning between tags if the message has tool calls.
fn content(parts: &[SentPart<'_>], has_calls: bool) -> Value {
    let tagged = |reasoning: &str, state: &Fields| {
        has_calls.then(|| reasoning_field::restore_tags(reasoning, state)).flatten()
    };
    let is_part = |piece: &SentPart<'_>| match piece {
        SentPart::Opaque(_) => true,
        SentPart::Reasoning(_, state) => content_parts::has_reasoning(state),
        SentPart::Text(_, fields) => !fields.is_empty(),
        SentPart::Call(..) => false,
    };
    if !parts.iter().any(is_part) {
        let text = |piece: &SentPart<'_>| match piece {
            SentPart::Text(text, _) => Some((*text).to_owned()),
            SentPart::Reasoning(text, state) => tagged(text, state),
            SentPart::Opaque(_) | SentPart::Call(..) => None,
        };
        return parts.iter().filter_map(text).collect::<String>().into();
    }
    let text_part = |text: &str| json!({ "type": "text", "text": text });
    let part = |piece: &SentPart<'_>| match piece {
        SentPart::Text(text, fields) => Some(merge_fields(text_part(text), fields.clone())),
        SentPart::Reasoning(text, state) => content_parts::restore(text, state)
            .or_else(|| tagged(text, state).map(|text| text_part(&text))),
        SentPart::Opaque(part) => Some(part.clone()),
        SentPart::Call(..) => None,
    };
    parts.iter().filter_map(part).collect()
}

/// Returns whether the state of a message or of a call has fields of a gateway, which then has its
/// own place for signatures: `thinking_blocks` of Envoy, `provider_specific_fields` of LiteLLM,
/// `reasoning_details` of OpenRouter.
fn has_gateway_state(fields: &Fields) -> bool {
    fields.keys().any(|name| name != SIGNED_FIELD)
}

/// Returns the fields of a call with the placeholder of a signature, in the place that Google's
/// endpoint for the format has for signatures.
fn placeholder_signature() -> Fields {
    let signature = json!({ "google": { "thought_signature": thought_signature::PLACEHOLDER } });
    let mut fields = Fields::new();
    fields.insert(SIGNED_FIELD.to_owned(), signature);
    fields
}

/// Returns a tool result. The format has no flag for a failed tool, so the text starts with
/// `error:`.
fn tool_result(result: &ToolResult, ids: &CallIds) -> Value {
    let content =
        if result.is_error { format!("error: {}", result.content) } else { result.content.clone() };
    json!({ "role": "tool", "tool_call_id": ids.sent(&result.call_id), "content": content })
}

fn tool_definition(tool: &ToolDefinition, schema: &Value) -> Value {
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

fn response_format(format: ResponseFormat<'_>) -> Option<Value> {
    match format {
        ResponseFormat::Text => None,
        ResponseFormat::JsonObject => Some(json!({ "type": "json_object" })),
        ResponseFormat::Schema(shape) => Some(json!({
            "type": "json_schema", "json_schema": json_schema(shape),
        })),
    }
}

/// Returns the response schema for `response_format`: in strict mode if the subset of JSON Schema
/// for strict mode can express the schema.
fn json_schema(shape: &ResponseSchema) -> Value {
    let (schema, strict) = match strict::to_strict(&shape.schema) {
        Some(schema) => (schema, true),
        None => (strict::without_dialect(&shape.schema), false),
    };
    json!({ "name": shape.name, "strict": strict, "schema": schema })
}
