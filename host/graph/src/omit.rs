//! Conditions under which serialization omits a field.

/// Returns true if a number is zero.
pub fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}
