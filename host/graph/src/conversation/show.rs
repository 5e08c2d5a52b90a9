//! Conversion of a conversation to messages for a model. The result of each call directly follows
//! the call. Other tool messages are omitted.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;
use serde::de::{Error as _, Unexpected};
use serde_json::Value;

use crate::conversation::block;
use crate::conversation::content::to_parts;
use crate::conversation::name::model_name;
use crate::failure::{Failure, code};
use crate::limit::{Exceeded, HISTORY_REPEATED_BYTES, history_repeated_bytes};
use crate::llm::{Message, Part, Role, ToolCall, ToolResult};
use crate::message::{MessageView, result_call_id};
use crate::weight::weight;

/// Content for a tool without output, because providers reject an empty result.
const SILENT: &str = "done";

/// Content for an error without a text.
const SILENT_ERROR: &str = "the tool failed and gave no reason";

/// A message in the format of the state. Fields with a default may be absent. A field that models
/// do not get has a name with an underscore, and is only checked.
#[derive(Default, Deserialize)]
struct Stored<'v> {
    /// Author: `system`, `user`, `assistant`, `tool` or another.
    #[serde(borrow)]
    role: Cow<'v, str>,
    /// Tool calls that the model requests.
    #[serde(default)]
    tool_calls: Vec<StoredCall>,
    /// Id of the call to which a tool result belongs.
    #[serde(borrow, default)]
    tool_call_id: Option<Text<'v>>,
    #[serde(rename = "name", borrow, default)]
    _name: Option<Text<'v>>,
    /// `success` or `error`; only in a tool result.
    #[serde(borrow, default)]
    status: Option<Text<'v>>,
    /// Reasoning of the model.
    #[serde(borrow, default)]
    reasoning: Option<Text<'v>>,
    /// Content of the message.
    #[serde(skip)]
    content: Option<&'v Value>,
    /// Arguments of the call if a person changed them; only in a tool result.
    #[serde(skip)]
    arguments: Option<&'v Value>,
    /// Opaque state of the provider. It is sent back with the message.
    #[serde(skip)]
    provider_state: Option<&'v Value>,
}

#[derive(Deserialize)]
struct Text<'v>(#[serde(borrow)] Cow<'v, str>);

/// A tool call in the format of the state. It has the tool's own name, not the one that the model
/// sees.
#[derive(Deserialize)]
struct StoredCall {
    id: String,
    name: String,
    #[serde(default)]
    arguments: Value,
}

impl<'v> Stored<'v> {
    fn read(message: &'v Value) -> Result<Self, serde_json::Error> {
        // The derived implementation reads an array as the fields in order.
        if message.is_array() {
            return Err(serde_json::Error::invalid_type(Unexpected::Seq, &"struct Stored"));
        }
        let fields = Self::deserialize(message)?;
        let value = |name: &str| message.get(name).filter(|value| !value.is_null());
        Ok(Self {
            content: value("content"),
            arguments: value("arguments"),
            provider_state: value("provider_state"),
            ..fields
        })
    }

    /// Reads the call, the status and the content of a tool result whose other fields cannot be
    /// read. Without a result, providers would reject the call. Returns `None` for another message.
    fn read_result(message: &'v Value) -> Option<Self> {
        let text = |text: &'v str| Text(Cow::Borrowed(text));
        let id = result_call_id(message)?;
        let is_error = MessageView::of(message).is_some_and(MessageView::is_error);
        Some(Self {
            role: Cow::Borrowed("tool"),
            tool_call_id: Some(text(id)),
            status: is_error.then(|| text("error")),
            content: message.get("content").filter(|content| !content.is_null()),
            ..Self::default()
        })
    }

    fn parts(&self) -> Vec<Part> {
        let Some(content) = self.content else { return Vec::new() };
        let calls: HashSet<&str> = self.tool_calls.iter().map(|call| &*call.id).collect();
        to_parts(content, &self.role, &|id: &str| calls.contains(id))
    }

