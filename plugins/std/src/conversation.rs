//! Messages of a conversation in the state.
//!
//! A cancellation, a crash or an edit can end a conversation at any point. The result of a call is
//! therefore found by the call id at any position, and a call without a result gets one before the
//! next request to the model.
//!
//! The host converts messages for the model, and gives a node only the current turn. This has all
//! calls without a result, and all that follows the last user message.

mod content;

use std::collections::BTreeSet;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_plugin::Failure;
use wattle_plugin::llm::Completion;
use wattle_plugin::message::ToolCall;
use wattle_plugin::node;

pub(crate) use self::content::Content;
use crate::offer::Offer;

/// Content for a tool without output, because providers reject an empty result.
pub(crate) const SILENT: &str = "done";

/// Content of the result that is added for a call without a result.
const CANCELLED: &str = "the call was cancelled before it returned a result";

/// A message in the format of the state. What only the host needs of a message is not read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stored {
    /// Id of the message. A completion has the id under which clients received its deltas, a tool
    /// result has that of [`give_ids`]. The field is never read from the state, because channels
    /// with other reducers can have ids of other types.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// Author: `system`, `user`, `assistant` or `tool`.
    pub(crate) role: String,
    /// Content of the message.
    #[serde(skip_deserializing)]
    pub(crate) content: Option<Content>,
    /// Tool calls that the model requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tool_calls: Vec<StoredCall>,
    /// Id of the call to which the result belongs; only in a tool result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<String>,
    /// Name of the tool; only in a tool result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// `success` or `error`; only in a tool result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
    /// Structured output of the tool; only in a tool result.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(crate) structured: Option<Value>,
    /// Arguments of the call if a person changed them; only in a tool result.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<Value>,
    /// Reasoning of the model. Some providers require that it is sent back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning: Option<String>,
    /// Opaque state of the provider. It is sent back with the message.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(crate) provider_state: Option<Value>,
}

/// A tool call in the format of the state. It has the tool's own name, not the one that the model
/// sees.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredCall {
    /// Id of the call, unique in the conversation.
    pub(crate) id: String,
    /// Name of the tool.
    pub(crate) name: String,
    /// Arguments of the call.
    #[serde(default)]
    pub(crate) arguments: Value,
}

impl StoredCall {
    /// Returns an error message for the model if the arguments are not valid JSON. The host passes
    /// such arguments as a string.
    pub(crate) fn unreadable(&self) -> Option<String> {
        let Value::String(text) = &self.arguments else { return None };
        let why = match serde_json::from_str::<IgnoredAny>(text) {
            Err(error) if error.is_eof() => "are incomplete".to_owned(),
            Err(error) => format!("are not valid JSON ({error})"),
            Ok(_) => "are a string and not a JSON object".to_owned(),
        };
        let tool = &self.name;
        Some(format!(
            "the arguments {why}, so `{tool}` was not called; call it again with a complete JSON \
             object, a shorter one if it did not fit"
        ))
    }
}

impl Stored {
    /// Creates the result of a call that was not made.
    pub(crate) fn refusal(call: &StoredCall, text: impl Into<String>) -> Self {
        Self::answer(call, Content::Text(text.into()), true)
    }

    /// Creates the result of a call.
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

    /// Converts a completion to a message of the state. Replaces the tool names that the model sees
    /// with the tools' own names, and the ids of its calls with unique ones.
    ///
    /// # Errors
    ///
    /// `internal` if the host has not given each call an id.
    pub(crate) fn assistant(completion: &Completion, offer: &Offer) -> Result<Self, Failure> {
        let calls: Vec<&ToolCall> = completion.tool_calls().collect();
        let ids = completion.call_ids().unwrap_or_default();
        if ids.len() != calls.len() {
            let (calls, ids) = (calls.len(), ids.len());
            let message = format!("the completion has {calls} tool calls, and {ids} ids for them");
            return Err(Failure::internal(message));
        }
        let tool_calls = calls.into_iter().zip(ids).map(|(call, id)| {
            let name = offer.own_name(&call.name).to_owned();
            StoredCall { id, name, arguments: call.arguments.clone() }
        });
        let reasoning = completion.reasoning();
        Ok(Self {
            id: completion.id().map(str::to_owned),
            role: "assistant".to_owned(),
            content: Some(Content::Text(completion.text())),
            tool_calls: tool_calls.collect(),
            reasoning: Some(reasoning).filter(|it| !it.is_empty()),
            provider_state: completion.provider_state().cloned(),
            ..Self::default()
        })
    }

    /// Returns true for a tool result without an error.
    pub(crate) fn is_success(&self) -> bool {
        self.role == "tool" && self.status.as_deref() != Some("error")
    }
}

