//! Implements `random` with SplitMix64 and a fixed seed, so that each test run gets the same
//! numbers.

use crate::testing::answer::infallible;

/// Maximum number of bytes per call, as in the host.
const MAX_BYTES: u32 = 4096;

pub(crate) fn u64() -> u64 {
    let state = infallible(|state| {
        state.random = state.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.random
    });
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

pub(crate) fn bytes(length: u32) -> Vec<u8> {
    let length = length.min(MAX_BYTES) as usize;
    std::iter::repeat_with(u64).flat_map(u64::to_le_bytes).take(length).collect()
}
