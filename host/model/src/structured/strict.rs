//! Response schemas in the subset of OpenAI's strict mode.
//!
//! In the subset, every property is required and no other properties are permitted. Optional
//! properties become nullable; the nulls are dropped before the document is validated against the
//! original schema. Constraints that the subset lacks are left out, because the host validates the
//! document against the original schema anyway. A schema that the subset cannot express, such as a
//! map with arbitrary keys, is sent unchanged and not as strict.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

/// Keywords that strict mode does not support and that cannot be left out. A schema with one of
/// them is not sent as strict.
const UNSUPPORTED_KEYWORDS: [&str; 14] = [
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "propertyNames",
    "prefixItems",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "contains",
    "unevaluatedProperties",
    "unevaluatedItems",
];

/// Annotations and constraints that strict mode does not support. They are left out.
const IGNORED_KEYWORDS: [&str; 11] = [
    "$schema",
    "$id",
    "$comment",
    "default",
    "examples",
    "minLength",
    "maxLength",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "deprecated",
];

/// Values of `format` in the subset.
pub(crate) const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Starts of look-around, which patterns of the subset lack.
const LOOKAROUND_STARTS: [&str; 4] = ["(?=", "(?!", "(?<=", "(?<!"];

/// Converts a schema to the subset; `None` if the subset cannot express it.
pub(crate) fn to_strict(schema: &Value) -> Option<Value> {
    let map = schema.as_object()?;
    // The root must be an inline object.
    if map.contains_key("anyOf") || map.contains_key("oneOf") || map.contains_key("$ref") {
        return None;
    }
    convert(schema)
}

/// Returns the schema without `$schema`, which providers do not accept.
pub(crate) fn without_dialect(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(map) = schema.as_object_mut() {
        map.shift_remove("$schema");
    }
    schema
}

fn convert(schema: &Value) -> Option<Value> {
    let map = schema.as_object()?;
    if has_properties_beside_schemas(map)
        || map.keys().any(|key| UNSUPPORTED_KEYWORDS.contains(&key.as_str()))
    {
        return None;
    }
    if let Some(reference) = map.get("$ref") {
        // A reference must have no sibling keywords.
        return Some(json!({ "$ref": reference }));
    }
    let mut out = Map::new();
    for (key, value) in map {
        let (key, value) = match key.as_str() {
            // The function `convert_object` writes these keywords.
            "properties" | "required" | "additionalProperties" => continue,
            "format" if !value.as_str().is_some_and(|format| FORMATS.contains(&format)) => continue,
            "pattern" if has_lookaround(value) => continue,
            word if IGNORED_KEYWORDS.contains(&word) => continue,
            "items" => ("items", convert(value)?),
            // `anyOf` is wider than `oneOf`, which is acceptable, because the host validates the
            // document against the original schema.
            "anyOf" | "oneOf" => ("anyOf", convert_list(value)?),
            "$defs" | "definitions" => (key.as_str(), convert_map(value)?),
            _ => (key.as_str(), value.clone()),
        };
        out.insert(key.to_owned(), value);
    }
    if is_object(map) {
        convert_object(map, &mut out)?;
    }
    let typed = ["type", "anyOf", "enum", "const"].iter().any(|key| out.contains_key(*key));
    typed.then_some(Value::Object(out))
}

fn has_lookaround(pattern: &Value) -> bool {
    pattern
        .as_str()
        .is_some_and(|pattern| LOOKAROUND_STARTS.iter().any(|look| pattern.contains(look)))
}

/// Returns whether a schema describes objects.
pub(crate) fn is_object(map: &Map<String, Value>) -> bool {
    let typed = match map.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => false,
    };
    typed || map.contains_key("properties")
}

/// Returns whether a schema has properties beside a reference or alternatives. An object with such a
/// schema has no closed form: the closed target and the closed alternatives exclude the properties.
pub(crate) fn has_properties_beside_schemas(map: &Map<String, Value>) -> bool {
    map.contains_key("properties")
        && ["$ref", "anyOf", "oneOf"].iter().any(|key| map.contains_key(*key))
}

/// Returns the properties of an object in a subset that permits no other names; `None` if the
/// object is a map with arbitrary keys.
pub(crate) fn closed_properties(
    map: &Map<String, Value>,
) -> Option<impl Iterator<Item = (&String, &Value)>> {
    let properties = map.get("properties").and_then(Value::as_object);
    match map.get("additionalProperties") {
        Some(Value::Object(_)) => return None,
        Some(Value::Bool(false)) => {}
        // Forbidding other names is acceptable if there are named properties. An object without
        // named properties could only be empty.
        _ if properties.is_none_or(Map::is_empty) => return None,
        _ => {}
    }
    Some(properties.into_iter().flatten())
}

