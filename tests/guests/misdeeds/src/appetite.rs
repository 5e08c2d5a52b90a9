//! Nodes that use too much: CPU time, memory, stack, host calls, events, log messages.

use std::hint::black_box;

use wattle_plugin::prelude::{
    Context, Deserialize, Empty, Failure, JsonSchema, Serialize, clock, emit, http, json, log,
    node, random,
};

/// Size of one allocation of `hog`, in bytes.
const MOUTHFUL_BYTES: usize = 1 << 20;

/// Input of nodes that repeat an action.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Count {
    /// Number of repetitions.
    pub(crate) count: u64,
}

/// Output of nodes that repeat an action.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Done {
    /// Number of repetitions.
    pub(crate) number: i64,
}

/// Loops forever.
#[node]
pub(crate) fn spin(_context: &Context, _input: Empty) -> Result<(), Failure> {
    let mut turns: u64 = 0;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

/// Allocates until the host ends it.
#[node]
pub(crate) fn hog(_context: &Context, _input: Empty) -> Result<(), Failure> {
    let mut kept = Vec::new();
    loop {
        kept.push(black_box(vec![1_u8; MOUTHFUL_BYTES]));
    }
}

/// Input of `occupy`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Occupancy {
    /// Number of bytes of memory.
    pub(crate) bytes: usize,
    /// The URL of the GET request, whose response is held back.
    pub(crate) url: String,
}

/// Holds `bytes` bytes of memory until a GET request to `url` has its response.
#[node]
pub(crate) fn occupy(_context: &Context, input: Occupancy) -> Result<(), Failure> {
    let kept = black_box(vec![1_u8; input.bytes]);
    http::Request::get(input.url).send()?;
    drop(black_box(kept));
    Ok(())
}

/// Calls itself until the stack overflows.
#[node]
pub(crate) fn recurse(_context: &Context, _input: Empty) -> Result<Done, Failure> {
    Ok(Done { number: deeper(0) })
}

// `black_box` hides from the compiler that the recursion has no end, and keeps it from becoming a
// loop.
fn deeper(depth: i64) -> i64 {
    if black_box(depth) < 0 { depth } else { black_box(deeper(depth + 1)) + 1 }
}

/// Reads the clock `count` times.
#[node]
pub(crate) fn chatty(_context: &Context, input: Count) -> Result<Done, Failure> {
    let mut number = 0;
    for _ in 0..input.count {
        black_box(clock::now_ms());
        number += 1;
    }
    Ok(Done { number })
}

/// Input of `roll`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Rolls {
    /// Number of calls.
    pub(crate) count: u64,
    /// Number of random bytes that each call returns.
    pub(crate) bytes: u32,
}

/// Reads `bytes` random bytes `count` times.
#[node]
pub(crate) fn roll(_context: &Context, input: Rolls) -> Result<Done, Failure> {
    let mut number = 0;
    for _ in 0..input.count {
        black_box(random::bytes(input.bytes));
        number += 1;
    }
    Ok(Done { number })
}

/// Emits `count` events `flood` with their index.
#[node]
pub(crate) fn flood_emit(_context: &Context, input: Count) -> Result<Done, Failure> {
    let mut number = 0;
    for index in 0..input.count {
        emit::custom("flood", json!({ "index": index }))?;
        number += 1;
    }
    Ok(Done { number })
}

/// Input of `flood_log`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Flood {
    /// Number of messages.
    pub(crate) count: u64,
    /// Numbers in the field of each message.
    pub(crate) numbers: u32,
}

/// Logs `count` messages `flood`, each with a field of `numbers` zeros.
#[node]
pub(crate) fn flood_log(_context: &Context, input: Flood) -> Result<Done, Failure> {
    let numbers = vec![0; input.numbers as usize];
    let fields = [("numbers", json!(numbers))];
    let mut number = 0;
    for _ in 0..input.count {
        log::write(log::Level::Info, "flood", &fields);
        number += 1;
    }
    Ok(Done { number })
}
