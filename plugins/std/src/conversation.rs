//! The messages in the state.
//!
//! A conversation may have been cut anywhere: by a cancel, a crash or an edit of the history. So
//! answers are looked up by the id of their call, wherever they stand, and a call without one is
//! closed before the model is asked again.

mod block;
mod content;
mod show;

use std::collections::BTreeSet;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_plugin::Failure;
use wattle_plugin::llm::Completion;
use wattle_plugin::message::{PROVIDER_STATE, Part, ToolCall};

pub(crate) use self::content::Content;
use crate::offer::Offer;

/// The answer to a call that was never answered.
const CANCELLED: &str = "the call was cancelled before it was answered";

/// One message as the state holds it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stored {
    /// The id of a model's answer, under which clients have seen it grow; the channel gives ids to all
    /// others. Not read: other kinds of channels may have ids of other types.
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// `system`, `user`, `assistant`, `tool`.
    pub(crate) role: String,
    /// What is said.
    #[serde(default)]
    pub(crate) content: Option<Content>,
    /// What an assistant wants called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tool_calls: Vec<StoredCall>,
    /// The call that a tool answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<String>,
    /// The tool that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// `success` or `error`, of a tool's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
    /// A tool's answer as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) structured: Option<Value>,
    /// The arguments that a tool was called with, if a person changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<Value>,
    /// What the model thought, which some providers want back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning: Option<String>,
    /// What the provider of an answer sent for itself, as the host gave it. It goes back with the
    /// message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provider_state: Option<Value>,
}

/// A call as the state holds it, under the tool's own name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredCall {
    /// Unique in the conversation.
    pub(crate) id: String,
    /// The tool.
    pub(crate) name: String,
    /// What it is called with.
    #[serde(default)]
    pub(crate) arguments: Value,
}

impl StoredCall {
    /// Why the arguments cannot be read, for the model; `None` if they can. The host hands on
    /// arguments that are no JSON as the text that they are.
    pub(crate) fn unreadable(&self) -> Option<String> {
        let Value::String(text) = &self.arguments else { return None };
        let why = match serde_json::from_str::<IgnoredAny>(text) {
            Err(error) if error.is_eof() => "break off before their end".to_owned(),
            Err(error) => format!("are no JSON ({error})"),
            Ok(_) => "are a text and no JSON object".to_owned(),
        };
        let tool = &self.name;
        Some(format!(
            "the arguments {why}, so `{tool}` was not called; call it again with a complete JSON \
             object, a shorter one if it did not fit"
        ))
    }
}

impl Stored {
    /// The answer to a call that was not made.
    pub(crate) fn refusal(call: &StoredCall, text: impl Into<String>) -> Self {
        Self::answer(call, Content::Text(text.into()), true)
    }

    /// The answer to a call.
    pub(crate) fn answer(call: &StoredCall, content: Content, is_error: bool) -> Self {
        let status = if is_error { "error" } else { "success" };
        Self {
            role: "tool".to_owned(),
            content: Some(content),
            tool_call_id: Some(call.id.clone()),
            name: Some(call.name.clone()),
            status: Some(status.to_owned()),
            ..Self::default()
        }
    }

    /// Whether it is a tool's answer without an error.
    pub(crate) fn is_success(&self) -> bool {
        self.role == "tool" && self.status.as_deref() != Some("error")
    }
}

/// A whole conversation.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    messages: Vec<Stored>,
}

