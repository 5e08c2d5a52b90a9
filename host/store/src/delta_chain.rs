//! Decides when a growing list is stored as a full value.

/// Minimum number of list deltas before a full value is due. A read of this many deltas is fast,
/// however short the full value is.
const MIN_CHAIN_LEN: u64 = 256;

/// Number of list deltas after which a full value is due, however small the deltas are: a read of
/// the list visits each delta.
const MAX_CHAIN_LEN: u64 = 4096;

/// Returns true if the next version of a growing list is stored as a full value. A full value is
/// due after [`MIN_CHAIN_LEN`] list deltas if these take at least twice the bytes of their full
/// value, which bounds the stored size. A full value is always due after [`MAX_CHAIN_LEN`] list
/// deltas, which bounds the time of a read.
pub(crate) fn needs_full_value(deltas: u64, delta_bytes: u64, full_bytes: u64) -> bool {
    let outweigh = delta_bytes >= full_bytes.saturating_mul(2);
    deltas >= MAX_CHAIN_LEN || (deltas >= MIN_CHAIN_LEN && outweigh)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_value_is_due_after_long_or_large_chains() {
        assert!(!needs_full_value(MIN_CHAIN_LEN - 1, 1000, 1));
        assert!(!needs_full_value(MIN_CHAIN_LEN, 199, 100));
        assert!(needs_full_value(MIN_CHAIN_LEN, 200, 100));
        assert!(!needs_full_value(MAX_CHAIN_LEN - 1, 1, 100));
        assert!(needs_full_value(MAX_CHAIN_LEN, 1, 100));
    }
}
