//! Histories: messages of a request that the host takes from a channel.
//!
//! A guest that continues a conversation names the channel and adds only what is not in it yet. The
//! log has the digest of the conversation, so a request is as long in a long conversation as in a
//! short one.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checkpoint::SharedList;
use crate::conversation::{last_user, to_messages, unique_call_ids};
use crate::failure::{Failure, code};
use crate::id::{ChannelName, Digest};
use crate::limit::HISTORY_NAME_BYTES;
use crate::llm::completion::Completion;
use crate::llm::message::Message;
use crate::message::{call_ids, is_from_user, without_id};
use crate::weight::weight;

/// A history as a guest writes it. An unknown field is an error, because a request without what it
/// means would be another request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryReference {
    /// The channel with the conversation, which is also the name of the field of the task's input.
    pub channel: ChannelName,
    /// Number of the request's own messages before the history.
    pub at: usize,
    /// The first message of the conversation that the model gets.
    #[serde(default)]
    pub from: HistoryStart,
    /// Position after the last message that the model gets; the end of the conversation by default.
    #[serde(default)]
    pub to: Option<usize>,
    /// Messages that continue the conversation, in the format of the state.
    #[serde(default)]
    pub append: Vec<Value>,
    /// Names under which the model sees tools, of at most [`HISTORY_NAME_BYTES`], by the tools' own
    /// names; see [`to_messages`].
    #[serde(default)]
    pub names: BTreeMap<String, String>,
}

/// The first message of a conversation that a model gets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a position or `{\"after\": MESSAGE_ID}`")]
pub enum HistoryStart {
    /// The message at a position.
    Position(usize),
    /// The message after the one with an id.
    After(MessageId),
}

impl Default for HistoryStart {
    fn default() -> Self {
        Self::Position(0)
    }
}

/// A message of a conversation by its id.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageId {
    /// The id. Of several messages with it, the first one counts.
    #[serde(rename = "after")]
    pub id: String,
}

/// The part of a conversation that is in a request.
///
/// The serialized form identifies the messages by the digest of the whole conversation. It has no
/// ids of messages, so the same conversation has the same form in each execution of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The channel with the conversation.
    pub channel: ChannelName,
    /// Number of the request's own messages before the history.
    pub at: usize,
    /// Position of the first message that the model gets.
    pub from: usize,
    /// Position after the last message that the model gets.
    pub to: usize,
    /// Number of messages of the whole conversation.
    pub length: usize,
    /// Length of the whole conversation as JSON text, without ids of messages, in bytes.
    pub bytes: u64,
    /// Digest of the whole conversation; see [`SharedList::digest`].
    pub digest: Digest,
    /// Names under which the model sees tools, by the tools' own names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
    /// Messages after those of the conversation, in the format of the state, without their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub append: Vec<Value>,
    /// The whole conversation; `None` in a request from the log.
    #[serde(skip)]
    list: Option<SharedList>,
}

impl History {
    /// Resolves a reference to a conversation, for a request with `messages` messages of its own.
    pub(super) fn resolve(
        reference: HistoryReference,
        list: SharedList,
        messages: usize,
    ) -> Result<Self, Failure> {
        let HistoryReference { channel, at, from, to, append, names } = reference;
        let length = list.len();
        let from = match from {
            HistoryStart::Position(position) => position,
            HistoryStart::After(MessageId { id }) => {
                list.position_of_id(&id).map(|place| place + 1).ok_or_else(|| {
                    let text = format!("channel `{channel}` has no message with the id `{id}`");
                    Failure::new(code::NOT_FOUND, text)
                })?
            }
        };
        let to = to.unwrap_or(length);
        if from > to || to > length {
            let text = format!(
                "the history is from {from} to {to}, and channel `{channel}` has {length} messages"
            );
            return Err(Failure::new(code::INVALID, text));
        }
        if at > messages {
            let text = format!("the history is at {at}, and the request has {messages} messages");
            return Err(Failure::new(code::INVALID, text));
        }
        check_names(&names)?;
        Ok(Self {
            channel,
            at,
            from,
            to,
            length,
            bytes: list.json_bytes(),
            digest: list.digest(),
            names,
            append: append.into_iter().map(without_id).collect(),
            list: Some(list),
        })
    }

    /// Returns the messages for the model.
    pub(super) fn messages(&self) -> Result<Vec<Message>, Failure> {
        let Some(list) = &self.list else {
            let text = format!("the messages of channel `{}` are not in the log", self.channel);
            return Err(Failure::internal(text));
        };
        let items = list.range(self.from, self.to);
        let appended = self.append.iter().rposition(is_from_user).map(|place| self.to + place);
        // A user message behind the range precedes no message of `append`.
        let listed = || last_user(list).map(|place| place.min(self.to));
        let newest = appended.or_else(listed).unwrap_or_default();
        let (append, channel) = (&self.append, self.channel.as_str());
        to_messages(items, self.from, append, newest, &self.names, channel)
    }