/// Converts the properties of an object; `None` if other names are permitted.
fn convert_object(map: &Map<String, Value>, out: &mut Map<String, Value>) -> Option<()> {
    let required = map.get("required").and_then(Value::as_array);
    // A schema may have thousands of properties, so their names are looked up in a set.
    let required: HashSet<&str> =
        required.into_iter().flatten().filter_map(Value::as_str).collect();
    let mut strict = Map::new();
    for (name, schema) in closed_properties(map)? {
        let always = required.contains(name.as_str());
        let schema = convert(schema)?;
        strict.insert(name.clone(), if always { schema } else { nullable(schema) });
    }
    out.insert("required".into(), strict.keys().cloned().collect());
    out.insert("properties".into(), Value::Object(strict));
    out.insert("additionalProperties".into(), Value::Bool(false));
    Some(())
}

fn convert_list(value: &Value) -> Option<Value> {
    value.as_array()?.iter().map(convert).collect::<Option<Vec<_>>>().map(Value::Array)
}

fn convert_map(value: &Value) -> Option<Value> {
    let members = value.as_object()?.iter();
    let members = members.map(|(name, schema)| Some((name.clone(), convert(schema)?)));
    members.collect::<Option<Map<_, _>>>().map(Value::Object)
}

/// Makes a schema nullable.
fn nullable(mut schema: Value) -> Value {
    let absent = json!({ "type": "null" });
    let Some(map) = schema.as_object_mut() else { return schema };
    if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
        if !choices.contains(&absent) {
            choices.push(absent);
        }
        return schema;
    }
    let plain = !map.contains_key("enum") && !map.contains_key("const");
    match map.get_mut("type") {
        Some(Value::String(kind)) if plain && kind != "null" => {
            let kinds = json!([kind.as_str(), "null"]);
            map.insert("type".into(), kinds);
            schema
        }
        Some(Value::Array(kinds)) if plain => {
            if !kinds.iter().any(|kind| kind == "null") {
                kinds.push("null".into());
            }
            schema
        }
        _ => json!({ "anyOf": [schema, absent] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_properties_become_nullable_and_required() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "name": { "type": "string", "minLength": 1, "format": "uri", "pattern": "^(?!x)" },
                "kind": { "enum": ["a", "b"] },
                "size": { "type": ["integer", "null"], "default": 3 },
                "inner": { "$ref": "#/$defs/Inner", "description": "x" },
                "list": { "type": "array", "items": { "oneOf": [{ "type": "string" }] } },
            },
            "required": ["name"],
            "$defs": { "Inner": { "type": "object", "properties": { "a": { "const": 1 } } } },
        });
        let expected = json!({
            "type": "object",
            "$defs": { "Inner": {
                "type": "object",
                "required": ["a"],
                "properties": { "a": { "anyOf": [{ "const": 1 }, { "type": "null" }] } },
                "additionalProperties": false,
            } },
            "required": ["name", "kind", "size", "inner", "list"],
            "properties": {
                "name": { "type": "string" },
                "kind": { "anyOf": [{ "enum": ["a", "b"] }, { "type": "null" }] },
                "size": { "type": ["integer", "null"] },
                "inner": { "anyOf": [{ "$ref": "#/$defs/Inner" }, { "type": "null" }] },
                "list": {
                    "type": ["array", "null"], "items": { "anyOf": [{ "type": "string" }] },
                },
            },
            "additionalProperties": false,
        });
        assert_eq!(to_strict(&schema), Some(expected));
    }

    #[test]
    fn inexpressible_schemas_are_not_strict() {
        let with = |property: Value| {
            to_strict(&json!({ "type": "object", "properties": { "p": property } }))
        };
        assert_eq!(with(json!({ "type": "object" })), None);
        assert_eq!(with(json!({ "type": "object", "additionalProperties": {} })), None);
        assert_eq!(with(json!({})), None);
        assert_eq!(with(json!(true)), None);
        assert_eq!(with(json!({ "allOf": [{ "type": "string" }] })), None);
        let properties = json!({ "a": { "const": 1 } });
        let choices = json!([{ "type": "object", "properties": { "b": { "const": 2 } } }]);
        assert_eq!(with(json!({ "$ref": "#/$defs/A", "properties": properties })), None);
        assert_eq!(with(json!({ "anyOf": choices, "properties": properties })), None);
        assert_eq!(to_strict(&json!({ "$ref": "#/$defs/A" })), None);
        assert!(with(json!({ "type": "string" })).is_some());
    }
}
