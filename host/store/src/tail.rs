//! When the value of a list is written whole again.

/// So many ends are read quickly, however short the list was that they follow.
const FEW_TAILS: u64 = 256;

/// After so many ends a list is written whole however little they take: reading one looks at each.
const MANY_TAILS: u64 = 4096;

/// Whether the next value of a list that only grew should be written whole all the same, so that
/// reading it stays bounded: after some ends that have at least twice the bytes of the whole value
/// they follow, so that what is stored stays within a small multiple of what the list holds, or
/// after very many.
pub(crate) fn is_whole_due(tails: u64, tail_bytes: u64, whole_bytes: u64) -> bool {
    let outweigh = tail_bytes >= whole_bytes.saturating_mul(2);
    tails >= MANY_TAILS || (tails >= FEW_TAILS && outweigh)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_whole_again_when_its_ends_outweigh_it_or_are_very_many() {
        assert!(!is_whole_due(FEW_TAILS - 1, 1000, 1));
        assert!(!is_whole_due(FEW_TAILS, 199, 100));
        assert!(is_whole_due(FEW_TAILS, 200, 100));
        assert!(!is_whole_due(MANY_TAILS - 1, 1, 100));
        assert!(is_whole_due(MANY_TAILS, 1, 100));
    }
}
