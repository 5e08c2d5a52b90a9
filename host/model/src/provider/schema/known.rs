//! A cache of adapted schemas: all turns of a conversation have the same tools.
//!
//! A schema is compared with the previous ones of the same tool, which copies nothing and ends at the first difference.
//! Fields in another order make another schema, because the adapted one has the order of the original.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use wattle_graph::llm::ToolDefinition;
use wattle_run::json;

/// Maximum bytes of cached schemas of one provider: those of some servers with many tools.
const KNOWN_BYTES: u64 = 8 << 20;

/// Maximum cached schemas for one tool name. Several servers may have a tool `search`, and one server may generate a
/// new schema all the time.
const VERSIONS: usize = 64;

/// Adapted schemas by tool.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// By tool name, newest last.
    schemas: HashMap<String, Vec<Version>>,
    /// The approximate size of the originals in bytes.
    bytes: u64,
}

/// A schema of a tool with its adapted form.
#[derive(Debug)]
pub(super) struct Version {
    original: Value,
    /// The adapted schema; `None` if the original is sent.
    pub(super) other: Option<Arc<Value>>,
}

impl Known {
    /// Returns the cached schema of a tool.
    pub(super) fn find(&self, tool: &ToolDefinition) -> Option<&Version> {
        let versions = self.schemas.get(&tool.name)?;
        versions.iter().rfind(|it| is_same(&it.original, &tool.arguments_schema))
    }

    /// Caches the adapted schema of a tool.
    pub(super) fn add(&mut self, tool: &ToolDefinition, other: Option<Arc<Value>>) {
        if self.bytes > KNOWN_BYTES {
            *self = Self::default();
        }
        let original = tool.arguments_schema.clone();
        let versions = self.schemas.entry(tool.name.clone()).or_default();
        if versions.len() >= VERSIONS {
            self.bytes -= json::weight(&versions.remove(0).original);
        }
        self.bytes += json::weight(&original);
        versions.push(Version { original, other });
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

    /// Returns the number that was added for a schema.
    fn found(known: &Known, name: &str, schema: &str) -> Option<u64> {
        known.find(&tool(name, schema))?.other.as_ref()?.as_u64()
    }

    fn add(known: &mut Known, name: &str, schema: &str, number: u64) {
        known.add(&tool(name, schema), Some(Arc::new(number.into())));
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
        let mut known = Known::default();
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
        let mut known = Known::default();
        for number in 0..=VERSIONS as u64 {
            add(&mut known, "t", &number.to_string(), number);
        }
        assert_eq!(found(&known, "t", "0"), None);
        assert_eq!(found(&known, "t", "1"), Some(1));
        assert_eq!(known.bytes, 8 * VERSIONS as u64, "a number counts 8");
        known.bytes = KNOWN_BYTES + 1;
        add(&mut known, "u", "{}", 7);
        assert_eq!(found(&known, "t", "1"), None);
        assert_eq!(found(&known, "u", "{}"), Some(7));
    }
}
