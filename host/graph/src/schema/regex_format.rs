//! The format `regex`, with a bound on the length of the text.
//!
//! The check of the validator compares the name of each group with all names before it. For a text
//! of some megabytes, it would take hours, so longer texts than a `pattern` may have do not fit.

use crate::limit::PATTERN_BYTES;

/// Square of the length of a text, in bytes, that counts as one step. A text of the maximum length
/// has some 140 names of groups, which take some 10,000 comparisons.
const STEP: u64 = 128;

/// Returns true if a text is a regular expression and not longer than a `pattern` may be.
pub(super) fn is_regex(text: &str) -> bool {
    is_short(text) && jsonschema_regex::is_valid_ecma_regex(text)
}

/// Returns the number of steps of checking a text.
pub(super) fn steps(text: &str) -> u64 {
    let bytes = text.len() as u64;
    if is_short(text) { bytes * bytes / STEP } else { 0 }
}

fn is_short(text: &str) -> bool {
    text.len() as u64 <= PATTERN_BYTES
}
