//! Response schemas in the subset of Anthropic's structured outputs.
//!
//! Anthropic compiles the schema of a response to a grammar, and rejects a request whose schema is
//! not in its subset. Every object must have `additionalProperties: false`. Bounds of numbers,
//! strings and arrays are among the keywords that the subset lacks. They move to the description,
//! because the host validates the document against the original schema anyway. A schema that the
//! subset cannot express, such as a map with arbitrary keys or a recursive schema, has no closed
//! form. Source: "JSON Schema limitations" in "Structured outputs" of Anthropic's documentation.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::provider::schema::pattern::{self, Portability};
use crate::provider::schema::rules::append_description;
use crate::structured::strict;

/// Keywords with definitions.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// Keywords that the root must not have: it must be an inline object.
const REJECTED_AT_ROOT: [&str; 3] = ["$ref", "anyOf", "oneOf"];

/// Keywords that cannot move to the description, because the schema without them, or with closed
/// objects in them, rejects valid documents.
const INEXPRESSIBLE_KEYWORDS: [&str; 4] =
    ["allOf", "patternProperties", "$dynamicRef", "$recursiveRef"];

/// Keywords that are left out: they do not describe a value.
const IGNORED_KEYWORDS: [&str; 8] =
    ["$schema", "$id", "$anchor", "$comment", "$vocabulary", "deprecated", "readOnly", "writeOnly"];

/// Syntax of patterns that the subset lacks or limits.
const REJECTED_SYNTAX: [&str; 4] = ["\\b", "\\B", "(?", "{"];

/// Converts a schema to the subset; `None` if the subset cannot express it.
pub(in crate::provider) fn to_closed(schema: &Value) -> Option<Value> {
    let map = schema.as_object()?;
    if REJECTED_AT_ROOT.iter().any(|key| map.contains_key(*key)) {
        return None;
    }
    let mut closed = convert(schema)?;
    for key in DEFINITIONS {
        if let Some(members) = map.get(key) {
            closed[key] = convert_members(members.as_object()?)?.into();
        }
    }
    has_acyclic_references(&closed).then_some(closed)
}

fn convert(schema: &Value) -> Option<Value> {
    let map = schema.as_object()?;
    if strict::has_properties_beside_schemas(map) {
        return None;
    }
    if let Some(reference) = map.get("$ref") {
        // A reference must have no sibling keywords.
        return Some(json!({ "$ref": reference.as_str()? }));
    }
    if map.keys().any(|key| INEXPRESSIBLE_KEYWORDS.contains(&key.as_str())) {
        return None;
    }
    let (mut out, mut rest) = (Map::new(), Map::new());
    for (key, value) in map {
        let (key, value) = match key.as_str() {
            // The function `close_object` writes these keywords.
            "properties" | "required" | "additionalProperties" => continue,
            word if IGNORED_KEYWORDS.contains(&word) || DEFINITIONS.contains(&word) => continue,
            "items" => ("items", convert(value)?),
            // `anyOf` is wider than `oneOf`, which is acceptable, because the host validates the
            // document against the original schema.
            "anyOf" | "oneOf" => ("anyOf", convert_list(value)?),
            word if is_supported(word, value) => (word, value.clone()),
            word => {
                rest.insert(word.to_owned(), value.clone());
                continue;
            }
        };
        out.insert(key.to_owned(), value);
    }
    if out.contains_key("anyOf") {
        out.shift_remove("type");
    } else if strict::is_object(map) {
        close_object(map, &mut out)?;
    }
    if !rest.is_empty() {
        append_description(&mut out, &format!("must be valid under {}", Value::Object(rest)));
    }
    let is_typed = ["type", "anyOf", "enum", "const"].iter().any(|key| out.contains_key(*key));
    is_typed.then_some(Value::Object(out))
}

