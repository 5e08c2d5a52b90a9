//! Patterns that match in time proportional to the text.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError, Validator};
use serde_json::{Map, Value, json};

use crate::limit::{Exceeded, PATTERN_BYTES, PATTERN_COMPILED_BYTES, SCHEMA_PATTERNS};
use crate::schema::ahead::{self, MOST, Part};
use crate::schema::{SchemaError, options};

/// Size classes of compiled patterns, in bytes.
const SIZES: [u64; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, PATTERN_COMPILED_BYTES];

/// Product of text bytes and compiled pattern bytes that counts as one step. Each byte of the text
/// may visit every state of the pattern, at about ten nanoseconds for a KiB of it.
const STEP: u64 = 16 << 10;

/// Patterns of one schema, with their compiled sizes.
#[derive(Default)]
pub(super) struct Patterns {
    sizes: BTreeMap<String, u64>,
    /// Whether a `pattern` has look-around, so that [`keyword`] has to replace the keyword of the
    /// validator.
    pub(super) look_ahead: bool,
}

impl Patterns {
    /// Returns the approximate compiled size of a `pattern`, in bytes. The pattern may have
    /// look-around.
    pub(super) fn keyword_size(&mut self, pattern: &str) -> Result<u64, SchemaError> {
        // A longer pattern is rejected below; its parts could be many times as long.
        let short = Some(pattern).filter(|pattern| pattern.len() as u64 <= PATTERN_BYTES);
        let Some(parts) = short.and_then(ahead::parts) else { return self.size(pattern) };
        self.look_ahead = true;
        let mut size = 0;
        for part in &parts {
            size += self.size(&part.pattern)?;
        }
        Ok(size)
    }

    /// Returns the approximate compiled size of a pattern without look-around, in bytes.
    pub(super) fn size(&mut self, pattern: &str) -> Result<u64, SchemaError> {
        if let Some(size) = self.sizes.get(pattern) {
            return Ok(*size);
        }
        if pattern.len() as u64 > PATTERN_BYTES {
            let message = format!("a pattern of the schema has more than {PATTERN_BYTES} bytes");
            return Err(Exceeded::new("pattern_bytes", PATTERN_BYTES, message).into());
        }
        if self.sizes.len() as u64 >= SCHEMA_PATTERNS {
            let message = format!("the schema has more than {SCHEMA_PATTERNS} different patterns");
            return Err(Exceeded::new("schema_patterns", SCHEMA_PATTERNS, message).into());
        }
        let size = SIZES.into_iter().find(|size| fits(pattern, *size)).ok_or_else(|| {
            SchemaError::Broken(format!(
                "the pattern `{pattern}` cannot be used: it is not a regular expression, needs \
                 backtracking (back-references do, and look-around except at the beginning and the \
                 end of a `pattern`, as in `^(?=.*[0-9])`, at most {MOST} times), or compiles to more than \
                 {PATTERN_COMPILED_BYTES} bytes"
            ))
        })?;
        self.sizes.insert(pattern.to_owned(), size);
        Ok(size)
    }
}

fn fits(pattern: &str, size: u64) -> bool {
    options(size).build(&json!({ "pattern": pattern })).is_ok()
}

/// Returns the number of steps of matching a string against patterns with the total compiled size
/// `sizes`.
pub(super) fn steps(text: &str, sizes: u64) -> u64 {
    (text.len() as u64 + 1).saturating_mul(sizes) / STEP
}

/// The parts of a pattern, and whether a string must match each.
type Parts = Vec<(bool, Validator)>;

/// A `pattern` keyword of a schema in which some pattern has look-around.
struct Pattern {
    parts: Arc<Parts>,
    pattern: String,
}

/// A keyword, or the reason why it cannot be created.
type Made<'a> = Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>>;

/// Returns a factory for the `pattern` keywords of one schema. It compiles equal patterns once.
pub(super) fn keyword()
-> impl for<'a> Fn(&'a Map<String, Value>, &'a Value, Location) -> Made<'a> + Send + Sync + 'static
{
    let compiled: Mutex<HashMap<String, Arc<Parts>>> = Mutex::default();
    move |_schema, value, _place| {
        let pattern = value.as_str().unwrap_or_default().to_owned();
        let mut compiled = compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = match compiled.get(&pattern) {
            Some(parts) => parts.clone(),
            None => {
                let parts = Arc::new(compile(&pattern)?);
                compiled.insert(pattern.clone(), parts.clone());
                parts
            }
        };
        Ok(Box::new(Pattern { parts, pattern }))
    }
}

fn compile(pattern: &str) -> Result<Parts, ValidationError<'static>> {
    let whole = || vec![Part { is_wanted: true, pattern: pattern.to_owned() }];
    let parts = ahead::parts(pattern).unwrap_or_else(whole).into_iter();
    let compiled = parts.map(|part| {
        let plain = json!({ "pattern": part.pattern });
        Ok((part.is_wanted, options(PATTERN_COMPILED_BYTES).build(&plain)?))
    });
    compiled.collect()
}

impl<'i> Keyword<'i> for Pattern {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) {
            return Ok(());
        }
        Err(ValidationError::custom(format!("{value} does not match \"{}\"", self.pattern)))
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        let matches = |(is_wanted, part): &(bool, Validator)| part.is_valid(value) == *is_wanted;
        !value.is_string() || self.parts.iter().all(matches)
    }
}
