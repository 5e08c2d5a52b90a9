//! Kinds of the values that fit a JSON Schema, and of their members.

use std::ptr;

use serde_json::{Map, Value};

use super::Kinds;
use crate::schema::reference;

/// Maximum number of subschemas that are read for a channel. The kinds of values of any further
/// subschema are unknown.
const PARTS: u32 = 1_000;

/// Like [`PARTS`], for the members of channels in all conditions of a graph.
pub(crate) const MEMBER_PARTS: u32 = 10_000;

/// Maximum nesting of subschemas for the same value. The limit is needed because references can be
/// circular.
const DEPTH: u32 = 16;

/// What is known of a value: its kinds, and the schema that it fits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueType<'s> {
    pub(crate) kinds: Kinds,
    part: Option<Part<'s>>,
}

/// A subschema, with the document in which its references are resolved.
#[derive(Clone, Copy, Debug)]
struct Part<'s> {
    root: &'s Value,
    schema: &'s Value,
}

/// What a schema says about a property of the objects that fit it.
#[derive(Debug)]
pub(super) enum Property<'s> {
    /// The type of the values of the property.
    Type(ValueType<'s>),
    /// No object has the property. The names are those of the properties that an object can have.
    Missing(Vec<&'s str>),
}

impl From<Kinds> for ValueType<'_> {
    fn from(kinds: Kinds) -> Self {
        Self { kinds, part: None }
    }
}

impl<'s> ValueType<'s> {
    /// A value of which nothing is known.
    pub(crate) const ANY: Self = Self { kinds: Kinds::ANY, part: None };

    /// Returns the type of the values that fit a schema. For a schema that is not simple, the
    /// result can contain further kinds, but it never lacks one.
    pub(crate) fn of_schema(schema: &'s Value) -> Self {
        // In schemas of other drafts, the same keywords have other meanings.
        if schema.get("$schema").is_some() {
            return Kinds::JSON.into();
        }
        let mut parts_left = PARTS;
        Reader { root: schema, parts_left: &mut parts_left }.value_type(schema)
    }

    /// Returns the type of the values that fit the same schema and have other kinds.
    pub(crate) fn with_kinds(self, kinds: Kinds) -> Self {
        Self { kinds, ..self }
    }

    /// Returns the type of a value that can also be `null`. `null` has no members, so the types of
    /// the members stay as they are.
    pub(crate) fn or_null(self) -> Self {
        self.with_kinds(self.kinds.or(Kinds::NULL))
    }

    /// Returns what is known of a property of the value, which is an object. Takes the subschemas
    /// that it reads from `parts_left`.
    pub(super) fn property(self, name: &str, parts_left: &mut u32) -> Property<'s> {
        let unknown = Property::Type(Self::ANY);
        let Some(Part { root, schema }) = self.part else { return unknown };
        let mut reader = Reader { root, parts_left };
        match reader.property(schema, name, DEPTH) {
            Some(Found::Schema(schema)) => Property::Type(reader.value_type(schema)),
            Some(Found::Missing(names)) => Property::Missing(names),
            None => unknown,
        }
    }

    /// Returns the type of the items of the value, which is a list. Takes the subschemas that it
    /// reads from `parts_left`.
    pub(super) fn item(self, parts_left: &mut u32) -> Self {
        let Some(Part { root, schema }) = self.part else { return Self::ANY };
        let mut reader = Reader { root, parts_left };
        let items = reader.items(schema, DEPTH);
        items.map_or(Self::ANY, |schema| reader.value_type(schema))
    }
}

