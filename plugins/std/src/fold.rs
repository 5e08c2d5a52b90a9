//! Conversion of arguments schemas to a form that every provider accepts.
//!
//! `OpenAI` and Anthropic reject `oneOf` and `anyOf` at the top level of a tool's arguments. A
//! union of objects is therefore offered as one object with the fields of all variants. The host
//! checks the arguments of a call against the schema that the tool declares, so the tool receives
//! only arguments that it accepts.

use serde_json::{Map, Value, json};

/// Keywords of a union.
const UNIONS: [&str; 2] = ["oneOf", "anyOf"];

/// Converts a union of objects at the top level of a schema to one object. Returns any other schema
/// unchanged.
pub(crate) fn union(schema: &Value) -> Value {
    folded(schema).unwrap_or_else(|| schema.clone())
}

fn folded(schema: &Value) -> Option<Value> {
    let schema = schema.as_object()?;
    let key = UNIONS.into_iter().find(|key| schema.contains_key(*key))?;
    let kinds: Vec<Kind<'_>> =
        schema[key].as_array()?.iter().map(Kind::read).collect::<Option<_>>()?;
    let mut object = schema.clone();
    object.remove(key);
    let own = schema.get("properties").and_then(Value::as_object);
    let mut fields = own.cloned().unwrap_or_default();
    for (name, value) in kinds.iter().flat_map(|kind| kind.fields) {
        let merged = match fields.get(name) {
            Some(before) => both(before, value),
            None => enumerated(value),
        };
        fields.insert(name.clone(), merged);
    }
    let shared = kinds.first()?.required.iter().copied();
    let shared = shared.filter(|name| kinds.iter().all(|it| it.needs(name)));
    let mut required: Vec<&str> = Vec::new();
    for name in required_fields(schema).chain(shared) {
        if !required.contains(&name) {
            required.push(name);
        }
    }
    describe(&kinds, &mut fields);
    object.insert("type".to_owned(), json!("object"));
    object.insert("properties".to_owned(), Value::Object(fields));
    object.insert("required".to_owned(), json!(required));
    Some(Value::Object(object))
}

/// A variant of a union.
struct Kind<'a> {
    fields: &'a Map<String, Value>,
    required: Vec<&'a str>,
}

impl<'a> Kind<'a> {
    /// Parses a variant. Returns `None` if the variant is not an object with named fields.
    fn read(schema: &'a Value) -> Option<Self> {
        let schema = schema.as_object()?;
        let fields = schema.get("properties")?.as_object()?;
        Some(Self { fields, required: required_fields(schema).collect() })
    }

    fn needs(&self, name: &str) -> bool {
        self.required.contains(&name)
    }
}

