//! Fits rows to a JSON Schema, and generates samples of unknown schemas.

use serde_json::{Map, Value, json};

/// Maximum nesting of a sample, which ends recursive schemas.
const MAX_DEPTH: usize = 16;

/// Resolves local references, and unions to their first branch that is not `null`.
pub(super) fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| root.pointer(reference.strip_prefix('#')?));
        let branches = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema.get(key));
        let branch = branches
            .and_then(Value::as_array)
            .and_then(|list| list.iter().find(|branch| !is_null_type(branch)));
        match target.or(branch) {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

/// Keeps the properties of the schema, and adds missing required ones: as `null` if the schema
/// allows it, or as the empty value of their type.
pub(super) fn fit(row: Map<String, Value>, root: &Value, schema: &Value) -> Map<String, Value> {
    let object = resolve(root, schema);
    let Some(properties) = object.get("properties").and_then(Value::as_object) else {
        return row;
    };
    let mut fitted = Map::new();
    for (key, property) in properties {
        if let Some(value) = row.get(key) {
            fitted.insert(key.clone(), value.clone());
        } else if is_required(object, key) {
            let value = if allows_null(property) { Value::Null } else { empty(root, property) };
            fitted.insert(key.clone(), value);
        }
    }
    fitted
}

/// Returns a small JSON value that matches `schema`.
pub(super) fn sample(root: &Value, schema: &Value) -> Value {
    sample_at(root, schema, 0)
}

fn sample_at(root: &Value, schema: &Value, depth: usize) -> Value {
    let schema = resolve(root, schema);
    if let Some(fixed) = schema.get("const").or_else(|| schema.get("default")) {
        return fixed.clone();
    }
    if let Some(first) = schema.pointer("/enum/0") {
        return first.clone();
    }
    match type_of(schema).as_str() {
        "object" if depth < MAX_DEPTH => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let required =
                properties.into_iter().flatten().filter(|(key, _)| is_required(schema, key));
            let sampled =
                required.map(|(key, property)| (key.clone(), sample_at(root, property, depth + 1)));
            Value::Object(sampled.collect())
        }
        "array" if depth < MAX_DEPTH => {
            let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            let item = schema.get("items").unwrap_or(&Value::Null);
            (0..count).map(|_| sample_at(root, item, depth + 1)).collect()
        }
        "string" => json!(sample_text(schema)),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(0)),
        "boolean" => json!(false),
        _ => Value::Null,
    }
}

fn sample_text(schema: &Value) -> String {
    let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
    match schema.get("format").and_then(Value::as_str) {
        Some("date") => "2025-01-15".to_owned(),
        Some("date-time") => "2025-01-15T10:30:45Z".to_owned(),
        _ => "text".repeat(1 + least as usize / "text".len()),
    }
}

/// Returns the empty value of a type, for a required property without a value in the text.
fn empty(root: &Value, schema: &Value) -> Value {
    let resolved = resolve(root, schema);
    if type_of(resolved) == "string" && resolved.get("enum").is_none() {
        return json!("");
    }
    sample(root, schema)
}

/// Returns the first type that is not `null`, in lower case. Gemini writes types in upper case.
fn type_of(schema: &Value) -> String {
    let stated = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().find(|kind| **kind != "null"),
        other => other,
    };
    match stated.and_then(Value::as_str) {
        Some(kind) => kind.to_lowercase(),
        None if schema.get("properties").is_some() => "object".to_owned(),
        None => "null".to_owned(),
    }
}

fn is_required(object: &Value, key: &str) -> bool {
    let required = object.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|name| name == key))
}

fn is_null_type(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "null")
}

fn allows_null(schema: &Value) -> bool {
    let types = schema.get("type").and_then(Value::as_array);
    let branches = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(key)?.as_array());
    types.is_some_and(|types| types.iter().any(|kind| kind == "null"))
        || branches.flatten().any(is_null_type)
        || schema.get("nullable") == Some(&json!(true))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{fit, sample};

    #[test]
    fn rows_fit_their_schema() {
        let schema = json!({
            "type": "object",
            "required": ["ticker", "name", "price", "memo"],
            "properties": {
                "ticker": {"type": "string"},
                "name": {"type": "string"},
                "price": {"type": ["number", "null"]},
                "memo": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "tradedAt": {"type": "string"}
            }
        });
        let row = json!({"name": "腾讯", "quantity": 100});
        let Value::Object(row) = row else { unreachable!() };
        assert_eq!(
            Value::Object(fit(row.clone(), &schema, &schema)),
            json!({"ticker": "", "name": "腾讯", "price": null, "memo": null})
        );
        assert_eq!(fit(row.clone(), &json!({}), &json!({})), row);
    }

    #[test]
    fn unknown_schemas_are_sampled() {
        let schema = json!({
            "type": "object",
            "required": ["title", "count", "kind", "tags", "part", "on"],
            "properties": {
                "title": {"type": "string", "minLength": 5},
                "count": {"type": "integer", "minimum": 3},
                "kind": {"enum": ["a", "b"]},
                "tags": {"type": "array", "minItems": 2, "items": {"type": "string"}},
                "part": {"$ref": "#/$defs/Part"},
                "on": {"type": "STRING", "format": "date"},
                "free": {"type": "string"}
            },
            "$defs": {"Part": {"properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}}
        });
        assert_eq!(
            sample(&schema, &schema),
            json!({"title": "texttext", "count": 3, "kind": "a", "tags": ["text", "text"],
                   "part": {"ok": false}, "on": "2025-01-15"})
        );
    }
}
