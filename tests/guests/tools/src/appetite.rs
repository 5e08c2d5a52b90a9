//! Tools that use too much CPU time, memory or output, and a tool that panics.

use std::hint::black_box;

use wattle_plugin::prelude::{
    Deserialize, Empty, Failure, JsonSchema, ToolContext, ToolOutput, Value, tool,
};

/// Size of one allocation of `hog`, in bytes.
const MOUTHFUL_BYTES: usize = 1 << 20;

/// Loops forever.
#[tool(read_only)]
pub(crate) fn spin(_context: &ToolContext, _args: Empty) -> Result<ToolOutput, Failure> {
    let mut turns: u64 = 0;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

/// Allocates until the host ends it.
#[tool(read_only)]
pub(crate) fn hog(_context: &ToolContext, _args: Empty) -> Result<ToolOutput, Failure> {
    let mut kept = Vec::new();
    loop {
        kept.push(black_box(vec![1_u8; MOUTHFUL_BYTES]));
    }
}

/// Panics.
#[tool(read_only)]
pub(crate) fn trap(_context: &ToolContext, _args: Empty) -> Result<ToolOutput, Failure> {
    panic!("a misdeed");
}

/// Arguments of `huge`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Size {
    /// Size of the text, in MiB.
    pub(crate) mib: u32,
}

/// Returns a text of `mib` MiB.
#[tool(read_only)]
pub(crate) fn huge(_context: &ToolContext, args: Size) -> Result<ToolOutput, Failure> {
    Ok(ToolOutput::text("x".repeat((args.mib as usize) << 20)))
}

/// Arguments of `deep`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Depth {
    /// Levels of nesting. A few thousand overflow the guest's own stack.
    pub(crate) depth: u32,
}

/// Returns arrays nested `depth` levels deep.
#[tool(read_only)]
pub(crate) fn deep(_context: &ToolContext, args: Depth) -> Result<ToolOutput, Failure> {
    let value = (0..args.depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    Ok(ToolOutput { structured: Some(value), ..ToolOutput::text("deep") })
}