/// Gives the tool results of a task their ids. A message without an id gets one from the channel,
/// and clients of a stream receive it only then, after the update that has it. The ids are derived
/// from the task, which is the same when the task is executed again. The ids of calls are no
/// source: some models number the calls of every turn from the start, and a message replaces the
/// one with the same id.
pub(crate) fn give_ids(task: &str, results: &mut [Stored]) {
    for (index, result) in results.iter_mut().enumerate() {
        result.id = Some(format!("tool--{task}-{index}"));
    }
}

/// The messages of the current turn of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    messages: Vec<Stored>,
}

impl Conversation {
    /// Reads the messages that the input of a node has. An invalid message or part is an error from
    /// the newest user message on, so that its sender sees the failure. The host describes an older
    /// one to the model instead.
    pub(crate) fn read(whole: &node::Conversation, input: &Value) -> Result<Self, Failure> {
        let channel = whole.channel.as_str();
        let messages = match input.get(channel) {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(messages)) => messages,
            Some(_) => {
                return Err(Failure::invalid(format!(
                    "channel `{channel}` is not a list of messages; give it the reducer `messages`"
                )));
            }
        };
        let asked = messages.iter().rposition(|message| message["role"] == "user");
        let asked = asked.unwrap_or_default();
        let read = |(index, message): (usize, &Value)| {
            let fail = |why: String| {
                let what = format!("message {} of channel `{channel}`", whole.from + index);
                Failure::invalid(format!("{what} cannot be read: {why}"))
            };
            if index >= asked {
                content::check(&message["content"]).map_err(fail)?;
            }
            match Stored::deserialize(message) {
                Err(error) if index >= asked => Err(fail(error.to_string())),
                read => Ok(read.unwrap_or_default()),
            }
        };
        let messages = messages.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Self { messages })
    }

    /// Returns an error result for each call that has no result.
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

    /// Returns the calls of the last assistant message that have no result.
    pub(crate) fn open_calls(&self) -> Vec<StoredCall> {
        let last = self.messages.iter().rposition(|message| message.role == "assistant");
        let Some(index) = last else { return Vec::new() };
        let calls = self.messages[index].tool_calls.iter();
        calls.filter(|call| self.answer_to(index, call).is_none()).cloned().collect()
    }

    /// Returns the number of model turns since the last user message.
    pub(crate) fn turns(&self) -> usize {
        self.since_user().filter(|message| message.role == "assistant").count()
    }

    /// Returns the tools that have succeeded since the last user message.
    pub(crate) fn answered(&self) -> BTreeSet<String> {
        let answers = self.since_user().filter(|message| message.is_success());
        answers.filter_map(|message| message.name.clone()).collect()
    }

    fn since_user(&self) -> impl Iterator<Item = &Stored> {
        let start = self.messages.iter().rposition(|message| message.role == "user");
        self.messages.iter().skip(start.map_or(0, |index| index + 1))
    }

    /// Returns the first result of a call after the message that requests it.
    fn answer_to(&self, index: usize, call: &StoredCall) -> Option<&Stored> {
        let mut later = self.messages.iter().skip(index + 1);
        later.find(|it| it.role == "tool" && it.tool_call_id.as_ref() == Some(&call.id))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wattle_plugin::llm::Completion;
    use wattle_plugin::message::Part;
    use wattle_plugin::{Failure, node};

    use super::{Conversation, Stored, StoredCall, give_ids};
    use crate::offer::Offer;

    /// Reads messages as those of a conversation from a position on.
    fn read_from(from: usize, messages: Value) -> Result<Conversation, Failure> {
        let length = from + messages.as_array().map_or(0, Vec::len);
        let whole = node::Conversation { channel: "talk".to_owned(), from, length };
        Conversation::read(&whole, &json!({"talk": messages}))
    }

    fn read(messages: Value) -> Conversation {
        read_from(0, messages).unwrap()
    }

    fn asked(ids: &[&str]) -> Value {
        let calls = ids.iter().map(|id| json!({"id": id, "name": "add", "arguments": {}}));
        json!({"role": "assistant", "content": "", "tool_calls": calls.collect::<Value>()})
    }

    fn answered(id: &str, status: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "name": "add", "content": "1", "status": status})
    }

    /// Returns a completion with calls of `add` and the ids that the host gives these calls.
    fn calling(calls: &[&str], ids: Value) -> Completion {
        let call = |id: &&str| Completion::of_tool_call(id, "add", json!({})).parts.remove(0);
        let mut said =
            Completion { parts: calls.iter().map(call).collect(), ..Completion::default() };
        said.extra.insert("call_ids".to_owned(), ids);
        said
    }

    #[test]
    fn calls_without_a_result_are_closed() {
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
    fn turns_and_results_count_from_the_last_user_message() {
        let talk = read(json!([
            {"role": "user", "content": "one"}, asked(&["a"]), answered("a", "success"),
            {"role": "user", "content": "two"}, asked(&["b"]), answered("b", "error"),
        ]));
        assert_eq!(talk.turns(), 1);
        assert!(talk.answered().is_empty());
    }

    #[test]
    fn calls_have_the_ids_of_the_host_and_reasoning_is_kept() {
        let mut said = calling(&["a", "", "b"], json!(["a-2", "call-3", "b"]));
        said.parts.insert(0, Part::Reasoning("hm".to_owned()));
        said.parts.push(Part::Text("so".to_owned()));
        let message = Stored::assistant(&said, &Offer::default()).unwrap();
        let ids: Vec<_> = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a-2", "call-3", "b"]);
        assert_eq!(message.reasoning.as_deref(), Some("hm"));
        assert_eq!(serde_json::to_value(&message).unwrap()["content"], "so");
    }

    #[test]
    fn call_without_an_id_of_the_host_is_an_error() {
        for ids in [json!(null), json!(["a"])] {
            let said = calling(&["a", "b"], ids);
            let failure = Stored::assistant(&said, &Offer::default()).unwrap_err();
            assert_eq!(failure.code, "internal");
        }
    }

    #[test]
    fn completion_keeps_its_id() {
        assert!(read_from(0, json!([{"id": 7, "role": "user", "content": "hi"}])).is_ok());
        let said = Completion::of_text("hello").with_id("run--t-0");
        let message = Stored::assistant(&said, &Offer::default()).unwrap();
        let expected = json!({"id": "run--t-0", "role": "assistant", "content": "hello"});
        assert_eq!(serde_json::to_value(&message).unwrap(), expected);
    }

    #[test]
    fn results_of_a_task_have_ids_of_their_own() {
        let call = StoredCall { id: "call_0".to_owned(), ..StoredCall::default() };
        let ids = |task: &str| {
            let mut results = vec![Stored::refusal(&call, "no"), Stored::refusal(&call, "no")];
            give_ids(task, &mut results);
            results.into_iter().map(|result| result.id.unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(ids("t"), ["tool--t-0", "tool--t-1"]);
        assert_eq!(ids("u"), ["tool--u-0", "tool--u-1"], "a later turn replaces nothing");
    }

    #[test]
    fn invalid_arguments_are_described() {
        let why = |arguments: Value| {
            let call = StoredCall { name: "add".to_owned(), arguments, ..StoredCall::default() };
            call.unreadable()
        };
        for (text, part) in [
            ("{\"a\": 1", "are incomplete"),
            ("{\"a\": \"x", "are incomplete"),
            ("", "are incomplete"),
            ("{a: 1}", "are not valid JSON (key must be a string"),
            ("\"{}\"", "are a string"),
        ] {
            let why = why(json!(text)).unwrap();
            assert!(why.contains(part) && why.contains("`add`"), "{text}: {why}");
        }
        for readable in [json!({}), json!({"a": 1}), json!(null), json!([1])] {
            assert_eq!(why(readable), None);
        }
    }

    #[test]
    fn invalid_message_is_named_by_position() {
        for (from, name) in [(0, "message 1"), (6, "message 7")] {
            let failure = read_from(from, json!([{"role": "user"}, {"role": 7}])).unwrap_err();
            let expected = format!("{name} of channel `talk` cannot be read");
            assert!(failure.message.starts_with(&expected), "{failure}");
        }
    }

    #[test]
    fn invalid_part_fails_only_the_run_that_adds_it() {
        let wrong = json!({"role": "user", "content": [{"text": "look"}, {"video": 1}]});
        let failure = read_from(0, json!([wrong])).unwrap_err();
        let place = "message 0 of channel `talk` cannot be read: part 1 of `content` (`video`)";
        assert!(failure.message.starts_with(place), "{failure}");
        let next = json!({"role": "user", "content": "and now?"});
        assert!(read_from(0, json!([wrong, next])).is_ok());
    }

    #[test]
    fn invalid_message_fails_only_the_run_that_adds_it() {
        let wrong = json!({"role": "assistant", "tool_calls": null});
        let next = json!({"role": "user", "content": "and now?"});
        let talk = read(json!([asked(&["a"]), wrong, next]));
        assert_eq!((talk.closing().len(), talk.turns()), (1, 0));
        let failure = read_from(0, json!([next, wrong])).unwrap_err();
        assert!(failure.message.starts_with("message 1 of channel `talk`"), "{failure}");
    }

    #[test]
    fn channel_that_is_not_a_list_is_an_error() {
        let failure = read_from(0, json!("hi")).unwrap_err();
        assert_eq!(failure.code, "invalid");
        assert!(failure.message.contains("the reducer `messages`"), "{failure}");
        assert_eq!(read(json!(null)).turns(), 0);
    }
}
