//! Tests without a host: [`FakeHost`] implements every import with a script, and records the calls.
//! Available in native builds only.
//!
//! ```
//! use wattle_plugin::prelude::*;
//! use wattle_plugin::testing::{self, FakeHost};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Input {
//!     text: String,
//! }
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Update {
//!     summary: String,
//! }
//!
//! /// Summarizes a text.
//! #[node]
//! fn summarize(_context: &Context, input: Input) -> Result<Update, Failure> {
//!     let completion = llm::Request::route("chat").user(input.text).complete()?;
//!     Ok(Update { summary: completion.text() })
//! }
//!
//! # fn main() -> Result<(), Failure> {
//! let host = FakeHost::new().llm(|_| Ok(Completion::of_text("short")));
//!
//! // The function itself, with types.
//! let update = host.run(|| summarize(&Context::default(), Input { text: "long".to_owned() }))?;
//! assert_eq!(update.summary, "short");
//!
//! // As the host calls it, with documents.
//! let input = json!({"text": "long"});
//! let decision = host.run(|| testing::run_node::<summarize>(&Context::default(), &input))?;
//! assert_eq!(decision.update("summary"), Some(&json!("short")));
//! assert_eq!(host.llm_requests()[0].text(), "long");
//! # Ok(())
//! # }
//! ```
//!
//! A call outside of [`FakeHost::run`], or without a script, fails with the code `unsupported` and
//! the name of the missing method. A call that cannot return a failure panics.

pub(crate) mod answer;
mod civil;
mod fake;
mod record;
mod state;

use serde_json::Value;

pub use self::fake::FakeHost;
pub use self::record::{Logged, SqlAnswer, Statement};
use crate::export::{Node, Tool};
use crate::failure::Failure;
use crate::node::{Context, Decision};
use crate::tool::{ToolContext, ToolOutput};

/// Runs a node with an input, as the host does.
pub fn run_node<N: Node>(context: &Context, input: &Value) -> Result<Decision, Failure> {
    (N::ENTRY.run)(context, &input.to_string())
}

/// Returns the schemas of a node's input and updates, as the host receives them.
pub fn node_schemas<N: Node>() -> (Value, Value) {
    ((N::ENTRY.input_schema)(), (N::ENTRY.output_schema)())
}

/// Returns the schema of a node's configuration, if it has one.
pub fn config_schema<N: Node>() -> Option<Value> {
    N::ENTRY.config_schema.map(|schema| schema())
}

/// Calls a tool with arguments, as the host does.
pub fn call_tool<T: Tool>(context: &ToolContext, arguments: &Value) -> Result<ToolOutput, Failure> {
    (T::ENTRY.call)(context, &arguments.to_string())
}

/// Returns the schema of a tool's arguments, as models receive it.
pub fn tool_schema<T: Tool>() -> Value {
    (T::ENTRY.arguments_schema)()
}