    fn is_error(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.0 == "error")
    }
}

/// A tool result of a conversation.
struct Answer<'v> {
    /// Number of messages before it.
    position: usize,
    item: &'v Value,
    message: Stored<'v>,
    /// True if a call has the result.
    is_taken: bool,
}

/// The tool results of a conversation.
#[derive(Default)]
struct Results<'v> {
    /// The results in order, by the ids of the calls.
    by_call: HashMap<Cow<'v, str>, Vec<Answer<'v>>>,
    /// Weight of the results that further calls with the same id have, in bytes.
    repeated: u64,
}

impl<'v> Results<'v> {
    fn push(&mut self, position: usize, item: &'v Value, mut message: Stored<'v>) {
        if let Some(Text(id)) = message.tool_call_id.take() {
            let answer = Answer { position, item, message, is_taken: false };
            self.by_call.entry(id).or_default().push(answer);
        }
    }

    /// Returns the first result of a call after the message that requests it.
    fn after(&mut self, position: usize, id: &str) -> Result<Option<&Stored<'v>>, Exceeded> {
        let Some(answers) = self.by_call.get_mut(id) else { return Ok(None) };
        let later = answers.partition_point(|answer| answer.position < position);
        let Some(answer) = answers.get_mut(later) else { return Ok(None) };
        if answer.is_taken {
            self.repeated += weight(answer.item);
            if self.repeated > HISTORY_REPEATED_BYTES {
                return Err(history_repeated_bytes());
            }
        }
        answer.is_taken = true;
        Ok(Some(&answer.message))
    }
}

/// The messages of a conversation, of which the tool results are apart.
#[derive(Default)]
struct Messages<'v> {
    /// Items that are no tool results, each with the number of messages before it. The message is
    /// `None` if it cannot be read.
    others: Vec<(usize, &'v Value, Option<Stored<'v>>)>,
    results: Results<'v>,
    /// Number of all messages.
    count: usize,
    /// Number of messages before the newest message of a user.
    older: usize,
}

impl<'v> Messages<'v> {
    fn push(&mut self, item: &'v Value) -> Result<(), serde_json::Error> {
        let message = match Stored::read(item) {
            Err(_) if self.count < self.older => Stored::read_result(item),
            read => Some(read?),
        };
        match message {
            // A result is added together with its call. Providers reject a result without a call.
            Some(message) if message.role == "tool" => {
                self.results.push(self.count, item, message);
            }
            message => self.others.push((self.count, item, message)),
        }
        self.count += 1;
        Ok(())
    }
}

/// Converts the messages of a conversation, in the format of the state, to messages for a model.
///
/// The result of each call directly follows the message with the call, wherever it is in the
/// conversation. A result without a call is omitted. Messages without content are omitted, and
/// content that models cannot get is replaced with a description.
///
/// An item that is not a message, or whose role models do not know, is replaced with a description
/// as well if it precedes the message at `newest`, which is the newest message of a user. Such an
/// item would otherwise fail this and every later run. A newer one fails, so that its author sees
/// the failure. The description of an item depends on nothing else, and not on the id of the item.
///
/// `items` are consecutive items of the list in `channel`, and `first` is the position of the first
/// one. The messages in `append` follow them, with the next positions. `names` contains the names
/// under which the model sees tools, by the tools' own names. A tool that is not in it has its own
/// name, with all characters replaced that a provider rejects.
///
/// # Errors
///
/// `invalid` if an item from `newest` on is not a message. The failure names its position in the
/// channel or in `append`. `limit` if calls with the same id repeat results of more than
/// [`HISTORY_REPEATED_BYTES`].
pub fn to_messages<'v>(
    items: impl IntoIterator<Item = &'v Value>,
    first: usize,
    append: &'v [Value],
    newest: usize,
    names: &BTreeMap<String, String>,
    channel: &str,
) -> Result<Vec<Message>, Failure> {
    let older = newest.saturating_sub(first);
    let mut messages = Messages { older, ..Messages::default() };
    for (position, item) in (first..).zip(items) {
        let pushed = messages.push(item);
        pushed.map_err(|error| unreadable(position, &format!("channel `{channel}`"), &error))?;
    }
    for (position, item) in append.iter().enumerate() {
        messages.push(item).map_err(|error| unreadable(position, "`append`", &error))?;
    }
    let Messages { others, mut results, .. } = messages;
    let mut shown = Vec::with_capacity(others.len());
    for (position, item, message) in others {
        let Some(message) = message else {
            push(&mut shown, Role::User, vec![block::message(item)]);
            continue;
        };
        match &*message.role {
            "system" | "developer" => push(&mut shown, Role::System, message.parts()),
            "user" => push(&mut shown, Role::User, message.parts()),
            "assistant" => {
                let pushed = push_assistant(&mut shown, position, message, &mut results, names);
                pushed.map_err(|exceeded| {
                    exceeded.of(&format!("channel `{channel}`")).to_failure()
                })?;
            }
            _ if position < older => push(&mut shown, Role::User, vec![block::message(item)]),
            other => push(&mut shown, Role::Other(other.to_owned()), message.parts()),
        }
    }
    Ok(shown)
}

