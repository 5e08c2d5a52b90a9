//! Weight: the approximate memory of JSON values.
//!
//! Limits on what the host holds in memory count the weight of values and not the length of their
//! text. For example, a number of one digit in a list has two bytes of text and a weight of
//! [`VALUE_BYTES`].

mod outcome;
mod request;

use serde_json::Value;

use crate::failure::Failure;

pub use self::outcome::outcome_weight;
pub use self::request::call_weight;

/// Weight of a value without its content, in bytes: the size of a [`Value`] on a 64-bit machine.
/// The weight is the same on every machine, so that all machines reach a limit at the same point.
pub const VALUE_BYTES: u64 = 72;

/// Weight of a name without its text, in bytes: a string, its hash, and its entry in an index. Keys
/// of objects are names.
pub const NAME_BYTES: u64 = 48;

/// Bytes that an item of a channel's list takes in addition to its weight: a separate allocation
/// with reference counts, and entries in the list and in its index. Versions of the list share the
/// item. The limits of a graph do not count these bytes, so a replay reaches the limits at the same
/// point even if a later host stores lists in another form.
pub const SHARED_ITEM_BYTES: u64 = 64;

/// Returns the weight of a value, in bytes. The time is proportional to the number of nested
/// values, because strings are not read.
pub fn weight(value: &Value) -> u64 {
    let nested: u64 = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields.values().map(weight).sum(),
    };
    own_weight(value) + nested
}

/// Returns the weight of a value without its nested values, in bytes. It contains the text of a
/// string and the keys of an object.
pub fn own_weight(value: &Value) -> u64 {
    let inside: u64 = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => 0,
        Value::String(text) => text.len() as u64,
        Value::Object(fields) => fields.keys().map(|key| named(key)).sum(),
    };
    VALUE_BYTES + inside
}

/// Returns the weight of a failure, in bytes: its code, its message and its details.
pub fn failure_weight(failure: &Failure) -> u64 {
    let texts = failure.code.len() + failure.message.len();
    texts as u64 + failure.details.as_ref().map_or(0, weight)
}

/// Returns the maximum weight of a value whose JSON text has `bytes` bytes. The densest text is a
/// list of numbers of one digit, each with its comma.
pub fn most_weight(bytes: u64) -> u64 {
    bytes.saturating_add(1).saturating_mul(VALUE_BYTES / 2)
}

fn named(name: &str) -> u64 {
    NAME_BYTES + name.len() as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_takes_no_more_memory_than_its_weight() {
        assert!(size_of::<Value>() as u64 <= VALUE_BYTES);
    }

    #[test]
    fn no_value_has_more_weight_than_the_densest_text_of_its_length() {
        for value in [
            json!(0),
            json!([]),
            json!([0]),
            json!(vec![0; 1_000]),
            json!(vec![json!([]); 1_000]),
            json!({ "": 0, "a": {} }),
            json!([[[[[[0]]]]]]),
            json!("x".repeat(1_000)),
        ] {
            let most = most_weight(value.to_string().len() as u64);
            assert!(weight(&value) <= most, "{} > {most}", weight(&value));
        }
        assert_eq!(most_weight(2_001), weight(&json!(vec![0; 1_000])));
    }

    #[test]
    fn weight_contains_nested_values_keys_and_texts() {
        assert_eq!(weight(&json!(null)), VALUE_BYTES);
        assert_eq!(weight(&json!("abc")), VALUE_BYTES + 3);
        assert_eq!(weight(&json!(vec![0; 1_000])), 1_001 * VALUE_BYTES);
        let object = json!({ "key": [true, "x"] });
        assert_eq!(weight(&object), 4 * VALUE_BYTES + NAME_BYTES + 3 + 1);
        assert_eq!(own_weight(&object), VALUE_BYTES + NAME_BYTES + 3);
    }

    #[test]
    fn weight_of_a_failure_contains_its_texts_and_details() {
        let failure = Failure::new("limit", "too much");
        assert_eq!(failure_weight(&failure), 13);
        let details = json!([1, 2]);
        let more = weight(&details);
        assert_eq!(failure_weight(&failure.with_details(details)), 13 + more);
    }
}
