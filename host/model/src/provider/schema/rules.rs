//! Rules that involve several keywords of one schema.
//!
//! Each rule applies to a schema whose keywords `walker` has already adapted one by one.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::provider::schema::pattern;
use crate::provider::schema::walker::SchemaWalker;

/// Keywords of a reference.
const REFERENCE_KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Exclusive bounds, each with the inclusive bound that accompanies it in draft 4.
const EXCLUSIVE_BOUNDS: [(&str, &str); 2] =
    [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")];

/// Keywords of objects.
const OBJECT_KEYWORDS: [&str; 3] = ["properties", "required", "additionalProperties"];

/// Keywords of arrays.
const ARRAY_KEYWORDS: [&str; 2] = ["items", "prefixItems"];

/// Maximum characters of the text that replaces a keyword in the description.
const MAX_NOTE_CHARS: usize = 300;

impl SchemaWalker<'_> {
    /// Adapts a schema at depth `depth` to the provider. `map` is the original schema.
    pub(super) fn apply_rules(
        &mut self,
        map: &Map<String, Value>,
        out: &mut Map<String, Value>,
        depth: usize,
    ) {
        widen(map, out);
        self.bounds(out);
        self.reference(map, out);
        self.nullable(out);
        self.reference_siblings(out, depth);
        self.enums(out);
        self.required(out);
        self.format(out);
        self.pattern(out);
        self.default(out);
        self.type_keywords(out);
    }

    /// Converts exclusive bounds of draft 4. Source: Anthropic's API refuses them (Dokploy/mcp
    /// issue 74).
    fn bounds(&mut self, out: &mut Map<String, Value>) {
        for (exclusive, bound) in EXCLUSIVE_BOUNDS {
            let Some(Value::Bool(is_exclusive)) = out.get(exclusive) else { continue };
            let is_exclusive = *is_exclusive;
            out.shift_remove(exclusive);
            if is_exclusive && let Some(bound) = out.shift_remove(bound) {
                out.insert(exclusive.to_owned(), bound);
            }
            self.note("a bound of draft 4 is written as a number");
        }
    }

    /// Converts a reference to a form that the provider can follow. Source: "reference to undefined
    /// schema" of Gemini's API (google-gemini/gemini-cli issue 13326).
    fn reference(&mut self, map: &Map<String, Value>, out: &mut Map<String, Value>) {
        let Some(reference) = REFERENCE_KEYWORDS.iter().find_map(|key| map.get(*key)) else {
            return;
        };
        let reference = reference.as_str().unwrap_or_default();
        match self.references.resolve(reference) {
            Some(target) => {
                if target != reference {
                    self.note("a reference is redirected to `$defs`");
                }
                out.insert("$ref".into(), target.into());
            }
            None => self.note("an unresolvable reference is left out"),
        }
    }

    /// Converts `nullable` of OpenAPI to the type `null`.
    fn nullable(&mut self, out: &mut Map<String, Value>) {
        let Some(nullable) = out.shift_remove("nullable") else { return };
        if nullable != Value::Bool(true) {
            return;
        }
        self.note("`nullable` is written as the type `null`");
        match out.get_mut("type") {
            Some(Value::String(kind)) if kind != "null" => {
                let kinds = json!([kind.as_str(), "null"]);
                out.insert("type".into(), kinds);
            }
            Some(Value::Array(kinds)) => {
                if !kinds.iter().any(|kind| kind == "null") {
                    kinds.push("null".into());
                }
            }
            Some(_) => {}
            None => add_null(out),
        }
        if let Some(Value::Array(values)) = out.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
    }

    /// Removes keywords that the provider refuses next to a reference. This rule does not apply to
    /// the root, which `root` converts to an object without a reference.
    fn reference_siblings(&mut self, out: &mut Map<String, Value>, depth: usize) {
        let Some(allowed) = self.requirements.reference_siblings else { return };
        if depth == 0 || !out.contains_key("$ref") {
            return;
        }
        let before = out.len();
        out.retain(|key, _| key == "$ref" || allowed.contains(&key.as_str()));
        if out.len() < before {
            self.note("keywords next to a reference are left out");
        }
    }

    /// Splits an enum of several types into one schema for each type. Values that are neither
    /// strings nor numbers become types.
    fn enums(&mut self, out: &mut Map<String, Value>) {
        if !self.requirements.requires_plain_enums {
            return;
        }
        if let Some(value) = out.shift_remove("const") {
            self.note("`const` is written as `enum`");
            out.insert("enum".into(), json!([value]));
        }
        let Some(Value::Array(values)) = out.get("enum").cloned() else { return };
        let is_named = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        if values.iter().all(is_named) || values.iter().all(Value::is_number) {
            return;
        }
        self.note("an `enum` of several types is written as a choice between types");
        out.shift_remove("enum");
        let mut choices = by_type(&values);
        let is_taken = ["$ref", "allOf", "anyOf", "oneOf"].iter().any(|key| out.contains_key(*key));
        let is_told = |value: &Value| is_named(value) || value.is_number() || value.is_null();
        if is_taken || !values.iter().all(is_told) {
            append_description(out, &format!("one of {}", Value::from(values)));
        }
        if is_taken {
            return;
        }
        if choices.len() > 1 {
            out.shift_remove("type");
            out.insert("anyOf".into(), choices.into());
        } else if let Some(Value::Object(kind)) = choices.pop() {
            for (key, value) in kind {
                out.entry(key).or_insert(value);
            }
        }
    }

    /// Lists each required property once, and adds missing schemas of required properties. Source:
    /// "property is not defined" of Gemini's API (probelabs/probe issue 569).
    fn required(&mut self, out: &mut Map<String, Value>) {
        let Some(value) = out.get("required") else { return };
        let Some(names) = value.as_array() else {
            out.shift_remove("required");
            self.note("`required` that is not an array is left out");
            return;
        };
        let (count, names) = (names.len(), unique_names(names));
        if names.len() < count {
            self.note("`required` has each name once");
            if names.is_empty() {
                out.shift_remove("required");
            } else {
                out.insert("required".into(), names.clone().into());
            }
        }
        if !out.contains_key("properties") && !self.requirements.requires_keyword_types {
            return;
        }
        let has = |key: &str, name: &str| out.get(key).and_then(|it| it.get(name)).is_some();
        let is_unknown = |name: &String| {
            !has("properties", name) && !has("patternProperties", &pattern::exact_match(name))
        };
        let unknown: Vec<String> = names.into_iter().filter(is_unknown).collect();
        if unknown.is_empty() {
            return;
        }
        self.note("a required property without a schema may be anything");
        let properties = out.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            properties.extend(unknown.into_iter().map(|name| (name, json!({}))));
        }
    }

    /// Moves a format that the provider may not accept to the description. Formats of numbers only
    /// specify the width, so they are removed.
    fn format(&mut self, out: &mut Map<String, Value>) {
        let Some(known) = self.requirements.formats else { return };
        let Some(Value::String(format)) = out.get("format").cloned() else { return };
        if known.contains(&format.as_str()) {
            return;
        }
        out.shift_remove("format");
        if !has_type(out, "integer") && !has_type(out, "number") {
            self.note("a `format` that the provider may not know moves to the description");
            append_description(out, &format!("format: {format}"));
        }
    }

    fn pattern(&mut self, out: &mut Map<String, Value>) {
        let Some(Value::String(pattern)) = out.get("pattern").cloned() else { return };
        if self.requirements.accepts_pattern(&pattern) {
            return;
        }
        out.shift_remove("pattern");
        self.note("a `pattern` that the provider may not know moves to the description");
        append_description(out, &format!("pattern: {pattern}"));
    }

    /// Removes a default of `null` if the type does not permit `null`. Authors of such schemas mean
    /// that there is no default.
    fn default(&mut self, out: &mut Map<String, Value>) {
        let is_odd = out.get("default").is_some_and(Value::is_null)
            && out.contains_key("type")
            && !has_type(out, "null");
        if is_odd {
            out.shift_remove("default");
            self.note("a default of `null` that does not fit is left out");
        }
    }

    /// Adds keywords that a type requires, and removes keywords of other types.
    fn type_keywords(&mut self, out: &mut Map<String, Value>) {
        if self.requirements.requires_items && has_type(out, "array") && !out.contains_key("items")
        {
            self.note("an array without `items` accepts any items");
            out.insert("items".into(), json!({}));
        }
        if !self.requirements.requires_keyword_types {
            return;
        }
        let has = |keys: &[&str]| keys.iter().any(|key| out.contains_key(*key));
        if !has(&["type", "$ref"]) {
            let kind = match (has(&OBJECT_KEYWORDS), has(&ARRAY_KEYWORDS)) {
                (true, _) => "object",
                (false, true) => "array",
                (false, false) => return,
            };
            self.note("the type that keywords imply is added");
            out.insert("type".into(), kind.into());
        }
        let (is_object, is_list) = (has_type(out, "object"), has_type(out, "array"));
        if !out.contains_key("type") {
            return;
        }
        let before = out.len();
        out.retain(|key, _| {
            let key = key.as_str();
            (is_object || !OBJECT_KEYWORDS.contains(&key))
                && (is_list || !ARRAY_KEYWORDS.contains(&key))
        });
        if out.len() < before {
            self.note("keywords of another type are left out");
        }
    }
}

