//! The entry of a tool.

use serde_json::Value;

use crate::failure::Failure;
use crate::tool::{ToolArguments, ToolContext, ToolHints, ToolOutput};

/// The description of a tool and the function that calls it.
#[derive(Clone, Copy)]
pub struct ToolEntry {
    /// Name of the tool.
    pub name: &'static str,
    /// Description for models.
    pub description: &'static str,
    /// Declared hints about the effects of the tool.
    pub hints: ToolHints,
    /// Returns the function.
    pub function: fn() -> Box<dyn ToolFunction>,
}

/// A tool. `#[tool]` implements it for a type with the name of the function.
pub trait Tool {
    /// The entry of the tool.
    const ENTRY: ToolEntry;
}

/// The function of a tool with JSON in the place of its types.
pub trait ToolFunction {
    /// Returns the JSON Schema of the arguments.
    fn arguments_schema(&self) -> Value;

    /// Returns true if the tool accepts arguments that violate the schema.
    fn accepts_invalid(&self) -> bool;

    /// Calls the tool with arguments as JSON text.
    fn call(&self, context: &ToolContext, arguments: &str) -> Result<ToolOutput, Failure>;
}

/// The function of a tool with its types. An entry names the function only here, so the compiler
/// reports a wrong signature once.
pub struct TypedTool<A>(pub fn(&ToolContext, A) -> Result<ToolOutput, Failure>);

impl<A: ToolArguments> ToolFunction for TypedTool<A> {
    fn arguments_schema(&self) -> Value {
        A::schema()
    }

    fn accepts_invalid(&self) -> bool {
        A::ACCEPTS_INVALID
    }

    fn call(&self, context: &ToolContext, arguments: &str) -> Result<ToolOutput, Failure> {
        (self.0)(context, A::read(context, arguments)?)
    }
}