impl Conversation {
    /// Reads a channel. A part that cannot be read fails the run that brings it, so that its sender
    /// learns of it. Later runs go on, and tell the model of it.
    pub(crate) fn read(channel: &str, state: &Value) -> Result<Self, Failure> {
        let messages = match state.get(channel) {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(messages)) => messages,
            Some(_) => {
                return Err(Failure::invalid(format!(
                    "channel `{channel}` holds no conversation; give it the reducer `messages`"
                )));
            }
        };
        let asked = messages.iter().rposition(|message| message["role"] == "user");
        let asked = asked.unwrap_or_default();
        let read = |(index, message): (usize, &Value)| {
            let fail = |why: String| {
                let what = format!("message {index} of channel `{channel}`");
                Failure::invalid(format!("{what} cannot be read: {why}"))
            };
            if index >= asked {
                content::check(&message["content"]).map_err(fail)?;
            }
            Stored::deserialize(message).map_err(|error| fail(error.to_string()))
        };
        let messages = messages.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Self { messages })
    }

    /// Adds messages.
    pub(crate) fn extend(&mut self, messages: &[Stored]) {
        self.messages.extend_from_slice(messages);
    }

    /// Answers to all calls that have none.
    pub(crate) fn closing(&self) -> Vec<Stored> {
        let open = |index: usize, message: &Stored| {
            let calls = message.tool_calls.iter();
            let closed: Vec<Stored> = calls
                .filter(|call| self.answer_to(index, call).is_none())
                .map(|call| Stored::refusal(call, CANCELLED))
                .collect();
            closed
        };
        let messages = self.messages.iter().enumerate();
        messages.flat_map(|(index, message)| open(index, message)).collect()
    }

    /// The calls of the last assistant message that have no answer.
    pub(crate) fn open_calls(&self) -> Vec<StoredCall> {
        let last = self.messages.iter().rposition(|message| message.role == "assistant");
        let Some(index) = last else { return Vec::new() };
        let calls = self.messages[index].tool_calls.iter();
        calls.filter(|call| self.answer_to(index, call).is_none()).cloned().collect()
    }

    /// How often the model has spoken since the last user message.
    pub(crate) fn turns(&self) -> usize {
        self.since_user().filter(|message| message.role == "assistant").count()
    }

    /// The tools that have answered without an error since the last user message.
    pub(crate) fn answered(&self) -> BTreeSet<String> {
        let answers = self.since_user().filter(|message| message.is_success());
        answers.filter_map(|message| message.name.clone()).collect()
    }

    /// A model's answer as a message: tools under their own names, calls under ids that no other
    /// call of the conversation has.
    pub(crate) fn assistant(&self, completion: &Completion, offer: &Offer) -> Stored {
        let mut taken: BTreeSet<String> =
            self.messages.iter().flat_map(|it| &it.tool_calls).map(|it| it.id.clone()).collect();
        let tool_calls = completion.tool_calls().map(|call| own_call(call, offer, &mut taken));
        let reasoning: String = completion.parts.iter().filter_map(reasoning).collect();
        Stored {
            id: completion.id().map(str::to_owned),
            role: "assistant".to_owned(),
            content: Some(Content::Text(completion.text())),
            tool_calls: tool_calls.collect(),
            reasoning: Some(reasoning).filter(|it| !it.is_empty()),
            provider_state: completion.parts.iter().find_map(provider_state).cloned(),
            ..Stored::default()
        }
    }

    fn since_user(&self) -> impl Iterator<Item = &Stored> {
        let start = self.messages.iter().rposition(|message| message.role == "user");
        self.messages.iter().skip(start.map_or(0, |index| index + 1))
    }

    /// The first answer to a call after the message that asks for it.
    fn answer_to(&self, index: usize, call: &StoredCall) -> Option<&Stored> {
        let mut later = self.messages.iter().skip(index + 1);
        later.find(|it| it.role == "tool" && it.tool_call_id.as_ref() == Some(&call.id))
    }
}

fn own_call(call: &ToolCall, offer: &Offer, taken: &mut BTreeSet<String>) -> StoredCall {
    let id = unique(&call.id, taken);
    taken.insert(id.clone());
    let name = offer.own_name(&call.name).to_owned();
    StoredCall { id, name, arguments: call.arguments.clone() }
}

/// The id if it is free, else one that goes on from it.
fn unique(id: &str, taken: &BTreeSet<String>) -> String {
    if !id.is_empty() && !taken.contains(id) {
        return id.to_owned();
    }
    let base = if id.is_empty() { "call" } else { id };
    let mut number = taken.len() + 1;
    while taken.contains(&format!("{base}-{number}")) {
        number += 1;
    }
    format!("{base}-{number}")
}

/// The part of an answer that only its provider understands.
fn provider_state(part: &Part) -> Option<&Value> {
    match part {
        Part::Other(value) if value["type"] == PROVIDER_STATE => Some(value),
        _ => None,
    }
}

