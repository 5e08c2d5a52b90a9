//! Completions that a test writes literally.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::question::{Ask, Question};

/// A scripted completion.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptedCompletion {
    pub(super) content: String,
    pub(super) reasoning: String,
    pub(super) asks: Vec<Ask>,
}

/// An entry of a script that requests tools.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCalls {
    tool_calls: Vec<ToolCall>,
    content: Option<String>,
    reasoning: Option<String>,
}

/// A requested call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCall {
    id: Option<String>,
    name: String,
    /// A string is sent as it is, so that it need not be JSON.
    #[serde(default = "no_arguments")]
    arguments: Value,
}

/// Checks an entry of a script. An object with `tool_calls` has only fields that it may have.
pub(super) fn check(entry: &Value) -> Result<(), serde_json::Error> {
    tool_calls(entry).map(drop)
}

/// Returns the completion for an entry of the script. An entry that [`check`] refuses is sent as
/// text.
pub(super) fn answer(question: &Question, entry: Option<&Value>) -> ScriptedCompletion {
    let text = |content| ScriptedCompletion { content, ..ScriptedCompletion::default() };
    match entry {
        None => ScriptedCompletion::default(),
        Some(Value::String(content)) => text(content.clone()),
        Some(document) => match tool_calls(document) {
            Ok(Some(requested)) => completion(question, requested),
            Ok(None) | Err(_) => text(document.to_string()),
        },
    }
}

/// Returns the tool calls of an entry, or `None` if it has none and is sent as text.
fn tool_calls(entry: &Value) -> Result<Option<ToolCalls>, serde_json::Error> {
    match entry.get("tool_calls") {
        Some(_) => ToolCalls::deserialize(entry).map(Some),
        None => Ok(None),
    }
}

fn completion(question: &Question, requested: ToolCalls) -> ScriptedCompletion {
    let calls = requested.tool_calls.into_iter().enumerate();
    ScriptedCompletion {
        content: requested.content.unwrap_or_default(),
        reasoning: requested.reasoning.unwrap_or_default(),
        asks: calls.map(|(index, call)| ask(question, index, call)).collect(),
    }
}

/// Creates a tool call. The default id contains the position in the conversation, so ids are
/// unique.
fn ask(question: &Question, index: usize, call: ToolCall) -> Ask {
    Ask {
        id: call.id.unwrap_or_else(|| format!("call_{}_{index}", question.turns.len())),
        name: call.name,
        arguments: match call.arguments {
            Value::String(text) => text,
            document => document.to_string(),
        },
    }
}

fn no_arguments() -> Value {
    Value::Object(Map::new())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_texts_json_values_or_tool_calls() {
        let question = Question::default();
        let completion = |line: Value| answer(&question, Some(&line));
        assert_eq!(completion(json!("hi")).content, "hi");
        assert_eq!(completion(json!({"a": 1})).content, "{\"a\":1}");
        let calls = json!({"content": "wait", "tool_calls": [
            {"name": "add", "arguments": {"a": 1}}, {"id": "x", "name": "bad", "arguments": "{"},
        ]});
        let with_calls = completion(calls);
        assert_eq!(with_calls.content, "wait");
        let expected = [("call_0_0", "add", "{\"a\":1}"), ("x", "bad", "{")];
        let found: Vec<_> = with_calls
            .asks
            .iter()
            .map(|ask| (ask.id.as_str(), ask.name.as_str(), ask.arguments.as_str()))
            .collect();
        assert_eq!(found, expected);
    }
}
