//! Messages of a request, checked and reduced to what an app stores.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat::ui::client::Part;
use crate::chat::ui::message::{Role, UiMessage};
use crate::failure::Failure;
use crate::web::{refuse, status};

/// Maximum number of characters of an id. Ids of clients have about twenty.
const ID_CHARS: usize = 200;

/// Limits of the messages that a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of messages.
    pub messages: usize,
    /// Maximum number of parts of a message.
    pub parts: usize,
    /// Maximum number of characters of a message of the user.
    pub text_chars: usize,
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    id: Option<String>,
    role: Role,
    #[serde(default)]
    parts: Vec<Value>,
    /// Older clients send it instead of parts.
    #[serde(default)]
    content: Option<Value>,
}

/// Reads the messages of a request, for an app whose page sends the whole conversation each time,
/// as `useChat` does. The last one must be a text of the user, because the run replies to it.
///
/// Files are reduced to their names, and unknown parts are left out. `output` returns the output of
/// a tool call as the app stores it: a client can send one of any length.
///
/// # Errors
///
/// A failure with status 400 and a message for the sender.
///
/// ```
/// use serde_json::{Value, json};
/// use wattle_plugin::chat::ui;
///
/// const LIMITS: ui::Limits = ui::Limits { messages: 100, parts: 100, text_chars: 4_000 };
///
/// let sent = json!([{"id": "u", "role": "user", "parts": [
///     {"type": "text", "text": "what is this?"},
///     {"type": "file", "filename": "a.png", "mediaType": "image/png", "url": "data:..."},
/// ]}]);
/// let messages = ui::read(&sent, &LIMITS, Value::clone)?;
/// let file = json!({"type": "file", "filename": "a.png", "mediaType": "image/png"});
/// assert_eq!(messages[0].parts[1], file);
/// assert_eq!(ui::read(&json!([]), &LIMITS, Value::clone).unwrap_err().status(), Some(400));
/// # Ok::<_, wattle_plugin::Failure>(())
/// ```
pub fn read(
    messages: &Value,
    limits: &Limits,
    output: impl Fn(&Value) -> Value,
) -> Result<Vec<UiMessage>, Failure> {
    all(messages, limits, &output).map_err(|why| refuse(status::BAD_REQUEST, why))
}

fn all(
    messages: &Value,
    limits: &Limits,
    output: &impl Fn(&Value) -> Value,
) -> Result<Vec<UiMessage>, String> {
    let messages =
        messages.as_array().ok_or_else(|| "`messages` must be a list of messages".to_owned())?;
    if messages.len() > limits.messages {
        return Err(format!(
            "a conversation has at most {} messages; begin a new one",
            limits.messages
        ));
    }
    let read = messages
        .iter()
        .enumerate()
        .map(|(index, message)| {
            one(message, index, limits, output)
                .map_err(|why| format!("message {}: {why}", index + 1))
        })
        .collect::<Result<Vec<UiMessage>, String>>()?;
    let ids: BTreeSet<&str> = read.iter().map(|it| it.id.as_str()).collect();
    if ids.len() < read.len() {
        return Err("two messages have the same id".to_owned());
    }
    if read.last().is_none_or(|last| last.role != Role::User || last.text().trim().is_empty()) {
        return Err("the last message must be a text of the user".to_owned());
    }
    Ok(read)
}

fn one(
    message: &Value,
    index: usize,
    limits: &Limits,
    output: &impl Fn(&Value) -> Value,
) -> Result<UiMessage, String> {
    let raw = Raw::deserialize(message)
        .map_err(|error| format!("it is no message of a chat page: {error}"))?;
    let id = raw.id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("message-{index}"));
    if id.chars().count() > ID_CHARS || id.contains('\0') {
        return Err(format!("its id is longer than {ID_CHARS} characters, or has a NUL"));
    }
    if raw.parts.len() > limits.parts {
        return Err(format!("it has more than {} parts", limits.parts));
    }
    let mut parts: Vec<Value> =
        raw.parts.into_iter().filter_map(|part| kept(part, output)).collect();
    if let (true, Some(Value::String(text))) = (parts.is_empty(), raw.content) {
        parts.push(json!({ "type": "text", "text": text }));
    }
    let message = UiMessage { id, role: raw.role, parts };
    if raw.role == Role::User && message.text().chars().count() > limits.text_chars {
        let most = limits.text_chars;
        return Err(format!("it is longer than {most} characters; say it in fewer"));
    }
    Ok(message)
}