/// Adds a text to the description, in place of a keyword that was removed.
pub(super) fn append_description(out: &mut Map<String, Value>, words: &str) {
    let words: String = words.chars().take(MAX_NOTE_CHARS).collect();
    let text = match out.get("description").and_then(Value::as_str) {
        Some(before) if !before.is_empty() => format!("{before} ({words})"),
        _ => words,
    };
    out.insert("description".into(), text.into());
}

/// Removes keywords that would make the schema narrower because one of its parts has become wider.
fn widen(map: &Map<String, Value>, out: &mut Map<String, Value>) {
    if map.contains_key("if") && !out.contains_key("if") {
        out.shift_remove("then");
        out.shift_remove("else");
    }
    if out.get("contains") != map.get("contains") {
        out.shift_remove("maxContains");
    }
    // Properties that matched a removed pattern would be validated as additional properties.
    if pattern_count(out) < pattern_count(map) {
        out.shift_remove("additionalProperties");
        out.shift_remove("unevaluatedProperties");
    }
    // A value may match two alternatives of the adapted schema, which `oneOf` does not permit.
    if out.get("oneOf") != map.get("oneOf")
        && let Some(choices) = out.shift_remove("oneOf")
        && !out.contains_key("anyOf")
    {
        out.insert("anyOf".into(), choices);
    }
}

