//! Messages as channels hold them: objects with a `role`, and what else it calls for.
//!
//! A channel accepts any object, so a message is read by a [`MessageView`]: a field that is missing or
//! of another type counts as absent.

use serde_json::{Map, Value};

use crate::llm::ToolCall;

/// The messages of a write or of a channel: one, or a list.
pub fn messages(value: &Value) -> &[Value] {
    match value {
        Value::Array(messages) => messages,
        message => std::slice::from_ref(message),
    }
}

/// A message of a channel.
#[derive(Clone, Copy, Debug)]
pub struct MessageView<'v>(&'v Map<String, Value>);

impl<'v> MessageView<'v> {
    /// Reads a message; `None` for a value without a role.
    pub fn of(message: &'v Value) -> Option<Self> {
        let view = Self(message.as_object()?);
        view.text_field("role").is_some().then_some(view)
    }

    fn text_field(self, name: &str) -> Option<&'v str> {
        self.0.get(name)?.as_str()
    }

    /// Who speaks: `user`, `assistant`, `tool`, `system`, `remove` or another.
    pub fn role(self) -> &'v str {
        self.text_field("role").unwrap_or_default()
    }

    /// Its id; messages get one at the end of the superstep at the latest.
    pub fn id(self) -> Option<&'v str> {
        self.text_field("id").filter(|id| !id.is_empty())
    }

    /// The name of the speaker, such as that of a tool.
    pub fn name(self) -> Option<&'v str> {
        self.text_field("name")
    }

    /// What is said: a text, or a list of parts.
    pub fn content(self) -> &'v Value {
        self.0.get("content").unwrap_or(&Value::Null)
    }

    /// All text of the content.
    pub fn text(self) -> String {
        match self.content() {
            Value::String(text) => text.clone(),
            Value::Array(parts) => {
                parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()
            }
            _ => String::new(),
        }
    }

    /// The tool calls that an assistant asks for. Fields that are missing are empty.
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

    /// The tool call that a tool answers.
    pub fn tool_call_id(self) -> Option<&'v str> {
        self.text_field("tool_call_id")
    }

    /// The arguments that a tool was called with, if a person changed them.
    pub fn arguments(self) -> Option<&'v Value> {
        self.0.get("arguments")
    }

    /// Whether a tool answers that it failed.
    pub fn is_error(self) -> bool {
        self.text_field("status") == Some("error")
    }

    /// What a tool answers as data.
    pub fn structured(self) -> Option<&'v Value> {
        self.0.get("structured").filter(|structured| !structured.is_null())
    }

    /// Whether two messages are the same but for their ids.
    pub fn says_the_same(self, other: Self) -> bool {
        let fields = |view: Self| view.0.iter().filter(|(name, _)| *name != "id");
        fields(self).count() == fields(other).count()
            && fields(other).all(|(name, value)| self.0.get(name) == Some(value))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_read_as_far_as_it_goes() {
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
    fn messages_are_compared_but_for_their_ids() {
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
