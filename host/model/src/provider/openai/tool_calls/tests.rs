//! Tests of the assembly of tool calls.

use std::sync::Mutex;

use serde_json::json;
use wattle_graph::llm::{Delta, Part};
use wattle_run::ports::model::DeltaSink;

use crate::provider::provider_state::StateOwner;

use super::*;

#[derive(Default)]
struct RecordedDeltas(Mutex<Vec<Delta>>);

impl DeltaSink for RecordedDeltas {
    fn push(&self, delta: Delta) {
        self.0.lock().unwrap().push(delta);
    }
}

/// Returns `(id, name, arguments)` of the calls in these fragments.
fn read(pieces: &[Value]) -> Vec<(String, String, Value)> {
    let kept = RecordedDeltas::default();
    let sink = CallSink::new(&kept);
    let mut calls = ToolCalls::default();
    for piece in pieces {
        let bytes = calls.bytes();
        calls.push_fragment(piece, "a", bytes, &sink, &mut StateSize::default()).unwrap();
        if calls.take_renamed() {
            sink.restart();
            calls.emit_again(&sink);
        }
    }
    let mut draft = MessageBuilder::default();
    calls.move_into(&mut draft, &sink);
    let read: Vec<(String, String, Value)> = draft
        .build(StateOwner::new("p", "m"))
        .into_iter()
        .filter_map(|part| match part {
            Part::ToolCall(call) => Some((call.id, call.name, call.arguments)),
            _ => None,
        })
        .collect();
    assert_eq!(shown(&kept.0.lock().unwrap()), read, "deltas add up to the calls");
    read
}

fn shown(deltas: &[Delta]) -> Vec<(String, String, Value)> {
    let mut calls: Vec<(String, String, String)> = Vec::new();
    let start = deltas.iter().rposition(|delta| *delta == Delta::Restart).unwrap_or_default();
    for delta in &deltas[start..] {
        let Delta::ToolCall { index, id, name, arguments } = delta else { continue };
        if let (Some(id), Some(name)) = (id, name) {
            assert_eq!(*index as usize, calls.len());
            calls.push((id.clone(), name.clone(), String::new()));
        }
        calls[*index as usize].2.push_str(arguments);
    }
    // Clients interpret a call without any fragment as a call without arguments.
    let document = |text: String| match text.as_str() {
        "" => json!({}),
        text => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    };
    calls.into_iter().map(|(id, name, text)| (id, name, document(text))).collect()
}

fn piece(number: Value, id: Value, name: Value, arguments: Value) -> Value {
    json!({ "index": number, "id": id, "function": { "name": name, "arguments": arguments } })
}

fn call(id: &str, name: &str, arguments: Value) -> (String, String, Value) {
    (id.into(), name.into(), arguments)
}

#[test]
fn fragments_are_assigned_to_their_calls() {
    let none = Value::Null;
    let two = [call("x", "add", json!({"a": 1})), call("y", "save", json!({"b": "é"}))];
    let ordinary = [
        piece(json!(0), json!("x"), json!("add"), json!("")),
        piece(json!(0), none.clone(), none.clone(), json!("{\"a\":")),
        piece(json!(1), json!("y"), json!("save"), json!("{\"b\"")),
        piece(json!(0), none.clone(), none.clone(), json!("1}")),
        piece(json!(1), none.clone(), none.clone(), json!(":\"é\"}")),
    ];
    assert_eq!(read(&ordinary), two, "mixed");
    let unnumbered = [
        piece(none.clone(), json!("x"), json!("add"), json!("{\"a\":")),
        piece(none.clone(), none.clone(), none.clone(), json!("1}")),
        piece(none.clone(), json!("y"), json!("save"), json!("{\"b\":")),
        piece(none.clone(), json!("y"), none.clone(), json!("\"é\"}")),
    ];
    assert_eq!(read(&unnumbered), two, "without numbers");
    let same = [
        piece(json!(0), json!("x"), json!("add"), json!({"a": 1})),
        piece(json!(0), json!("y"), json!("save"), json!("{\"b\":\"\\u00e9\"}")),
    ];
    assert_eq!(read(&same), two, "all at once, with one number for both");
    let repeated = [
        piece(json!(0), json!("x"), json!("add"), json!("{")),
        piece(json!(0), json!("x"), json!("add"), json!("}")),
    ];
    assert_eq!(read(&repeated), [call("x", "add", json!({}))], "id and name repeated");
}