    /// Returns an estimate of the bytes of the tool results that the messages for the model repeat,
    /// because several calls have the same id. It is 0 without such calls, and assumes the longest
    /// possible result for each of them. Reads all messages.
    pub fn repeated_bytes(&self) -> u64 {
        let listed = self.list.iter().flat_map(|list| list.range(self.from, self.to));
        let mut ids = HashSet::new();
        let calls = listed.chain(&self.append).flat_map(call_ids);
        let repeated = calls.filter(|(_, id)| !ids.insert(*id)).count() as u64;
        let longest = self.bytes + self.append.iter().map(weight).sum::<u64>();
        repeated.saturating_mul(longest)
    }

    /// Returns the [`weight`] of the messages of the conversation that the model gets, in bytes.
    /// Reads these messages, unless the model gets the whole conversation and its weight is known.
    pub(crate) fn listed_weight(&self) -> u64 {
        self.list.as_ref().map_or(0, |list| list.range_weight(self.from, self.to))
    }

    /// Returns ids for the tool calls of a completion, in order, which are unique in the whole
    /// conversation with the messages after it; see [`unique_call_ids`]. Returns `None` for a
    /// history from the log.
    pub fn call_ids(&self, completion: &Completion) -> Option<Vec<String>> {
        self.list.as_ref().map(|list| unique_call_ids(list, &self.append, completion))
    }
}

