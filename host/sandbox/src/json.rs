//! Conversion between JSON text of guests and values.
//!
//! `serde_json` rejects documents nested deeper than 128 levels. Host functions need this bound:
//! they parse on the small stack of the guest, and an overflow of this stack would abort the
//! process.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use wattle_graph::failure::{Failure, code};
use wattle_graph::limit::SCHEMA_BYTES;
use wattle_run::limit;

/// Parses JSON text from a guest, of at most `allowed` bytes. Longer text is rejected unparsed: a
/// parsed value takes up to 32 times the memory of its text.
///
/// # Errors
///
/// A failure with the code `limit` or `invalid`, which names the function and the field of the
/// text.
pub(crate) fn parse(
    text: &str,
    function: &str,
    field: &str,
    allowed: usize,
) -> Result<Value, Failure> {
    check_size(text.len(), function, field, allowed)?;
    parse_size_checked(text, function, field)
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
    allowed: usize,
) -> Result<Option<Value>, Failure> {
    text.map(|text| parse(text, function, field, allowed)).transpose()
}

/// Parses a JSON Schema of a guest, of at most [`SCHEMA_BYTES`]: a longer schema would not compile.
///
/// # Errors
///
/// See [`parse`].
pub(crate) fn parse_schema(text: &str, function: &str, field: &str) -> Result<Value, Failure> {
    parse(text, function, field, SCHEMA_BYTES as usize)
}

fn check_size(bytes: usize, function: &str, field: &str, allowed: usize) -> Result<(), Failure> {
    if bytes <= allowed {
        return Ok(());
    }
    let message = format!(
        "`{function}`: `{field}` has {bytes} bytes of JSON, more than the limit of {allowed}; put \
         large data into blobs"
    );
    let details = serde_json::json!({
        "limit": "json_bytes", "allowed": allowed, "function": function, "field": field,
    });
    Err(Failure::new(code::LIMIT, message).with_details(details))
}

/// Parses JSON text whose size the caller has checked.
fn parse_size_checked(text: &str, function: &str, field: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::new(
            code::INVALID,
            format!("`{function}`: `{field}` is not a valid JSON document: {error}"),
        )
        .with_details(serde_json::json!({ "function": function, "field": field }))
    })
}

/// Parses JSON text that a guest returned. The caller has checked the size of the whole output.
pub(crate) fn parse_output(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

/// Returns the value of a key of `extra`, the extension fields of a record.
pub(crate) fn extra_field<'a>(extra: &'a [(String, String)], key: &str) -> Option<&'a str> {
    extra.iter().find(|(name, _)| name == key).map(|(_, text)| text.as_str())
}

/// Returns the size of `extra` as the guest wrote it, in bytes.
pub(crate) fn extra_bytes(extra: &[(String, String)]) -> usize {
    extra.iter().map(|(name, text)| name.len() + text.len()).sum()
}

/// Parses the extension fields `extra` of a record as the type `T`, whose fields have the known
/// keys. All keys and values together may have at most [`CALL_JSON_BYTES`](limit::CALL_JSON_BYTES).
///
/// # Errors
///
/// A failure with the code `limit` or `invalid`, which names the function.
pub(crate) fn parse_extra<T: DeserializeOwned>(
    extra: &[(String, String)],
    function: &str,
) -> Result<T, Failure> {
    check_size(extra_bytes(extra), function, "extra", limit::CALL_JSON_BYTES)?;
    let parsed = |(key, text): &(String, String)| {
        Ok((key.clone(), parse_size_checked(text, function, &format!("extra.{key}"))?))
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
    use serde_json::json;

    use super::*;

    #[test]
    fn failures_name_function_and_field() {
        let failure = parse("{", "emit.custom", "data", 1).unwrap_err();
        assert_eq!(failure.code, code::INVALID);
        assert!(failure.message.contains("`emit.custom`: `data`"), "{}", failure.message);
    }

    #[test]
    fn deeply_nested_json_is_rejected() {
        let deep = "[".repeat(100_000);
        let failure = parse(&deep, "emit.custom", "data", deep.len()).unwrap_err();
        assert!(failure.message.contains("recursion limit"), "{}", failure.message);
        let nested = format!("{}{}", "[".repeat(120), "]".repeat(120));
        assert!(parse(&nested, "emit.custom", "data", nested.len()).is_ok());
    }

    /// The text is not JSON: if it were parsed, the code of the failure would be `invalid`.
    #[test]
    fn text_above_the_limit_is_not_parsed() {
        let numbers = "0,".repeat(16 << 20);
        let failure = parse(&numbers, "emit.custom", "data", 64 << 10).unwrap_err();
        let details = failure.details.unwrap();
        assert_eq!((failure.code.as_str(), &details["limit"]), (code::LIMIT, &json!("json_bytes")));
        assert_eq!((&details["allowed"], &details["field"]), (&json!(64 << 10), &json!("data")));
        assert_eq!(parse_schema(&numbers, "f", "schema").unwrap_err().code, code::LIMIT);
        assert_eq!(parse_option(None, "f", "field", 0), Ok(None));
    }

    #[test]
    fn extension_fields_share_one_limit() {
        let half = " ".repeat(limit::CALL_JSON_BYTES / 2);
        let field = |key: &str| (key.to_owned(), half.clone());
        let one = parse_extra::<Value>(&[field("a")], "f").unwrap_err();
        assert_eq!(one.code, code::INVALID, "one field is parsed: {one}");
        let two = parse_extra::<Value>(&[field("a"), field("b")], "f").unwrap_err();
        assert_eq!(two.code, code::LIMIT);
        assert_eq!(two.details.unwrap()["field"], "extra");
    }
}
