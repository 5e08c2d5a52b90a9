//! A cache of adapted schemas. The cache is useful because all turns of a conversation have the
//! same tools.
//!
//! A lookup compares a schema with the cached schemas of the same tool. A comparison copies nothing
//! and ends at the first difference. Schemas that differ in the order of their fields are different
//! entries, because an adapted schema has the order of the original.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use wattle_graph::llm::ToolDefinition;
use wattle_run::json;

/// Maximum bytes of the cached schemas of one provider, enough for several servers with many tools.
const MAX_CACHED_BYTES: u64 = 8 << 20;

/// Maximum cached schemas for one tool name. Several servers may have a tool `search`, and one
/// server may keep generating new schemas.
const MAX_VERSIONS: usize = 64;

/// Adapted schemas by tool.
#[derive(Debug, Default)]
pub(super) struct SchemaCache {
    /// Cached schemas by tool name, the newest last.
    schemas: HashMap<String, Vec<CachedSchema>>,
    /// The approximate size of the originals in bytes.
    bytes: u64,
}

/// A schema of a tool with its adapted form.
#[derive(Debug)]
pub(super) struct CachedSchema {
    original: Value,
    /// The adapted schema; `None` if the original is sent.
    pub(super) adapted: Option<Arc<Value>>,
}

impl SchemaCache {
    /// Returns the cached schema of a tool.
    pub(super) fn get(&self, tool: &ToolDefinition) -> Option<&CachedSchema> {
        let versions = self.schemas.get(&tool.name)?;
        versions.iter().rfind(|it| is_same(&it.original, &tool.arguments_schema))
    }

    /// Caches the adapted schema of a tool.
    pub(super) fn insert(&mut self, tool: &ToolDefinition, other: Option<Arc<Value>>) {
        if self.bytes > MAX_CACHED_BYTES {
            *self = Self::default();
        }
        let original = tool.arguments_schema.clone();
        let versions = self.schemas.entry(tool.name.clone()).or_default();
        if versions.len() >= MAX_VERSIONS {
            self.bytes -= json::approx_bytes(&versions.remove(0).original);
        }
        self.bytes += json::approx_bytes(&original);
        versions.push(CachedSchema { original, adapted: other });
    }
}

/// Returns whether two values are equal, the order of their fields included.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let mut fields = one.iter().zip(other);
            one.len() == other.len()
                && fields.all(|((name, one), (other_name, other))| {
                    name == other_name && is_same(one, other)
                })
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: &str) -> ToolDefinition {
        ToolDefinition {
            name: name.to_owned(),
            description: String::new(),
            arguments_schema: serde_json::from_str(schema).unwrap(),
        }
    }

    /// Returns the number in the adapted schema that the cache has for a schema.
    fn found(known: &SchemaCache, name: &str, schema: &str) -> Option<u64> {
        known.get(&tool(name, schema))?.adapted.as_ref()?.as_u64()
    }

    fn add(known: &mut SchemaCache, name: &str, schema: &str, number: u64) {
        known.insert(&tool(name, schema), Some(Arc::new(number.into())));
    }

    #[test]
    fn schemas_are_distinguished_by_tool_content_and_order() {
        let texts = [
            r#"{ "a": [1, { "b": 2, "c": 3 }] }"#,
            r#"{ "a": [1, { "c": 3, "b": 2 }] }"#,
            r#"{ "a": [1, { "b": 2 }] }"#,
            r#"{ "a": [{ "b": 2, "c": 3 }, 1] }"#,
            r#"{ "a": [1] }"#,
            "{}",
        ];
        let numbered = || texts.into_iter().zip(0..);
        let mut known = SchemaCache::default();
        for (text, number) in numbered() {
            assert_eq!(found(&known, "t", text), None, "{text}");
            add(&mut known, "t", text, number);
        }
        for (text, number) in numbered() {
            assert_eq!(found(&known, "t", text), Some(number), "{text}");
            assert_eq!(found(&known, "u", text), None, "{text}");
        }
    }

    #[test]
    fn cache_is_bounded() {
        let mut known = SchemaCache::default();
        for number in 0..=MAX_VERSIONS as u64 {
            add(&mut known, "t", &number.to_string(), number);
        }
        assert_eq!(found(&known, "t", "0"), None);
        assert_eq!(found(&known, "t", "1"), Some(1));
        assert_eq!(known.bytes, 8 * MAX_VERSIONS as u64, "a number counts 8");
        known.bytes = MAX_CACHED_BYTES + 1;
        add(&mut known, "u", "{}", 7);
        assert_eq!(found(&known, "t", "1"), None);
        assert_eq!(found(&known, "u", "{}"), Some(7));
    }
}
