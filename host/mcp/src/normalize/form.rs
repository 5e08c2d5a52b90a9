//! Normalizes the forms of elicitations.
//!
//! `rmcp` parses fields of primitive types with few keywords. If a form has any other field, `rmcp`
//! does not recognize the request as an elicitation. Such fields are common, because servers
//! generate forms from types: an optional field has a branch for `null`, a time of day has an
//! unusual `format`, and a bound is a number with a decimal point.

use std::collections::HashSet;

use rmcp::model::{ElicitationSchema, PrimitiveSchemaDefinition};
use serde_json::{Map, Value};
use wattle_run::json::with_integers;

use super::{Normalizer, drop_unparsable_fields};
use crate::elicitation::ELICITATION_METHOD;
use crate::sanitizer::one_line;

/// Keywords that define the type of a primitive field.
const TYPE_KEYWORDS: [&str; 4] = ["type", "enum", "oneOf", "items"];

/// Keywords of fields that are not primitive.
const NON_PRIMITIVE_KEYWORDS: [&str; 5] = ["anyOf", "allOf", "$ref", "properties", "not"];

/// Normalizes the form if the request is an elicitation.
pub(super) fn normalize_form(normalizer: &Normalizer, request: &mut Map<String, Value>) {
    if request.get("method").is_none_or(|method| method != ELICITATION_METHOD) {
        return;
    }
    let params = request.get_mut("params").and_then(Value::as_object_mut);
    // An elicitation by URL has no form.
    let Some(params) = params.filter(|params| !params.contains_key("url")) else { return };
    let place = params.entry("requestedSchema").or_insert(Value::Null);
    let mut form = match with_integers(place.take()) {
        Value::Object(form) => form,
        _ => Map::new(),
    };
    let required: Vec<Value> = match form.remove("required") {
        Some(Value::Array(names)) => names.into_iter().filter(Value::is_string).collect(),
        _ => Vec::new(),
    };
    let fields = match form.remove("properties") {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    form.insert("type".into(), "object".into());
    form.insert(
        "properties".into(),
        Value::Object(normalize_fields(normalizer, fields, &required)),
    );
    if !required.is_empty() {
        form.insert("required".into(), required.into());
    }
    let mut form = Value::Object(form);
    // The names of the required fields can be parsed, see above.
    drop_unparsable_fields::<ElicitationSchema>(&mut form, &["type", "properties", "required"]);
    *place = form;
}

/// Normalizes the fields of a form. A field that cannot be shown is omitted, unless it is required:
/// then the elicitation is refused.
fn normalize_fields(
    normalizer: &Normalizer,
    fields: Map<String, Value>,
    required: &[Value],
) -> Map<String, Value> {
    let required: HashSet<&str> = required.iter().filter_map(Value::as_str).collect();
    let mut kept = Map::new();
    for (name, value) in fields {
        let (value, is_read) = normalize_field(value);
        if is_read || required.contains(name.as_str()) {
            kept.insert(name, value);
        } else {
            let name = one_line(&name);
            normalizer
                .note(&format!("the field `{name}` of a form cannot be shown and is left out"));
        }
    }
    kept
}

/// Normalizes a field. Returns the field, and true if it can be shown.
fn normalize_field(value: Value) -> (Value, bool) {
    let Value::Object(fields) = value else { return (value, false) };
    let mut fields = remove_null_branch(fields);
    let has = |kinds: &[&str]| kinds.iter().any(|kind| fields.contains_key(*kind));
    // A field without a type becomes a string, because a string can hold any value. The values of
    // an enum are strings, too.
    if !has(&NON_PRIMITIVE_KEYWORDS) && !has(&["type", "items"]) {
        fields.insert("type".into(), "string".into());
    }
    let mut field = Value::Object(fields);
    let is_read =
        drop_unparsable_fields::<PrimitiveSchemaDefinition>(&mut field, &TYPE_KEYWORDS).is_some();
    (field, is_read)
}

/// Removes the branch for `null`. The branch is not needed, because a person who gives no value
/// omits the field.
fn remove_null_branch(mut fields: Map<String, Value>) -> Map<String, Value> {
    let kinds = fields.get("type").and_then(Value::as_array);
    if let Some(only) = kinds.and_then(|kinds| single_non_null(kinds, |kind| kind == "null")) {
        fields.insert("type".into(), only);
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    for keyword in ["anyOf", "oneOf"] {
        let branches = fields.get(keyword).and_then(Value::as_array);
        let only = branches.and_then(|it| single_non_null(it, |branch| branch["type"] == "null"));
        let Some(Value::Object(only)) = only else { continue };
        fields.remove(keyword);
        for (name, value) in only {
            fields.entry(name).or_insert(value);
        }
    }
    fields
}

/// Returns the only item that is not for `null`, if the array also has items for `null`.
fn single_non_null(items: &[Value], is_null: impl Fn(&Value) -> bool) -> Option<Value> {
    let mut rest = items.iter().filter(|item| !is_null(item));
    let only = rest.next()?;
    let is_only = rest.next().is_none() && items.len() > 1;
    is_only.then(|| only.clone())
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ServerJsonRpcMessage, ServerRequest};
    use serde_json::json;

    use super::*;
    use crate::elicitation::form_question;

    /// Returns the form as `rmcp` parses it; `None` if the request is not recognized as an
    /// elicitation.
    fn read(form: &Value) -> Option<Value> {
        let params = json!({ "message": "Sure?", "requestedSchema": form });
        let mut message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": ELICITATION_METHOD, "params": params });
        Normalizer::new("graph").normalize(&mut message);
        match serde_json::from_value(message).unwrap() {
            ServerJsonRpcMessage::Request(read) => match read.request {
                ServerRequest::ElicitRequest(asked) => Some(form_question(&asked.params)?.schema),
                _ => None,
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn field_variants_are_normalized() {
        let text = json!({ "type": "string" });
        for (odd, expected) in [
            (json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }), text.clone()),
            (
                json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }], "title": "N", "default": null }),
                json!({ "type": "integer", "title": "N" }),
            ),
            (json!({ "type": ["string", "null"] }), text.clone()),
            (json!({ "type": "string", "format": "time" }), text.clone()),
            (
                json!({ "type": "string", "format": "password", "minLength": 1.0 }),
                json!({ "type": "string", "minLength": 1 }),
            ),
            (
                json!({ "type": "integer", "minimum": 0.0 }),
                json!({ "type": "integer", "minimum": 0 }),
            ),
            (json!({ "title": "Any" }), json!({ "type": "string", "title": "Any" })),
            (json!({ "enum": ["a", "b", null] }), json!({ "type": "string", "enum": ["a", "b"] })),
            (json!({ "type": "boolean", "title": 7 }), json!({ "type": "boolean" })),
        ] {
            let form = read(&json!({ "type": "object", "properties": { "f": odd } })).unwrap();
            assert_eq!(form["properties"]["f"], expected, "{odd}");
        }
    }

    #[test]
    fn optional_field_that_cannot_be_shown_is_omitted() {
        let nested = json!({ "type": "object", "properties": {} });
        let fields = json!({ "a": { "type": "boolean" }, "b": nested });
        let form = |required: &str| {
            read(&json!({ "type": "object", "properties": fields, "required": [required] }))
        };
        let shown = form("a").unwrap();
        assert_eq!(shown["properties"], json!({ "a": { "type": "boolean" } }));
        assert_eq!(form("b"), None);
    }

    #[test]
    fn form_without_fields_is_valid() {
        for form in
            [json!(null), json!({}), json!({ "type": "object" }), json!({ "properties": [] })]
        {
            assert_eq!(read(&form).unwrap()["properties"], json!({}), "{form}");
        }
    }
}
