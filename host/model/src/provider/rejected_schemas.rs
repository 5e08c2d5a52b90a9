//! Response schemas that a provider rejected.
//!
//! A provider that rejects a schema is called again in a weaker structured mode, which is
//! remembered; see [`rejections`](super::rejections). A provider may reject one schema and accept
//! another one, so the mode is remembered for the schema, beside the route and the model.

use wattle_graph::id::Digest;
use wattle_graph::llm::ResponseSchema;

use crate::config::StructuredMode;
use crate::provider::rejections::Rejections;

/// Accepted modes by the digest of route, model and schema.
#[derive(Debug, Default)]
pub(super) struct RejectedSchemas(Rejections<StructuredMode>);

impl RejectedSchemas {
    /// Returns the mode that the provider accepted after it had rejected a schema.
    pub(super) fn accepted_mode(
        &self,
        route: &str,
        model: &str,
        schema: &ResponseSchema,
    ) -> Option<StructuredMode> {
        self.0.accepted(|| digest(route, model, schema))
    }

    /// Remembers the mode that the provider accepted. Returns false if it was known.
    pub(super) fn remember(
        &self,
        route: &str,
        model: &str,
        schema: &ResponseSchema,
        mode: StructuredMode,
    ) -> bool {
        self.0.remember(digest(route, model, schema), mode)
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
}
