//! JSON from outside of the host: its nesting limit, its approximate size, its
//! [bounded parser](bounded) and its [lenient parser](lenient).

pub mod bounded;
pub mod lenient;

use std::fmt;
use std::ops::AddAssign;

use serde_json::{Number, Value};
use wattle_graph::failure::{Failure, code};
use wattle_graph::json_text;
use wattle_graph::weight::own_weight;

use crate::limit::JSON_DEPTH;

/// Every whole number below this bound has an exact float: 2^53.
const EXACT_INTEGER_BOUND: f64 = 9_007_199_254_740_992.0;

/// Rejects JSON that is nested too deeply to be stored. JSON readers recurse, so a log that can be
/// written but not read would be lost.
///
/// # Errors
///
/// `invalid` if the value is nested too deeply; the message names `what`.
pub fn check_depth(what: impl fmt::Display, value: &Value) -> Result<(), Failure> {
    if json_text::is_within_depth(value, JSON_DEPTH) {
        return Ok(());
    }
    Err(Failure::new(
        code::INVALID,
        format!(
            "{what} is nested deeper than {JSON_DEPTH} levels; flatten it, or store it as a blob"
        ),
    ))
}

/// Returns the approximate size of a value as text, in bytes. Budgets use this size, so that they
/// do not serialize the value.
pub fn approx_bytes(value: &Value) -> u64 {
    JsonSize::of(value).bytes
}

/// The size of a value as text and in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonSize {
    /// Approximate size as text, in bytes; see [`approx_bytes`].
    pub bytes: u64,
    /// Weight, in bytes; see [`wattle_graph::weight`].
    pub weight: u64,
}

impl JsonSize {
    /// Measures a value once for both sizes.
    pub fn of(value: &Value) -> Self {
        let mut size = Self { bytes: 2, weight: own_weight(value) };
        match value {
            Value::Null | Value::Bool(_) => size.bytes = 4,
            Value::Number(_) => size.bytes = 8,
            Value::String(text) => size.bytes += text.len() as u64,
            Value::Array(items) => {
                for item in items {
                    size += Self::of(item);
                    size.bytes += 1;
                }
            }
            Value::Object(fields) => {
                for (key, field) in fields {
                    size += Self::of(field);
                    size.bytes += key.len() as u64 + 4;
                }
            }
        }
        size
    }
}

impl AddAssign for JsonSize {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.weight += other.weight;
    }
}

/// Writes whole numbers without a decimal point, as JavaScript and canonical JSON (RFC 8785) do.
/// JSON Schema accepts `1.0` as an integer; guests and servers that parse integers do not.
pub fn with_integers(value: Value) -> Value {
    match value {
        Value::Number(number) => integer(&number).map_or(Value::Number(number), Value::from),
        Value::Array(items) => items.into_iter().map(with_integers).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, with_integers(value))).collect()
        }
        other => other,
    }
}

/// Returns the integer that a float is equal to, if it is exact.
fn integer(number: &Number) -> Option<i64> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    (float.fract() == 0.0 && float.abs() < EXACT_INTEGER_BOUND).then_some(float as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wattle_graph::weight::weight;

    use super::{JSON_DEPTH, JsonSize, approx_bytes, check_depth, with_integers};

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn json_of_the_maximum_depth_is_allowed() {
        assert!(check_depth("a value", &nested(JSON_DEPTH)).is_ok());
        let refused = check_depth("a value", &nested(JSON_DEPTH + 1)).unwrap_err();
        assert!(refused.message.starts_with("a value is nested deeper than"), "{refused}");
    }

    #[test]
    fn whole_numbers_have_no_decimal_point() {
        let value =
            json!({ "a": 1.0, "b": [-2.0, 2.5, 3], "c": { "d": 1e3, "e": -0.0 }, "f": "1.0" });
        let expected = json!({ "a": 1, "b": [-2, 2.5, 3], "c": { "d": 1000, "e": 0 }, "f": "1.0" });
        assert_eq!(with_integers(value), expected);
        for large in [9_007_199_254_740_992.0, -1e300] {
            assert_eq!(with_integers(json!(large)), json!(large));
        }
        assert_eq!(with_integers(json!(u64::MAX)), json!(u64::MAX));
    }

    #[test]
    fn approximate_size_is_close_to_the_length_of_the_text() {
        let value = json!({ "name": "x".repeat(100), "list": [1, null, true, "abc"] });
        let (approximate, exact) = (approx_bytes(&value), value.to_string().len() as u64);
        assert!(approximate.abs_diff(exact) < 40, "{approximate} against {exact}");
    }

    #[test]
    fn size_of_a_value_has_its_bytes_and_its_weight() {
        let numbers = json!(vec![0; 100]);
        for (value, bytes) in [
            (json!(null), 4),
            (json!(true), 4),
            (json!(-1.5), 8),
            (json!("ü"), 4),
            (json!([]), 2),
            (json!(["a", 1]), 2 + 4 + 9),
            (json!({ "key": "a", "b": {} }), 2 + 10 + 7),
            (numbers, 902),
        ] {
            let size = JsonSize { bytes, weight: weight(&value) };
            assert_eq!(JsonSize::of(&value), size, "{value}");
            assert_eq!(approx_bytes(&value), bytes, "{value}");
        }
    }
}
