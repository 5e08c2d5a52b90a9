//! The functions are compared with what the plugin `std` does with arrays of messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::Index;
use serde_json::{Value, json};

use super::{turn_start, unique_call_ids};
use crate::checkpoint::SharedList;
use crate::llm::{Completion, FinishReason, Part, ToolCall, Usage};

fn user() -> Value {
    json!({ "role": "user", "content": "hi" })
}

fn asked<S: AsRef<str>>(ids: &[S]) -> Value {
    let call = |id: &S| json!({ "id": id.as_ref(), "name": "add", "arguments": {} });
    let calls: Vec<Value> = ids.iter().map(call).collect();
    json!({ "role": "assistant", "content": "", "tool_calls": calls })
}

fn result(id: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "name": id, "content": "1" })
}

fn completion<S: AsRef<str>>(ids: &[S]) -> Completion {
    let call = |id: &S| {
        let id = id.as_ref().to_owned();
        Part::ToolCall(ToolCall { id, name: "add".to_owned(), arguments: json!({}) })
    };
    Completion {
        id: None,
        parts: ids.iter().map(call).collect(),
        structured: None,
        finish_reason: FinishReason::ToolCalls,
        usage: Usage::default(),
        model: "small".to_owned(),
        attempts: Vec::new(),
    }
}

fn list(messages: &[Value]) -> SharedList {
    messages.iter().cloned().collect()
}

/// Generates ids of calls. There are few, so that calls repeat; some are like generated ids, and
/// calls with the last ones usually have no result.
fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        100 => "[a-e]",
        10 => "(a|call)-[0-9]{1,3}",
        5 => Just(String::new()),
        1 => "z[0-9]",
    ]
}

fn message() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => vec(id(), 0..4).prop_map(|ids| asked(&ids)),
        9 => id().prop_map(|id| result(&id)),
        1 => Just(user()),
        1 => Just(json!({ "role": "system", "tool_calls": null, "tool_call_id": "a" })),
        1 => Just(json!({ "role": "tool", "content": "no call" })),
        1 => id().prop_map(|id| {
            let mut message = result(&id);
            message["tool_calls"] = json!([{ "id": id, "name": "add" }, { "name": "no id" }]);
            message
        }),
    ]
}

/// Returns the ids of the calls of a message.
fn ids(message: &Value) -> impl Iterator<Item = &str> {
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    calls.filter_map(|call| call["id"].as_str())
}

fn last(messages: &[Value], role: &str) -> Option<usize> {
    messages.iter().rposition(|message| message["role"] == role)
}

/// Returns the calls that have no result, each as the position of its message and its id.
fn without_result(messages: &[Value]) -> Vec<(usize, &str)> {
    let has_result = |place: usize, id: &str| {
        let mut later = messages[place + 1..].iter();
        later.any(|it| it["role"] == "tool" && it["tool_call_id"] == id)
    };
    let all = messages.iter().enumerate();
    let calls = all.flat_map(|(place, message)| ids(message).map(move |id| (place, id)));
    calls.filter(|(place, id)| !has_result(*place, id)).collect()
}

/// Returns what `std` reads: the calls to close, the open calls of the last assistant message, the
/// number of turns since the last user message, and the tools that have returned a result since
/// then.
fn read(messages: &[Value]) -> (Vec<&str>, Vec<&str>, usize, BTreeSet<&str>) {
    let open = without_result(messages);
    let assistant = last(messages, "assistant");
    let of_last = open.iter().filter(|(place, _)| Some(*place) == assistant);
    let since_user = &messages[last(messages, "user").map_or(0, |place| place + 1)..];
    let turns = since_user.iter().filter(|message| message["role"] == "assistant");
    let results = since_user.iter().filter(|message| message["role"] == "tool");
    (
        open.iter().map(|(_, id)| *id).collect(),
        of_last.map(|(_, id)| *id).collect(),
        turns.count(),
        results.filter_map(|message| message["name"].as_str()).collect(),
    )
}