/// Checks the length of the names under which the model sees tools.
fn check_names(names: &BTreeMap<String, String>) -> Result<(), Failure> {
    let long = names.iter().find(|(_, seen)| seen.len() > HISTORY_NAME_BYTES);
    let Some((own, seen)) = long else { return Ok(()) };
    let bytes = seen.len();
    let text = format!(
        "the history names the tool `{own:.80}` with {bytes} bytes, more than the limit of \
         {HISTORY_NAME_BYTES}"
    );
    Err(Failure::new(code::INVALID, text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::llm::{CompletionRequest, FinishReason, Part, Role, ToolCall, Usage};

    fn conversation(prefix: &str) -> SharedList {
        let call = json!({ "id": "c", "name": "mcp:sum/add", "arguments": { "a": 1 } });
        let messages = [
            json!({ "role": "user", "content": "1+2?" }),
            json!({ "role": "assistant", "content": "", "tool_calls": [call] }),
        ];
        let with_id = |(place, mut message): (usize, Value)| {
            message["id"] = json!(format!("{prefix}{place}"));
            message
        };
        messages.into_iter().enumerate().map(with_id).collect()
    }

    fn text(role: Role, text: &str) -> Message {
        Message { role, parts: vec![Part::Text(text.to_owned())] }
    }

    /// Creates a request with a system message and a last message, and a history.
    fn request(history: Value, list: SharedList) -> Result<CompletionRequest, Failure> {
        let messages = vec![text(Role::System, "be brief"), text(Role::User, "now")];
        let reference = serde_json::from_value(history).unwrap();
        CompletionRequest::new("chat", messages).with_history(reference, list)
    }

    fn code_of(history: Value) -> String {
        request(history, conversation("m")).unwrap_err().code
    }

    #[test]
    fn the_messages_of_a_history_are_among_those_of_the_request() {
        let append = [json!({ "id": "r", "role": "tool", "tool_call_id": "c", "content": "3" })];
        let history = json!({
            "channel": "messages", "at": 1, "append": append, "names": { "mcp:sum/add": "add" },
        });
        let request = request(history, conversation("m")).unwrap();
        let expanded = request.expanded().unwrap();
        let messages = json!([
            { "role": "system", "parts": [{ "text": "be brief" }] },
            { "role": "user", "parts": [{ "text": "1+2?" }] },
            {
                "role": "assistant",
                "parts": [{ "tool_call": { "id": "c", "name": "add", "arguments": { "a": 1 } } }],
            },
            {
                "role": "tool",
                "parts": [{ "tool_result": { "call_id": "c", "content": "3", "is_error": false } }],
            },
            { "role": "user", "parts": [{ "text": "now" }] },
        ]);
        assert_eq!(json!(expanded.messages), messages);
        assert_eq!(expanded.history, None);
        assert_eq!(expanded.expanded().unwrap(), expanded, "it has no history");
    }

    #[test]
    fn a_history_begins_and_ends_at_positions_or_after_a_message() {
        for (history, expected) in [
            (json!({ "channel": "m", "at": 2 }), 4),
            (json!({ "channel": "m", "at": 0, "from": 1 }), 3),
            (json!({ "channel": "m", "at": 0, "from": { "after": "m0" } }), 3),
            (json!({ "channel": "m", "at": 0, "from": { "after": "m1" } }), 2),
            (json!({ "channel": "m", "at": 0, "from": 0, "to": 1 }), 3),
            (json!({ "channel": "m", "at": 0, "from": 2, "to": 2 }), 2),
        ] {
            let request = request(history.clone(), conversation("m")).unwrap();
            assert_eq!(request.expanded().unwrap().messages.len(), expected, "{history}");
        }
        for history in [
            json!({ "channel": "m", "at": 3 }),
            json!({ "channel": "m", "at": 0, "to": 3 }),
            json!({ "channel": "m", "at": 0, "from": 2, "to": 1 }),
            json!({ "channel": "m", "at": 0, "from": 3 }),
        ] {
            assert_eq!(code_of(history.clone()), code::INVALID, "{history}");
        }
        let unknown = json!({ "channel": "m", "at": 0, "from": { "after": "m2" } });
        assert_eq!(code_of(unknown), code::NOT_FOUND);
    }

    #[test]
    fn an_unknown_field_of_a_history_is_an_error() {
        for history in [
            json!({ "channel": "m", "at": 0, "turns": 20 }),
            json!({ "channel": "m", "at": 0, "from": { "after": "m1", "turns": 20 } }),
            json!({ "channel": "m" }),
            json!({ "channel": "no channel", "at": 0 }),
        ] {
            let read = serde_json::from_value::<HistoryReference>(history.clone());
            assert!(read.is_err(), "{history}");
        }
    }

    #[test]
    fn a_long_name_of_a_tool_is_invalid() {
        let history = |bytes: usize| {
            let names = json!({ "mcp:sum/add": "a".repeat(bytes) });
            json!({ "channel": "m", "at": 0, "names": names })
        };
        assert!(request(history(HISTORY_NAME_BYTES), conversation("m")).is_ok());
        assert_eq!(code_of(history(HISTORY_NAME_BYTES + 1)), code::INVALID);
    }

    #[test]
    fn requests_with_a_history_have_the_format_of_the_log() {
        let append = |id: &str| json!([{ "role": "user", "content": "more", "id": id }]);
        let history =
            |id: &str| json!({ "channel": "m", "at": 1, "from": 1, "append": append(id) });
        let list = conversation("m");
        let document = json!({
            "route": "chat",
            "history": {
                "channel": "m", "at": 1, "from": 1, "to": 2, "length": 2,
                "bytes": list.json_bytes(), "digest": list.digest(),
                "append": [{ "role": "user", "content": "more" }],
            },
            "messages": [
                { "role": "system", "parts": [{ "text": "be brief" }] },
                { "role": "user", "parts": [{ "text": "now" }] },
            ],
            "tool_choice": "auto",
        });
        let request = |prefix: &str| request(history(prefix), conversation(prefix)).unwrap();
        assert_eq!(serde_json::to_string(&request("m")).unwrap(), document.to_string());
        assert_eq!(json!(request("a longer prefix")), document, "ids of messages are left out");
        let logged: CompletionRequest = serde_json::from_value(document.clone()).unwrap();
        assert_eq!(json!(logged), document);
        assert_eq!(logged.expanded().unwrap_err().code, code::INTERNAL);
    }

    #[test]
    fn a_message_that_cannot_be_read_is_named() {
        let list: SharedList =
            [json!({ "role": "user", "content": "hi" }), json!(7)].into_iter().collect();
        let request = request(json!({ "channel": "talk", "at": 0 }), list).unwrap();
        let failure = request.expanded().unwrap_err();
        assert_eq!(failure.code, code::INVALID);
        assert!(failure.message.contains("message 1 of channel `talk`"), "{failure}");
    }

    #[test]
    fn user_message_behind_the_range_makes_no_appended_message_older() {
        let user = json!({ "role": "user", "content": "hi" });
        let list: SharedList = [json!(7), user.clone(), user].into_iter().collect();
        let read = |append: Value| {
            let history = json!({ "channel": "talk", "at": 0, "to": 1, "append": append });
            let request = request(history, list.clone()).unwrap();
            request.expanded().map(|expanded| expanded.messages.len())
        };
        assert_eq!(read(json!([])), Ok(3));
        let failure = read(json!([7])).unwrap_err();
        assert_eq!(failure.code, code::INVALID);
        assert!(failure.message.contains("message 0 of `append`"), "{failure}");
    }

    #[test]
    fn calls_of_a_completion_get_ids_that_the_conversation_does_not_have() {
        let asked = json!([{ "id": "d", "name": "add", "arguments": {} }]);
        let append = json!([{ "role": "assistant", "content": "", "tool_calls": asked }]);
        let history = json!({ "channel": "m", "at": 0, "from": 2, "append": append });
        let request = request(history, conversation("m")).unwrap();
        let call = |id: &str| {
            let name = "add".to_owned();
            Part::ToolCall(ToolCall { id: id.to_owned(), name, arguments: json!({}) })
        };
        let completion = Completion {
            id: None,
            parts: ["c", "d", "e"].map(call).into(),
            structured: None,
            finish_reason: FinishReason::ToolCalls,
            usage: Usage::default(),
            model: "small".to_owned(),
            attempts: Vec::new(),
        };
        let ids = request.history.unwrap().call_ids(&completion).unwrap();
        assert_eq!(ids, ["c-3", "d-4", "e"]);
    }
}
