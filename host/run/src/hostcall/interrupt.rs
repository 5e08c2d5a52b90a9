//! Interrupts: requests for input from a person.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::schema::{Schema, SchemaError};

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

    /// Checks that the response schema is valid.
    ///
    /// # Errors
    ///
    /// `invalid` if it is not a schema, `limit` if it is too large.
    pub(crate) fn check_schema(&self) -> Result<(), Failure> {
        let Some(schema) = &self.response_schema else { return Ok(()) };
        let subject = "the response schema of the question";
        Schema::compile(schema).map(drop).map_err(|error| match error {
            SchemaError::Limit(exceeded) => exceeded.of(subject).to_failure(),
            error => Failure::new(code::INVALID, format!("{subject}: {error}")),
        })
    }
}
