//! Options of validators.

use jsonschema::{PatternOptions, ValidationOptions};

use crate::limit::PATTERN_COMPILED_BYTES;
use crate::schema::{regex_format, unique};

/// Media type that the validator checks in drafts 6 and 7.
const MEDIA_TYPE: &str = "application/json";

/// Encodings that the validator checks in drafts 6 and 7.
const ENCODINGS: [&str; 5] = ["base64", "base64url", "base32", "base32hex", "base16"];

/// Returns the options of every validator.
///
/// `contentMediaType` and `contentEncoding` are annotations in every draft, as from 2019-09. The
/// checks of the validator decode a text and parse it into values, which take many times the memory
/// of the text.
pub(super) fn options() -> ValidationOptions<'static> {
    let pattern_bytes = PATTERN_COMPILED_BYTES as usize;
    let patterns = PatternOptions::regex().size_limit(pattern_bytes).dfa_size_limit(pattern_bytes);
    let options = jsonschema::options()
        .offline()
        .with_pattern_options(patterns)
        .with_format("regex", regex_format::is_regex)
        .with_keyword("uniqueItems", unique::keyword)
        .without_content_media_type_support(MEDIA_TYPE);
    ENCODINGS.into_iter().fold(options, ValidationOptions::without_content_encoding_support)
}