/// Returns a part as it is stored: a file by its name, and no unknown part.
fn kept(mut part: Value, output: &impl Fn(&Value) -> Value) -> Option<Value> {
    match Part::of(&part) {
        Part::Other => None,
        Part::File(name) => Some(json!({ "type": "file", "filename": name,
            "mediaType": part["mediaType"].as_str().unwrap_or("application/octet-stream") })),
        Part::Tool(_) => {
            if let Some(sent) = part.get_mut("output") {
                *sent = output(sent);
            }
            Some(part)
        }
        _ => Some(part),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Limits, read};
    use crate::chat::ui::{Role, UiMessage};
    use crate::failure::Failure;

    const LIMITS: Limits = Limits { messages: 3, parts: 4, text_chars: 10 };

    /// Reads messages, and shortens outputs to their types.
    fn sent(messages: &Value) -> Result<Vec<UiMessage>, Failure> {
        read(messages, &LIMITS, |output| json!(output.is_object()))
    }

    fn user(id: &str, text: &str) -> Value {
        json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
    }

    #[test]
    fn parts_are_reduced_to_what_is_stored() {
        let call = |name: &str, state: &str| {
            json!({"type": format!("tool-{name}"),
            "toolCallId": "c", "state": state, "input": {}})
        };
        let mut ended = call("search", "output-available");
        ended["output"] = json!({"count": 1});
        let mut stored = ended.clone();
        stored["output"] = json!(true);
        let file =
            |name: &str, media: &str| json!({"type": "file", "filename": name, "mediaType": media});
        for (part, expected) in [
            (json!({"type": "text", "text": "x", "state": "done"}), None),
            (json!({"type": "reasoning", "text": "x"}), None),
            (json!({"type": "step-start"}), None),
            (call("search", "input-available"), None),
            (ended, Some(json!([stored]))),
            (call("", "input-available"), Some(json!([]))),
            (call("", "output-available"), Some(json!([]))),
            (json!({"type": "data-hint", "data": {}}), Some(json!([]))),
            (
                json!({"type": "file", "url": "data:image/png;base64,AAAA",
                    "mediaType": "image/png", "filename": "a.png"}),
                Some(json!([file("a.png", "image/png")])),
            ),
            (
                json!({"type": "file", "url": "data:,x"}),
                Some(json!([file("a file", "application/octet-stream")])),
            ),
        ] {
            let expected = expected.unwrap_or_else(|| json!([part]));
            let message = json!({"id": "a", "role": "assistant", "parts": [part], "metadata": 1});
            let messages = sent(&json!([message, user("u", "hi")])).unwrap();
            assert_eq!(json!(messages[0].parts), expected, "{part}");
        }
    }

    #[test]
    fn messages_of_older_clients_are_read() {
        let messages =
            json!([{"role": "system", "content": "x"}, {"role": "user", "content": "y"}]);
        let messages = sent(&messages).unwrap();
        let read: Vec<_> = messages.iter().map(|it| (it.id.as_str(), it.role, it.text())).collect();
        let expected = [
            ("message-0", Role::System, "x".to_owned()),
            ("message-1", Role::User, "y".to_owned()),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn invalid_conversations_are_refused() {
        let assistant = |parts: Value| json!({"id": "b", "role": "assistant", "parts": parts});
        for (messages, why) in [
            (json!(null), "`messages` must be a list of messages"),
            (json!([]), "the last message must be a text of the user"),
            (json!([user("a", " ")]), "the last message must be a text of the user"),
            (
                json!([user("a", "hi"), assistant(json!([]))]),
                "the last message must be a text of the user",
            ),
            (
                json!([{"id": "a", "role": "robot", "parts": []}]),
                "message 1: it is no message of a chat page: unknown variant `robot`, expected \
                    one of `system`, `user`, `assistant`",
            ),
            (json!([user("a", "x"), user("a", "y")]), "two messages have the same id"),
            (
                json!([user("a", "x"), user(&"i".repeat(201), "x")]),
                "message 2: its id is longer than 200 characters, or has a NUL",
            ),
            (
                json!([user("\0", "x")]),
                "message 1: its id is longer than 200 characters, or has a NUL",
            ),
            (
                json!([user("a", "eleven long")]),
                "message 1: it is longer than 10 characters; say it in fewer",
            ),
            (
                json!([assistant(json!([{}, {}, {}, {}, {}])), user("a", "x")]),
                "message 1: it has more than 4 parts",
            ),
            (
                json!(["a", "b", "c", "d"].map(|id| user(id, "x"))),
                "a conversation has at most 3 messages; begin a new one",
            ),
        ] {
            let failure = sent(&messages).unwrap_err();
            assert_eq!((failure.status(), failure.message.as_str()), (Some(400), why));
        }
    }
}
