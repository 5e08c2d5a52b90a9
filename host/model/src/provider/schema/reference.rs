//! References within a schema.
//!
//! All providers follow `#/$defs/name`; some also follow `#/definitions/name` of older drafts. A
//! subschema with another kind of reference (`#`, `#/properties/a`, an anchor) is copied to
//! `$defs`. References to other documents and references without a target are removed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};
use wattle_graph::schema::reference::{anchors, decoded};

/// Maximum number of copied subschemas. References to further subschemas are removed: a copy may
/// contain references to further subschemas, which would also be copied, so the schema could become
/// many times larger.
const MAX_COPIES: usize = 50;

/// Maximum characters of a generated name.
const MAX_NAME_CHARS: usize = 60;

/// Maximum definitions for which loops are computed. If there are more definitions, every
/// definition that requires another one counts as part of a loop.
const MAX_LOOP_DEFINITIONS: usize = 500;

/// Keywords whose values are not schemas.
const LITERAL_KEYWORDS: [&str; 5] = ["default", "examples", "example", "enum", "const"];

/// The targets of the references in one schema.
pub(super) struct References<'a> {
    root: &'a Value,
    /// Whether the provider accepts `definitions`.
    supports_definitions: bool,
    anchors: HashMap<&'a str, &'a Value>,
    /// Names that copied subschemas have in `$defs`, by the address of the original in memory. A
    /// subschema is copied once, even if several references lead to it.
    copied_names: HashMap<*const Value, String>,
    used_names: HashSet<String>,
    to_copy: Vec<(String, &'a Value)>,
}

impl<'a> References<'a> {
    pub(super) fn new(root: &'a Value, supports_definitions: bool) -> Self {
        let definitions = root.get("$defs").and_then(Value::as_object);
        Self {
            root,
            supports_definitions,
            anchors: anchors(root),
            copied_names: HashMap::new(),
            used_names: definitions.into_iter().flat_map(Map::keys).cloned().collect(),
            to_copy: Vec::new(),
        }
    }

    /// Converts a reference to a form that the provider can follow. If necessary, the subschema to
    /// which it leads is copied to `$defs`. Returns `None` if the reference cannot be resolved, or
    /// if too many subschemas are copied already.
    pub(super) fn resolve(&mut self, reference: &str) -> Option<String> {
        let fragment = self.fragment(reference)?;
        if self.is_definition(fragment) {
            return Some(format!("#{fragment}"));
        }
        let part = self.find(fragment)?;
        let address = std::ptr::from_ref(part);
        if let Some(name) = self.copied_names.get(&address) {
            return Some(format!("#/$defs/{name}"));
        }
        if self.copied_names.len() >= MAX_COPIES {
            return None;
        }
        let name = self.unused_name(fragment);
        let target = format!("#/$defs/{name}");
        self.copied_names.insert(address, name.clone());
        self.to_copy.push((name, part));
        Some(target)
    }

    /// Returns a subschema to copy to `$defs`, and its name there.
    pub(super) fn next_to_copy(&mut self) -> Option<(String, &'a Value)> {
        self.to_copy.pop()
    }

    /// Returns the fragment after the `#`, if the reference is within the schema.
    fn fragment<'r>(&self, reference: &'r str) -> Option<&'r str> {
        let id = self.root.get("$id").and_then(Value::as_str).unwrap_or_default();
        let rest = reference.strip_prefix(id.trim_end_matches('#')).unwrap_or(reference);
        rest.strip_prefix('#')
    }

    fn is_definition(&self, fragment: &str) -> bool {
        let keys: &[&str] =
            if self.supports_definitions { &["$defs", "definitions"] } else { &["$defs"] };
        keys.iter().any(|key| {
            let rest = fragment.strip_prefix('/').and_then(|rest| rest.strip_prefix(*key));
            let name = rest.and_then(|rest| rest.strip_prefix('/'));
            let name = name.filter(|name| !name.contains(['/', '~', '%']));
            let part = name.and_then(|name| self.root.get(*key)?.get(name));
            part.is_some_and(is_schema)
        })
    }

    fn find(&self, fragment: &str) -> Option<&'a Value> {
        let root = self.root;
        let part = match fragment {
            "" => Some(root),
            _ if fragment.starts_with('/') => root.pointer(&decoded(fragment)?),
            _ => self.anchors.get(fragment).copied(),
        };
        part.filter(|part| is_schema(part))
    }

    fn unused_name(&mut self, fragment: &str) -> String {
        let last = fragment.rsplit('/').next().unwrap_or_default();
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let mut name: String = last.chars().map(plain).take(MAX_NAME_CHARS).collect();
        if name.is_empty() {
            name.push_str("root");
        }
        let base = name.clone();
        let mut number = self.copied_names.len() + 2;
        while !self.used_names.insert(name.clone()) {
            name = format!("{base}_{number}");
            number += 1;
        }
        name
    }
}

