//! Ids of tool calls in the fields of a message.
//!
//! OpenRouter sends the signature of a call in `reasoning_details` of the message, beside the id of
//! the call, and finds the call by this id when the message is sent back. An agent gives a call
//! another id if an earlier call of the conversation has the same one: some models number the calls
//! of every turn from the start. The fields are therefore sent back with the new id.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use wattle_graph::llm::ToolCall;

/// Field of a message with the details of its reasoning, which can have ids of calls.
const DETAILS: &str = "reasoning_details";

/// Returns the ids of all calls if the fields of their message contain the id of one of them.
pub(super) fn referenced_in(fields: &Map<String, Value>, calls: &[ToolCall]) -> Vec<String> {
    let ids: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    let details = fields.get(DETAILS).and_then(Value::as_array);
    let mut found = details.into_iter().flatten().filter_map(|detail| detail.get("id")?.as_str());
    if found.any(|id| ids.contains(id)) {
        calls.iter().map(|call| call.id.clone()).collect()
    } else {
        Vec::new()
    }
}

/// Replaces ids of calls in the fields of their message. `old` and `new` have the same order.
pub(super) fn replace<'a>(
    fields: &mut Map<String, Value>,
    old: &[String],
    new: impl Iterator<Item = &'a str>,
) {
    let mut ids: HashMap<&str, &str> = HashMap::new();
    for (old, new) in old.iter().zip(new) {
        ids.entry(old.as_str()).or_insert(new);
    }
    let details = fields.get_mut(DETAILS).and_then(Value::as_array_mut);
    for detail in details.into_iter().flatten() {
        let id = detail.get("id").and_then(Value::as_str);
        if let Some(new) = id.and_then(|id| ids.get(id)) {
            detail["id"] = Value::from(*new);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(details: Value) -> Map<String, Value> {
        Map::from_iter([(DETAILS.to_owned(), details)])
    }

    #[test]
    fn ids_are_returned_if_the_fields_contain_one() {
        let call = |id: &str| ToolCall { id: id.into(), name: "add".into(), arguments: json!({}) };
        let calls = [call("c1"), call("c2")];
        let ids = |details: Value| referenced_in(&fields(details), &calls);
        assert_eq!(ids(json!([{ "data": "x" }, { "id": "c2" }])), ["c1", "c2"]);
        for other in [json!(null), json!([]), json!([1, "c1", { "id": 1 }, { "id": "rs_1" }])] {
            assert!(ids(other.clone()).is_empty(), "{other}");
        }
    }

    #[test]
    fn changed_ids_are_replaced() {
        let old = ["c1".to_owned(), "c2".to_owned(), "c1".to_owned()];
        let mut some = fields(json!([{ "id": "c1", "data": "c1" }, { "id": "c2" }, { "id": 1 }]));
        replace(&mut some, &old, ["c1-4", "c2", "c1-5"].into_iter());
        let expected = json!([{ "id": "c1-4", "data": "c1" }, { "id": "c2" }, { "id": 1 }]);
        assert_eq!(some, fields(expected));
    }
}
