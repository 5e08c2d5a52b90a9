//! Random numbers from the operating system. They are journaled, so a node that is executed again
//! gets the same numbers.
//!
//! ```
//! use wattle_plugin::{random, testing::FakeHost};
//!
//! FakeHost::new().run(|| {
//!     assert_eq!(random::bytes(16).len(), 16);
//!     assert_ne!(random::u64(), random::u64());
//!     assert_ne!(random::uuid(), random::uuid());
//! });
//! ```

use crate::host;

/// Length of a UUID, in bytes.
const UUID_BYTES: u32 = 16;

/// Returns `length` random bytes, at most 4,096.
pub fn bytes(length: u32) -> Vec<u8> {
    host::random::bytes(length)
}

/// Returns a random number of 64 bits.
pub fn u64() -> u64 {
    host::random::u64()
}

/// Returns a new UUID of version 4, such as `3f1c0d1e-8b51-4a5e-9d0c-6a2f5f7b1c22`.
pub fn uuid() -> String {
    let mut bytes = bytes(UUID_BYTES);
    bytes.resize(UUID_BYTES as usize, 0);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::uuid;
    use crate::testing::FakeHost;

    #[test]
    fn uuids_have_version_4_and_differ() {
        FakeHost::new().run(|| {
            let id = uuid();
            let groups: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(groups, [8, 4, 4, 4, 12], "{id}");
            assert_eq!(&id[14..15], "4");
            assert!("89ab".contains(&id[19..20]), "{id}");
            assert_ne!(id, uuid());
        });
    }
}
