//! Fresh ids, as UUIDs of version 4.

use wattle_plugin::prelude::random;

/// Bytes of a UUID.
const BYTES: u32 = 16;

/// A new id, such as `3f1c0d1e-8b51-4a5e-9d0c-6a2f5f7b1c22`.
pub(crate) fn fresh() -> String {
    let mut bytes = random::bytes(BYTES);
    bytes.resize(BYTES as usize, 0);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use wattle_plugin::testing::FakeHost;

    use super::fresh;

    #[test]
    fn ids_are_uuids_and_differ() {
        FakeHost::new().run(|| {
            let id = fresh();
            let groups: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(groups, [8, 4, 4, 4, 12], "{id}");
            assert_eq!(&id[14..15], "4");
            assert_ne!(id, fresh());
        });
    }
}