impl Kinds {
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

/// The subschema of a property, or the names of all properties if the property does not exist.
enum Found<'s> {
    Schema(&'s Value),
    Missing(Vec<&'s str>),
}

struct Reader<'s, 'p> {
    root: &'s Value,
    parts_left: &'p mut u32,
}

impl<'s> Reader<'s, '_> {
    fn value_type(&mut self, schema: &'s Value) -> ValueType<'s> {
        let part = Part { root: self.root, schema };
        ValueType { kinds: self.of(schema, DEPTH), part: Some(part) }
    }

    fn of(&mut self, schema: &'s Value, depth_left: u32) -> Kinds {
        let Some((fields, depth)) = self.enter(schema, depth_left) else { return Kinds::JSON };
        let kinds = match fields.get("$ref").and_then(Value::as_str) {
            Some(reference) => match find(self.root, reference) {
                Some(part) => self.of(part, depth),
                None => Kinds::JSON,
            },
            None => self.of_keywords(fields, depth),
        };
        // If no value fits the schema, nothing is known about the values.
        if kinds == Kinds::NONE { Kinds::JSON } else { kinds }
    }

    /// Returns the keywords of a subschema, and the nesting that is left for the subschemas for the
    /// same value. Returns `None` if nothing is known of the values: beyond the limits, and for a
    /// subschema that is a document of its own, in which references and keywords have other
    /// meanings.
    fn enter(
        &mut self,
        schema: &'s Value,
        depth_left: u32,
    ) -> Option<(&'s Map<String, Value>, u32)> {
        let fields = schema.as_object()?;
        let is_own = !ptr::eq(schema, self.root)
            && (fields.contains_key("$id") || fields.contains_key("$schema"));
        if is_own {
            return None;
        }
        let depth = depth_left.checked_sub(1)?;
        *self.parts_left = self.parts_left.checked_sub(1)?;
        Some((fields, depth))
    }

    /// Returns what a schema says about a property of the objects that fit it.
    fn property(&mut self, schema: &'s Value, name: &str, depth_left: u32) -> Option<Found<'s>> {
        let (fields, depth) = self.enter(schema, depth_left)?;
        let properties = fields.get("properties").and_then(Value::as_object);
        if let Some(property) = properties.and_then(|properties| properties.get(name)) {
            return Some(Found::Schema(property));
        }
        // A pattern can match the name. `additionalProperties` does not apply to the name then.
        let others = fields.get("additionalProperties");
        match others.filter(|_| !fields.contains_key("patternProperties")) {
            Some(Value::Bool(false)) => {
                let names = properties.into_iter().flat_map(Map::keys).map(String::as_str);
                return Some(Found::Missing(names.collect()));
            }
            Some(others @ Value::Object(_)) => return Some(Found::Schema(others)),
            _ => {}
        }
        required_parts(self.root, fields).find_map(|part| self.property(part, name, depth))
    }

    /// Returns the schema of all items of the lists that fit a schema, if it has one.
    fn items(&mut self, schema: &'s Value, depth_left: u32) -> Option<&'s Value> {
        let (fields, depth) = self.enter(schema, depth_left)?;
        let items = fields.get("items").filter(|items| items.is_object());
        // `items` does not apply to the items that `prefixItems` lists.
        if let Some(items) = items.filter(|_| !fields.contains_key("prefixItems")) {
            return Some(items);
        }
        required_parts(self.root, fields).find_map(|part| self.items(part, depth))
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
}

/// Returns the further subschemas that each value of a schema fits.
fn required_parts<'s>(
    root: &'s Value,
    fields: &'s Map<String, Value>,
) -> impl Iterator<Item = &'s Value> {
    let reference = fields.get("$ref").and_then(Value::as_str);
    let referenced = reference.and_then(|reference| find(root, reference));
    let all = fields.get("allOf").and_then(Value::as_array);
    referenced.into_iter().chain(all.into_iter().flatten())
}

/// Returns the part of the document that a reference names, unless it names an anchor.
fn find<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let fragment = reference::decoded(reference.strip_prefix('#')?)?;
    if fragment.is_empty() || fragment.starts_with('/') {
        return root.pointer(&fragment);
    }
    None
}

fn union(all: impl Iterator<Item = Kinds>) -> Kinds {
    all.fold(Kinds::NONE, Kinds::or)
}
