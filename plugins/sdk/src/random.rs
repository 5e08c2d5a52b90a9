//! Random numbers from the operating system, journaled: a re-executed node sees the same ones.
//!
//! ```
//! use wattle_plugin::{random, testing::FakeHost};
//!
//! FakeHost::new().run(|| {
//!     assert_eq!(random::bytes(16).len(), 16);
//!     assert_ne!(random::u64(), random::u64());
//! });
//! ```

use crate::host;

/// Up to 4,096 bytes; a longer request is cut to that.
pub fn bytes(length: u32) -> Vec<u8> {
    host::random::bytes(length)
}

/// 64 random bits.
pub fn u64() -> u64 {
    host::random::u64()
}
