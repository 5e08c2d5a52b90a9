//! Nodes that want too much: time, memory, stack, host calls, events.

use std::hint::black_box;

use wattle_plugin::prelude::{
    Context, Deserialize, Empty, Failure, JsonSchema, Serialize, clock, emit, json, node,
};

/// Memory that `hog` takes at a time.
const MOUTHFUL_BYTES: usize = 1 << 20;

/// How often to do it.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Count {
    /// Times.
    pub(crate) count: u64,
}

/// How often it was done.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Done {
    /// Times.
    pub(crate) number: i64,
}

/// Loops for ever.
#[node]
pub(crate) fn spin(_context: &Context, _input: Empty) -> Result<(), Failure> {
    let mut turns: u64 = 0;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

/// Allocates until it is stopped.
#[node]
pub(crate) fn hog(_context: &Context, _input: Empty) -> Result<(), Failure> {
    let mut kept = Vec::new();
    loop {
        kept.push(black_box(vec![1_u8; MOUTHFUL_BYTES]));
    }
}

/// Calls itself until the stack ends.
#[node]
pub(crate) fn recurse(_context: &Context, _input: Empty) -> Result<Done, Failure> {
    Ok(Done { number: deeper(0) })
}

// The compiler must not see that this has no end, nor turn it into a loop.
fn deeper(depth: i64) -> i64 {
    if black_box(depth) < 0 { depth } else { black_box(deeper(depth + 1)) + 1 }
}

/// Asks for the time `count` times.
#[node]
pub(crate) fn chatty(_context: &Context, input: Count) -> Result<Done, Failure> {
    let mut number = 0;
    for _ in 0..input.count {
        black_box(clock::now_ms());
        number += 1;
    }
    Ok(Done { number })
}

/// Emits `count` events `flood` with their number.
#[node]
pub(crate) fn flood_emit(_context: &Context, input: Count) -> Result<Done, Failure> {
    let mut number = 0;
    for index in 0..input.count {
        emit::custom("flood", json!({ "index": index }))?;
        number += 1;
    }
    Ok(Done { number })
}