#[test]
fn unusual_indexes_and_ids_are_understood() {
    let none = Value::Null;
    let two = [call("a-0", "add", json!({"a": 1})), call("a-1", "add", json!({"a": 3}))];
    let numbered_alike = [
        piece(json!(0), none.clone(), json!("add"), json!("{\"a\":1}")),
        piece(json!(0), none.clone(), json!("add"), json!("{\"a\":3}")),
    ];
    assert_eq!(read(&numbered_alike), two, "one number, no ids");
    let without_arguments = [
        piece(json!(0), none.clone(), json!("add"), json!("")),
        piece(json!(0), none.clone(), json!("save"), none.clone()),
    ];
    let expected = [call("a-0", "add", json!({})), call("a-1", "save", json!({}))];
    assert_eq!(read(&without_arguments), expected, "one number, no ids, no arguments");
    let names_repeated = [
        piece(json!(0), none.clone(), json!("add"), json!("{\"a\":")),
        piece(json!(0), none.clone(), json!("add"), json!("1}")),
        piece(json!(0), none.clone(), json!("add"), json!("")),
        piece(none.clone(), none.clone(), json!("add"), json!("{\"a\"")),
        piece(none.clone(), none.clone(), json!("add"), json!(":3}")),
    ];
    assert_eq!(read(&names_repeated), two, "names in every piece");
    let late = [
        piece(json!(0), none.clone(), json!("add"), json!("{\"a\":")),
        piece(json!(0), json!("x"), none.clone(), json!("1}")),
    ];
    assert_eq!(read(&late), [call("a-0", "add", json!({"a": 1}))], "a late id");
    let changing = [
        piece(json!(0), json!("x"), json!("add"), json!("{\"a\":")),
        piece(json!(0), json!("y"), none.clone(), json!("1}")),
    ];
    assert_eq!(read(&changing), [call("x", "add", json!({"a": 1}))], "changing ids");
    let contradicting = [
        piece(json!(0), json!("x"), json!("add"), json!("{\"a\":")),
        piece(json!(1), json!("y"), json!("save"), json!("{\"b\":")),
        piece(json!(0), json!("y"), none.clone(), json!("2}")),
        piece(json!(1), json!("x"), none.clone(), json!("1}")),
    ];
    let expected = [call("x", "add", json!({"a": 1})), call("y", "save", json!({"b": 2}))];
    assert_eq!(read(&contradicting), expected, "the id takes precedence over the index");
    let one_id = [
        piece(json!(0), json!("x"), json!("add"), json!("{\"a\": \"}{\"}")),
        piece(json!(1), json!("x"), json!("save"), json!("{}")),
    ];
    let expected = [call("x", "add", json!({"a": "}{"})), call("x", "save", json!({}))];
    assert_eq!(read(&one_id), expected, "one id for two");
}

#[test]
fn texts_that_mean_no_arguments_are_not_emitted() {
    let none = Value::Null;
    let more = |arguments: &str| piece(json!(0), none.clone(), none.clone(), json!(arguments));
    let begun = |arguments: &str| piece(json!(0), json!("x"), json!("add"), json!(arguments));
    for pieces in [
        vec![begun("{}"), more("{\"a\":"), more("1}")],
        vec![begun("{}"), begun("{\"a\""), begun(":1}")],
        vec![begun("{"), more("}{"), more("\"a\":1}")],
    ] {
        assert_eq!(read(&pieces), [call("x", "add", json!({"a": 1}))], "{pieces:?}");
    }
    for pieces in [vec![begun("[]")], vec![begun(""), more("["), more("]")], vec![begun("{}")]] {
        assert_eq!(read(&pieces), [call("x", "add", json!({}))], "{pieces:?}");
    }
    let cut = [begun(""), more("{")];
    assert_eq!(read(&cut), [call("x", "add", json!("{"))], "cut after one character");
}