/// Returns the number of patterns of properties.
fn pattern_count(map: &Map<String, Value>) -> usize {
    map.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len)
}

/// Makes a schema without `type` also accept `null`.
fn add_null(out: &mut Map<String, Value>) {
    let nothing = json!({ "type": "null" });
    let choices = out.shift_remove("anyOf").or_else(|| out.shift_remove("oneOf"));
    let mut choices = match choices {
        Some(Value::Array(choices)) => choices,
        _ => {
            let whole = ["$ref", "allOf"].into_iter().find(|key| out.contains_key(*key));
            let Some(whole) = whole else { return };
            let value = out.shift_remove(whole);
            vec![json!({ whole: value })]
        }
    };
    if !choices.contains(&nothing) {
        choices.push(nothing);
    }
    out.insert("anyOf".into(), choices.into());
}

/// Returns one schema for each type of the values of an enum.
fn by_type(values: &[Value]) -> Vec<Value> {
    let of = |is: fn(&Value) -> bool| -> Vec<Value> {
        values.iter().filter(|value| is(value)).cloned().collect()
    };
    let mut choices = Vec::new();
    for (kind, values) in [("string", of(Value::is_string)), ("number", of(Value::is_number))] {
        if values.iter().any(|value| value.as_str() == Some("")) {
            choices.push(json!({ "type": kind }));
        } else if !values.is_empty() {
            choices.push(json!({ "type": kind, "enum": values }));
        }
    }
    if values.iter().any(Value::is_null) {
        choices.push(json!({ "type": "null" }));
    }
    if values.iter().any(Value::is_boolean) {
        choices.push(json!({ "type": "boolean" }));
    }
    if values.iter().any(Value::is_array) {
        choices.push(json!({ "type": "array", "items": {} }));
    }
    if values.iter().any(Value::is_object) {
        choices.push(json!({ "type": "object" }));
    }
    choices
}

/// Returns the names without duplicates.
fn unique_names(names: &[Value]) -> Vec<String> {
    let mut seen = HashSet::new();
    let names = names.iter().filter_map(Value::as_str);
    names.filter(|name| seen.insert(*name)).map(str::to_owned).collect()
}

/// Returns whether the `type` of a schema is or contains `kind`.
fn has_type(map: &Map<String, Value>, kind: &str) -> bool {
    match map.get("type") {
        Some(Value::String(own)) => own == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|own| own == kind),
        _ => false,
    }
}
