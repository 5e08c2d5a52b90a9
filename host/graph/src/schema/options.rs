//! Options of validators.

use jsonschema::PatternOptions;

use crate::limit::PATTERN_COMPILED_BYTES;
use crate::schema::{regex_format, unique};

/// Returns the options of every validator.
pub(super) fn options() -> jsonschema::ValidationOptions<'static> {
    let pattern_bytes = PATTERN_COMPILED_BYTES as usize;
    let patterns = PatternOptions::regex().size_limit(pattern_bytes).dfa_size_limit(pattern_bytes);
    jsonschema::options()
        .offline()
        .with_pattern_options(patterns)
        .with_format("regex", regex_format::is_regex)
        .with_keyword("uniqueItems", unique::keyword)
}
