//! The body of a request.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use wattle_graph::llm::{Part, ToolChoice, ToolDefinition, ToolResult};

use crate::chat::{Chat, ChatMessage, ImageData, MessageImage, UserPart};
use crate::provider::names;
use crate::provider::provider_state::{SentMessage, SentPart, StateOwner, merge_fields};
use crate::provider::schema::SchemaAdapter;
use crate::provider::thought_signature;
use crate::provider::{ResponseFormat, TurnRequest};
use crate::structured::strict;

/// Prefixes of models that do not reason and reject `thinkingConfig`. Source: "Gemini thinking" of
/// the Gemini API's documentation.
const NON_REASONING_MODELS: [&str; 4] = ["gemini-1", "gemini-2.0", "gemma", "learnlm"];

/// Returns the body of a request. Settings of the request override those of the route.
pub(super) fn build(
    ask: &TurnRequest<'_>,
    owner: &StateOwner,
    model: &str,
    schemas: &SchemaAdapter,
) -> Value {
    let request = ask.request;
    let mut body = Map::new();
    if let Some(text) = ask.chat.instructions() {
        body.insert("systemInstruction".into(), json!({ "parts": [{ "text": text }] }));
    }
    body.insert("contents".into(), contents(ask.chat, owner, model));
    let tools = ask.chat.tools;
    if !tools.is_empty() {
        let tools = schemas.write_tools(tools, tool_definition);
        body.insert("tools".into(), json!([{ "functionDeclarations": tools }]));
        let choice = tool_choice(&request.tool_choice);
        body.extend(choice.map(|choice| ("toolConfig".to_owned(), choice)));
    }
    let max = request.max_output_tokens.or(ask.route.max_output_tokens);
    let temperature = request.temperature.or(ask.route.temperature);
    let (mime_type, schema) = match ask.format {
        ResponseFormat::Text => (None, None),
        ResponseFormat::JsonObject => (Some("application/json"), None),
        ResponseFormat::Schema(shape) => {
            (Some("application/json"), Some(strict::without_dialect(&shape.schema)))
        }
    };
    let thinks = !NON_REASONING_MODELS.iter().any(|name| model.starts_with(name));
    let fields = [
        ("thinkingConfig", thinks.then(|| json!({ "includeThoughts": true }))),
        ("temperature", temperature.map(Value::from)),
        ("maxOutputTokens", max.map(Value::from)),
        ("seed", request.seed.map(Value::from)),
        ("stopSequences", (!request.stop.is_empty()).then(|| json!(request.stop))),
        ("responseMimeType", mime_type.map(Value::from)),
        ("responseJsonSchema", schema),
    ];
    let config: Map<String, Value> =
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    if !config.is_empty() {
        body.insert("generationConfig".into(), config.into());
    }
    Value::Object(body)
}

/// The tool call that a result belongs to: its name, and its id if Gemini assigned an id.
struct CalledTool<'a> {
    name: &'a str,
    id: Option<Value>,
}

fn contents(chat: &Chat<'_>, owner: &StateOwner, model: &str) -> Value {
    let wants_signatures = thought_signature::is_needed(model);
    let mut contents = Vec::new();
    let mut asked: HashMap<String, CalledTool<'_>> = HashMap::new();
    for turn in &chat.messages {
        let (role, parts) = match turn {
            ChatMessage::System(_) => continue,
            ChatMessage::User(parts) => ("user", user_parts(parts)),
            ChatMessage::Assistant(parts) => {
                ("model", assistant_parts(parts, owner, wants_signatures, &mut asked))
            }
            ChatMessage::Results(results) => {
                ("user", results.iter().map(|result| tool_result(result, &asked)).collect())
            }
        };
        if !parts.is_empty() {
            contents.push(json!({ "role": role, "parts": parts }));
        }
    }
    contents.into()
}

fn user_parts(parts: &[UserPart<'_>]) -> Vec<Value> {
    let part = |part: &UserPart<'_>| match part {
        UserPart::Text(text) => json!({ "text": text }),
        UserPart::Image(MessageImage { media_type, source }) => match source {
            ImageData::Base64(data) => {
                json!({ "inline_data": { "mime_type": media_type, "data": data.as_ref() } })
            }
            ImageData::Url(url) => {
                let mut file = json!({ "file_uri": url });
                // `image/*` is not a media type of one image. The type cannot be omitted, because
                // gateways require it, although "FileData" in the reference of the Gemini API
                // declares it optional.
                let media_type = if media_type.ends_with("/*") {
                    type_by_extension(url)
                } else {
                    Some(media_type.as_str())
                };
                if let Some(media_type) = media_type {
                    file["mime_type"] = json!(media_type);
                }
                json!({ "file_data": file })
            }
        },
    };
    parts.iter().map(part).collect()
}

/// Returns the type of an image by the file extension in its URL.
fn type_by_extension(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    let (_, ending) = path.rsplit('/').next()?.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "heic" => "image/heic",
        _ => return None,
    })
}

/// Returns the parts of an assistant message. Reasoning without a signature is not sent back.
fn assistant_parts<'a>(
    parts: &'a [Part],
    owner: &StateOwner,
    wants_signatures: bool,
    asked: &mut HashMap<String, CalledTool<'a>>,
) -> Vec<Value> {
    let mut is_first = true;
    let mut written = Vec::new();
    for piece in SentMessage::new(parts, owner).parts {
        match piece {
            SentPart::Text(text, fields) => {
                written.push(merge_fields(json!({ "text": text }), fields));
            }
            SentPart::Reasoning(_, fields) if fields.is_empty() => {}
            SentPart::Reasoning(text, fields) => {
                written.push(merge_fields(json!({ "text": text, "thought": true }), fields));
            }
            SentPart::Call(call, mut fields) => {
                let own = match fields.remove("functionCall") {
                    Some(Value::Object(own)) => own,
                    _ => Map::new(),
                };
                let (name, id) = (names::tool_name(&call.name), own.get("id").cloned());
                asked.insert(call.id.clone(), CalledTool { name, id });
                let request =
                    json!({ "name": name, "args": names::arguments_object(&call.arguments) });
                let request = merge_fields(request, own);
                let mut part = merge_fields(json!({ "functionCall": request }), fields);
                // Only the first call of a turn has a signature.
                if wants_signatures && is_first && part.get("thoughtSignature").is_none() {
                    part["thoughtSignature"] = json!(thought_signature::PLACEHOLDER);
                }
                is_first = false;
                written.push(part);
            }
            SentPart::Opaque(value) => written.push(value),
        }
    }
    written
}

/// Returns a tool result. Gemini requires the name of the tool.
fn tool_result(result: &ToolResult, asked: &HashMap<String, CalledTool<'_>>) -> Value {
    let asked = asked.get(&result.call_id);
    let name = asked.map_or(result.call_id.as_str(), |asked| asked.name);
    let key = if result.is_error { "error" } else { "output" };
    let mut response = json!({ "name": name, "response": { key: result.content } });
    if let Some(id) = asked.and_then(|asked| asked.id.as_ref()) {
        response["id"] = id.clone();
    }
    json!({ "functionResponse": response })
}

fn tool_definition(tool: &ToolDefinition, schema: &Value) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": schema,
    })
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    let mode = match choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => json!({ "mode": "NONE" }),
        ToolChoice::Required => json!({ "mode": "ANY" }),
        ToolChoice::Tool(name) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
    };
    Some(json!({ "functionCallingConfig": mode }))
}
