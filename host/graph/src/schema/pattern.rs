//! Patterns: only those that match in time proportional to the text.

use std::collections::BTreeMap;

use serde_json::json;

use crate::limit::{Exceeded, PATTERN_BYTES, PATTERN_COMPILED_BYTES, SCHEMA_PATTERNS};
use crate::schema::{SchemaError, options};

/// Sizes of a compiled pattern that are distinguished, in bytes.
const SIZES: [u64; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, PATTERN_COMPILED_BYTES];

/// Bytes of a text times bytes of a compiled pattern per step: each byte of the
/// text may meet every state of the pattern, at about ten nanoseconds for a KiB of it.
const STEP: u64 = 16 << 10;

/// Patterns of one schema, with the size that each compiles to.
#[derive(Default)]
pub(super) struct Patterns(BTreeMap<String, u64>);

impl Patterns {
    /// About how many bytes a pattern compiles to.
    pub(super) fn size(&mut self, pattern: &str) -> Result<u64, SchemaError> {
        if let Some(size) = self.0.get(pattern) {
            return Ok(*size);
        }
        if pattern.len() as u64 > PATTERN_BYTES {
            let message = format!("a pattern of the schema has more than {PATTERN_BYTES} bytes");
            return Err(Exceeded::new("pattern_bytes", PATTERN_BYTES, message).into());
        }
        if self.0.len() as u64 >= SCHEMA_PATTERNS {
            let message = format!("the schema has more than {SCHEMA_PATTERNS} different patterns");
            return Err(Exceeded::new("schema_patterns", SCHEMA_PATTERNS, message).into());
        }
        let size = SIZES.into_iter().find(|size| fits(pattern, *size)).ok_or_else(|| {
            SchemaError::Broken(format!(
                "the pattern `{pattern}` cannot be used: it is no regular expression, needs \
                 backtracking (look-around and back-references do), or compiles to more than \
                 {PATTERN_COMPILED_BYTES} bytes"
            ))
        })?;
        self.0.insert(pattern.to_owned(), size);
        Ok(size)
    }
}

fn fits(pattern: &str, size: u64) -> bool {
    options(size).build(&json!({ "pattern": pattern })).is_ok()
}

/// Steps of matching a text against patterns of that size in total.
pub(super) fn steps(text: &str, sizes: u64) -> u64 {
    (text.len() as u64 + 1).saturating_mul(sizes) / STEP
}
