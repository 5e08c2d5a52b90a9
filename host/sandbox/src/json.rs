//! Conversion between JSON text of guests and values.
//!
//! `serde_json` rejects documents nested deeper than 128 levels. Host functions need this bound:
//! they run on the guest's small stack, and an overflow would abort the process.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use wattle_graph::failure::{Failure, code};

/// Parses JSON text of a guest.
///
/// # Errors
///
/// `invalid`, with the function and the field that the text came from.
pub(crate) fn parse(text: &str, function: &str, field: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::new(
            code::INVALID,
            format!("`{function}`: `{field}` is not a valid JSON document: {error}"),
        )
        .with_details(serde_json::json!({ "function": function, "field": field }))
    })
}

/// Parses optional JSON text of a guest.
///
/// # Errors
///
/// See [`parse`].
pub(crate) fn parse_option(
    text: Option<&str>,
    function: &str,
    field: &str,
) -> Result<Option<Value>, Failure> {
    text.map(|text| parse(text, function, field)).transpose()
}

/// Parses JSON text that a guest returned.
pub(crate) fn parse_output(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

/// Returns the value of a key of `extra`, the extension fields of a record.
pub(crate) fn extra_field<'a>(extra: &'a [(String, String)], key: &str) -> Option<&'a str> {
    extra.iter().find(|(name, _)| name == key).map(|(_, text)| text.as_str())
}

/// Parses all of `extra` as a type with the known keys.
///
/// # Errors
///
/// `invalid`, with the function and the key.
pub(crate) fn parse_extra<T: DeserializeOwned>(
    extra: &[(String, String)],
    function: &str,
) -> Result<T, Failure> {
    let parsed = |(key, text): &(String, String)| {
        Ok((key.clone(), parse(text, function, &format!("extra.{key}"))?))
    };
    let all: Map<String, Value> = extra.iter().map(parsed).collect::<Result<_, Failure>>()?;
    serde_json::from_value(Value::Object(all)).map_err(|error| {
        Failure::new(code::INVALID, format!("`{function}`: invalid value in `extra`: {error}"))
    })
}

/// Serializes a value as JSON text for a guest.
pub(crate) fn to_text(value: &Value) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_function_and_field() {
        let failure = parse("{", "emit.custom", "data").unwrap_err();
        assert_eq!(failure.code, code::INVALID);
        assert!(failure.message.contains("`emit.custom`: `data`"), "{}", failure.message);
    }

    #[test]
    fn deeply_nested_json_is_rejected() {
        let deep = "[".repeat(100_000);
        let failure = parse(&deep, "emit.custom", "data").unwrap_err();
        assert!(failure.message.contains("recursion limit"), "{}", failure.message);
        let nested = format!("{}{}", "[".repeat(120), "]".repeat(120));
        assert!(parse(&nested, "emit.custom", "data").is_ok());
    }
}
