//! The entry of a node.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;
use crate::json;
use crate::node::{Context, Decision, NodeOutput};

/// The description of a node and the function that runs it.
#[derive(Debug, Clone, Copy)]
pub struct NodeEntry {
    /// Name of the node.
    pub name: &'static str,
    /// Documentation of the node.
    pub doc: &'static str,
    /// Returns the JSON Schema of the input.
    pub input_schema: fn() -> Value,
    /// Returns the JSON Schema of the updates.
    pub output_schema: fn() -> Value,
    /// Returns the JSON Schema of the configuration; `None` for a node without one.
    pub config_schema: Option<fn() -> Value>,
    /// Runs the node with an input as JSON text.
    pub run: fn(&Context, &str) -> Result<Decision, Failure>,
}

/// A node. `#[node]` implements it for a type with the name of the function.
pub trait Node {
    /// The entry of the node.
    const ENTRY: NodeEntry;
}

/// Returns the schema of a node's input.
pub fn node_input_schema<I: JsonSchema, O>(_node: fn(&Context, I) -> Result<O, Failure>) -> Value {
    json::input_schema::<I>()
}

/// Returns the schema of a node's updates.
pub fn node_output_schema<I, O: NodeOutput>(_node: fn(&Context, I) -> Result<O, Failure>) -> Value {
    O::schema()
}

/// Returns the schema of a node's configuration.
pub fn node_config_schema<C: JsonSchema>() -> Value {
    json::input_schema::<C>()
}

/// Parses the input, runs the node, and splits its updates by channel.
pub fn run_node<I: DeserializeOwned, O: NodeOutput>(
    node: fn(&Context, I) -> Result<O, Failure>,
    context: &Context,
    input: &str,
) -> Result<Decision, Failure> {
    let what = format!("the input of node `{}`", context.node);
    node(context, json::read(&what, input)?)?.decide()
}
