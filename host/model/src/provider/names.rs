//! Tool names, call ids and arguments in the forms that providers accept.

use std::borrow::Cow;

use serde_json::{Value, json};
use wattle_graph::id::Digest;

/// The name that replaces the empty name of a called tool.
const UNNAMED: &str = "unnamed";

/// Maximum bytes of the id of a response in the ids of its calls. Ids of responses have some forty
/// characters, and each call has a copy.
const MAX_RESPONSE_ID_BYTES: usize = 256;

/// Returns the name of a called tool, or a placeholder for an empty name: no provider accepts an
/// empty name.
pub(super) fn tool_name(name: &str) -> &str {
    if name.is_empty() { UNNAMED } else { name }
}

/// Returns an id for a call that the service sent without one: the id of the response, or `prefix`
/// if the response has none or a long one, and the number of the call.
pub(super) fn generated_id(response_id: &str, prefix: &str, number: usize) -> String {
    if (1..=MAX_RESPONSE_ID_BYTES).contains(&response_id.len()) {
        format!("{response_id}-{number}")
    } else {
        format!("{prefix}_{number}")
    }
}

/// Returns the id of a tool call in letters, digits, `_` and `-`, as some providers require. Equal
/// ids remain equal.
pub(super) fn sanitize_id(id: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if !id.is_empty() && id.chars().all(is_plain) {
        return id.into();
    }
    let digest = Digest::of(id.as_bytes()).to_hex();
    format!("call_{}", digest.get(..24).unwrap_or(&digest)).into()
}

/// Returns the arguments of a tool call as an object, because providers accept only objects. A
/// value of another type is wrapped in an object.
pub(super) fn arguments_object(value: &Value) -> Value {
    match value {
        Value::Object(_) => value.clone(),
        Value::Null => json!({}),
        other => json!({ "unreadable_arguments": other }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_acceptable_to_every_provider() {
        assert_eq!(sanitize_id("toolu_01-A"), "toolu_01-A");
        let (one, other) = (sanitize_id("call#add#0").into_owned(), sanitize_id("call#add#1"));
        assert!(one.starts_with("call_") && one.len() == 29 && one != other, "{one} {other}");
        assert_eq!(sanitize_id(&one), one);
        assert_eq!(sanitize_id("call#add#0"), one);
        assert!(!sanitize_id("").is_empty());
    }

    #[test]
    fn arguments_are_objects() {
        assert_eq!(arguments_object(&json!({ "a": 1 })), json!({ "a": 1 }));
        assert_eq!(arguments_object(&Value::Null), json!({}));
        assert_eq!(arguments_object(&json!("{a")), json!({ "unreadable_arguments": "{a" }));
    }
}