/// Returns whether the subset has a keyword without subschemas with this value.
fn is_supported(key: &str, value: &Value) -> bool {
    let is_scalar = |value: &Value| !value.is_object() && !value.is_array();
    match key {
        "type" | "title" | "description" => true,
        "enum" => value.as_array().is_some_and(|values| values.iter().all(is_scalar)),
        "const" => is_scalar(value),
        "format" => value.as_str().is_some_and(|it| strict::FORMATS.contains(&it) || it == "uri"),
        "pattern" => value.as_str().is_some_and(is_simple_pattern),
        "minItems" => matches!(value.as_u64(), Some(0 | 1)),
        _ => false,
    }
}

fn is_simple_pattern(pattern: &str) -> bool {
    pattern::classify(pattern) == Portability::Portable
        && !REJECTED_SYNTAX.iter().any(|syntax| pattern.contains(syntax))
}

/// Converts the properties of an object; `None` if other names are permitted or required.
fn close_object(map: &Map<String, Value>, out: &mut Map<String, Value>) -> Option<()> {
    let properties = convert_members(strict::closed_properties(map)?)?;
    if let Some(Value::Array(names)) = map.get("required") {
        let mut names = names.iter().map(|name| name.as_str().unwrap_or_default());
        if names.any(|name| !properties.contains_key(name)) {
            return None;
        }
        out.insert("required".into(), map["required"].clone());
    }
    out.insert("properties".into(), properties.into());
    out.insert("additionalProperties".into(), false.into());
    Some(())
}

fn convert_list(value: &Value) -> Option<Value> {
    value.as_array()?.iter().map(convert).collect::<Option<Vec<_>>>().map(Value::Array)
}

fn convert_members<'a>(
    members: impl IntoIterator<Item = (&'a String, &'a Value)>,
) -> Option<Map<String, Value>> {
    members.into_iter().map(|(name, schema)| Some((name.clone(), convert(schema)?))).collect()
}

/// Returns whether each reference of a converted schema leads to a definition, and no definition
/// refers to itself, directly or through others.
fn has_acyclic_references(schema: &Value) -> bool {
    let mut definitions: HashMap<String, Vec<&str>> = HashMap::new();
    for key in DEFINITIONS {
        let members = schema.get(key).and_then(Value::as_object);
        for (name, part) in members.into_iter().flatten() {
            definitions.insert(format!("#/{key}/{name}"), references(part));
        }
    }
    let mut users: HashMap<&str, usize> =
        definitions.keys().map(|target| (target.as_str(), 0)).collect();
    if references(schema).into_iter().any(|target| !users.contains_key(target)) {
        return false;
    }
    for target in definitions.values().flatten() {
        if let Some(count) = users.get_mut(*target) {
            *count += 1;
        }
    }
    // Definitions that no other one refers to are removed one after the other, so only cycles
    // remain.
    let unused = users.iter().filter(|(_, count)| **count == 0);
    let mut unused: Vec<&str> = unused.map(|(target, _)| *target).collect();
    let mut removed = 0;
    while let Some(target) = unused.pop() {
        removed += 1;
        for next in &definitions[target] {
            let Some(count) = users.get_mut(*next) else { continue };
            *count -= 1;
            if *count == 0 {
                unused.push(*next);
            }
        }
    }
    removed == definitions.len()
}

/// Returns the targets of all references in a converted schema.
fn references(schema: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    collect_references(schema, &mut found);
    found
}

