//! The outline of a schema: its subschemas (*parts*), the locations of a value to which each of
//! them applies, and the steps that each takes.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use crate::limit::{
    Exceeded, SCHEMA_BYTES, SCHEMA_CHAIN, SCHEMA_DEPTH, SCHEMA_EXPANDED, SCHEMA_NODES,
    SCHEMA_PATHS_BYTES,
};
use crate::schema::error::SchemaError;
use crate::schema::pattern::{self, Patterns};
use crate::schema::reference::Document;

/// Index of a part in [`Outline::parts`].
pub(super) type Id = usize;

/// The outline of a schema, from which the steps of a validation are counted.
pub(super) struct Outline {
    /// All subschemas. The first one is the root.
    pub(super) parts: Vec<Part>,
    /// Whether a pattern of the schema has look-around.
    pub(super) looks_ahead: bool,
    /// Whether validating a small value can take many steps.
    pub(super) is_expensive: bool,
    /// Approximate maximum memory of the compiled schema, in bytes.
    pub(super) memory: u64,
}

/// One subschema of a document: an object, `true` or `false`.
#[derive(Default)]
pub(super) struct Part {
    /// Number of steps of applying the keywords of the part to any value. Not included are the
    /// steps of keywords that read a string or an array, and the steps of subschemas.
    pub(super) steps: u64,
    /// Size of the compiled patterns that a string is matched against, in bytes.
    pub(super) patterns: u64,
    /// Whether strings must be regular expressions (`format: regex`).
    pub(super) regex: bool,
    /// Whether the part reads a whole array (`uniqueItems`).
    pub(super) whole: bool,
    /// Whether a reference points to the part. The validator caches the results of such parts.
    pub(super) shared: bool,
    /// Parts that apply to the same value (`$ref`, `allOf` and the like).
    pub(super) same: Vec<Id>,
    /// How often the validator evaluates the parts of `same`: twice if the part has
    /// `unevaluatedProperties` or `unevaluatedItems`, otherwise once.
    pub(super) looks: u64,
    /// Parts for properties of an object, by property name (`properties`).
    pub(super) members: HashMap<String, Id>,
    /// Size of the compiled patterns of `patternProperties`, in bytes. Each property name is
    /// matched against all of them.
    pub(super) member_patterns: u64,
    /// Parts for properties whose names match a pattern (`patternProperties`).
    pub(super) by_pattern: Vec<Id>,
    /// Parts for properties that are not in `members` (`additionalProperties` and
    /// `unevaluatedProperties`).
    pub(super) other_members: Vec<Id>,
    /// The part for property names (`propertyNames`).
    pub(super) names: Option<Id>,
    /// Parts for the first items of an array, by position (`prefixItems`).
    pub(super) prefix: Vec<Id>,
    /// Parts for all items.
    pub(super) items: Vec<Id>,
}

/// Keywords whose value is a schema for the same location.
const SAME: [&str; 4] = ["not", "if", "then", "else"];

/// Keywords whose value is a list of schemas for the same location.
const SAME_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Keywords whose value is a map from names to schemas for the same location.
const SAME_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];

/// Keywords that the validator compares a value with. The comparison takes steps in proportion to
/// the size of the keyword.
const COMPARED: [&str; 5] = ["enum", "const", "required", "dependentRequired", "type"];

/// Approximate memory of a value of a compiled schema without its path, in bytes.
const NODE_BYTES: u64 = 500;

/// Number of copies of the path of each value in a compiled schema: one for a keyword and one for
/// its schema.
const PATH_COPIES: u64 = 2;

/// Limits up to which a schema is not expensive: the number of parts at one location, the steps of
/// one part, and the bytes of its compiled patterns. Most schemas stay below the limits. An
/// optional value whose type is a `$ref` has four parts, and the pattern of a date is of the
/// smallest size class.
const CHEAP: (u64, u64, u64) = (16, 64, 16 << 10);

impl Outline {
    /// Builds the outline of a schema.
    ///
    /// # Errors
    ///
    /// Returns an error if the schema exceeds a limit, or if it has a part that is not accepted,
    /// such as `$dynamicRef`.
    pub(super) fn of(schema: &Value) -> Result<Self, SchemaError> {
        let mut size = Size::default();
        size.add(schema, SCHEMA_DEPTH, 0)?;
        let mut build = Build {
            document: Document::new(schema),
            ids: HashMap::new(),
            parts: Vec::new(),
            todo: Vec::new(),
            patterns: Patterns::default(),
        };
        build.id(schema);
        while let Some((id, schema)) = build.todo.pop() {
            build.parts[id] = Part { shared: build.parts[id].shared, ..build.part(id, schema)? };
        }
        let Build { parts, patterns, .. } = build;
        let memory = size.memory() + patterns.memory();
        let outline = Self { parts, looks_ahead: patterns.look_ahead, is_expensive: false, memory };
        let most = Expansion::of(&outline)?;
        let is_expensive = most > CHEAP.0 || outline.parts.iter().any(Part::is_expensive);
        Ok(Self { is_expensive, ..outline })
    }
}

