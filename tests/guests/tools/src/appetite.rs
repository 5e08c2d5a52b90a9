//! Tools that want too much: time, memory, output. And one that panics.

use std::hint::black_box;

use wattle_plugin::prelude::{
    Deserialize, Empty, Failure, JsonSchema, ToolContext, ToolOutput, Value, tool,
};

/// Memory that `hog` takes at a time.
const MOUTHFUL_BYTES: usize = 1 << 20;

/// Loops for ever.
#[tool(read_only)]
pub(crate) fn spin(_context: &ToolContext, _args: Empty) -> Result<ToolOutput, Failure> {
    let mut turns: u64 = 0;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

/// Allocates until it is stopped.
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

/// How much to say.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Size {
    /// MiB of text.
    pub(crate) mib: u32,
}

/// Answers with a lot of text.
#[tool(read_only)]
pub(crate) fn huge(_context: &ToolContext, args: Size) -> Result<ToolOutput, Failure> {
    Ok(ToolOutput::text("x".repeat((args.mib as usize) << 20)))
}

/// How deep to nest.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Depth {
    /// Levels. A few thousand end the guest's own stack.
    pub(crate) depth: u32,
}

/// Answers with arrays in arrays.
#[tool(read_only)]
pub(crate) fn deep(_context: &ToolContext, args: Depth) -> Result<ToolOutput, Failure> {
    let value = (0..args.depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    Ok(ToolOutput { structured: Some(value), ..ToolOutput::text("deep") })
}
