//! The entry of a node.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;
use crate::json;
use crate::node::{Context, Decision, NodeOutput};

/// What the host wants to know of a node, and how to run it.
#[derive(Debug, Clone, Copy)]
pub struct NodeEntry {
    /// Its name.
    pub name: &'static str,
    /// Its documentation.
    pub doc: &'static str,
    /// JSON Schema of its input.
    pub input_schema: fn() -> Value,
    /// JSON Schema of its updates.
    pub output_schema: fn() -> Value,
    /// JSON Schema of its configuration, if it has one.
    pub config_schema: Option<fn() -> Value>,
    /// Runs it on an input document.
    pub run: fn(&Context, &str) -> Result<Decision, Failure>,
}

/// Implemented by `#[node]` on a type with the name of the function.
pub trait Node {
    /// The entry.
    const ENTRY: NodeEntry;
}

/// The schema of a node's input.
pub fn node_input_schema<I: JsonSchema, O>(_node: fn(&Context, I) -> Result<O, Failure>) -> Value {
    json::input_schema::<I>()
}

/// The schema of a node's updates.
pub fn node_output_schema<I, O: NodeOutput>(_node: fn(&Context, I) -> Result<O, Failure>) -> Value {
    O::schema()
}

/// The schema of a node's configuration.
pub fn node_config_schema<C: JsonSchema>() -> Value {
    json::input_schema::<C>()
}

/// Reads the input, runs the node, takes its updates apart.
pub fn run_node<I: DeserializeOwned, O: NodeOutput>(
    node: fn(&Context, I) -> Result<O, Failure>,
    context: &Context,
    input: &str,
) -> Result<Decision, Failure> {
    let what = format!("the input of node `{}`", context.node);
    node(context, json::read(&what, input)?)?.decide()
}
