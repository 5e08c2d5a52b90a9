//! The entry of a tool.

use serde_json::Value;

use crate::failure::Failure;
use crate::tool::{ToolArguments, ToolContext, ToolHints, ToolOutput};

type ToolFunction<A> = fn(&ToolContext, A) -> Result<ToolOutput, Failure>;

/// The description of a tool and the function that calls it.
#[derive(Debug, Clone, Copy)]
pub struct ToolEntry {
    /// Name of the tool.
    pub name: &'static str,
    /// Description for models.
    pub description: &'static str,
    /// Returns the JSON Schema of the arguments.
    pub arguments_schema: fn() -> Value,
    /// Returns true if the tool accepts arguments that violate the schema.
    pub accepts_invalid: fn() -> bool,
    /// Declared hints about the effects of the tool.
    pub hints: ToolHints,
    /// Calls the tool with arguments as JSON text.
    pub call: fn(&ToolContext, &str) -> Result<ToolOutput, Failure>,
}

/// A tool. `#[tool]` implements it for a type with the name of the function.
pub trait Tool {
    /// The entry of the tool.
    const ENTRY: ToolEntry;
}

/// Returns the schema of a tool's arguments.
pub fn tool_arguments_schema<A: ToolArguments>(_tool: ToolFunction<A>) -> Value {
    A::schema()
}

/// Returns true if the tool accepts arguments that violate the schema.
pub fn tool_accepts_invalid<A: ToolArguments>(_tool: ToolFunction<A>) -> bool {
    A::ACCEPTS_INVALID
}

/// Parses the arguments and calls the tool.
pub fn call_tool<A: ToolArguments>(
    tool: ToolFunction<A>,
    context: &ToolContext,
    arguments: &str,
) -> Result<ToolOutput, Failure> {
    tool(context, A::read(context, arguments)?)
}