/// Returns the names of the fields that a schema requires.
fn required_fields(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

/// Merges the two schemas that a field has in two variants of a union. The result is an `enum` if
/// each is a constant or an `enum`, otherwise an `anyOf`. Equal schemas remain one schema.
fn both(one: &Value, other: &Value) -> Value {
    let (one, other) = (enumerated(one), enumerated(other));
    if one == other {
        return one;
    }
    match (one.get("enum").and_then(Value::as_array), other.get("enum").and_then(Value::as_array)) {
        (Some(some), Some(more)) => {
            let mut values = some.clone();
            values.extend(more.iter().filter(|value| !some.contains(value)).cloned());
            let mut field = one.clone();
            field["enum"] = Value::Array(values);
            field
        }
        _ => match one.get("anyOf").and_then(Value::as_array) {
            Some(choices) => {
                let mut choices = choices.clone();
                choices.push(other);
                json!({ "anyOf": choices })
            }
            None => json!({ "anyOf": [one, other] }),
        },
    }
}

/// Converts a `const` to an `enum` with one value, because not every provider supports `const`.
fn enumerated(field: &Value) -> Value {
    let mut field = field.clone();
    if let Some(object) = field.as_object_mut()
        && let Some(value) = object.remove("const")
    {
        object.insert("enum".to_owned(), json!([value]));
    }
    field
}

/// Lists the required fields of each variant in the description of the discriminator field.
fn describe(kinds: &[Kind<'_>], fields: &mut Map<String, Value>) {
    let constant = |kind: &Kind<'_>, name: &str| kind.fields.get(name)?.get("const").cloned();
    let tells = |name: &&String| {
        let values: Vec<Value> = kinds.iter().filter_map(|kind| constant(kind, name)).collect();
        let is_unique = |value: &Value| values.iter().filter(|it| *it == value).count() == 1;
        values.len() == kinds.len() && kinds.len() > 1 && values.iter().all(is_unique)
    };
    let Some(name) = fields.keys().find(tells).cloned() else { return };
    let lines = kinds.iter().map(|kind| {
        let others: Vec<&str> = kind.required.iter().filter(|it| **it != name).copied().collect();
        let value = constant(kind, &name).unwrap_or_default();
        format!(
            "{value} requires {}",
            if others.is_empty() { "nothing else".to_owned() } else { others.join(", ") }
        )
    });
    let lines = lines.collect::<Vec<_>>().join("; ");
    let Some(field) = fields.get_mut(&name).and_then(Value::as_object_mut) else { return };
    let before = field.get("description").and_then(Value::as_str).unwrap_or_default();
    let description = if before.is_empty() { lines } else { format!("{before} ({lines})") };
    field.insert("description".to_owned(), json!(description));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::union;

    #[test]
    fn union_becomes_one_object_with_all_fields() {
        let kind = |value: &str, required: Value, fields: Value| {
            let mut kind = json!({"type": "object", "properties": fields, "required": required});
            kind["properties"]["type"] = json!({"type": "string", "const": value});
            kind
        };
        let schema = json!({"type": "object", "description": "a date", "oneOf": [
            kind("relative", json!(["type", "offset", "unit"]),
                json!({"offset": {"type": "integer"}, "unit": {"type": "string", "const": "day"}})),
            kind("absolute", json!(["type", "day"]), json!({"day": {"type": "integer"}})),
        ]});
        assert_eq!(
            union(&schema),
            json!({"type": "object", "description": "a date", "required": ["type"], "properties": {
                "type": {"type": "string", "enum": ["relative", "absolute"], "description":
                    "\"relative\" requires offset, unit; \"absolute\" requires day"},
                "offset": {"type": "integer"},
                "unit": {"type": "string", "enum": ["day"]},
                "day": {"type": "integer"},
            }})
        );
    }

    #[test]
    fn discriminator_has_another_value_in_each_variant() {
        let kind = |group: &str, kind: &str| {
            let fields = json!({"group": {"const": group}, "kind": {"const": kind}});
            json!({"properties": fields, "required": ["kind", "group"]})
        };
        let kinds = json!({"oneOf": [kind("a", "one"), kind("b", "two"), kind("a", "three")]});
        let folded = union(&kinds);
        assert_eq!(folded["properties"]["group"], json!({"enum": ["a", "b"]}));
        assert_eq!(
            folded["properties"]["kind"]["description"],
            "\"one\" requires group; \"two\" requires group; \"three\" requires group"
        );
    }

    #[test]
    fn fields_of_different_types_become_any_of() {
        let kind =
            |kind: &str| json!({"properties": {"id": {"type": kind}, "at": {"type": "string"}}});
        let schema = json!({"anyOf": [kind("string"), kind("integer"), kind("null")],
            "properties": {"all": {"type": "boolean"}}, "required": ["all"]});
        let fields = json!({"all": {"type": "boolean"}, "at": {"type": "string"}, "id": {"anyOf":
            [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}});
        assert_eq!(
            union(&schema),
            json!({"type": "object", "properties": fields, "required": ["all"]})
        );
    }

    #[test]
    fn fields_of_the_object_and_of_all_variants_are_required_once() {
        let required = |mut schema: Value| {
            let kind = |kind: &str| {
                let fields = json!({"kind": {"const": kind}, "id": {"type": "integer"}});
                json!({"properties": fields, "required": ["id"]})
            };
            schema["oneOf"] = json!([kind("one"), kind("two")]);
            union(&schema)["required"].clone()
        };
        let own = json!({"properties": {"all": {"type": "boolean"}}, "required": ["id", "all"]});
        assert_eq!(required(own), json!(["id", "all"]));
        assert_eq!(required(json!({"required": ["kind"]})), json!(["kind", "id"]));
    }

    #[test]
    fn other_schemas_are_unchanged() {
        for schema in [
            json!({"type": "object", "properties": {"a": {"oneOf": [{"type": "null"}]}}}),
            json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!(true),
            json!(null),
        ] {
            assert_eq!(union(&schema), schema);
        }
    }
}