/// Breaks loops of definitions that require each other: properties that continue the loop become
/// optional, and other references that continue it are removed. Returns whether there were loops.
pub(super) fn break_loops(definitions: &mut Map<String, Value>) -> bool {
    let mut needs = BTreeMap::new();
    for (name, schema) in &*definitions {
        let mut needed = BTreeSet::new();
        collect_needed(schema, &mut needed);
        needs.insert(name.clone(), needed);
    }
    let looped = loop_members(&needs);
    for (name, schema) in definitions {
        if looped.contains(name) && make_optional(schema, &looped) {
            remove_references(schema, &looped);
        }
    }
    !looped.is_empty()
}

/// Returns the definitions that are part of a loop, or on a path from one loop to another.
fn loop_members(needs: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    if needs.len() > MAX_LOOP_DEFINITIONS {
        let needy = needs.iter().filter(|(_, needed)| !needed.is_empty());
        return needy.map(|(name, _)| name.clone()).collect();
    }
    let mut left: BTreeSet<&String> = needs.keys().collect();
    loop {
        let needed: BTreeSet<&String> = left.iter().flat_map(|name| &needs[*name]).collect();
        let is_between = |name: &&String| {
            needed.contains(name) && needs[*name].iter().any(|other| left.contains(&other))
        };
        let still: BTreeSet<&String> = left.iter().copied().filter(is_between).collect();
        if still.len() == left.len() {
            return still.into_iter().cloned().collect();
        }
        left = still;
    }
}

/// Collects the definitions to which required parts of a schema refer.
fn collect_needed(schema: &Value, needed: &mut BTreeSet<String>) {
    let Value::Object(map) = schema else { return };
    needed.extend(referenced_definition(map).map(str::to_owned));
    let required: HashSet<&str> = required(map).collect();
    for (key, value) in map {
        match value {
            _ if LITERAL_KEYWORDS.contains(&key.as_str()) => {}
            Value::Object(fields) if key == "properties" => {
                for (name, field) in fields {
                    if required.contains(name.as_str()) {
                        collect_needed(field, needed);
                    }
                }
            }
            Value::Object(_) => collect_needed(value, needed),
            Value::Array(items) => items.iter().for_each(|item| collect_needed(item, needed)),
            _ => {}
        }
    }
}

/// Makes the properties optional that require one of the definitions `looped`. Returns whether
/// other parts of the schema still require one of these definitions.
fn make_optional(schema: &mut Value, looped: &BTreeSet<String>) -> bool {
    let Value::Object(map) = schema else { return false };
    let mut is_needed = referenced_definition(map).is_some_and(|name| looped.contains(name));
    let mut optional = HashSet::new();
    for (key, value) in &mut *map {
        match value {
            _ if LITERAL_KEYWORDS.contains(&key.as_str()) => {}
            Value::Object(fields) if key == "properties" => {
                for (name, field) in fields {
                    if make_optional(field, looped) {
                        optional.insert(name.clone());
                    }
                }
            }
            Value::Object(_) => is_needed |= make_optional(value, looped),
            Value::Array(items) => {
                for item in items {
                    is_needed |= make_optional(item, looped);
                }
            }
            _ => {}
        }
    }
    let kept: Vec<&str> = required(map).filter(|name| !optional.contains(*name)).collect();
    let kept = Value::from(kept);
    if kept.as_array().is_some_and(Vec::is_empty) {
        map.shift_remove("required");
    } else {
        map.insert("required".into(), kept);
    }
    is_needed
}

/// Removes references to the definitions `looped`, except within properties.
fn remove_references(schema: &mut Value, looped: &BTreeSet<String>) {
    let Value::Object(map) = schema else { return };
    if referenced_definition(map).is_some_and(|name| looped.contains(name)) {
        map.shift_remove("$ref");
    }
    for (key, value) in map {
        match value {
            _ if key == "properties" || LITERAL_KEYWORDS.contains(&key.as_str()) => {}
            Value::Object(_) => remove_references(value, looped),
            Value::Array(items) => {
                for item in items {
                    remove_references(item, looped);
                }
            }
            _ => {}
        }
    }
}

/// Returns the definition that a schema refers to.
fn referenced_definition(map: &Map<String, Value>) -> Option<&str> {
    map.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

fn required(map: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let names = map.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}
