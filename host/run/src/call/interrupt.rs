//! Questions to a person. The gate answers them from the log or unwinds the guest.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
}
