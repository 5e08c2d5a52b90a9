//! Questions to a person (or any outside party) in the middle of a node.
//!
//! Without an answer yet, the run pauses: the guest is unwound, nothing stays in memory, and the
//! node is re-executed from its journal when the answer is there. So the code after [`ask`] runs
//! once, and what was called before it has its effects once.
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

/// A question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    /// What the person needs to see.
    pub payload: Value,
    /// JSON Schema that an answer must satisfy; an answer that does not is refused and the
    /// question stays open.
    pub response_schema: Option<Value>,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl Question {
    /// A question that takes any answer.
    pub fn new(payload: impl Into<Value>) -> Self {
        Self { payload: payload.into(), ..Self::default() }
    }

    /// Takes only answers in the shape of a type.
    pub fn answered_by<T: JsonSchema>(mut self) -> Self {
        self.response_schema = Some(json::input_schema::<T>());
        self
    }

    /// Adds a named value beside the fixed fields.
    pub fn with_extra(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(key.into(), value.into());
        self
    }

    /// Asks and returns the answer.
    pub fn ask(self) -> Result<Value, Failure> {
        host::interrupt::ask(self)
    }
}

/// Asks and returns the answer, whatever it is.
pub fn ask(payload: impl Into<Value>) -> Result<Value, Failure> {
    Question::new(payload).ask()
}

/// Asks and returns an answer of a type. Answers of another shape are refused by the host while
/// the question stays open.
pub fn ask_with_schema<T: JsonSchema + DeserializeOwned>(
    payload: impl Into<Value>,
) -> Result<T, Failure> {
    let answer = Question::new(payload).answered_by::<T>().ask()?;
    json::from_value("the answer", &answer)
}
