//! Messages in channels: objects with a `role` and the fields that the role needs.
//!
//! A channel accepts any object. A [`MessageView`] treats a field that is missing or has another
//! type as absent.

use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::json_text;
use crate::llm::ToolCall;

/// Returns the messages of a write or a channel value, which is one message or a list.
pub fn messages(value: &Value) -> &[Value] {
    match value {
        Value::Array(messages) => messages,
        message => std::slice::from_ref(message),
    }
}

/// A view of a message in a channel.
#[derive(Clone, Copy, Debug)]
pub struct MessageView<'v>(&'v Map<String, Value>);

impl<'v> MessageView<'v> {
    /// Creates the view; `None` for a value without a role.
    pub fn of(message: &'v Value) -> Option<Self> {
        let view = Self(message.as_object()?);
        view.text_field("role").is_some().then_some(view)
    }

    fn text_field(self, name: &str) -> Option<&'v str> {
        self.0.get(name)?.as_str()
    }

    /// Returns the role: `user`, `assistant`, `tool`, `system`, `remove` or another.
    pub fn role(self) -> &'v str {
        self.text_field("role").unwrap_or_default()
    }

    /// Returns the id. A message without an id gets one when the superstep ends, at the latest.
    pub fn id(self) -> Option<&'v str> {
        self.text_field("id").filter(|id| !id.is_empty())
    }

    /// Returns the name of the author, such as that of a tool.
    pub fn name(self) -> Option<&'v str> {
        self.text_field("name")
    }

    /// Returns the content: a string, or an array of parts.
    pub fn content(self) -> &'v Value {
        self.0.get("content").unwrap_or(&Value::Null)
    }

    /// Returns all text of the content.
    pub fn text(self) -> String {
        match self.content() {
            Value::String(text) => text.clone(),
            Value::Array(parts) => {
                parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()
            }
            _ => String::new(),
        }
    }

    /// Returns the tool calls that an assistant requests. Fields that are missing are empty.
    pub fn tool_calls(self) -> Vec<ToolCall> {
        let calls = self.0.get("tool_calls").and_then(Value::as_array);
        let text = |call: &Value, name: &str| {
            call.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let read = |call: &Value| ToolCall {
            id: text(call, "id"),
            name: text(call, "name"),
            arguments: call.get("arguments").cloned().unwrap_or_default(),
        };
        calls.into_iter().flatten().map(read).collect()
    }

    /// Returns the id of the tool call whose result the message is.
    pub fn tool_call_id(self) -> Option<&'v str> {
        self.text_field("tool_call_id")
    }

    /// Returns the arguments of the tool call, if a person changed them.
    pub fn arguments(self) -> Option<&'v Value> {
        self.0.get("arguments")
    }

    /// Returns true if a tool reports an error.
    pub fn is_error(self) -> bool {
        self.text_field("status") == Some("error")
    }

    /// Returns the structured output of a tool.
    pub fn structured(self) -> Option<&'v Value> {
        self.0.get("structured").filter(|structured| !structured.is_null())
    }

    /// Returns true if two messages are equal except for their ids.
    pub fn says_the_same(self, other: Self) -> bool {
        let fields = |view: Self| view.0.iter().filter(|(name, _)| *name != "id");
        fields(self).count() == fields(other).count()
            && fields(other).all(|(name, value)| self.0.get(name) == Some(value))
    }
}

/// Returns the ids of the tool calls that a message requests, each with the position of the call.
/// Calls without an id are left out.
pub(crate) fn call_ids(message: &Value) -> impl Iterator<Item = (usize, &str)> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let calls = calls.into_iter().flatten().enumerate();
    calls.filter_map(|(place, call)| Some((place, call.get("id")?.as_str()?)))
}

/// Returns the id of the tool call whose result a message is.
pub(crate) fn result_call_id(message: &Value) -> Option<&str> {
    let view = MessageView::of(message).filter(|view| view.role() == "tool")?;
    view.tool_call_id()
}

/// Returns a message without its id, as [`SharedList::digest`](crate::checkpoint::SharedList::digest)
/// leaves it out. A task that is executed again can give its messages other ids. Other values of
/// `id` are part of the content.
pub(crate) fn without_id(mut message: Value) -> Value {
    if let Value::Object(fields) = &mut message
        && fields.get("id").is_some_and(Value::is_string)
    {
        fields.shift_remove("id");
    }
    message
}

/// Serializes a value as [`without_id`] returns it, without a copy of the value.
pub(crate) struct WithoutId<'v>(pub(crate) &'v Value);

impl<'v> WithoutId<'v> {
    /// Returns the fields of a message without its id; `None` for a value that has no such id.
    fn fields(&self) -> Option<impl Iterator<Item = (&'v str, &'v Value)> + use<'v>> {
        let fields = self.0.as_object()?;
        fields.get("id").filter(|id| id.is_string())?;
        let fields = fields.iter().map(|(name, field)| (name.as_str(), field));
        Some(fields.filter(|(name, _)| *name != "id"))
    }

    /// Appends the value as JSON text; see [`json_text::append`].
    pub(crate) fn append_text(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        match self.fields() {
            Some(fields) => json_text::append_object(text, fields, |text, _, field| {
                json_text::append(text, field)
            }),
            None => json_text::append(text, self.0),
        }
    }
}

impl Serialize for WithoutId<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.fields() {
            Some(fields) => serializer.collect_map(fields),
            None => self.0.serialize(serializer),
        }
    }
}

/// Returns true for a message of a user.
pub(crate) fn is_from_user(message: &Value) -> bool {
    MessageView::of(message).is_some_and(|view| view.role() == "user")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_fields_of_messages_are_empty() {
        let message = json!({
            "id": "", "role": "assistant", "content": [{ "text": "a" }, { "image": 1 }, { "text": "b" }],
            "tool_calls": [{ "id": "c", "name": "find", "arguments": { "q": 1 } }, {}],
        });
        let view = MessageView::of(&message).unwrap();
        assert_eq!((view.role(), view.id(), view.text().as_str()), ("assistant", None, "ab"));
        let calls = view.tool_calls();
        assert_eq!((calls[0].id.as_str(), &calls[0].arguments), ("c", &json!({ "q": 1 })));
        assert_eq!((calls[1].name.as_str(), &calls[1].arguments), ("", &Value::Null));
        let tool = json!({ "role": "tool", "tool_call_id": "c", "status": "error" });
        let tool = MessageView::of(&tool).unwrap();
        assert_eq!((tool.tool_call_id(), tool.is_error()), (Some("c"), true));
        assert!(MessageView::of(&json!({ "content": "no role" })).is_none());
        assert!(MessageView::of(&json!("no object")).is_none());
    }

    #[test]
    fn comparison_ignores_message_ids() {
        let same = |one: Value, other: Value| {
            MessageView::of(&one).unwrap().says_the_same(MessageView::of(&other).unwrap())
        };
        let named = || json!({ "id": "1", "role": "user", "content": "hi" });
        assert!(same(named(), json!({ "role": "user", "content": "hi" })));
        assert!(!same(named(), json!({ "role": "user", "content": "ho" })));
        assert!(!same(named(), json!({ "role": "user", "content": "hi", "name": "Ada" })));
        assert!(!same(named(), json!({ "role": "user" })));
    }
}