/// Returns ids for calls. The numbers begin after the number of all calls, and in `std` after that
/// of the different ids. Both are the same in a conversation whose ids are unique.
fn unique(messages: &[Value], calls: &[String]) -> Vec<String> {
    let first = messages.iter().flat_map(ids).count() + 1;
    let mut taken: BTreeSet<String> = messages.iter().flat_map(ids).map(str::to_owned).collect();
    let mut unique = Vec::new();
    for (index, id) in calls.iter().enumerate() {
        let mut number = first + index;
        let base = if id.is_empty() { "call" } else { id.as_str() };
        let mut given = id.clone();
        while given.is_empty() || taken.contains(&given) {
            given = format!("{base}-{number}");
            number += 1;
        }
        taken.insert(given.clone());
        unique.push(given);
    }
    unique
}

proptest! {
    #[test]
    fn the_current_turn_has_all_that_a_node_reads(
        messages in vec(message(), 1..200),
        edits in vec((any::<Index>(), message()), 0..3),
        removed in vec(any::<Index>(), 0..3),
    ) {
        let mut shared = list(&messages);
        let mut array = messages;
        for (place, message) in edits {
            turn_start(&shared);
            let place = place.index(array.len());
            shared.set(place, Arc::new(message.clone()));
            array[place] = message;
        }
        let removed: BTreeSet<usize> =
            removed.iter().map(|place| place.index(array.len())).collect();
        for place in removed.iter().rev() {
            array.remove(*place);
        }
        let start = turn_start(&shared.without(&removed));
        let user = last(&array, "user").unwrap_or_default();
        let open = without_result(&array);
        prop_assert_eq!(start, open.first().map_or(user, |(place, _)| user.min(*place)));
        prop_assert_eq!(read(&array[start..]), read(&array));
    }

    #[test]
    fn ids_are_those_of_a_search_in_all_calls(
        messages in vec(message(), 0..150),
        append in vec(message(), 0..3),
        calls in vec(id(), 0..100),
    ) {
        let given = unique_call_ids(&list(&messages), &append, &completion(&calls));
        prop_assert_eq!(given, unique(&[messages, append].concat(), &calls));
    }
}

#[test]
fn a_turn_begins_at_the_last_user_message_or_an_earlier_open_call() {
    let start = |messages: &[Value]| turn_start(&list(messages));
    assert_eq!(start(&[]), 0);
    assert_eq!(start(&[asked(&["a"]), result("a")]), 0);
    assert_eq!(start(&[user(), asked(&["a"]), result("a"), user(), asked(&["b"])]), 3);
    assert_eq!(start(&[user(), asked(&["a"]), user(), asked(&["b"]), result("b")]), 1);
    let repeated = [user(), asked(&["a"]), result("a"), asked(&["a"]), user()];
    assert_eq!(start(&repeated), 3, "a result belongs to calls before it");
}

#[test]
fn a_result_in_another_chunk_belongs_to_its_call() {
    let ids: Vec<String> = (0..100).map(|number| format!("c{number}")).collect();
    let mut messages = vec![user(); 63];
    messages.push(asked(&ids));
    messages.extend(ids.iter().map(|id| result(id)));
    messages.push(user());
    assert_eq!(turn_start(&list(&messages)), 164);
    messages.remove(163);
    assert_eq!(turn_start(&list(&messages)), 63, "the last call has no result");
}

#[test]
fn many_calls_without_a_result_are_in_the_current_turn() {
    let mut messages = vec![user(); 10];
    messages.extend((0..1_000).map(|number| asked(&[number.to_string()])));
    messages.push(user());
    assert_eq!(turn_start(&list(&messages)), 10);
}

#[test]
fn taken_and_empty_ids_get_a_number() {
    let messages = [asked(&["a"]), result("a")];
    let calls = completion(&["a", "", "", "b"]);
    assert_eq!(unique_call_ids(&list(&messages), &[], &calls), ["a-2", "call-3", "call-4", "b"]);
    let appended = unique_call_ids(&list(&[]), &messages, &completion(&["a"]));
    assert_eq!(appended, ["a-2"], "messages after the list are part of the conversation");
}

#[test]
fn taken_numbers_are_skipped() {
    let ids: Vec<String> = (101..=300).map(|number| format!("call-{number}")).collect();
    let given = unique_call_ids(&list(&[asked(&ids)]), &[], &completion(&["", "", "call-300"]));
    assert_eq!(given, ["call-301", "call-302", "call-300-203"]);
}
