//! Tables of reducers: the old value, the writes, and the result.

use serde_json::{Value, json};

use super::Channel;
use crate::definition::ChannelDef;
use crate::event::Write;
use crate::id::ChannelName;
use crate::schema::StepBudget;

fn channel(reducer: &str, schema: &Value) -> Channel {
    let def: ChannelDef =
        serde_json::from_value(json!({ "reducer": reducer, "schema": schema })).unwrap();
    Channel::new(ChannelName::new("c").unwrap(), &def).unwrap()
}

fn write(value: Value) -> Write {
    Write { channel: ChannelName::new("c").unwrap(), value, overwrite: false }
}

fn reduce(reducer: &str, current: &Value, writes: &[Write]) -> Result<Value, String> {
    let current = (!current.is_null()).then_some(current);
    let writes: Vec<&Write> = writes.iter().collect();
    channel(reducer, &json!({})).reduce(current, &writes).map_err(|error| error.to_string())
}

fn check(reducer: &str, current: &Value, writes: &Value, wanted: &Value) {
    let writes: Vec<Write> = writes.as_array().unwrap().iter().cloned().map(write).collect();
    assert_eq!(reduce(reducer, current, &writes).as_ref(), Ok(wanted), "{reducer} {writes:?}");
}

fn refuse(reducer: &str, current: &Value, writes: &Value, part: &str) {
    let writes: Vec<Write> = writes.as_array().unwrap().iter().cloned().map(write).collect();
    let error = reduce(reducer, current, &writes).unwrap_err();
    assert!(error.contains(part), "{reducer}: {error}");
}

#[test]
fn last_any_and_ephemeral_replace_the_value() {
    check("last", &json!(1), &json!([2]), &json!(2));
    check("any", &json!(1), &json!([2, 3]), &json!(3));
    check("ephemeral", &json!(null), &json!([[1]]), &json!([1]));
    refuse("last", &json!(1), &json!([2, 2]), "give it a reducer");
    refuse("ephemeral", &json!(null), &json!([2, 3]), "give it a reducer");
}

#[test]
fn append_adds_items_to_a_list() {
    check("append", &json!(null), &json!([1]), &json!([1]));
    check("append", &json!([1]), &json!([[2, 3], 4, [[5]]]), &json!([1, 2, 3, 4, [5]]));
    check("append", &json!([1]), &json!([[]]), &json!([1]));
    refuse("append", &json!("x"), &json!([1]), "not an array");
}

#[test]
fn merge_replaces_keys_of_an_object() {
    let current = json!({ "a": { "x": 1 }, "b": 1 });
    let writes = json!([{ "a": { "y": 2 } }, { "b": null }, { "c": 3 }]);
    check("merge", &current, &writes, &json!({ "a": { "y": 2 }, "b": null, "c": 3 }));
    refuse("merge", &current, &json!([1]), "only an object");
}

#[test]
fn integers_stay_integers_while_they_fit_into_64_bits() {
    check("sum", &json!(1), &json!([2, 3]), &json!(6));
    check("sum", &json!(null), &json!([0.5, 1]), &json!(1.5));
    check("sum", &json!(u64::MAX), &json!([-1]), &json!(u64::MAX - 1));
    check("min", &json!(3), &json!([2, 2.5]), &json!(2));
    check("max", &json!(null), &json!([2, 2.5]), &json!(2.5));
    check("max", &json!(7), &json!([]), &json!(7));
    refuse("sum", &json!(1), &json!(["2"]), "not a number");
    refuse("sum", &json!(f64::MAX), &json!([f64::MAX]), "too large");
}

#[test]
fn messages_are_replaced_by_id_or_appended() {
    let talk = json!([{ "id": "a", "text": "1" }, { "id": "b", "text": "2" }]);
    let updated = json!([{ "id": "a", "text": "new" }, { "id": "c" }]);
    let wanted = json!([
        { "id": "a", "text": "new" }, { "id": "b", "text": "2" }, { "id": "c" }
    ]);
    check("messages", &talk, &json!([updated]), &wanted);
    let removal = json!([{ "role": "remove", "id": "a" }]);
    check("messages", &talk, &removal, &json!([{ "id": "b", "text": "2" }]));
    let all = json!([[{ "id": "x" }, { "role": "remove", "id": "__remove_all__" }, { "id": "y" }]]);
    check("messages", &talk, &all, &json!([{ "id": "y" }]));
    refuse("messages", &talk, &json!([{ "role": "remove", "id": "z" }]), "no message with the id");
    refuse("messages", &talk, &json!([{ "role": "remove" }]), "must have an `id`");
    refuse("messages", &talk, &json!(["hi"]), r#"such as `{ "role": "user""#);
}

#[test]
fn messages_without_an_id_get_a_deterministic_one() {
    let twice = [write(json!([{ "text": "hi" }, { "text": "hi" }]))];
    let first = reduce("messages", &json!(null), &twice).unwrap();
    assert_eq!(first, reduce("messages", &json!(null), &twice).unwrap());
    let ids: Vec<&str> =
        first.as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1]);
    assert!(ids.iter().all(|id| id.starts_with("msg-")));
    let again = reduce("messages", &first, &twice).unwrap();
    assert_eq!(again.as_array().unwrap().len(), 4, "equal messages without an id are appended");
}

#[test]
fn overwrite_bypasses_the_reducer() {
    let overwrite = Write { overwrite: true, ..write(json!([9])) };
    let writes = [write(json!(1)), overwrite.clone(), write(json!(2))];
    assert_eq!(reduce("append", &json!([0]), &writes), Ok(json!([9, 1, 2])));
    let error = reduce("append", &json!([0]), &[overwrite.clone(), overwrite]).unwrap_err();
    assert!(error.contains("only one write can replace"), "{error}");
}

#[test]
fn writes_are_checked_against_the_schema() {
    let list = channel("append", &json!({ "type": "array", "items": { "type": "integer" } }));
    assert!(list.check_write(&write(json!(1)), &StepBudget::default()).is_ok());
    assert!(list.check_write(&write(json!([1, 2])), &StepBudget::default()).is_ok());
    assert!(list.check_write(&write(json!("x")), &StepBudget::default()).is_err());
    let choice = channel("last", &json!({ "enum": ["image", "text"] }));
    let error =
        choice.check_write(&write(json!("video")), &StepBudget::default()).unwrap_err().to_string();
    assert!(error.contains("video"), "{error}");
    let total = channel("sum", &json!({ "maximum": 3 }));
    assert!(total.reduce(Some(&json!(2)), &[&write(json!(2))]).is_err());
}
