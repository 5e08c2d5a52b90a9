//! Our messages in the words of crate `genai`.
//!
//! Two things that `genai` gives back must be sent again unchanged in the next turn: a provider's
//! signature of its reasoning, and blocks of kinds it does not know. They travel through guests as
//! `Part::Other`, see [`SIGNATURE`] and [`PROVIDER_PART`].

mod picture;

use genai::chat::{
    Binary, ChatMessage, ChatRequest, ChatRole, ContentPart, MessageContent, Tool, ToolCall,
    ToolChoice, ToolResponse,
};
use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{self, CompletionRequest, Message, Part, Role};

use crate::config::ProviderKind;
use crate::message::picture::Source;
pub(crate) use crate::message::picture::{PICTURE_BYTES, Pictures};

/// `type` of a `Part::Other` that holds a provider's signature of its reasoning.
pub(crate) const SIGNATURE: &str = "reasoning_signature";

/// `type` of a `Part::Other` that holds a block of a provider's own.
pub(crate) const PROVIDER_PART: &str = "provider_part";

/// The conversation and the tools of a request.
pub(crate) fn chat_request(
    request: &CompletionRequest,
    pictures: &Pictures,
    kind: ProviderKind,
) -> Result<ChatRequest, Failure> {
    let mut messages = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        add_message(&mut messages, message, pictures, kind)?;
    }
    if messages.is_empty() {
        return Err(Failure::new(code::INVALID, "a model call needs at least one message"));
    }
    let mut chat = ChatRequest::new(messages);
    if !request.tools.is_empty() {
        chat = chat.with_tools(request.tools.iter().map(tool));
    }
    Ok(chat)
}

/// The wish about tools; none without tools, which providers refuse.
pub(crate) fn tool_choice(request: &CompletionRequest) -> Option<ToolChoice> {
    if request.tools.is_empty() {
        return None;
    }
    match &request.tool_choice {
        llm::ToolChoice::Auto => None,
        llm::ToolChoice::None => Some(ToolChoice::None),
        llm::ToolChoice::Required => Some(ToolChoice::Required),
        llm::ToolChoice::Tool(name) => Some(ToolChoice::tool(name)),
    }
}

fn tool(definition: &llm::ToolDefinition) -> Tool {
    Tool::new(definition.name.clone())
        .with_description(definition.description.clone())
        .with_schema(definition.arguments_schema.clone())
}

/// Adds a message. Results of tools become messages of their own: in others they would be lost.
fn add_message(
    messages: &mut Vec<ChatMessage>,
    message: &Message,
    pictures: &Pictures,
    kind: ProviderKind,
) -> Result<(), Failure> {
    let role = role(&message.role)?;
    let mut own = Vec::new();
    for part in &message.parts {
        match part {
            Part::ToolResult(result) => {
                flush(messages, &role, &mut own);
                messages.push(ChatMessage::tool(response(result)));
            }
            _ if role == ChatRole::Tool => {
                return Err(Failure::new(
                    code::INVALID,
                    "a message of role `tool` may hold tool results only",
                ));
            }
            other => own.push(content(other, pictures, kind)?),
        }
    }
    flush(messages, &role, &mut own);
    Ok(())
}

fn flush(messages: &mut Vec<ChatMessage>, role: &ChatRole, parts: &mut Vec<ContentPart>) {
    if !parts.is_empty() {
        let content = MessageContent::from_parts(std::mem::take(parts));
        messages.push(ChatMessage::new(role.clone(), content));
    }
}

fn role(role: &Role) -> Result<ChatRole, Failure> {
    match role {
        Role::System => Ok(ChatRole::System),
        Role::User => Ok(ChatRole::User),
        Role::Assistant => Ok(ChatRole::Assistant),
        Role::Tool => Ok(ChatRole::Tool),
        Role::Other(name) => Err(Failure::new(
            code::INVALID,
            format!("`{name}` is not a role that models know; use system, user, assistant or tool"),
        )),
    }
}

/// `genai` has no flag for a tool that failed, so the model is told in words.
fn response(result: &llm::ToolResult) -> ToolResponse {
    let content =
        if result.is_error { format!("error: {}", result.content) } else { result.content.clone() };
    ToolResponse::new(&result.call_id, content)
}

fn content(part: &Part, pictures: &Pictures, kind: ProviderKind) -> Result<ContentPart, Failure> {
    Ok(match part {
        Part::Text(text) => ContentPart::from_text(text),
        Part::Image(image) => picture(pictures.resolve(image)?, kind),
        Part::ToolCall(call) => ContentPart::ToolCall(ToolCall {
            call_id: call.id.clone(),
            fn_name: call.name.clone(),
            fn_arguments: arguments(&call.arguments),
            thought_signatures: None,
        }),
        Part::ToolResult(result) => ContentPart::ToolResponse(response(result)),
        Part::Reasoning(text) => ContentPart::ReasoningContent(text.clone()),
        Part::Other(value) => other(value)?,
    })
}

/// Providers take objects only. What a model wrote that was none goes back to it inside of one.
fn arguments(value: &Value) -> Value {
    match value {
        Value::Object(_) => value.clone(),
        Value::Null => json!({}),
        other => json!({ "unreadable_arguments": other }),
    }
}

/// Anthropic fetches pictures by address, which `genai` does not know.
fn picture((media_type, source): (String, Source), kind: ProviderKind) -> ContentPart {
    match source {
        Source::Base64(data) => Binary::from_base64(media_type, data, None).into(),
        Source::Address(url) if kind == ProviderKind::Anthropic => ContentPart::from_custom(
            json!({ "type": "image", "source": { "type": "url", "url": url } }),
            None,
        ),
        Source::Address(url) => Binary::from_url(media_type, url, None).into(),
    }
}

fn other(value: &Value) -> Result<ContentPart, Failure> {
    match value.get("type").and_then(Value::as_str) {
        Some(SIGNATURE) => {
            let signature = value.get("signature").and_then(Value::as_str).unwrap_or_default();
            Ok(ContentPart::ThoughtSignature(signature.to_owned()))
        }
        Some(PROVIDER_PART) => {
            let data = value.get("data").cloned().unwrap_or_default();
            Ok(ContentPart::from_custom(data, None))
        }
        kind => Err(Failure::new(
            code::INVALID,
            format!(
                "a message holds a part of kind `{}`, which this host does not know",
                kind.unwrap_or("unknown")
            ),
        )),
    }
}