#[test]
fn a_name_in_fragments_is_one_name() {
    let none = Value::Null;
    for id in [json!("x"), none.clone()] {
        let pieces = [
            piece(json!(0), json!("x"), json!("get_"), json!("")),
            piece(json!(0), id.clone(), json!("city"), none.clone()),
            piece(json!(0), id.clone(), json!("_name"), json!("")),
            piece(json!(0), id.clone(), json!("get_city_name"), json!("")),
            piece(json!(0), id, none.clone(), json!("{}")),
        ];
        assert_eq!(read(&pieces), [call("x", "get_city_name", json!({}))]);
    }
    let started = [
        piece(json!(0), json!("x"), json!("get_"), json!("{")),
        piece(json!(0), json!("x"), json!("city"), json!("}")),
    ];
    assert_eq!(read(&started), [call("x", "get_", json!({}))], "behind arguments");
    let fragment =
        |number: u32| piece(json!(0), json!("x"), json!(format!("get_{number:08}")), json!(""));
    let pieces: Vec<Value> = (0..1_000).map(fragment).collect();
    let name = &read(&pieces)[0].1;
    assert!(name.starts_with("get_00000000get_00000001") && name.len() <= 256, "{name}");
}

#[test]
fn a_complete_call_that_arrives_twice_is_one_call() {
    let none = Value::Null;
    let whole = piece(json!(0), json!("x"), json!("add"), json!("{\"a\": 1}"));
    let one = [call("x", "add", json!({"a": 1}))];
    assert_eq!(read(&[whole.clone(), whole.clone()]), one, "in one piece");
    let begun = [
        piece(json!(0), json!("x"), json!("add"), json!("{\"a\":")),
        piece(json!(0), none.clone(), none.clone(), json!(" 1}")),
        whole.clone(),
    ];
    assert_eq!(read(&begun), one, "after its fragments");
    for arguments in ["{ \"a\": 1 }", "{\n  \"a\": 1\n}", "{}{\"a\": 1}"] {
        let whole = piece(json!(0), json!("x"), json!("add"), json!(arguments));
        assert_eq!(read(&[whole.clone(), whole]), one, "in another layout: {arguments}");
    }
    for arguments in ["{}", "[]", "null"] {
        let whole = piece(json!(0), json!("x"), json!("add"), json!(arguments));
        let expected = [call("x", "add", json!({}))];
        assert_eq!(read(&[whole.clone(), whole]), expected, "no arguments: {arguments}");
    }
    let other = piece(json!(0), json!("x"), json!("add"), json!("{\"a\": 2}"));
    let two = [call("x", "add", json!({"a": 1})), call("x", "add", json!({"a": 2}))];
    assert_eq!(read(&[whole.clone(), other]), two, "other arguments");
    let unnamed = piece(json!(0), none, json!("add"), json!("{\"a\": 1}"));
    assert_eq!(read(&[unnamed.clone(), unnamed]).len(), 2, "without an id");
}

#[test]
fn provider_specific_fields_stay_with_their_call() {
    let sink = CallSink::new(&wattle_run::ports::model::DiscardDeltas);
    let mut calls = ToolCalls::default();
    let piece = json!({ "index": 0, "id": "x", "type": "function",
        "extra_content": { "google": { "thought_signature": "s" } },
        "function": { "name": "add", "arguments": "{}", "strict": true } });
    calls.push_fragment(&piece, "a", 0, &sink, &mut StateSize::default()).unwrap();
    let fields = json!({ "extra_content": { "google": { "thought_signature": "s" } },
        "function": { "strict": true } });
    assert_eq!(Value::Object(calls.calls[0].fields.clone()), fields);
}

#[test]
fn missing_ids_are_generated_and_invalid_arguments_kept() {
    let none = Value::Null;
    let pieces = [
        piece(none.clone(), none.clone(), json!("now"), none.clone()),
        piece(none.clone(), none.clone(), json!("add"), json!("{\"a\": oops")),
    ];
    let expected = [call("a-0", "now", json!({})), call("a-1", "add", json!("{\"a\": oops"))];
    assert_eq!(read(&pieces), expected);
}

#[test]
fn too_many_calls_are_refused() {
    let kept = RecordedDeltas::default();
    let sink = CallSink::new(&kept);
    let mut calls = ToolCalls::default();
    let mut own = StateSize::default();
    let outcome = (0..=MAX_CALLS).try_for_each(|number| {
        let piece = piece(json!(number), json!(null), json!("t"), json!(""));
        calls.push_fragment(&piece, "", 0, &sink, &mut own)
    });
    assert!(outcome.unwrap_err().contains("128"));
}
