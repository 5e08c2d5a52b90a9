//! Interrupts: requests for input from a person.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::schema::{Formats, Schema, SchemaError};

use crate::blocking::{are_large_schemas, block_in_place_if};
use crate::caller_id::CallerId;
use crate::schemas::SchemaCache;

/// A request for input from a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterruptRequest {
    /// Payload for the person who answers.
    pub payload: Value,
    /// JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
}

impl InterruptRequest {
    /// Interface and function.
    pub const FUNCTION: &'static str = "interrupt.ask";

    /// Checks that the response schema is valid, as work of `owner`. The cache keeps the compiled
    /// schema for the validation of the answer.
    ///
    /// # Errors
    ///
    /// `invalid` if the response schema is not a JSON Schema, `limit` if it is too large.
    pub(crate) async fn check_schema(
        &self,
        owner: CallerId,
        schemas: &SchemaCache,
    ) -> Result<(), Failure> {
        let Some(schema) = &self.response_schema else { return Ok(()) };
        schemas.compile(owner, schema, Formats::OfDraft).await.map(drop).map_err(refused)
    }

    /// Checks the response schema like [`Self::check_schema`], for callers that cannot wait.
    pub(crate) fn check_schema_now(&self) -> Result<(), Failure> {
        let Some(schema) = &self.response_schema else { return Ok(()) };
        let compiled = block_in_place_if(are_large_schemas([schema]), || Schema::compile(schema));
        compiled.map(drop).map_err(refused)
    }
}

fn refused(error: SchemaError) -> Failure {
    let subject = "the response schema of the question";
    match error {
        SchemaError::Limit(exceeded) => exceeded.of(subject).to_failure(),
        error => Failure::new(code::INVALID, format!("{subject} is invalid: {error}")),
    }
}
