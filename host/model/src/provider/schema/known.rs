//! Schemas that were looked at: every turn of a conversation has the same ones.
//!
//! A schema is compared with the ones before it of the same tool, which copies nothing and ends at the first
//! difference. Fields in another order make another schema: what is sent has them in the order of the original.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use wattle_graph::llm::ToolDefinition;
use wattle_run::json;

/// Bytes of schemas of one provider that are remembered: those of some servers with many tools.
const KNOWN_BYTES: u64 = 8 << 20;

/// Schemas of tools of one name that are remembered. Several servers may have a tool `search`, and one server may make
/// up a schema each time.
const VERSIONS: usize = 64;

/// What is sent for the schemas of tools.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// By name of the tool, the newest last.
    schemas: HashMap<String, Vec<Version>>,
    /// About how many bytes the originals take.
    bytes: u64,
}

/// One schema of a tool.
#[derive(Debug)]
pub(super) struct Version {
    original: Value,
    /// What is sent instead, if it is another one.
    pub(super) other: Option<Arc<Value>>,
}

impl Known {
    /// The schema of a tool, if it was there before.
    pub(super) fn find(&self, tool: &ToolDefinition) -> Option<&Version> {
        let versions = self.schemas.get(&tool.name)?;
        versions.iter().rfind(|it| is_same(&it.original, &tool.arguments_schema))
    }

    /// Remembers what is sent for the schema of a tool.
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

/// Whether two values are the same, with their fields in the same order.
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

    /// The number that was added for the schema, if it is known.
    fn found(known: &Known, name: &str, schema: &str) -> Option<u64> {
        known.find(&tool(name, schema))?.other.as_ref()?.as_u64()
    }

    fn add(known: &mut Known, name: &str, schema: &str, number: u64) {
        known.add(&tool(name, schema), Some(Arc::new(number.into())));
    }

    #[test]
    fn schemas_are_told_apart_by_tool_content_and_order() {
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
    fn what_is_remembered_is_bounded() {
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
