//! Response schemas that a provider rejected.
//!
//! A provider that rejects a schema is called again in a weaker structured mode. The mode that it
//! accepted is remembered until the host stops, so that later calls do not begin with a request
//! that the provider rejects. A provider may reject one schema and accept another one, so the mode
//! is remembered for the schema, beside the route and the model.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wattle_graph::id::Digest;
use wattle_graph::llm::ResponseSchema;

use crate::config::StructuredMode;

/// Maximum schemas that are remembered for one provider. All are forgotten when there are more,
/// because an app may keep generating new schemas.
const MAX_SCHEMAS: usize = 1_000;

/// Accepted modes by the digest of route, model and schema.
#[derive(Debug, Default)]
pub(super) struct RejectedSchemas(Mutex<HashMap<Digest, StructuredMode>>);

impl RejectedSchemas {
    /// Returns the mode that the provider accepted after it had rejected a schema.
    pub(super) fn accepted_mode(
        &self,
        route: &str,
        model: &str,
        schema: &ResponseSchema,
    ) -> Option<StructuredMode> {
        // Most providers reject no schema, and the digest of a large one takes time.
        if self.modes().is_empty() {
            return None;
        }
        let digest = digest(route, model, schema);
        self.modes().get(&digest).copied()
    }

    /// Remembers the mode that the provider accepted. Returns false if it was known.
    pub(super) fn remember(
        &self,
        route: &str,
        model: &str,
        schema: &ResponseSchema,
        mode: StructuredMode,
    ) -> bool {
        let digest = digest(route, model, schema);
        let mut modes = self.modes();
        if modes.len() >= MAX_SCHEMAS && !modes.contains_key(&digest) {
            modes.clear();
        }
        modes.insert(digest, mode) != Some(mode)
    }

    fn modes(&self) -> MutexGuard<'_, HashMap<Digest, StructuredMode>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest(route: &str, model: &str, schema: &ResponseSchema) -> Digest {
    let key = serde_json::json!([route, model, schema.name, schema.schema]);
    Digest::of(key.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(number: usize) -> ResponseSchema {
        ResponseSchema { name: "place".into(), schema: json!({ "const": number }) }
    }

    #[test]
    fn mode_is_remembered_for_route_model_and_schema() {
        let known = RejectedSchemas::default();
        assert_eq!(known.accepted_mode("chat", "m", &schema(1)), None);
        assert!(known.remember("chat", "m", &schema(1), StructuredMode::JsonObject));
        assert!(!known.remember("chat", "m", &schema(1), StructuredMode::JsonObject));
        let mode = |route, model, number| known.accepted_mode(route, model, &schema(number));
        assert_eq!(mode("chat", "m", 1), Some(StructuredMode::JsonObject));
        for (route, model, number) in [("chat", "m", 2), ("chat", "n", 1), ("other", "m", 1)] {
            assert_eq!(mode(route, model, number), None, "{route} {model} {number}");
        }
        assert!(known.remember("chat", "m", &schema(1), StructuredMode::Prompt));
        assert_eq!(mode("chat", "m", 1), Some(StructuredMode::Prompt));
    }

    #[test]
    fn remembered_schemas_are_bounded() {
        let known = RejectedSchemas::default();
        for number in 0..=MAX_SCHEMAS {
            known.remember("chat", "m", &schema(number), StructuredMode::Prompt);
        }
        assert_eq!(known.accepted_mode("chat", "m", &schema(0)), None);
        let newest = known.accepted_mode("chat", "m", &schema(MAX_SCHEMAS));
        assert_eq!(newest, Some(StructuredMode::Prompt));
    }
}
