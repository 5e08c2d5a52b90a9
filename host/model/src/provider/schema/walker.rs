//! One pass over a schema, keyword by keyword.
//!
//! Converts each keyword to a form of the current draft, or removes it. Rules that involve several
//! keywords are in `rules`.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::provider::schema::reference::References;
use crate::provider::schema::{Changes, Requirements, log_excerpt};

/// Maximum schemas of one document: as many as the host's limit of values (`limit::SCHEMA_NODES`)
/// permits. Further schemas are replaced by schemas that accept every value.
const MAX_SCHEMAS: usize = 20_000;

/// Maximum characters of a path in a log message.
const MAX_PATH_CHARS: usize = 120;

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// The state of one pass.
pub(super) struct SchemaWalker<'a> {
    pub(super) requirements: &'a Requirements,
    pub(super) references: References<'a>,
    changes: &'a mut Changes,
    budget: usize,
    path: String,
}

impl<'a> SchemaWalker<'a> {
    pub(super) fn new(
        root: &'a Value,
        requirements: &'a Requirements,
        changes: &'a mut Changes,
    ) -> Self {
        let references = References::new(root, requirements.supports_definitions);
        Self { requirements, references, changes, budget: MAX_SCHEMAS, path: String::new() }
    }

    /// Records a change at the current path.
    pub(super) fn note(&mut self, what: &str) {
        let place = log_excerpt(&self.path, MAX_PATH_CHARS);
        let place = if place.is_empty() { "the root".to_owned() } else { format!("`{place}`") };
        self.changes.add(format!("{what} at {place}"));
    }

    /// Adapts the keywords of a schema. The caller handles definitions.
    pub(super) fn adapt_keywords(
        &mut self,
        map: &'a Map<String, Value>,
        depth: usize,
    ) -> Map<String, Value> {
        let mut out = Map::new();
        for (key, value) in map {
            if let Some(value) = self.keyword(key, value, depth) {
                out.insert(key.clone(), value);
            }
        }
        self.tuple(map, &mut out, depth);
        self.apply_rules(map, &mut out, depth);
        out
    }

    /// Adapts the schemas in a map from names to schemas.
    pub(super) fn adapt_members(
        &mut self,
        key: &str,
        members: &'a Map<String, Value>,
        depth: usize,
    ) -> Map<String, Value> {
        let length = self.enter(key);
        let mut out = Map::new();
        for (name, schema) in members {
            out.insert(name.clone(), self.adapt_subschema(name, schema, depth));
        }
        self.path.truncate(length);
        out
    }

    /// Adapts a schema within the current one.
    pub(super) fn adapt_subschema(&mut self, step: &str, schema: &'a Value, depth: usize) -> Value {
        let length = self.enter(step);
        let fitted = self.adapt_schema(schema, depth + 1);
        self.path.truncate(length);
        fitted
    }

    /// Appends a step to the path. Returns the previous length of the path.
    fn enter(&mut self, step: &str) -> usize {
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(step);
        length
    }

    fn adapt_schema(&mut self, schema: &'a Value, depth: usize) -> Value {
        if self.budget == 0 || depth > self.requirements.max_depth {
            return self.accept_anything(schema);
        }
        self.budget -= 1;
        match schema {
            Value::Object(map) => Value::Object(self.adapt_keywords(map, depth)),
            // `false` is also replaced, because no author means a schema that accepts nothing.
            Value::Bool(_) => {
                self.note("a schema that is `true` or `false` is replaced by `{}`");
                json!({})
            }
            _ => {
                self.note("a value that is not a schema is replaced by `{}`");
                json!({})
            }
        }
    }

    /// Returns the replacement of a schema beyond the limits, which accepts anything.
    fn accept_anything(&mut self, schema: &Value) -> Value {
        let mut open = Map::new();
        if let Some(Value::String(text)) = schema.get("description") {
            open.insert("description".into(), text.clone().into());
        }
        let open = Value::Object(open);
        if open != *schema {
            self.note("a schema beyond the limits is replaced by one that accepts anything");
        }
        open
    }

    /// Adapts the value of a keyword. Returns `None` if the keyword is removed.
    fn keyword(&mut self, key: &str, value: &'a Value, depth: usize) -> Option<Value> {
        match key {
            // The adapted schema contains no references to the names of the schema and of its
            // parts. The other keywords of this list are inserted in adapted form by other
            // functions.
            "$schema" | "$id" | "$comment" | "$vocabulary" | "$anchor" | "$dynamicAnchor"
            | "$recursiveAnchor" | "$ref" | "$dynamicRef" | "$recursiveRef" | "$defs"
            | "definitions" | "additionalItems" => None,
            "items" if value.is_array() => None,
            "type" => self.types(value),
            "enum" => self.distinct_enum_values(value),
            "properties" => self.properties(value, depth),
            "patternProperties" => self.patterns(value, depth),
            "dependentSchemas" => match value {
                Value::Object(members) => Some(self.adapt_members(key, members, depth).into()),
                _ => self.drop_keyword(key),
            },
            "items" | "propertyNames" | "contains" | "then" | "else" | "contentSchema" => {
                Some(self.adapt_subschema(key, value, depth))
            }
            "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" => match value {
                Value::Bool(_) => Some(value.clone()),
                Value::Object(_) => Some(self.adapt_subschema(key, value, depth)),
                _ => self.drop_keyword(key),
            },
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => self.schemas(key, value, depth),
            // If a subschema of these keywords became wider, the whole schema would become
            // narrower.
            "not" | "if" => {
                let fitted = self.adapt_subschema(key, value, depth);
                if fitted == *value { Some(fitted) } else { self.drop_keyword(key) }
            }
            _ if is_well_formed(key, value) => Some(value.clone()),
            _ => self.drop_keyword(key),
        }
    }

