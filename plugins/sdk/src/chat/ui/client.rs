//! Messages that a client of the AI SDK sends: their parts, and their conversion to those of the
//! state.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Prefix of the type of a tool's part, before the name of the tool.
pub(super) const TOOL: &str = "tool-";

/// A part of a message of the AI SDK, with the fields that a conversation needs.
///
/// ```
/// use serde_json::json;
/// use wattle_plugin::chat::ui::Part;
///
/// assert_eq!(Part::of(&json!({"type": "text", "text": "hi"})), Part::Text("hi"));
/// assert_eq!(Part::of(&json!({"type": "data-weather", "data": {}})), Part::Other);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Part<'a> {
    /// Text.
    Text(&'a str),
    /// Reasoning of the model.
    Reasoning(&'a str),
    /// Start of a model call.
    StepStart,
    /// Name of a file.
    File(&'a str),
    /// A tool call.
    Tool(ToolPart<'a>),
    /// Any other part.
    Other,
}

/// A tool call in a message of the AI SDK.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToolPart<'a> {
    /// Name of the tool.
    pub name: &'a str,
    /// Id that the model gave the call.
    pub call_id: &'a str,
    /// Arguments; null if they are unknown.
    pub input: &'a Value,
    /// Output or error; `None` if the call has no result, yet or at all.
    pub result: Option<Result<&'a Value, &'a str>>,
}

impl<'a> Part<'a> {
    /// Parses a part.
    pub fn of(part: &'a Value) -> Self {
        let text = || part["text"].as_str().unwrap_or_default();
        match part["type"].as_str().unwrap_or_default() {
            "text" => Self::Text(text()),
            "reasoning" => Self::Reasoning(text()),
            "step-start" => Self::StepStart,
            "file" => Self::File(part["filename"].as_str().unwrap_or("a file")),
            "dynamic-tool" => Self::tool(part["toolName"].as_str().unwrap_or_default(), part),
            kind => match kind.strip_prefix(TOOL) {
                Some(name) => Self::tool(name, part),
                None => Self::Other,
            },
        }
    }

    fn tool(name: &'a str, part: &'a Value) -> Self {
        // Providers reject a conversation with a call without a name or an id.
        let call_id = part["toolCallId"].as_str().unwrap_or_default();
        if name.is_empty() || call_id.is_empty() {
            return Self::Other;
        }
        let is_preliminary = part["preliminary"].as_bool().unwrap_or_default();
        let result = match part["state"].as_str().unwrap_or_default() {
            "output-available" if !is_preliminary => Some(Ok(&part["output"])),
            "output-error" => Some(Err(part["errorText"].as_str().unwrap_or_default())),
            _ => None,
        };
        Self::Tool(ToolPart { name, call_id, input: &part["input"], result })
    }
}

/// The ids of the tool calls of a conversation, as a model reads them. A model needs unique ids, so a
/// call whose id is in use gets a number as suffix.
#[derive(Debug, Clone, Default)]
pub struct CallIds {
    /// The number of the next suffix, by id.
    next: BTreeMap<String, usize>,
}

impl CallIds {
    /// Returns the id, with a number as suffix if another call has it.
    fn unique(&mut self, id: &str) -> String {
        let mut unique = id.to_owned();
        if let Some(mut number) = self.next.get(id).copied() {
            while self.next.contains_key(&unique) {
                unique = format!("{id}-{number}");
                number += 1;
            }
            self.next.insert(id.to_owned(), number);
        }
        self.next.insert(unique.clone(), 2);
        unique
    }
}

/// Converts the parts of a message of the assistant to messages in the format of the reducer
/// `messages`, for a model.
///
/// The message contains all output of one run. It is split into turns: the text with the requested
/// calls, then a result for each call. `view` returns what the model reads of the output or the
/// error of a tool call; a call for which it returns `None` is left out. So is a call without a
/// result, such as after a cancel, because providers reject it.
///
/// `ids` has the ids of the calls of the conversation so far.
///
/// ```
/// use serde_json::json;
/// use wattle_plugin::chat::ui::{self, CallIds};
///
/// let parts = [
///     json!({"type": "step-start"}),
///     json!({"type": "tool-add", "toolCallId": "c", "state": "output-available",
///         "input": {"a": 1, "b": 2}, "output": 3}),
/// ];
/// let view = |_tool: &str, result: Result<&serde_json::Value, &str>| match result {
///     Ok(output) => Some(output.to_string()),
///     Err(error) => Some(error.to_owned()),
/// };
/// let messages = ui::to_stored(&parts, &mut CallIds::default(), view);
/// assert_eq!(messages[0]["tool_calls"][0]["name"], "add");
/// assert_eq!(messages[1]["content"], "3");
/// ```
pub fn to_stored(
    parts: &[Value],
    ids: &mut CallIds,
    view: impl Fn(&str, Result<&Value, &str>) -> Option<String>,
) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut turn = Turn::default();
    for part in parts {
        match Part::of(part) {
            Part::StepStart => turn.end(&mut messages),
            Part::Text(text) => {
                turn.end_after_calls(&mut messages);
                turn.text.push_str(text);
            }
            Part::Reasoning(text) => {
                turn.end_after_calls(&mut messages);
                turn.reasoning.push_str(text);
            }
            Part::Tool(call) => {
                let Some(result) = call.result else { continue };
                if let Some(content) = view(call.name, result) {
                    let status = if result.is_ok() { "success" } else { "error" };
                    turn.call(ids.unique(call.call_id), &call, status, &content);
                }
            }
            Part::File(_) | Part::Other => {}
        }
    }
    turn.end(&mut messages);
    messages
}

/// The output of one model call, so far.
#[derive(Default)]
struct Turn {
    text: String,
    reasoning: String,
    calls: Vec<Value>,
    results: Vec<Value>,
}

impl Turn {
    fn call(&mut self, id: String, call: &ToolPart<'_>, status: &str, content: &str) {
        let input = if call.input.is_object() { call.input.clone() } else { json!({}) };
        self.calls.push(json!({ "id": id, "name": call.name, "arguments": input }));
        self.results.push(json!({ "role": "tool", "tool_call_id": id, "name": call.name,
            "status": status, "content": content }));
    }

    /// Ends the turn if it has calls. A page may omit the start of a model call, and no text of a
    /// model call follows its tools.
    fn end_after_calls(&mut self, messages: &mut Vec<Value>) {
        if !self.calls.is_empty() {
            self.end(messages);
        }
    }

    fn end(&mut self, messages: &mut Vec<Value>) {
        let Self { text, reasoning, calls, results } = std::mem::take(self);
        if text.trim().is_empty() && calls.is_empty() {
            return;
        }
        let mut message = json!({ "role": "assistant", "content": text });
        if !calls.is_empty() {
            message["tool_calls"] = Value::Array(calls);
        }
        if !reasoning.is_empty() {
            message["reasoning"] = Value::String(reasoning);
        }
        messages.push(message);
        messages.extend(results);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{CallIds, Part, ToolPart, to_stored};

    #[test]
    fn both_kinds_of_tool_parts_are_parsed() {
        let input = json!({"count": 2});
        for kind in [json!("tool-search_image"), json!("dynamic-tool")] {
            let part = json!({"type": kind, "toolName": "search_image", "toolCallId": "c1",
                "state": "output-error", "input": input, "errorText": "no"});
            let read = ToolPart {
                name: "search_image",
                call_id: "c1",
                input: &input,
                result: Some(Err("no")),
            };
            assert_eq!(Part::of(&part), Part::Tool(read));
        }
    }

    #[test]
    fn unknown_parts_are_ignored() {
        for part in [
            json!({"type": "data-step", "data": {}}),
            json!({"type": "tool-search_image", "state": "output-available"}),
            json!({"type": "tool-", "toolCallId": "c1", "state": "output-available"}),
            json!({"type": "dynamic-tool", "toolCallId": "c1", "state": "output-available"}),
            json!(7),
            json!({}),
        ] {
            assert_eq!(Part::of(&part), Part::Other, "{part}");
        }
    }

    fn stored(parts: &Value) -> Vec<Value> {
        let view = |name: &str, result: Result<&Value, &str>| match result {
            Ok(output) => (name != "hidden").then(|| output.to_string()),
            Err(error) => Some(error.to_owned()),
        };
        let mut ids = CallIds::default();
        assert_eq!(ids.unique("used"), "used");
        to_stored(parts.as_array().unwrap(), &mut ids, view)
    }

    fn tool(name: &str, id: &str, state: &str) -> Value {
        json!({"type": format!("tool-{name}"), "toolCallId": id, "state": state,
            "input": {"text": "x"}, "output": {"count": 0}, "errorText": "not found"})
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn message_is_split_into_turns() {
        let messages = stored(&json!([
            {"type": "step-start"}, {"type": "reasoning", "text": "hm"}, text("First."),
            tool("search", "a", "output-available"),
            {"type": "step-start"}, tool("load", "b", "output-error"),
            {"type": "step-start"}, text("Sorry."),
        ]));
        let call =
            |id: &str, name: &str| json!([{"id": id, "name": name, "arguments": {"text": "x"}}]);
        assert_eq!(
            json!(messages),
            json!([
                {"role": "assistant", "content": "First.", "tool_calls": call("a", "search"),
                    "reasoning": "hm"},
                {"role": "tool", "tool_call_id": "a", "name": "search", "status": "success",
                    "content": "{\"count\":0}"},
                {"role": "assistant", "content": "", "tool_calls": call("b", "load")},
                {"role": "tool", "tool_call_id": "b", "name": "load", "status": "error",
                    "content": "not found"},
                {"role": "assistant", "content": "Sorry."},
            ])
        );
    }

    #[test]
    fn calls_without_a_result_or_a_view_are_left_out() {
        let messages = stored(&json!([
            text("Let me see."),
            tool("search", "a", "input-available"),
            tool("search", "b", "input-streaming"),
            tool("hidden", "c", "output-available"),
        ]));
        assert_eq!(messages, [json!({"role": "assistant", "content": "Let me see."})]);
        let nothing = json!([{"type": "step-start"}, tool("search", "a", "input-available")]);
        assert!(stored(&nothing).is_empty());
    }

    #[test]
    fn calls_have_unique_ids() {
        let calls = ["a", "a", "used"].map(|id| tool("search", id, "output-available"));
        let messages = stored(&json!([calls[0], text("and"), calls[1], calls[2]]));
        let ids: Vec<&Value> = messages.iter().filter_map(|it| it.get("tool_call_id")).collect();
        assert_eq!(ids, ["a", "a-2", "used-2"]);
    }

    // A client can send as many calls with one id as its message has parts.
    #[test]
    fn many_calls_with_one_id_are_numbered() {
        let mut ids = CallIds::default();
        assert_eq!(
            ["a-3", "a", "a", "a", "a-3"].map(|id| ids.unique(id)),
            ["a-3", "a", "a-2", "a-4", "a-3-2"]
        );
        for number in 5..=100_000 {
            assert_eq!(ids.unique("a"), format!("a-{number}"));
        }
    }
}
