//! Arguments of tool calls in the forms that clients send.
//!
//! A client repeats what its library kept of a completion: a JSON value, its text, its text encoded
//! twice, or one of several forms for a call without arguments.

use serde_json::{Map, Value, json};
use wattle_graph::json_text::replace_lone_surrogates;

use super::read_context::ParseText;

/// The empty object. Gateways that translate Anthropic's format send it before the arguments.
const EMPTY_OBJECT: &str = "{}";

/// Names of the field with the arguments.
const ARGUMENTS: [&str; 3] = ["args", "arguments", "input"];

/// Returns the arguments of a call. Absent arguments, `null`, an empty text and an empty array mean
/// no arguments. A text for which `parse` returns `None` stays a text. The model gets a tool error
/// that names the unreadable arguments.
pub(super) fn of_call(fields: &Map<String, Value>, parse: ParseText<'_>) -> Value {
    let sent = ARGUMENTS.iter().find_map(|name| fields.get(*name).filter(|it| !it.is_null()));
    match sent {
        Some(Value::String(text)) => from_text(text, parse),
        Some(sent) => or_none(sent.clone()),
        None => json!({}),
    }
}

fn from_text(text: &str, parse: ParseText<'_>) -> Value {
    let parse = |text: &str| parse_mended(text, parse);
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return json!({});
    }
    let parsed = parse(trimmed).or_else(|| {
        let rest = trimmed.strip_prefix(EMPTY_OBJECT)?;
        parse(rest).filter(Value::is_object)
    });
    match parsed {
        // The text is encoded twice.
        Some(Value::String(inner)) if inner.trim().is_empty() => json!({}),
        Some(Value::String(inner)) => match parse(&inner).map(or_none) {
            Some(arguments) if arguments.is_object() => arguments,
            _ => text.into(),
        },
        Some(arguments) => or_none(arguments),
        None => text.into(),
    }
}

/// Parses a document. A lone surrogate, which a client writes if it cuts a text within a character,
/// becomes U+FFFD.
fn parse_mended(text: &str, parse: ParseText<'_>) -> Option<Value> {
    parse(text).or_else(|| parse(&replace_lone_surrogates(text)?))
}

/// Replaces the values that mean no arguments by an empty object.
fn or_none(arguments: Value) -> Value {
    match arguments {
        Value::Null => json!({}),
        Value::Array(items) if items.is_empty() => json!({}),
        other => other,
    }
}