impl Part {
    fn is_expensive(&self) -> bool {
        let (_, steps, patterns) = CHEAP;
        let has_large_pattern = self.patterns > patterns || self.member_patterns > patterns;
        self.steps > steps || self.regex || has_large_pattern
    }
}

struct Build<'s> {
    document: Document<'s>,
    /// Parts by the address of their schema, so that a part with several references is built once.
    ids: HashMap<*const Value, Id>,
    parts: Vec<Part>,
    todo: Vec<(Id, &'s Value)>,
    patterns: Patterns,
}

impl<'s> Build<'s> {
    fn id(&mut self, schema: &'s Value) -> Id {
        *self.ids.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            let id = self.parts.len();
            self.parts.push(Part::default());
            self.todo.push((id, schema));
            id
        })
    }

    fn part(&mut self, id: Id, schema: &'s Value) -> Result<Part, SchemaError> {
        let mut part = Part { steps: 1, looks: 1, ..Part::default() };
        let Value::Object(fields) = schema else { return Ok(part) };
        check_id(id, fields)?;
        part.steps += fields.len() as u64;
        for key in COMPARED {
            part.steps += fields.get(key).map_or(0, steps_of);
        }
        part.regex = fields.get("format").and_then(Value::as_str) == Some("regex");
        part.whole = fields.contains_key("uniqueItems");
        for definitions in ["definitions", "$defs"].iter().filter_map(|key| fields.get(*key)) {
            pattern::check_lengths(definitions)?;
        }
        if let Some(pattern) = fields.get("pattern").and_then(Value::as_str) {
            part.patterns = self.patterns.keyword_size(pattern)?;
        }
        self.same(fields, &mut part)?;
        self.members(fields, &mut part)?;
        self.items(fields, &mut part);
        Ok(part)
    }

    fn same(&mut self, fields: &'s Map<String, Value>, part: &mut Part) -> Result<(), SchemaError> {
        for key in ["$dynamicRef", "$recursiveRef"] {
            if fields.contains_key(key) {
                let message = format!("the schema uses `{key}`, which is not accepted: use `$ref`");
                return Err(SchemaError::Broken(message));
            }
        }
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            let id = self.id(self.document.find(reference)?);
            self.parts[id].shared = true;
            part.same.push(id);
        }
        for schema in SAME.iter().filter_map(|key| fields.get(*key)) {
            part.same.push(self.id(schema));
        }
        for list in SAME_LISTS.iter().filter_map(|key| fields.get(*key)?.as_array()) {
            for schema in list {
                part.same.push(self.id(schema));
            }
        }
        for map in SAME_MAPS.iter().filter_map(|key| fields.get(*key)?.as_object()) {
            for schema in map.values() {
                part.same.push(self.id(schema));
            }
        }
        let asks = |key| fields.contains_key(key);
        if asks("unevaluatedProperties") || asks("unevaluatedItems") {
            part.looks = 2;
        }
        Ok(())
    }

    fn members(
        &mut self,
        fields: &'s Map<String, Value>,
        part: &mut Part,
    ) -> Result<(), SchemaError> {
        for (name, schema) in map(fields, "properties") {
            let id = self.id(schema);
            part.members.insert(name.clone(), id);
        }
        for (pattern, schema) in map(fields, "patternProperties") {
            part.member_patterns += self.patterns.size(pattern)?;
            let id = self.id(schema);
            part.by_pattern.push(id);
        }
        for key in ["additionalProperties", "unevaluatedProperties"] {
            if let Some(schema) = fields.get(key) {
                part.other_members.push(self.id(schema));
            }
        }
        part.names = fields.get("propertyNames").map(|schema| self.id(schema));
        Ok(())
    }

    fn items(&mut self, fields: &'s Map<String, Value>, part: &mut Part) {
        let single = ["additionalItems", "unevaluatedItems", "contains"];
        for schema in single.iter().filter_map(|key| fields.get(*key)) {
            part.items.push(self.id(schema));
        }
        for key in ["prefixItems", "items"] {
            match fields.get(key) {
                Some(Value::Array(list)) => {
                    part.prefix.extend(list.iter().map(|schema| self.id(schema)));
                }
                Some(schema) => part.items.push(self.id(schema)),
                None => {}
            }
        }
    }
}

fn map<'s>(
    fields: &'s Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = (&'s String, &'s Value)> {
    fields.get(key).and_then(Value::as_object).into_iter().flatten()
}

/// Rejects an `$id` below the root. Such an `$id` would make the part a separate document, in which
/// `#` refers to another location.
fn check_id(id: Id, fields: &Map<String, Value>) -> Result<(), SchemaError> {
    let is_name = |name: &&str| id != 0 && !name.starts_with('#');
    match ["$id", "id"].iter().find_map(|key| fields.get(*key)?.as_str().filter(is_name)) {
        None => Ok(()),
        Some(name) => Err(SchemaError::Broken(format!(
            "a part of the schema has the `$id` `{name}`: only the whole schema may have one"
        ))),
    }
}