    /// Removes a keyword.
    fn drop_keyword(&mut self, key: &str) -> Option<Value> {
        self.note(&format!("`{key}` cannot be sent and is left out"));
        None
    }

    /// Adapts `type`. If a type is unknown, the keyword is removed, so that every value is
    /// accepted.
    fn types(&mut self, value: &Value) -> Option<Value> {
        let known = |value: &Value| -> Option<String> {
            let name = value.as_str()?.to_ascii_lowercase();
            TYPES.contains(&name.as_str()).then_some(name)
        };
        let fitted = match value {
            Value::String(_) => known(value).map(Value::from),
            Value::Array(values) if !values.is_empty() => {
                let names: Option<Vec<String>> = values.iter().map(known).collect();
                names.map(|mut names| {
                    let mut seen = HashSet::new();
                    names.retain(|name| seen.insert(name.clone()));
                    Value::from(names)
                })
            }
            _ => None,
        };
        match fitted {
            Some(fitted) if fitted == *value => Some(fitted),
            Some(fitted) => {
                self.note("`type` is written in the form of JSON Schema");
                Some(fitted)
            }
            None => self.drop_keyword("type"),
        }
    }

    /// Removes duplicates from the values of an enum.
    fn distinct_enum_values(&mut self, value: &Value) -> Option<Value> {
        let Some(values) = value.as_array().filter(|values| !values.is_empty()) else {
            return self.drop_keyword("enum");
        };
        let once = distinct(values);
        if once.len() < values.len() {
            self.note("`enum` has each value once");
        }
        Some(once.into())
    }

    fn properties(&mut self, value: &'a Value, depth: usize) -> Option<Value> {
        let Value::Object(members) = value else { return self.drop_keyword("properties") };
        let mut out = self.adapt_members("properties", members, depth);
        let before = out.len();
        out.retain(|name, _| members.get(name) != Some(&Value::Bool(false)));
        if out.len() < before {
            self.note("properties that accept no value are left out");
        }
        Some(out.into())
    }

    /// Adapts properties by pattern. The provider must also accept the patterns.
    fn patterns(&mut self, value: &'a Value, depth: usize) -> Option<Value> {
        let Value::Object(members) = value else { return self.drop_keyword("patternProperties") };
        let mut out = self.adapt_members("patternProperties", members, depth);
        let before = out.len();
        let requirements = self.requirements;
        out.retain(|pattern, _| requirements.accepts_pattern(pattern));
        if out.len() < before {
            self.note("properties by a pattern that the provider may not know are left out");
        }
        (!out.is_empty()).then(|| out.into())
    }

    fn schemas(&mut self, key: &str, value: &'a Value, depth: usize) -> Option<Value> {
        let Some(schemas) = value.as_array().filter(|schemas| !schemas.is_empty()) else {
            return self.drop_keyword(key);
        };
        let length = self.enter(key);
        let mut out = Vec::with_capacity(schemas.len());
        for (index, schema) in schemas.iter().enumerate() {
            if key.ends_with("Of") && *schema == Value::Bool(false) {
                self.note("an alternative that accepts no value is left out");
            } else {
                out.push(self.adapt_subschema(&index.to_string(), schema, depth));
            }
        }
        self.path.truncate(length);
        (!out.is_empty()).then(|| out.into())
    }

    /// Converts an array of `items`, the form before draft 2020-12, to `prefixItems`. Source:
    /// Anthropic's API and xAI's refuse the old form (NousResearch/hermes-agent pull requests 63674
    /// and 20976).
    fn tuple(&mut self, map: &'a Map<String, Value>, out: &mut Map<String, Value>, depth: usize) {
        let Some(items) = map.get("items").filter(|items| items.is_array()) else { return };
        self.note("an array of `items` is written as `prefixItems`");
        if !out.contains_key("prefixItems")
            && let Some(items) = self.schemas("items", items, depth)
        {
            out.insert("prefixItems".into(), items);
        }
        if let Some(rest) = map.get("additionalItems").filter(|rest| rest.is_object()) {
            let rest = self.adapt_subschema("additionalItems", rest, depth);
            out.insert("items".into(), rest);
        }
    }
}

/// Returns the values without duplicates.
pub(super) fn distinct(values: &[Value]) -> Vec<Value> {
    let mut seen = HashSet::new();
    values.iter().filter(|value| seen.insert(value.to_string())).cloned().collect()
}

/// Returns whether the value of a keyword without subschemas has the form of all drafts since 6.
fn is_well_formed(key: &str, value: &Value) -> bool {
    match key {
        "title" | "description" | "format" | "pattern" | "contentEncoding" | "contentMediaType" => {
            value.is_string()
        }
        "minimum" | "maximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
        // Booleans of draft 4 are converted in `rules`.
        "exclusiveMinimum" | "exclusiveMaximum" => value.is_number() || value.is_boolean(),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => value.as_u64().is_some(),
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
        "examples" => value.is_array(),
        "dependentRequired" | "dependencies" => {
            let members = value.as_object();
            members.is_some_and(|members| members.values().all(is_list_of_names))
        }
        _ => true,
    }
}

fn is_list_of_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}
