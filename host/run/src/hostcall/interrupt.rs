//! Questions to a person. The gate answers them from the log or unwinds the guest.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::schema::{Schema, SchemaError};

/// A question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// What the person needs to see.
    pub payload: Value,
    /// What an answer must look like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
}

impl Ask {
    /// Interface and function.
    pub const FUNCTION: &'static str = "interrupt.ask";

    /// Refuses a response schema that no answer could be checked against.
    ///
    /// # Errors
    ///
    /// `invalid` for a value that is no schema, `limit` for one that is too large.
    pub(crate) fn check_schema(&self) -> Result<(), Failure> {
        let Some(schema) = &self.response_schema else { return Ok(()) };
        let subject = "the response schema of the question";
        Schema::compile(schema).map(drop).map_err(|error| match error {
            SchemaError::Limit(exceeded) => exceeded.of(subject).to_failure(),
            error => Failure::new(code::INVALID, format!("{subject}: {error}")),
        })
    }
}
