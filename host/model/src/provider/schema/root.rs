//! The root of a schema of arguments, which every provider requires to be an object with `type` and
//! `properties`.

use std::mem;

use serde_json::{Map, Value, json};

use crate::provider::schema::merge::{MergedObject, ObjectMerger};
use crate::provider::schema::rules::append_description;
use crate::provider::schema::walker::SchemaWalker;
use crate::provider::schema::{Changes, Requirements, pattern, reference};

/// Keywords of references and unions, which [`merge_root`] merges into one object.
const UNION_KEYWORDS: [&str; 4] = ["$ref", "allOf", "anyOf", "oneOf"];

/// Keywords of the root that the keywords of the merged object replace.
const MERGED_KEYWORDS: [&str; 6] =
    ["title", "description", "properties", "required", "patternProperties", "additionalProperties"];

/// Maximum number of sentences about the alternatives of a merged union. They become part of the
/// description of the root.
const MAX_SENTENCES: usize = 3;

/// Maximum number of characters of a property name that every provider accepts.
const MAX_KEY_CHARS: usize = 64;

/// Makes one pass over a schema of arguments. The result either meets more of the provider's
/// requirements, or equals the input.
pub(super) fn adapt_root(
    schema: &Value,
    requirements: &Requirements,
    changes: &mut Changes,
) -> Value {
    let nothing = Map::new();
    let map = schema.as_object().unwrap_or(&nothing);
    let mut walker = SchemaWalker::new(schema, requirements, changes);
    if !schema.is_object() {
        walker.note("a value that is not a schema is replaced by `{}`");
    }
    let mut definitions = adapt_definitions(&mut walker, map, "$defs");
    let mut old = Map::new();
    if requirements.supports_definitions {
        old = adapt_definitions(&mut walker, map, "definitions");
    }
    let mut top = walker.adapt_keywords(map, 0);
    while let Some((name, part)) = walker.references.next_to_copy() {
        let part = walker.adapt_subschema("$defs", part, 0);
        definitions.insert(name, part);
    }
    merge_root(&mut walker, &mut top, [&definitions, &old]);
    complete_root(&mut walker, &mut top);
    if requirements.requires_plain_keys {
        move_invalid_keys(&mut walker, &mut top);
    }
    if requirements.rejects_required_loops && reference::break_loops(&mut definitions) {
        walker.note("properties of a reference loop are no longer required");
    }
    if !definitions.is_empty() || map.get("$defs").is_some_and(Value::is_object) {
        top.insert("$defs".into(), definitions.into());
    }
    let has_old =
        requirements.supports_definitions && map.get("definitions").is_some_and(Value::is_object);
    if has_old {
        top.insert("definitions".into(), old.into());
    }
    Value::Object(top)
}

fn adapt_definitions<'a>(
    walker: &mut SchemaWalker<'a>,
    map: &'a Map<String, Value>,
    key: &str,
) -> Map<String, Value> {
    match map.get(key) {
        Some(Value::Object(members)) => walker.adapt_members(key, members, 0),
        _ => Map::new(),
    }
}

/// Merges the root into one object if it is a union or a reference. A root that accepts no object
/// is replaced by a schema that accepts every object.
fn merge_root(
    walker: &mut SchemaWalker<'_>,
    top: &mut Map<String, Value>,
    definitions: [&Map<String, Value>; 2],
) {
    let is_union = UNION_KEYWORDS.iter().any(|key| top.contains_key(*key));
    if !is_union && top.get("type").is_none_or(|kind| kind == "object") {
        return;
    }
    match ObjectMerger::new(definitions).merge(&Value::Object(top.clone())) {
        None => {
            walker.note("a schema that accepts no object is replaced by one that accepts any");
            top.retain(|key, _| matches!(key.as_str(), "title" | "description"));
        }
        Some(object) if is_union => {
            walker.note("a union or a reference is written as one object");
            replace_by_object(top, object);
        }
        Some(_) => {}
    }
}

fn replace_by_object(top: &mut Map<String, Value>, object: MergedObject) {
    top.retain(|key, _| {
        let key = key.as_str();
        // The merged object no longer shows which properties the alternatives evaluate, so
        // `unevaluatedProperties` is also removed.
        !UNION_KEYWORDS.contains(&key)
            && !MERGED_KEYWORDS.contains(&key)
            && key != "unevaluatedProperties"
    });
    top.extend(object.annotations);
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
    for words in object.sentences.iter().take(MAX_SENTENCES) {
        append_description(top, words);
    }
}

/// Adds the keywords that the root must have and removes those that it must not have.
fn complete_root(walker: &mut SchemaWalker<'_>, top: &mut Map<String, Value>) {
    for key in walker.requirements.rejected_at_root {
        if top.shift_remove(*key).is_some() {
            walker.note(&format!("`{key}` cannot be sent and is left out"));
        }
    }
    if top.get("type").and_then(Value::as_str) != Some("object") {
        walker.note("`type` is set to `object`");
        let mut typed = Map::new();
        typed.insert("type".into(), "object".into());
        top.shift_remove("type");
        typed.extend(mem::take(top));
        *top = typed;
    }
    if !top.get("properties").is_some_and(Value::is_object) {
        walker.note("`properties` are added");
        top.insert("properties".into(), json!({}));
    }
}

/// Moves properties whose names the provider refuses to `patternProperties`. Each pattern matches
/// one name.
fn move_invalid_keys(walker: &mut SchemaWalker<'_>, top: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = top.get_mut("properties") else { return };
    let (plain, odd): (Map<String, Value>, Map<String, Value>) =
        mem::take(properties).into_iter().partition(|(name, _)| is_plain_key(name));
    *properties = plain;
    if odd.is_empty() {
        return;
    }
    walker.note("a property with a name that the provider refuses is described by a pattern");
    let patterns = top.entry("patternProperties").or_insert_with(|| json!({}));
    if let Value::Object(patterns) = patterns {
        for (name, schema) in odd {
            patterns.entry(pattern::exact_match(&name)).or_insert(schema);
        }
    }
}

fn is_plain_key(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-');
    (1..=MAX_KEY_CHARS).contains(&name.len()) && name.chars().all(plain)
}
