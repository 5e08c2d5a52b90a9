//! Interrupts: a node asks a person or another party, and continues with the answer.
//!
//! Until the answer arrives, the run is interrupted: the host unwinds the guest and frees its
//! memory. When the answer arrives, the host executes the node again from its journal. Code after
//! [`ask`] therefore runs once, and calls before it take effect once.
//!
//! ```
//! use wattle_plugin::prelude::*;
//! use wattle_plugin::testing::FakeHost;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Decision {
//!     approved: bool,
//! }
//!
//! let host = FakeHost::new().answer(json!({"approved": true}));
//! host.run(|| {
//!     let decision: Decision = interrupt::ask_with_schema(json!({"amount": 120}))?;
//!     assert!(decision.approved);
//!     Ok::<_, Failure>(())
//! })?;
//! assert_eq!(host.questions()[0].payload, json!({"amount": 120}));
//! # Ok::<_, Failure>(())
//! ```

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;
use crate::host;
use crate::json::{self, Extra};

/// The question of an interrupt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    /// Payload to show to the person.
    pub payload: Value,
    /// JSON Schema for the answer. The host rejects an answer that violates the schema, and the
    /// interrupt remains pending.
    pub response_schema: Option<Value>,
    /// Extension fields.
    pub extra: Extra,
}

impl Question {
    /// Creates a question that accepts any answer.
    pub fn new(payload: impl Into<Value>) -> Self {
        Self { payload: payload.into(), ..Self::default() }
    }

    /// Accepts only answers that match the schema of a type.
    pub fn answered_by<T: JsonSchema>(mut self) -> Self {
        self.response_schema = Some(json::input_schema::<T>());
        self
    }

    /// Adds an extension field.
    pub fn with_extra(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(key.into(), value.into());
        self
    }

    /// Raises the interrupt and returns its answer.
    pub fn ask(self) -> Result<Value, Failure> {
        host::interrupt::ask(self)
    }
}

/// Raises an interrupt and returns its answer.
pub fn ask(payload: impl Into<Value>) -> Result<Value, Failure> {
    Question::new(payload).ask()
}

/// Raises an interrupt and returns its answer as a type. The host rejects an answer that violates
/// the schema of the type, and the interrupt remains pending.
pub fn ask_with_schema<T: JsonSchema + DeserializeOwned>(
    payload: impl Into<Value>,
) -> Result<T, Failure> {
    let answer = Question::new(payload).answered_by::<T>().ask()?;
    json::from_value("the answer", &answer)
}
