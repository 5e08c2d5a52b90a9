//! Messages of the chat page: `UIMessage` of the AI SDK.

mod model;
mod table;

use wattle_plugin::chat::ui::{self, Limits, Part};
pub(crate) use wattle_plugin::chat::ui::{Role, UiMessage};
use wattle_plugin::prelude::{Failure, Value, json};
use wattle_plugin::runs::RunLog;

pub(crate) use self::model::for_model;
pub(crate) use self::table::{StoredMessage, keep, list, put, replace_those_of_runs};
use crate::channel::AGENT;
use crate::session::step::Step;
use crate::session::stored_output;
use crate::youtube;

/// Limits of the messages of a session: months of conversation, and still one page. A run has at
/// most nine model calls, each with a few parts. A message of the user may be a long letter, but
/// not a book, which would be expensive.
const LIMITS: Limits = Limits { messages: 500, parts: 500, text_chars: 20_000 };

/// Reads the messages of a request. The last one is the user's, because the run replies to it.
///
/// # Errors
///
/// A failure with status 400.
pub(crate) fn read(messages: &Value) -> Result<Vec<UiMessage>, Failure> {
    let mut messages = ui::read(messages, &LIMITS, stored_output::of_message)?;
    if let Some(first) = messages.iter_mut().find(|message| message.role == Role::User) {
        prompt(first);
    }
    Ok(messages)
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

/// Returns messages for a run, without their pages, which no model reads.
pub(crate) fn lean(mut messages: Vec<UiMessage>) -> Vec<UiMessage> {
    let parts = messages.iter_mut().flat_map(|message| &mut message.parts);
    parts.filter_map(|part| part.get_mut("output")).for_each(stored_output::drop_page);
    messages
}

/// Returns the message of a run; `None` if the run has no output.
pub(crate) fn said(run: &RunLog, steps: &[Step]) -> Option<UiMessage> {
    AGENT.message(&run.events, steps, stored_output::of_message)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Value, json};

    use super::{UiMessage, lean, read};

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
    fn pages_are_left_out() {
        let part = json!({"type": "tool-generate_handbook_html", "toolCallId": "c",
            "state": "output-available", "output": {"html": "<p>", "title": "t"}});
        let said = json!({"id": "m", "role": "assistant", "parts": [part]});
        let messages = lean(read(&json!([said, user("u", "hi")])).unwrap());
        assert_eq!(messages[0].parts[0]["output"], json!({"title": "t"}));
        assert_eq!(json!(messages[1]), user("u", "hi"));
    }
}