/// Returns the failure for an item of a list that is not a message.
fn unreadable(position: usize, list: &str, error: &serde_json::Error) -> Failure {
    Failure::new(code::INVALID, format!("message {position} of {list} cannot be read: {error}"))
}

/// Adds a message of the model, and the results of its calls.
fn push_assistant(
    shown: &mut Vec<Message>,
    position: usize,
    message: Stored<'_>,
    results: &mut Results<'_>,
    names: &BTreeMap<String, String>,
) -> Result<(), Exceeded> {
    let parts = message.parts();
    let state = message.provider_state.cloned().map(Part::Other);
    let reasoning = message.reasoning.map(|text| Part::Reasoning(text.0.into_owned()));
    let mut said: Vec<Part> = state.into_iter().chain(reasoning).chain(parts).collect();
    let (mut answers, mut pictures) = (Vec::new(), Vec::new());
    for call in message.tool_calls {
        let answer = results.after(position, &call.id)?;
        // If a person changed the arguments, the tool was called with the changed arguments.
        let changed = answer.and_then(|answer| answer.arguments);
        if let Some(answer) = answer {
            let (result, seen) = result(&call.id, answer);
            answers.push(result);
            pictures.extend(seen);
        }
        said.push(Part::ToolCall(ToolCall {
            name: model_name(&call.name, names),
            arguments: changed.cloned().unwrap_or(call.arguments),
            id: call.id,
        }));
    }
    push(shown, Role::Assistant, said);
    shown.extend(answers);
    if !pictures.is_empty() {
        pictures.insert(0, Part::Text("The images that the tools returned:".to_owned()));
    }
    push(shown, Role::User, pictures);
    Ok(())
}

/// Adds a message unless it is empty. Providers reject empty messages.
fn push(shown: &mut Vec<Message>, role: Role, parts: Vec<Part>) {
    if !parts.is_empty() {
        shown.push(Message { role, parts });
    }
}

/// Returns a tool result with its texts, and separately its images, which a tool result cannot
/// contain.
fn result(call_id: &str, answer: &Stored<'_>) -> (Message, Vec<Part>) {
    let (pictures, words): (Vec<Part>, Vec<Part>) =
        answer.parts().into_iter().partition(|part| matches!(part, Part::Image(_)));
    let texts: Vec<String> = words.into_iter().filter_map(text).collect();
    let content = match texts.join("\n") {
        text if !text.is_empty() => text,
        _ if answer.is_error() => SILENT_ERROR.to_owned(),
        _ => SILENT.to_owned(),
    };
    let result = ToolResult { call_id: call_id.to_owned(), content, is_error: answer.is_error() };
    (Message { role: Role::Tool, parts: vec![Part::ToolResult(result)] }, pictures)
}

fn text(part: Part) -> Option<String> {
    match part {
        Part::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
