//! The entry of a node.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;
use crate::json::{self, JsonText};
use crate::node::{Context, Decision, NodeOutput, Reads};

/// The description of a node and the function that runs it.
#[derive(Clone, Copy)]
pub struct NodeEntry {
    /// Name of the node.
    pub name: &'static str,
    /// Documentation of the node.
    pub doc: &'static str,
    /// Returns the JSON Schema of the configuration; `None` for a node without one.
    pub config_schema: Option<fn() -> Value>,
    /// The channels that the node reads; `None` for those that the input type names.
    pub reads: Option<Reads>,
    /// Returns the function.
    pub function: fn() -> Box<dyn NodeFunction>,
}

/// A node. `#[node]` implements it for a type with the name of the function.
pub trait Node {
    /// The entry of the node.
    const ENTRY: NodeEntry;
}

/// The function of a node with JSON in the place of its types.
pub trait NodeFunction {
    /// Returns the JSON Schema of the input.
    fn input_schema(&self) -> Value;

    /// Returns the JSON Schema of the updates.
    fn output_schema(&self) -> Value;

    /// Runs the node with an input as JSON text.
    fn run(&self, context: &Context, input: &str) -> Result<Decision<JsonText>, Failure>;
}

/// The function of a node with its types. An entry names the function only here, so the compiler
/// reports a wrong signature once.
pub struct TypedNode<I, O>(pub fn(&Context, I) -> Result<O, Failure>);

impl<I: DeserializeOwned + JsonSchema, O: NodeOutput> NodeFunction for TypedNode<I, O> {
    fn input_schema(&self) -> Value {
        json::input_schema::<I>()
    }

    fn output_schema(&self) -> Value {
        O::schema()
    }

    fn run(&self, context: &Context, input: &str) -> Result<Decision<JsonText>, Failure> {
        let input = json::read(format_args!("the input of node `{}`", context.node), input)?;
        (self.0)(context, input)?.decide()
    }
}

/// Returns the schema of a node's configuration.
pub fn node_config_schema<C: JsonSchema>() -> Value {
    json::input_schema::<C>()
}
