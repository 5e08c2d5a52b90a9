//! The entry of a tool.

use serde_json::Value;

use crate::failure::Failure;
use crate::tool::{ToolArguments, ToolContext, ToolHints, ToolOutput};

type ToolFunction<A> = fn(&ToolContext, A) -> Result<ToolOutput, Failure>;

/// What the host wants to know of a tool, and how to call it.
#[derive(Debug, Clone, Copy)]
pub struct ToolEntry {
    /// Its name.
    pub name: &'static str,
    /// What it does, as a model reads it.
    pub description: &'static str,
    /// JSON Schema of its arguments.
    pub arguments_schema: fn() -> Value,
    /// Whether arguments that violate the schema reach it.
    pub accepts_invalid: fn() -> bool,
    /// What it promises.
    pub hints: ToolHints,
    /// Calls it with an arguments document.
    pub call: fn(&ToolContext, &str) -> Result<ToolOutput, Failure>,
}

/// Implemented by `#[tool]` on a type with the name of the function.
pub trait Tool {
    /// The entry.
    const ENTRY: ToolEntry;
}

/// The schema of a tool's arguments.
pub fn tool_arguments_schema<A: ToolArguments>(_tool: ToolFunction<A>) -> Value {
    A::schema()
}

/// Whether arguments that violate the schema reach the tool.
pub fn tool_accepts_invalid<A: ToolArguments>(_tool: ToolFunction<A>) -> bool {
    A::ACCEPTS_INVALID
}

/// Reads the arguments and calls the tool.
pub fn call_tool<A: ToolArguments>(
    tool: ToolFunction<A>,
    context: &ToolContext,
    arguments: &str,
) -> Result<ToolOutput, Failure> {
    tool(context, A::read(context, arguments)?)
}
