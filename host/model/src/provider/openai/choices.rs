//! The choices of a response.
//!
//! The host requests one choice. Some gateways split its output over several ones: GitHub Copilot
//! sends the text of Claude in the first choice, and each tool call in a further one. All choices
//! are parts of one message, in the order of their indexes. The output of a stream is emitted as it
//! arrives, so the text of a further choice waits for the end of the response. Tool calls do not
//! wait, because their deltas have indexes.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::weight::weight;

use crate::provider::provider_state::{Fields, has_content};

/// Fields of a delta that are not part of its output, and those with tool calls.
const OTHER_FIELDS: [&str; 5] = ["role", "channel", "annotations", "tool_calls", "function_call"];

/// The output of further choices.
#[derive(Debug, Default)]
pub(super) struct FurtherChoices {
    /// The index of the choice with the first output.
    first: Option<u64>,
    /// The deltas of the other choices, without tool calls, by the index of the choice.
    deltas: BTreeMap<u64, Vec<Value>>,
    bytes: usize,
}

impl FurtherChoices {
    /// Keeps the output of a delta if it belongs to a further choice. Returns false if the output
    /// is to be read now.
    pub(super) fn keep(&mut self, index: u64, delta: &Value) -> bool {
        let Some(fields) = delta.as_object() else { return false };
        let mut output = fields.iter().filter(|(name, value)| is_output(name, value)).peekable();
        if output.peek().is_none() || *self.first.get_or_insert(index) == index {
            return false;
        }
        let output: Fields = output.map(|(name, value)| (name.clone(), value.clone())).collect();
        let output = Value::Object(output);
        self.bytes += weight(&output) as usize;
        self.deltas.entry(index).or_default().push(output);
        true
    }

    /// Returns the bytes of memory that the deltas take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the deltas in the order of the choices.
    pub(super) fn take(&mut self) -> Vec<Value> {
        std::mem::take(self).deltas.into_values().flatten().collect()
    }
}

fn is_output(name: &str, value: &Value) -> bool {
    !OTHER_FIELDS.contains(&name) && has_content(value)
}

/// Returns the choices of a chunk with their indexes, in the order of the indexes. The index of a
/// choice is its position if the service sends none.
pub(super) fn in_order(chunk: &Value) -> Vec<(u64, &Value)> {
    let choices = chunk.get("choices").and_then(Value::as_array).into_iter().flatten();
    let mut choices: Vec<(u64, &Value)> = choices
        .enumerate()
        .filter(|(_, choice)| choice.is_object())
        .map(|(place, choice)| {
            let index = choice.get("index").and_then(Value::as_u64);
            (index.unwrap_or(place as u64), choice)
        })
        .collect();
    choices.sort_by_key(|(index, _)| *index);
    choices
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn choices_are_sorted_by_their_indexes() {
        let indexes = |choices: Value| -> Vec<u64> {
            let chunk = json!({ "choices": choices });
            in_order(&chunk).into_iter().map(|(index, _)| index).collect()
        };
        assert_eq!(indexes(json!([{ "index": 1 }, { "index": 0 }])), [0, 1]);
        assert_eq!(indexes(json!([{}, null, { "index": "1" }])), [0, 2]);
        assert_eq!(indexes(json!([{ "index": 0 }, { "index": 0 }])), [0, 0]);
        assert!(indexes(json!({ "index": 0 })).is_empty());
    }

    #[test]
    fn output_of_further_choices_is_kept_without_calls() {
        let mut further = FurtherChoices::default();
        assert!(!further.keep(2, &json!({ "role": "assistant", "content": "" })), "no output");
        assert!(!further.keep(1, &json!({ "content": "a" })), "the first output");
        let call = json!([{ "id": "x" }]);
        assert!(further.keep(2, &json!({ "content": "c", "tool_calls": call })));
        assert!(!further.keep(2, &json!({ "tool_calls": call })), "nothing is left");
        assert!(further.keep(0, &json!({ "reasoning": "b" })));
        assert!(further.bytes() > 0);
        assert_eq!(further.take(), [json!({ "reasoning": "b" }), json!({ "content": "c" })]);
        assert_eq!((further.take().len(), further.bytes()), (0, 0));
    }
}
