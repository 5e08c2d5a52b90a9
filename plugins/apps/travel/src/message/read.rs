//! Messages of a request, checked and reduced to what is stored.

use std::collections::BTreeSet;

use wattle_plugin::chat::ui::Part;
use wattle_plugin::prelude::{Deserialize, Value, json};

use crate::message::{Role, UiMessage};
use crate::session::stored;
use crate::youtube;

/// Maximum number of messages of a session: months of conversation, and still one page.
const MESSAGES: usize = 500;

/// Maximum number of parts of a message. A run has at most nine model calls, each with a few parts.
const PARTS: usize = 500;

/// Maximum number of characters of an id. Ids of clients have about twenty.
const ID_CHARS: usize = 200;

/// Maximum number of characters of a user message: a long letter, but not a book, which would be
/// expensive.
const TEXT_CHARS: usize = 20_000;

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

/// Reads the messages of a request. The last one must be the user's, because the run answers it.
///
/// # Errors
///
/// Returns a message for the sender.
pub(crate) fn read(messages: &Value) -> Result<Vec<UiMessage>, String> {
    let messages =
        messages.as_array().ok_or_else(|| "`messages` must be a list of messages".to_owned())?;
    if messages.len() > MESSAGES {
        return Err(format!("a session has at most {MESSAGES} messages; begin a new one"));
    }
    let mut read = messages
        .iter()
        .enumerate()
        .map(|(index, message)| {
            one(message, index).map_err(|why| format!("message {}: {why}", index + 1))
        })
        .collect::<Result<Vec<UiMessage>, String>>()?;
    let ids: BTreeSet<&str> = read.iter().map(|it| it.id.as_str()).collect();
    if ids.len() < read.len() {
        return Err("two messages have the same id".to_owned());
    }
    if read.last().is_none_or(|last| last.role != Role::User || last.text().trim().is_empty()) {
        return Err("the last message must be a text of the user".to_owned());
    }
    if let Some(first) = read.iter_mut().find(|message| message.role == Role::User) {
        prompt(first);
    }
    Ok(read)
}

fn one(message: &Value, index: usize) -> Result<UiMessage, String> {
    let raw = Raw::deserialize(message)
        .map_err(|error| format!("it is no message of a chat page: {error}"))?;
    let id = raw.id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("message-{index}"));
    if id.chars().count() > ID_CHARS || id.contains('\0') {
        return Err(format!("its id is longer than {ID_CHARS} characters, or has a NUL"));
    }
    if raw.parts.len() > PARTS {
        return Err(format!("it has more than {PARTS} parts"));
    }
    let mut parts: Vec<Value> = raw.parts.into_iter().filter_map(kept).collect();
    if let (true, Some(Value::String(text))) = (parts.is_empty(), raw.content) {
        parts.push(json!({ "type": "text", "text": text }));
    }
    let message = UiMessage { id, role: raw.role, parts };
    if raw.role == Role::User && message.text().chars().count() > TEXT_CHARS {
        return Err(format!("it is longer than {TEXT_CHARS} characters; say it in fewer"));
    }
    Ok(message)
}

/// Returns a part as it is stored: a file by its name, and no unknown part.
fn kept(part: Value) -> Option<Value> {
    match Part::of(&part) {
        Part::Other => None,
        Part::File(name) => Some(json!({ "type": "file", "filename": name,
            "mediaType": part["mediaType"].as_str().unwrap_or("application/octet-stream") })),
        Part::Tool(tool) if tool.result.is_none() && tool.name.is_empty() => None,
        Part::Tool(_) => Some(short(part)),
        _ => Some(part),
    }
}

/// Shortens the output of a tool call to the length of outputs of runs.
fn short(mut part: Value) -> Value {
    if let Some(output) = part.get_mut("output") {
        *output = stored::of_message(output);
    }
    part
}

/// Converts a first message that is only a URL to a request for a guide.
fn prompt(first: &mut UiMessage) {
    if let [part] = first.parts.as_mut_slice()
        && let Part::Text(text) = Part::of(part)
    {
        let prompt = youtube::to_guide_prompt(text);
        if prompt != text {
            *part = json!({ "type": "text", "text": prompt });
        }
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Value, json};

    use super::{MESSAGES, TEXT_CHARS, read};
    use crate::message::{Role, UiMessage};

    fn user(id: &str, text: &str) -> Value {
        json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
    }

    #[test]
    fn s3_01_a_first_message_that_is_a_url_asks_for_a_guide() {
        let asked = read(&json!([user("a", "https://youtu.be/dQw4w9WgXcQ?t=3")])).unwrap();
        let prompt = "Create a travel guide from this video: \
            https://www.youtube.com/watch?v=dQw4w9WgXcQ";
        assert_eq!(asked[0].text(), prompt);
        let again = read(&json!(asked)).unwrap();
        assert_eq!(again, asked, "the page may have done it already");
        let other = read(&json!([user("a", "make a guide"), user("b", "https://youtu.be/abcdef")]));
        let texts: Vec<String> = other.unwrap().iter().map(UiMessage::text).collect();
        assert_eq!(texts, ["make a guide", "https://youtu.be/abcdef"]);
    }

    #[test]
    fn s3_05_unknown_parts_are_left_out() {
        let messages = json!([
            {"id": "s", "role": "system", "parts": [{"type": "text", "text": "x"}], "metadata": 1},
            {"id": "u", "role": "user", "parts": [
                {"type": "text", "text": "look"},
                {"type": "file", "url": "data:image/png;base64,AAAA", "mediaType": "image/png",
                    "filename": "a.png"},
                {"type": "data-hint", "data": {}},
            ]},
        ]);
        let messages = read(&messages).unwrap();
        assert_eq!(messages[0].role, Role::System);
        let file = json!({"type": "file", "mediaType": "image/png", "filename": "a.png"});
        assert_eq!(messages[1].parts[1..], [file]);
        let old = read(&json!([{"id": "u", "role": "user", "content": "hi"}])).unwrap();
        assert_eq!(old[0].text(), "hi");
    }

    #[test]
    fn invalid_conversations_are_refused() {
        let assistant = json!({"id": "b", "role": "assistant", "parts": []});
        let long = "x".repeat(TEXT_CHARS + 1);
        let many: Vec<Value> = (0..=MESSAGES).map(|n| user(&n.to_string(), "x")).collect();
        for (messages, why) in [
            (json!(null), "a list"),
            (json!([]), "the last message"),
            (json!([user("a", " ")]), "the last message"),
            (json!([user("a", "hi"), assistant]), "the last message"),
            (json!([{"id": "a", "role": "robot", "parts": []}]), "message 1"),
            (json!([user("a", "x"), user("a", "y")]), "the same id"),
            (json!([user(&"i".repeat(201), "x")]), "its id"),
            (json!([user("a", &long)]), "longer than"),
            (json!(many), "at most"),
        ] {
            let error = read(&messages).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
