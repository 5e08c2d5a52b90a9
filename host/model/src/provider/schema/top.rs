//! The root of a schema of arguments, which every provider requires to be an object with `type` and `properties`.

use std::mem;

use serde_json::{Map, Value, json};

use crate::provider::schema::fold::{Fold, Object};
use crate::provider::schema::rule::tell;
use crate::provider::schema::walk::Walk;
use crate::provider::schema::{Changes, Demands, pattern, reference};

/// Keywords of references and unions, which `fold` merges into one object.
const UNIONS: [&str; 4] = ["$ref", "allOf", "anyOf", "oneOf"];

/// Keywords of the root that those of the merged object replace.
const FOLDED: [&str; 6] =
    ["title", "description", "properties", "required", "patternProperties", "additionalProperties"];

/// Maximum sentences about the alternatives of a union in the description.
const WORDS: usize = 3;

/// Maximum characters of a property name that every provider accepts.
const KEY_CHARS: usize = 64;

/// Makes one pass over a schema of arguments. The result meets more of the provider's requirements, or equals the
/// schema.
pub(super) fn fit(schema: &Value, demands: &Demands, changes: &mut Changes) -> Value {
    let nothing = Map::new();
    let map = schema.as_object().unwrap_or(&nothing);
    let mut walk = Walk::new(schema, demands, changes);
    if !schema.is_object() {
        walk.note("a value that is not a schema is replaced by `{}`");
    }
    let mut definitions = members(&mut walk, map, "$defs");
    let mut old = Map::new();
    if demands.knows_definitions {
        old = members(&mut walk, map, "definitions");
    }
    let mut top = walk.node(map, 0);
    while let Some((name, part)) = walk.references.take_waiting() {
        let part = walk.inside("$defs", part, 0);
        definitions.insert(name, part);
    }
    fold(&mut walk, &mut top, [&definitions, &old]);
    write_out(&mut walk, &mut top);
    if demands.wants_plain_keys {
        move_odd_keys(&mut walk, &mut top);
    }
    if demands.ends_loops && reference::end_loops(&mut definitions) {
        walk.note("properties of a reference loop are no longer required");
    }
    if !definitions.is_empty() || map.get("$defs").is_some_and(Value::is_object) {
        top.insert("$defs".into(), definitions.into());
    }
    let has_old = demands.knows_definitions && map.get("definitions").is_some_and(Value::is_object);
    if has_old {
        top.insert("definitions".into(), old.into());
    }
    Value::Object(top)
}

fn members<'a>(walk: &mut Walk<'a>, map: &'a Map<String, Value>, key: &str) -> Map<String, Value> {
    match map.get(key) {
        Some(Value::Object(members)) => walk.members(key, members, 0),
        _ => Map::new(),
    }
}

/// Merges the root into one object if it is a union or a reference. A root that accepts no object is replaced by one
/// that accepts any.
fn fold(walk: &mut Walk<'_>, top: &mut Map<String, Value>, definitions: [&Map<String, Value>; 2]) {
    let is_union = UNIONS.iter().any(|key| top.contains_key(*key));
    if !is_union && top.get("type").is_none_or(|kind| kind == "object") {
        return;
    }
    match Fold::new(definitions).object(&Value::Object(top.clone())) {
        None => {
            walk.note("a schema that accepts no object is replaced by one that accepts any");
            top.retain(|key, _| matches!(key.as_str(), "title" | "description"));
        }
        Some(object) if is_union => {
            walk.note("a union or a reference is written as one object");
            unite(top, object);
        }
        Some(_) => {}
    }
}

fn unite(top: &mut Map<String, Value>, object: Object) {
    top.retain(|key, _| {
        let key = key.as_str();
        // The properties that the alternatives evaluate are unknown now, so `unevaluatedProperties` is removed as well.
        !UNIONS.contains(&key) && !FOLDED.contains(&key) && key != "unevaluatedProperties"
    });
    top.extend(object.texts);
    top.insert("properties".into(), object.properties.into());
    if !object.required.is_empty() {
        top.insert("required".into(), object.required.into());
    }
    if !object.patterns.is_empty() {
        top.insert("patternProperties".into(), object.patterns.into());
    }
    if let Some(additional) = object.additional {
        top.insert("additionalProperties".into(), additional);
    }
    for words in object.words.iter().take(WORDS) {
        tell(top, words);
    }
}

/// Adds the keywords that the root must have and removes those that it must not have.
fn write_out(walk: &mut Walk<'_>, top: &mut Map<String, Value>) {
    for key in walk.demands.refused_at_top {
        if top.shift_remove(*key).is_some() {
            walk.note(&format!("`{key}` cannot be sent and is left out"));
        }
    }
    if top.get("type").and_then(Value::as_str) != Some("object") {
        walk.note("`type` is set to `object`");
        let mut typed = Map::new();
        typed.insert("type".into(), "object".into());
        top.shift_remove("type");
        typed.extend(mem::take(top));
        *top = typed;
    }
    if !top.get("properties").is_some_and(Value::is_object) {
        walk.note("`properties` are added");
        top.insert("properties".into(), json!({}));
    }
}

/// Moves properties whose names the provider refuses to `patternProperties`. Each pattern matches one name.
fn move_odd_keys(walk: &mut Walk<'_>, top: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = top.get_mut("properties") else { return };
    let (plain, odd): (Map<String, Value>, Map<String, Value>) =
        mem::take(properties).into_iter().partition(|(name, _)| is_plain(name));
    *properties = plain;
    if odd.is_empty() {
        return;
    }
    walk.note("a property with a name that the provider refuses is described by a pattern");
    let patterns = top.entry("patternProperties").or_insert_with(|| json!({}));
    if let Value::Object(patterns) = patterns {
        for (name, schema) in odd {
            patterns.entry(pattern::literal(&name)).or_insert(schema);
        }
    }
}

fn is_plain(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-');
    (1..=KEY_CHARS).contains(&name.len()) && name.chars().all(plain)
}
