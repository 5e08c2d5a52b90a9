//! Decides when a growing list is stored as a full value.

/// Up to this number of list deltas a list is read quickly, however short its full value is.
const FEW_TAILS: u64 = 256;

/// After this number of list deltas a full value is due, however small they are: a read of the list
/// visits each of them.
const MANY_TAILS: u64 = 4096;

/// Returns true if the next version of a growing list is stored as a full value. This is due after
/// [`FEW_TAILS`] list deltas that take at least twice the bytes of their full value, which bounds
/// the stored size, or after [`MANY_TAILS`], which bounds the read.
pub(crate) fn is_whole_due(tails: u64, tail_bytes: u64, whole_bytes: u64) -> bool {
    let outweigh = tail_bytes >= whole_bytes.saturating_mul(2);
    tails >= MANY_TAILS || (tails >= FEW_TAILS && outweigh)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_value_is_due_after_long_or_large_chains() {
        assert!(!is_whole_due(FEW_TAILS - 1, 1000, 1));
        assert!(!is_whole_due(FEW_TAILS, 199, 100));
        assert!(is_whole_due(FEW_TAILS, 200, 100));
        assert!(!is_whole_due(MANY_TAILS - 1, 1, 100));
        assert!(is_whole_due(MANY_TAILS, 1, 100));
    }
}
