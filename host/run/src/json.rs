//! JSON from outside of the host: its nesting limit, its approximate size, its
//! [bounded parser](bounded) and its [lenient parser](lenient).

pub mod bounded;
pub mod lenient;

use serde_json::{Number, Value};
use wattle_graph::failure::{Failure, code};
use wattle_graph::json_text;

use crate::limit::JSON_DEPTH;

/// Every whole number below this bound has an exact float: 2^53.
const EXACT_INTEGER_BOUND: f64 = 9_007_199_254_740_992.0;

/// Rejects JSON that is nested too deeply to be stored. JSON readers recurse, so a log that can be
/// written but not read would be lost.
///
/// # Errors
///
/// `invalid` if the value is nested too deeply; the message names `what`.
pub fn check_depth(what: &str, value: &Value) -> Result<(), Failure> {
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
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() as u64 + 2,
        Value::Array(items) => 2 + items.iter().map(|item| approx_bytes(item) + 1).sum::<u64>(),
        Value::Object(fields) => {
            2 + fields
                .iter()
                .map(|(key, item)| key.len() as u64 + 4 + approx_bytes(item))
                .sum::<u64>()
        }
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

    use super::{JSON_DEPTH, approx_bytes, check_depth, with_integers};

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
}
