//! `uniqueItems` in time proportional to the size of the array.
//!
//! The check of the validator uses a hash with which different values can collide, and compares
//! colliding items one by one. This check compares a canonical text of each item: two items have
//! the same text exactly if they are equal.

use std::collections::HashSet;

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Number, Value};

struct Unique {
    wanted: bool,
}

/// Creates the keyword.
#[allow(clippy::unnecessary_wraps, reason = "the signature of the validator's factories")]
pub(super) fn keyword<'a>(
    _schema: &'a Map<String, Value>,
    value: &'a Value,
    _place: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    Ok(Box::new(Unique { wanted: value.as_bool() == Some(true) }))
}

impl<'i> Keyword<'i> for Unique {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) {
            return Ok(());
        }
        Err(ValidationError::custom("the array has the same item twice"))
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        let Some(items) = value.as_array().filter(|_| self.wanted) else { return true };
        let mut seen = HashSet::with_capacity(items.len());
        items.iter().all(|item| {
            let mut text = String::new();
            write(item, &mut text);
            seen.insert(text)
        })
    }
}

/// Writes a value as canonical text: with sorted keys, and `1.0` as `1`. Equal values have equal
/// canonical texts.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push('n'),
        Value::Bool(flag) => text.push(if *flag { 't' } else { 'f' }),
        Value::Number(number) => text.push_str(&plain(number)),
        Value::String(string) => write_string(string, text),
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            text.push('{');
            for (key, item) in fields {
                write_string(key, text);
                write(item, text);
                text.push(',');
            }
            text.push('}');
        }
    }
}

/// Writes the length of a string and then the string, so that no characters need escapes.
fn write_string(string: &str, text: &mut String) {
    text.push_str(&format!("\"{}:{string}", string.len()));
}

/// Returns a number as text; `1.0` has the text `1`.
fn plain(number: &Number) -> String {
    /// Whole numbers of smaller magnitude are converted to `i128` without loss.
    const EXACT: f64 = 1e30;
    match number.as_f64().filter(|_| number.is_f64()) {
        #[allow(clippy::cast_possible_truncation, reason = "whole and in range")]
        Some(float) if float.fract() == 0.0 && float.abs() < EXACT => (float as i128).to_string(),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use jsonschema::Keyword as _;
    use serde_json::json;

    use super::Unique;

    #[test]
    fn unique_items_finds_equal_items_in_every_form() {
        let unique = Unique { wanted: true };
        for (list, wanted) in [
            (json!([]), true),
            (json!([1, 2, "1", true, null, [], {}]), true),
            (json!([1, 1.0]), false),
            (json!([0, -0.0]), false),
            (json!([u64::MAX, i64::MAX]), true),
            (json!([[], [[]], [[[]]], [[], []]]), true),
            (json!([{ "a": 1, "b": 2 }, { "b": 2, "a": 1 }]), false),
            (json!(["a", ["a"], "1:a", "\"1:a"]), true),
            (json!([["a", "b"], ["a\"1:b"]]), true),
            (json!({ "not": "a list" }), true),
        ] {
            assert_eq!(unique.is_valid(&list), wanted, "{list}");
        }
        assert!(Unique { wanted: false }.is_valid(&json!([1, 1])));
    }
}
