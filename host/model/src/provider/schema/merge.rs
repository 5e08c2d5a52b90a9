//! Merges a union of objects into one object.
//!
//! No provider accepts a union at the root of a tool's arguments. The merged object has the
//! properties of all alternatives and requires the properties that all alternatives require. The
//! schema of a property that only some alternatives have is taken from these alternatives.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::provider::schema::walker::distinct;

/// Maximum number of schemas of one union. The limit is needed because references may form loops.
const MAX_SCHEMAS: usize = 200;

/// Maximum required properties of one alternative in the description of the merged object.
const MAX_REQUIRED_NAMES: usize = 8;

/// The keywords of a schema that describe objects.
#[derive(Debug, Default)]
pub(super) struct MergedObject {
    pub(super) properties: Map<String, Value>,
    pub(super) required: Vec<String>,
    pub(super) patterns: Map<String, Value>,
    pub(super) additional: Option<Value>,
    /// The title and the description.
    pub(super) annotations: Map<String, Value>,
    /// Sentences for the description about constraints that the keywords of the merged object
    /// cannot express.
    pub(super) sentences: Vec<String>,
}

/// Merges schemas of one document.
pub(super) struct ObjectMerger<'d> {
    definitions: [&'d Map<String, Value>; 2],
    budget: usize,
}

impl<'d> ObjectMerger<'d> {
    /// Creates a merger with `$defs` and `definitions` of the document.
    pub(super) fn new(definitions: [&'d Map<String, Value>; 2]) -> Self {
        Self { definitions, budget: MAX_SCHEMAS }
    }

    /// Merges a schema into one object; `None` if it accepts no object.
    pub(super) fn merge(&mut self, schema: &Value) -> Option<MergedObject> {
        let Value::Object(map) = schema else {
            return Some(MergedObject::default()).filter(|_| *schema != Value::Bool(false));
        };
        if !accepts_objects(map) {
            return None;
        }
        let mut object = MergedObject::from_keywords(map);
        if self.budget == 0 {
            return Some(object);
        }
        self.budget -= 1;
        let target = map.get("$ref").and_then(Value::as_str);
        if let Some(target) = target.and_then(|reference| self.resolve(reference)) {
            object.intersect(self.merge(target)?);
        }
        for part in array_items(map, "allOf") {
            object.intersect(self.merge(part)?);
        }
        for key in ["anyOf", "oneOf"] {
            if map.contains_key(key) {
                let kinds = array_items(map, key).filter_map(|kind| self.merge(kind)).collect();
                object.intersect(MergedObject::from_alternatives(kinds)?);
            }
        }
        Some(object)
    }

    fn resolve(&self, reference: &str) -> Option<&'d Value> {
        let (key, name) = reference.strip_prefix("#/")?.split_once('/')?;
        let [definitions, old] = self.definitions;
        match key {
            "$defs" => definitions.get(name),
            "definitions" => old.get(name),
            _ => None,
        }
    }
}

impl MergedObject {
    /// Returns the object of a schema's own keywords, without references and unions.
    fn from_keywords(map: &Map<String, Value>) -> Self {
        let fields = |key: &str| map.get(key).and_then(Value::as_object).cloned();
        let names = map.get("required").and_then(Value::as_array).into_iter().flatten();
        let texts = ["title", "description"].into_iter();
        Self {
            properties: fields("properties").unwrap_or_default(),
            required: names.filter_map(Value::as_str).map(str::to_owned).collect(),
            patterns: fields("patternProperties").unwrap_or_default(),
            additional: map.get("additionalProperties").cloned(),
            annotations: texts
                .filter_map(|key| Some((key.to_owned(), map.get(key)?.clone())))
                .collect(),
            sentences: Vec::new(),
        }
    }

    /// Merges another object whose keywords apply in addition to those of this object.
    fn intersect(&mut self, other: Self) {
        for (name, mut schema) in other.properties {
            match self.properties.get(&name) {
                Some(before) if !accepts_anything(before) && !is_constant(&schema) => {}
                before => {
                    let words = before.and_then(|before| before.get("description"));
                    if let (Some(words), Value::Object(map)) = (words, &mut schema) {
                        map.entry("description").or_insert_with(|| words.clone());
                    }
                    self.properties.insert(name, schema);
                }
            }
        }
        let known: HashSet<String> = self.required.iter().cloned().collect();
        self.required.extend(other.required.into_iter().filter(|name| !known.contains(name)));
        for (pattern, schema) in other.patterns {
            self.patterns.entry(pattern).or_insert(schema);
        }
        if self.additional.is_none() {
            self.additional = other.additional;
        }
        for (key, text) in other.annotations {
            self.annotations.entry(key).or_insert(text);
        }
        self.sentences.extend(other.sentences);
    }

