//! Conversations in a provider-independent form.

mod image;

use std::borrow::Cow;

use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{
    CompletionRequest, Message, PROVIDER_STATE, Part, Role, ToolDefinition, ToolResult,
};

use crate::chat::image::unsupported_type_note;
pub(crate) use crate::chat::image::{ImageData, LoadedImages, MAX_IMAGES_BYTES};
use crate::config::ProviderKind;

/// A validated conversation with its tools, in a provider-independent form.
#[derive(Clone, Debug)]
pub(crate) struct Chat<'a> {
    pub(crate) messages: Vec<ChatMessage<'a>>,
    pub(crate) tools: &'a [ToolDefinition],
}

/// A message of a conversation.
#[derive(Clone, Debug)]
pub(crate) enum ChatMessage<'a> {
    /// System instructions.
    System(String),
    /// A user message.
    User(Vec<UserPart<'a>>),
    /// An assistant message.
    Assistant(Cow<'a, [Part]>),
    /// The results of consecutive tool calls.
    Results(Vec<&'a ToolResult>),
}

/// A part of a user message.
#[derive(Clone, Debug)]
pub(crate) enum UserPart<'a> {
    Text(Cow<'a, str>),
    Image(MessageImage),
}

/// An image in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageImage {
    pub(crate) media_type: String,
    pub(crate) source: ImageData,
}

impl MessageImage {
    /// Returns the URL of the image; a data URL if the image is inline.
    pub(crate) fn url(&self) -> String {
        match &self.source {
            ImageData::Base64(data) => format!("data:{};base64,{data}", self.media_type),
            ImageData::Url(url) => url.clone(),
        }
    }
}

impl<'a> Chat<'a> {
    /// Creates the conversation of a request for a provider of this kind. `pictures` holds the
    /// loaded images of the request.
    ///
    /// # Errors
    ///
    /// `invalid` if the request has no messages, or if a message cannot be sent to any model.
    pub(crate) fn new(
        request: &'a CompletionRequest,
        pictures: &LoadedImages,
        kind: ProviderKind,
    ) -> Result<Self, Failure> {
        if request.messages.is_empty() {
            return Err(Failure::new(code::INVALID, "a model call needs at least one message"));
        }
        let mut messages = Vec::with_capacity(request.messages.len());
        for (index, message) in request.messages.iter().enumerate() {
            let named = |failure: Failure| Failure {
                message: format!("message {index}: {}", failure.message),
                ..failure
            };
            check_parts(message).map_err(named)?;
            push_message(&mut messages, message, pictures, kind).map_err(named)?;
        }
        Ok(Self { messages, tools: &request.tools })
    }

    /// Inserts an instruction before all other instructions.
    pub(crate) fn with_instructions(mut self, text: String) -> Self {
        self.messages.insert(0, ChatMessage::System(text));
        self
    }

    /// Appends a completion and the next user message. Omits an empty completion, because providers
    /// reject empty messages.
    pub(crate) fn append_turn(&mut self, completion: String, text: String) {
        if !completion.trim().is_empty() {
            self.messages.push(ChatMessage::Assistant(vec![Part::Text(completion)].into()));
        }
        self.messages.push(ChatMessage::User(vec![UserPart::Text(text.into())]));
    }

    /// Returns all system instructions joined into one string; `None` if there are none.
    pub(crate) fn instructions(&self) -> Option<String> {
        let texts = self.messages.iter().filter_map(|turn| match turn {
            ChatMessage::System(text) => Some(text.as_str()),
            _ => None,
        });
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}

/// Appends a message. Consecutive tool results become a separate turn, independently of the role of
/// their message.
fn push_message<'a>(
    turns: &mut Vec<ChatMessage<'a>>,
    message: &'a Message,
    pictures: &LoadedImages,
    kind: ProviderKind,
) -> Result<(), Failure> {
    let results = message.parts.iter().filter(|part| matches!(part, Part::ToolResult(_))).count();
    if message.role == Role::Tool && results < message.parts.len() {
        let text = "a message of role `tool` can contain tool results only";
        return Err(Failure::new(code::INVALID, text));
    }
    for parts in message.parts.chunk_by(|left, right| is_result(left) == is_result(right)) {
        match parts {
            [Part::ToolResult(_), ..] => add_results(turns, parts),
            parts => turns.push(convert_message(&message.role, parts, pictures, kind)?),
        }
    }
    Ok(())
}

fn is_result(part: &Part) -> bool {
    matches!(part, Part::ToolResult(_))
}

fn add_results<'a>(turns: &mut Vec<ChatMessage<'a>>, parts: &'a [Part]) {
    let results = parts.iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        _ => None,
    });
    match turns.last_mut() {
        Some(ChatMessage::Results(last)) => last.extend(results),
        _ => turns.push(ChatMessage::Results(results.collect())),
    }
}

fn convert_message<'a>(
    role: &Role,
    parts: &'a [Part],
    pictures: &LoadedImages,
    kind: ProviderKind,
) -> Result<ChatMessage<'a>, Failure> {
    match role {
        Role::System => {
            let texts = parts.iter().filter_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                _ => None,
            });
            Ok(ChatMessage::System(texts.collect::<Vec<_>>().join("\n\n")))
        }
        Role::User => {
            let mut shown = Vec::new();
            for part in parts {
                match part {
                    Part::Text(text) => shown.push(UserPart::Text(text.into())),
                    Part::Image(image) => {
                        let (media_type, source) = pictures.resolve(image)?;
                        shown.push(match unsupported_type_note(kind, &media_type, &source) {
                            Some(words) => UserPart::Text(words.into()),
                            None => UserPart::Image(MessageImage { media_type, source }),
                        });
                    }
                    _ => {}
                }
            }
            Ok(ChatMessage::User(shown))
        }
        Role::Assistant => Ok(ChatMessage::Assistant(parts.into())),
        // The parts of a message of role `tool` are tool results only, so there is no other part to
        // convert.
        Role::Tool => Ok(ChatMessage::Results(Vec::new())),
        Role::Other(name) => Err(Failure::new(
            code::INVALID,
            format!("`{name}` is not a role that models know; use system, user, assistant or tool"),
        )),
    }
}

/// Rejects parts of unknown types. Provider state is checked later, when the request body is built.
fn check_parts(message: &Message) -> Result<(), Failure> {
    for (place, part) in message.parts.iter().enumerate() {
        let Part::Other(value) = part else { continue };
        let kind = value.get("type").and_then(serde_json::Value::as_str);
        if kind.is_some_and(|kind| PROVIDER_PART_TYPES.contains(&kind)) {
            continue;
        }
        let kind = kind.unwrap_or("unknown");
        let text = format!(
            "part {place} of kind `{kind}` cannot be sent to a model; send text, an image, a tool \
             call or a tool result"
        );
        return Err(Failure::new(code::INVALID, text));
    }
    Ok(())
}

/// Types of parts that only one provider understands. Versions of Wattle before 0.1 wrote the last
/// two types.
const PROVIDER_PART_TYPES: [&str; 3] = [PROVIDER_STATE, "provider_part", "reasoning_signature"];