fn collect_references<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(target) if key == "$ref" => found.push(target),
                    _ => collect_references(value, found),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_closed_and_bounds_move_to_the_description() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "title": "Order",
            "properties": {
                "name": { "type": "string", "description": "Who.", "minLength": 1, "maxLength": 9 },
                "site": { "type": "string", "format": "uri", "pattern": "^https:" },
                "code": { "type": "string", "format": "phone", "pattern": "^(?=\\d)" },
                "size": { "type": ["integer", "null"], "minimum": 0, "default": 3 },
                "few": { "type": "array", "minItems": 1, "items": { "type": "number" } },
                "more": { "type": "array", "minItems": 2, "items": { "oneOf": [
                    { "type": "string" }, { "$ref": "#/$defs/Item", "description": "x" },
                ] } },
                "kind": { "enum": ["a", 1, null] },
                "none": { "type": "object", "additionalProperties": false },
                "$ref": { "type": "boolean" },
            },
            "required": ["name"],
            "additionalProperties": true,
            "$defs": { "Item": { "type": "object", "properties": { "a": { "const": 1 } } } },
        });
        let expected = json!({
            "type": "object",
            "title": "Order",
            "properties": {
                "name": {
                    "type": "string",
                    "description": "Who. (must be valid under {\"minLength\":1,\"maxLength\":9})",
                },
                "site": { "type": "string", "format": "uri", "pattern": "^https:" },
                "code": {
                    "type": "string",
                    "description":
                        "must be valid under {\"format\":\"phone\",\"pattern\":\"^(?=\\\\d)\"}",
                },
                "size": {
                    "type": ["integer", "null"],
                    "description": "must be valid under {\"minimum\":0,\"default\":3}",
                },
                "few": { "type": "array", "minItems": 1, "items": { "type": "number" } },
                "more": {
                    "type": "array",
                    "items": { "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/Item" }] },
                    "description": "must be valid under {\"minItems\":2}",
                },
                "kind": { "enum": ["a", 1, null] },
                "none": { "type": "object", "properties": {}, "additionalProperties": false },
                "$ref": { "type": "boolean" },
            },
            "required": ["name"],
            "additionalProperties": false,
            "$defs": { "Item": {
                "type": "object",
                "properties": { "a": { "const": 1 } },
                "additionalProperties": false,
            } },
        });
        let closed = to_closed(&schema).unwrap();
        assert_eq!(closed, expected);
        assert_eq!(to_closed(&closed), Some(closed));
    }

    #[test]
    fn inexpressible_schemas_have_no_closed_form() {
        let with = |property: Value| {
            to_closed(&json!({ "type": "object", "properties": { "p": property } }))
        };
        for property in [
            json!(true),
            json!({}),
            json!({ "description": "anything" }),
            json!({ "type": "object" }),
            json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            json!({ "type": "object", "properties": { "a": {} } }),
            json!({ "type": "object", "properties": { "a": { "const": 1 } }, "required": ["b"] }),
            json!({ "properties": { "a": { "const": 1 } }, "anyOf": [{ "const": 2 }] }),
            json!({ "allOf": [{ "type": "string" }] }),
        ] {
            assert_eq!(with(property.clone()), None, "{property}");
        }
        let beside = json!({ "$ref": "#/$defs/A", "properties": { "a": { "const": 1 } } });
        let target = json!({ "type": "object", "properties": { "b": { "const": 2 } } });
        assert_eq!(
            to_closed(&json!({
                "type": "object", "properties": { "p": beside }, "$defs": { "A": target },
            })),
            None
        );
        assert_eq!(to_closed(&json!({ "$ref": "#/$defs/A" })), None);
        assert_eq!(to_closed(&json!({ "type": "object", "anyOf": [{ "const": 1 }] })), None);
        assert!(with(json!({ "type": "string" })).is_some());
    }

    #[test]
    fn references_lead_to_definitions_without_cycles() {
        let with = |reference: &str, definitions: Value| {
            to_closed(&json!({
                "type": "object",
                "properties": { "p": { "$ref": reference }, "q": { "$ref": reference } },
                "$defs": definitions,
            }))
        };
        let list_of = |name: &str| json!({ "type": "array", "items": { "$ref": name } });
        let leaf = json!({ "A": list_of("#/$defs/B"), "B": { "type": "string" } });
        assert!(with("#/$defs/A", leaf.clone()).is_some());
        for reference in
            ["#", "#/$defs/C", "#/definitions/A", "#/properties/q", "https://a.example"]
        {
            assert_eq!(with(reference, leaf.clone()), None, "{reference}");
        }
        let own = json!({ "A": list_of("#/$defs/A") });
        let both = json!({ "A": list_of("#/$defs/B"), "B": list_of("#/$defs/A") });
        for definitions in [own, both] {
            assert_eq!(with("#/$defs/A", definitions.clone()), None, "{definitions}");
        }
    }
}
