//! Conversations in a provider-independent form.

mod picture;

use std::borrow::Cow;

use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{
    CompletionRequest, Message, PROVIDER_STATE, Part, Role, ToolDefinition, ToolResult,
};

use crate::chat::picture::untaken;
pub(crate) use crate::chat::picture::{PICTURE_BYTES, Pictures, Source};
use crate::config::ProviderKind;

/// A validated conversation with its tools, in a provider-independent form.
#[derive(Clone, Debug)]
pub(crate) struct Chat<'a> {
    pub(crate) turns: Vec<Turn<'a>>,
    pub(crate) tools: &'a [ToolDefinition],
}

/// A message of a conversation.
#[derive(Clone, Debug)]
pub(crate) enum Turn<'a> {
    /// System instructions.
    System(String),
    /// A user message.
    User(Vec<Shown<'a>>),
    /// An assistant message.
    Assistant(Cow<'a, [Part]>),
    /// The results of consecutive tool calls.
    Results(Vec<&'a ToolResult>),
}

/// A part of a user message.
#[derive(Clone, Debug)]
pub(crate) enum Shown<'a> {
    Text(Cow<'a, str>),
    Picture(Picture),
}

/// An image in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) media_type: String,
    pub(crate) source: Source,
}

impl Picture {
    /// Returns the URL of the image; a data URL if the image is inline.
    pub(crate) fn url(&self) -> String {
        match &self.source {
            Source::Base64(data) => format!("data:{};base64,{data}", self.media_type),
            Source::Address(url) => url.clone(),
        }
    }
}

impl<'a> Chat<'a> {
    /// Creates the conversation of a request for a provider of this kind. `pictures` holds the loaded images of the
    /// request.
    ///
    /// # Errors
    ///
    /// `invalid` if the request has no messages, or if a message cannot be sent to any model.
    pub(crate) fn new(
        request: &'a CompletionRequest,
        pictures: &Pictures,
        kind: ProviderKind,
    ) -> Result<Self, Failure> {
        if request.messages.is_empty() {
            return Err(Failure::new(code::INVALID, "a model call needs at least one message"));
        }
        let mut turns = Vec::with_capacity(request.messages.len());
        for (index, message) in request.messages.iter().enumerate() {
            let named = |failure: Failure| Failure {
                message: format!("message {index}: {}", failure.message),
                ..failure
            };
            known(message).map_err(named)?;
            add(&mut turns, message, pictures, kind).map_err(named)?;
        }
        Ok(Self { turns, tools: &request.tools })
    }

    /// Inserts this instruction before all others.
    pub(crate) fn instructed(mut self, text: String) -> Self {
        self.turns.insert(0, Turn::System(text));
        self
    }

    /// Appends a completion and the next user message. Omits an empty completion, because providers reject empty
    /// messages.
    pub(crate) fn go_on(&mut self, answer: String, text: String) {
        if !answer.trim().is_empty() {
            self.turns.push(Turn::Assistant(vec![Part::Text(answer)].into()));
        }
        self.turns.push(Turn::User(vec![Shown::Text(text.into())]));
    }

    /// Returns all system instructions joined into one string; `None` if there are none.
    pub(crate) fn instructions(&self) -> Option<String> {
        let texts = self.turns.iter().filter_map(|turn| match turn {
            Turn::System(text) => Some(text.as_str()),
            _ => None,
        });
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}

/// Appends a message. Consecutive tool results become a separate turn, whatever the role of their message.
fn add<'a>(
    turns: &mut Vec<Turn<'a>>,
    message: &'a Message,
    pictures: &Pictures,
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
            parts => turns.push(spoken(&message.role, parts, pictures, kind)?),
        }
    }
    Ok(())
}

fn is_result(part: &Part) -> bool {
    matches!(part, Part::ToolResult(_))
}

fn add_results<'a>(turns: &mut Vec<Turn<'a>>, parts: &'a [Part]) {
    let results = parts.iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        _ => None,
    });
    match turns.last_mut() {
        Some(Turn::Results(last)) => last.extend(results),
        _ => turns.push(Turn::Results(results.collect())),
    }
}

fn spoken<'a>(
    role: &Role,
    parts: &'a [Part],
    pictures: &Pictures,
    kind: ProviderKind,
) -> Result<Turn<'a>, Failure> {
    match role {
        Role::System => {
            let texts = parts.iter().filter_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                _ => None,
            });
            Ok(Turn::System(texts.collect::<Vec<_>>().join("\n\n")))
        }
        Role::User => {
            let mut shown = Vec::new();
            for part in parts {
                match part {
                    Part::Text(text) => shown.push(Shown::Text(text.into())),
                    Part::Image(image) => {
                        let (media_type, source) = pictures.resolve(image)?;
                        shown.push(match untaken(kind, &media_type, &source) {
                            Some(words) => Shown::Text(words.into()),
                            None => Shown::Picture(Picture { media_type, source }),
                        });
                    }
                    _ => {}
                }
            }
            Ok(Turn::User(shown))
        }
        Role::Assistant => Ok(Turn::Assistant(parts.into())),
        // A message of role `tool` has no other parts.
        Role::Tool => Ok(Turn::Results(Vec::new())),
        Role::Other(name) => Err(Failure::new(
            code::INVALID,
            format!("`{name}` is not a role that models know; use system, user, assistant or tool"),
        )),
    }
}

/// Rejects parts of unknown types. Provider state is checked later, when the request body is built.
fn known(message: &Message) -> Result<(), Failure> {
    for (place, part) in message.parts.iter().enumerate() {
        let Part::Other(value) = part else { continue };
        let kind = value.get("type").and_then(serde_json::Value::as_str);
        if kind.is_some_and(|kind| OPAQUE.contains(&kind)) {
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

/// Types of parts that only one provider understands. Wattle before version 0.1 wrote the last two.
const OPAQUE: [&str; 3] = [PROVIDER_STATE, "provider_part", "reasoning_signature"];
