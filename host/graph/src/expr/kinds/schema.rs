//! Kinds of the values that fit a JSON Schema.

use serde_json::{Map, Value};

use super::Kinds;
use crate::schema::reference;

/// Maximum number of subschemas that are read. The kinds of values of any further subschema are
/// unknown.
const PARTS: u32 = 1_000;

/// Maximum nesting of subschemas for the same value. The limit is needed because references can be
/// circular.
const DEPTH: u32 = 16;

impl Kinds {
    /// Returns the kinds of the values that fit a schema. For a schema that is not simple, the
    /// result can contain further kinds, but it never lacks one.
    pub(crate) fn of_schema(schema: &Value) -> Self {
        // In schemas of other drafts, the same keywords have other meanings.
        if schema.get("$schema").is_some() {
            return Self::JSON;
        }
        Reader { root: schema, parts_left: PARTS }.of(schema, DEPTH)
    }

    fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOL,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::LIST,
            Value::Object(_) => Self::MAP,
        }
    }

    fn of_type(name: &Value) -> Self {
        match name.as_str() {
            Some("null") => Self::NULL,
            Some("boolean") => Self::BOOL,
            Some("number" | "integer") => Self::NUMBER,
            Some("string") => Self::STRING,
            Some("array") => Self::LIST,
            Some("object") => Self::MAP,
            _ => Self::JSON,
        }
    }
}

struct Reader<'s> {
    root: &'s Value,
    parts_left: u32,
}

impl<'s> Reader<'s> {
    fn of(&mut self, schema: &'s Value, depth_left: u32) -> Kinds {
        let Value::Object(fields) = schema else { return Kinds::JSON };
        let (Some(parts), Some(depth)) =
            (self.parts_left.checked_sub(1), depth_left.checked_sub(1))
        else {
            return Kinds::JSON;
        };
        self.parts_left = parts;
        let kinds = match fields.get("$ref").and_then(Value::as_str) {
            Some(reference) => match self.find(reference) {
                Some(part) => self.of(part, depth),
                None => Kinds::JSON,
            },
            None => self.of_keywords(fields, depth),
        };
        // If no value fits the schema, nothing is known about the values.
        if kinds == Kinds::NONE { Kinds::JSON } else { kinds }
    }

    fn of_keywords(&mut self, fields: &'s Map<String, Value>, depth: u32) -> Kinds {
        let mut kinds = match fields.get("type") {
            Some(Value::Array(names)) => union(names.iter().map(Kinds::of_type)),
            Some(name) => Kinds::of_type(name),
            None => Kinds::JSON,
        };
        if let Some(Value::Array(values)) = fields.get("enum") {
            kinds = kinds.and(union(values.iter().map(Kinds::of_value)));
        }
        if let Some(value) = fields.get("const") {
            kinds = kinds.and(Kinds::of_value(value));
        }
        for parts in ["anyOf", "oneOf"].iter().filter_map(|key| fields.get(*key)?.as_array()) {
            kinds = kinds.and(union(parts.iter().map(|part| self.of(part, depth))));
        }
        for part in fields.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            kinds = kinds.and(self.of(part, depth));
        }
        kinds
    }

    /// Returns the part of the document that a reference names, unless it names an anchor.
    fn find(&self, reference: &str) -> Option<&'s Value> {
        let fragment = reference::decoded(reference.strip_prefix('#')?)?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&fragment);
        }
        None
    }
}

fn union(all: impl Iterator<Item = Kinds>) -> Kinds {
    all.fold(Kinds::NONE, Kinds::or)
}