    /// Merges alternatives; `None` if there are no alternatives.
    fn from_alternatives(mut kinds: Vec<Self>) -> Option<Self> {
        if kinds.len() < 2 {
            return kinds.pop();
        }
        let required = common_required(&kinds);
        let words = alternatives_sentence(&kinds, &required);
        let closed = Some(Value::Bool(false));
        let is_closed =
            kinds.iter().all(|kind| kind.additional == closed && kind.patterns.is_empty());
        let mut gathered = Map::new();
        let mut sentences: Vec<String> = Vec::new();
        for kind in kinds {
            for (name, schema) in kind.properties {
                let schemas = gathered.entry(name).or_insert_with(|| json!([]));
                match schemas {
                    // If one alternative accepts every value, so does the union.
                    Value::Array(_) if accepts_anything(&schema) => *schemas = Value::Null,
                    Value::Array(known) if !known.contains(&schema) => known.push(schema),
                    _ => {}
                }
            }
            sentences.extend(kind.sentences);
        }
        sentences.extend(words);
        let property = |(name, schemas): (String, Value)| (name, any_of(schemas));
        Some(Self {
            properties: gathered.into_iter().map(property).collect(),
            required,
            additional: closed.filter(|_| is_closed),
            sentences,
            ..Self::default()
        })
    }
}

/// Returns the names that all alternatives require.
fn common_required(kinds: &[MergedObject]) -> Vec<String> {
    let sets: Vec<HashSet<&String>> =
        kinds.iter().map(|kind| kind.required.iter().collect()).collect();
    let first = kinds.iter().take(1).flat_map(|kind| &kind.required);
    first.filter(|name| sets.iter().all(|set| set.contains(name))).cloned().collect()
}

/// Returns a sentence that lists, for each alternative, the required properties that not all
/// alternatives require. Returns `None` if an alternative has no such property, or if all
/// alternatives require the same properties.
fn alternatives_sentence(kinds: &[MergedObject], shared: &[String]) -> Option<String> {
    let shared: HashSet<&String> = shared.iter().collect();
    let mut needs: Vec<String> = Vec::new();
    for kind in kinds {
        let own = kind.required.iter().filter(|name| !shared.contains(name));
        let own: Vec<String> =
            own.take(MAX_REQUIRED_NAMES).map(|name| format!("`{name}`")).collect();
        if own.is_empty() {
            return None;
        }
        let own = own.join(" and ");
        if !needs.contains(&own) {
            needs.push(own);
        }
    }
    (needs.len() > 1).then(|| format!("needs {}", needs.join(", or ")))
}

/// Returns one schema for values that match any schema of an array. If `schemas` is not an array,
/// anything matches.
fn any_of(schemas: Value) -> Value {
    let Value::Array(mut schemas) = schemas else { return json!({}) };
    if let Some(constants) = merge_constants(&schemas) {
        return constants;
    }
    match schemas.len() {
        0 => json!({}),
        1 => schemas.remove(0),
        _ => json!({ "anyOf": schemas }),
    }
}

/// Merges the constants of several schemas into one enum.
fn merge_constants(schemas: &[Value]) -> Option<Value> {
    let (first, rest) = schemas.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let mut values = Vec::new();
    for schema in schemas {
        match (schema.get("enum"), schema.get("const")) {
            (Some(Value::Array(some)), None) => values.extend(some.iter().cloned()),
            (None, Some(one)) => values.push(one.clone()),
            _ => return None,
        }
    }
    let mut merged = Map::new();
    let kind = first.get("type").filter(|kind| rest.iter().all(|it| it.get("type") == Some(*kind)));
    let words = schemas.iter().find_map(|schema| schema.get("description"));
    for (key, value) in [("type", kind), ("description", words)] {
        merged.extend(value.map(|value| (key.to_owned(), value.clone())));
    }
    merged.insert("enum".into(), distinct(&values).into());
    Some(merged.into())
}

fn array_items<'m>(map: &'m Map<String, Value>, key: &str) -> impl Iterator<Item = &'m Value> {
    map.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Returns whether a schema with these keywords may accept objects.
fn accepts_objects(map: &Map<String, Value>) -> bool {
    match map.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => true,
    }
}

fn accepts_anything(schema: &Value) -> bool {
    schema.as_bool() == Some(true) || schema.as_object().is_some_and(Map::is_empty)
}

fn is_constant(schema: &Value) -> bool {
    schema.get("enum").is_some() || schema.get("const").is_some()
}
