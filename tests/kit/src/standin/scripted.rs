//! Completions that a test writes literally.

use serde_json::Value;

use super::question::{Ask, Question};

/// A scripted completion.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptedCompletion {
    pub(super) content: String,
    pub(super) reasoning: String,
    pub(super) asks: Vec<Ask>,
}

/// Returns the completion for a line of the script.
pub(super) fn answer(question: &Question, line: Option<&Value>) -> ScriptedCompletion {
    match line {
        None => ScriptedCompletion::default(),
        Some(Value::String(content)) => {
            ScriptedCompletion { content: content.clone(), ..ScriptedCompletion::default() }
        }
        Some(document) => match document.get("tool_calls").and_then(Value::as_array) {
            None => ScriptedCompletion {
                content: document.to_string(),
                ..ScriptedCompletion::default()
            },
            Some(calls) => {
                let text = |name: &str| {
                    document.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
                };
                let asks = calls.iter().enumerate().map(|(index, call)| ask(question, index, call));
                ScriptedCompletion {
                    content: text("content"),
                    reasoning: text("reasoning"),
                    asks: asks.collect(),
                }
            }
        },
    }
}

/// Creates a tool call. The default id contains the position in the conversation, so ids are
/// unique.
fn ask(question: &Question, index: usize, call: &Value) -> Ask {
    let text = |name: &str| call.get(name).and_then(Value::as_str).map(str::to_owned);
    Ask {
        id: text("id").unwrap_or_else(|| format!("call_{}_{index}", question.turns.len())),
        name: text("name").unwrap_or_default(),
        arguments: match call.get("arguments") {
            None => "{}".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(document) => document.to_string(),
        },
    }
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