fn reasoning(part: &Part) -> Option<&str> {
    match part {
        Part::Reasoning(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wattle_plugin::llm::Completion;
    use wattle_plugin::message::Part;

    use super::{Conversation, StoredCall};
    use crate::offer::Offer;

    fn read(messages: Value) -> Conversation {
        Conversation::read("messages", &json!({"messages": messages})).unwrap()
    }

    fn asked(ids: &[&str]) -> Value {
        let calls = ids.iter().map(|id| json!({"id": id, "name": "add", "arguments": {}}));
        json!({"role": "assistant", "content": "", "tool_calls": calls.collect::<Value>()})
    }

    fn answered(id: &str, status: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "name": "add", "content": "1", "status": status})
    }

    #[test]
    fn every_call_without_an_answer_is_closed() {
        let talk = read(json!([
            {"id": "m-1", "role": "user", "content": "hi"},
            asked(&["a", "b"]),
            answered("b", "success"),
            {"role": "user", "content": "and now?"},
            asked(&["c"]),
        ]));
        let closing = talk.closing();
        let ids: Vec<_> = closing.iter().map(|it| it.tool_call_id.as_deref()).collect();
        assert_eq!(ids, [Some("a"), Some("c")]);
        assert!(!closing[0].is_success());
        assert_eq!(talk.open_calls().len(), 1);
    }

    #[test]
    fn turns_and_answers_count_from_the_last_user_message() {
        let talk = read(json!([
            {"role": "user", "content": "one"}, asked(&["a"]), answered("a", "success"),
            {"role": "user", "content": "two"}, asked(&["b"]), answered("b", "error"),
        ]));
        assert_eq!(talk.turns(), 1);
        assert!(talk.answered().is_empty());
    }

    #[test]
    fn ids_are_unique_and_reasoning_is_kept() {
        let talk = read(json!([asked(&["a"]), answered("a", "success")]));
        let call = |id| Completion::of_tool_call(id, "add", json!({})).parts.remove(0);
        let parts = vec![
            Part::Reasoning("hm".to_owned()),
            call("a"),
            call(""),
            call(""),
            call("b"),
            Part::Text("so".to_owned()),
        ];
        let said = Completion { parts, ..Completion::default() };
        let message = talk.assistant(&said, &Offer::default());
        let ids: Vec<_> = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a-2", "call-3", "call-4", "b"]);
        assert_eq!(message.reasoning.as_deref(), Some("hm"));
        assert_eq!(serde_json::to_value(&message).unwrap()["content"], "so");
    }

    #[test]
    fn an_answer_keeps_the_id_under_which_it_was_seen() {
        let talk = read(json!([{"id": 7, "role": "user", "content": "hi"}]));
        let said = Completion::of_text("hello").with_id("run--t-0");
        let message = talk.assistant(&said, &Offer::default());
        let expected = json!({"id": "run--t-0", "role": "assistant", "content": "hello"});
        assert_eq!(serde_json::to_value(&message).unwrap(), expected);
    }

    #[test]
    fn unreadable_arguments_are_told_with_what_is_wrong() {
        let why = |arguments: Value| {
            let call = StoredCall { name: "add".to_owned(), arguments, ..StoredCall::default() };
            call.unreadable()
        };
        for (text, part) in [
            ("{\"a\": 1", "break off"),
            ("{\"a\": \"x", "break off"),
            ("", "break off"),
            ("{a: 1}", "are no JSON (key must be a string"),
            ("\"{}\"", "are a text"),
        ] {
            let why = why(json!(text)).unwrap();
            assert!(why.contains(part) && why.contains("`add`"), "{text}: {why}");
        }
        for readable in [json!({}), json!({"a": 1}), json!(null), json!([1])] {
            assert_eq!(why(readable), None);
        }
    }

    #[test]
    fn a_wrong_message_is_named() {
        let state = json!({"talk": [{"role": "user"}, {"role": 7}]});
        let failure = Conversation::read("talk", &state).unwrap_err();
        assert!(failure.message.starts_with("message 1 of channel `talk` cannot be read"));
    }

    #[test]
    fn a_wrong_part_fails_the_run_that_brings_it() {
        let wrong = json!({"role": "user", "content": [{"text": "look"}, {"video": 1}]});
        let failure = Conversation::read("talk", &json!({"talk": [wrong]})).unwrap_err();
        let place = "message 0 of channel `talk` cannot be read: part 1 of `content` (`video`)";
        assert!(failure.message.starts_with(place), "{failure}");
        let next = json!({"role": "user", "content": "and now?"});
        assert!(Conversation::read("talk", &json!({"talk": [wrong, next]})).is_ok());
    }
}
