//! Limits that all parts of a component's description share, and the schemas of a description.

use serde_json::Value;
use wattle_graph::limit::SCHEMA_BYTES;
use wattle_graph::weight::weight;
use wattle_run::json::bounded::JsonBudget;

use crate::load::rejection::{Rejection, too_large};

/// Maximum [weight](wattle_graph::weight) of all schemas and endpoint descriptions of a plugin, in
/// bytes. The host keeps these in memory as long as the plugin is loaded. The schemas of the
/// bundled plugins take less than one MiB.
const SCHEMAS_WEIGHT: u64 = 16 << 20;

/// Maximum number of nodes, tools, reducers or routes of one plugin, and of exported functions of a
/// typed component.
pub(crate) const MAX_ITEMS: usize = 1_000;

/// Maximum length of a description, in characters.
pub(crate) const MAX_DOC_CHARS: usize = 4_000;

/// Maximum length of a tool's name and of an HTTP method, in characters.
pub(super) const MAX_NAME_CHARS: usize = 64;

/// Returns the rejection of an invalid description.
pub(super) fn invalid_description(message: &str) -> Rejection {
    Rejection::new("describe", message, "correct the plugin's description and build it again")
}

/// Counts the memory of the schemas and endpoint descriptions of a plugin.
pub(crate) struct Schemas {
    /// Number of bytes of memory that further schemas may take; see [`SCHEMAS_WEIGHT`].
    left: u64,
}

impl Schemas {
    pub(crate) fn new() -> Self {
        Self { left: SCHEMAS_WEIGHT }
    }

    /// Parses a schema that has at most [`SCHEMA_BYTES`]. A longer schema would not compile, and a
    /// parsed value takes many times the memory of its text.
    pub(super) fn parse(
        &mut self,
        text: &str,
        name: &str,
        field: &str,
    ) -> Result<Value, Rejection> {
        let bytes = text.len() as u64;
        if bytes > SCHEMA_BYTES {
            return Err(too_large(&format!("bytes of `{field}` of `{name}`"), bytes, SCHEMA_BYTES));
        }
        let schema: Value = JsonBudget::default().parse(text).map_err(|error| {
            invalid_description(&format!("`{field}` of `{name}` cannot be read: {error}"))
        })?;
        if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
            return Err(invalid_description(&format!(
                "`{field}` of `{name}` is not a JSON Schema: it is neither an object nor a boolean"
            )));
        }
        self.keep(schema)
    }

    /// Counts the weight of a schema, and returns the schema. Rejects a schema that exceeds
    /// [`SCHEMAS_WEIGHT`] together with the schemas before.
    pub(crate) fn keep(&mut self, schema: Value) -> Result<Value, Rejection> {
        match self.left.checked_sub(weight(&schema)) {
            Some(left) => self.left = left,
            None => {
                let used = SCHEMAS_WEIGHT - self.left + weight(&schema);
                return Err(too_large("bytes of memory for schemas", used, SCHEMAS_WEIGHT));
            }
        }
        Ok(schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text is not JSON: if it were parsed, the code of the rejection would be `describe`.
    #[test]
    fn a_long_schema_is_not_parsed() {
        let mut schemas = Schemas::new();
        let long = "0,".repeat(SCHEMA_BYTES as usize);
        let rejection = schemas.parse(&long, "n", "input-schema").unwrap_err();
        assert_eq!(rejection.code, "limit");
        assert!(rejection.message.contains("`input-schema` of `n`"), "{}", rejection.message);
        assert_eq!(schemas.parse("0,", "n", "input-schema").unwrap_err().code, "describe");
    }

    #[test]
    fn a_schema_with_the_key_of_raw_values_is_rejected() {
        let raw = r#"{"$serde_json::private::RawValue":"{}"}"#;
        let rejection = Schemas::new().parse(raw, "n", "input-schema").unwrap_err();
        assert_eq!(rejection.code, "describe");
        assert!(rejection.message.contains("is reserved"), "{}", rejection.message);
    }

    #[test]
    fn schemas_share_one_limit_of_memory() {
        let mut schemas = Schemas::new();
        let numbers = "0,".repeat(SCHEMA_BYTES as usize / 2 - 20);
        let schema = format!("{{ \"enum\": [{numbers}0] }}");
        assert!(schemas.parse(&schema, "n", "input-schema").is_ok());
        let rejection = schemas.parse(&schema, "n", "output-schema").unwrap_err();
        assert_eq!(rejection.code, "limit");
        assert!(rejection.message.contains("memory for schemas"), "{}", rejection.message);
    }
}
