//! Finds the JSON value in what a model says.

use serde::Deserialize as _;
use serde_json::Value;

/// Places in a text at which a JSON object is looked for: bounds the work on a text of braces.
const TRIES: usize = 64;

/// The text as JSON, or the first JSON object in it, as after "Sure! Here it is:" and in a code
/// fence.
pub(crate) fn json(text: &str) -> Result<Value, String> {
    let whole = match serde_json::from_str(text.trim()) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    text.match_indices('{')
        .take(TRIES)
        .find_map(|(start, _)| {
            let mut input = serde_json::Deserializer::from_str(&text[start..]);
            Value::deserialize(&mut input).ok()
        })
        .ok_or_else(|| format!("it is not json: {whole}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_the_first_object() {
        let cases = [
            (" {\"a\":1}\n", Some(json!({"a": 1}))),
            ("```json\n{\"a\":1}\n```", Some(json!({"a": 1}))),
            ("Sure, {name}! Here: {\"a\":{\"b\":2}} Bye {}", Some(json!({"a": {"b": 2}}))),
            ("[1]", Some(json!([1]))),
            ("no json here", None),
            ("{\"a\": 1", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(json(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn stays_bounded_on_a_text_of_braces() {
        assert!(json(&"{".repeat(100_000)).is_err());
    }
}