/// Returns the number of steps that comparing a value with another takes.
pub(super) fn steps_of(value: &Value) -> u64 {
    match value {
        Value::String(text) => text_steps(text),
        Value::Array(items) => 1 + items.iter().map(steps_of).sum::<u64>(),
        Value::Object(fields) => {
            1 + fields.iter().map(|(key, item)| text_steps(key) + steps_of(item)).sum::<u64>()
        }
        _ => 1,
    }
}

/// Returns the number of steps that reading a string once takes.
pub(super) fn text_steps(text: &str) -> u64 {
    /// Bytes of text that count as one step.
    const STEP: u64 = 64;
    1 + text.len() as u64 / STEP
}

/// Size of the JSON document of a schema.
#[derive(Default)]
struct Size {
    bytes: u64,
    nodes: u64,
    /// Length of the paths of all values.
    paths: u64,
}

impl Size {
    /// Returns the approximate memory of the compiled schema without its patterns, in bytes.
    fn memory(&self) -> u64 {
        self.bytes + PATH_COPIES * self.paths + NODE_BYTES * self.nodes
    }

    /// Adds a value and all values in it. At most `levels` levels may be nested in the value. The
    /// path of the value has `path` bytes.
    fn add(&mut self, value: &Value, levels: u64, path: u64) -> Result<(), Exceeded> {
        /// Assumed length of the position of an item in a path, with the slash, in bytes.
        const POSITION: u64 = 6;
        self.nodes += 1;
        self.paths += path;
        self.bytes += match value {
            Value::String(text) => text.len() as u64 + 2,
            _ => 4,
        };
        if self.bytes > SCHEMA_BYTES {
            let message = format!("the schema is larger than {SCHEMA_BYTES} bytes");
            return Err(Exceeded::new("schema_bytes", SCHEMA_BYTES, message));
        }
        if self.nodes > SCHEMA_NODES {
            let message = format!("the schema has more than {SCHEMA_NODES} JSON values");
            return Err(Exceeded::new("schema_nodes", SCHEMA_NODES, message));
        }
        if self.paths > SCHEMA_PATHS_BYTES {
            let message = format!(
                "the paths of all values of the schema have more than {SCHEMA_PATHS_BYTES} bytes: \
                 shorten the names of its outer properties, or nest it less"
            );
            return Err(Exceeded::new("schema_paths", SCHEMA_PATHS_BYTES, message));
        }
        let deeper = || {
            levels.checked_sub(1).ok_or_else(|| {
                let message = format!("the schema is nested deeper than {SCHEMA_DEPTH} levels");
                Exceeded::new("schema_depth", SCHEMA_DEPTH, message)
            })
        };
        match value {
            Value::Array(items) => {
                let levels = deeper()?;
                items.iter().try_for_each(|item| self.add(item, levels, path + POSITION))
            }
            Value::Object(fields) => {
                let levels = deeper()?;
                fields.iter().try_for_each(|(key, item)| {
                    self.bytes += key.len() as u64 + 4;
                    self.add(item, levels, path + key.len() as u64 + 1)
                })
            }
            _ => Ok(()),
        }
    }
}

/// Counts, for each part, the parts that apply together with it to one location of a value.
struct Expansion<'o> {
    outline: &'o Outline,
    known: BTreeMap<Id, State>,
}

#[derive(Clone, Copy)]
enum State {
    Open,
    /// Number of parts, and depth of their nesting.
    Done(u64, u64),
}

impl<'o> Expansion<'o> {
    /// Returns the maximum number of parts that apply to one location.
    fn of(outline: &'o Outline) -> Result<u64, SchemaError> {
        let mut expansion = Self { outline, known: BTreeMap::new() };
        (0..outline.parts.len()).try_fold(0_u64, |most, id| Ok(most.max(expansion.part(id, 0)?.0)))
    }

    fn part(&mut self, id: Id, above: u64) -> Result<(u64, u64), SchemaError> {
        match self.known.get(&id) {
            Some(State::Done(parts, depth)) if above + depth <= SCHEMA_CHAIN => {
                return Ok((*parts, *depth));
            }
            Some(State::Open) => {
                return Err(SchemaError::Broken(
                    "a part of the schema refers to itself at the same location".into(),
                ));
            }
            _ if above >= SCHEMA_CHAIN => {
                let message = format!(
                    "references and combinations of the schema are nested deeper than \
                     {SCHEMA_CHAIN} at one location"
                );
                return Err(Exceeded::new("schema_chain", SCHEMA_CHAIN, message).into());
            }
            _ => {}
        }
        self.known.insert(id, State::Open);
        let outline = self.outline;
        let part = &outline.parts[id];
        let (mut parts, mut depth) = (1_u64, 1_u64);
        for same in &part.same {
            let (more, deeper) = self.part(*same, above + 1)?;
            parts = parts.saturating_add(more.saturating_mul(part.looks));
            depth = depth.max(deeper + 1);
        }
        if parts > SCHEMA_EXPANDED {
            let message = format!(
                "more than {SCHEMA_EXPANDED} parts of the schema apply to one location, references \
                 followed: remove references that multiply"
            );
            return Err(Exceeded::new("schema_expanded", SCHEMA_EXPANDED, message).into());
        }
        self.known.insert(id, State::Done(parts, depth));
        Ok((parts, depth))
    }
}
