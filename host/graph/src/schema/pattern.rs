//! Patterns that are matched in time proportional to the length of the text.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError, Validator};
use regex_automata::nfa::thompson::NFA;
use serde_json::{Map, Value, json};

use crate::limit::{
    Exceeded, PATTERN_BYTES, PATTERN_COMPILED_BYTES, PATTERN_ESCAPES, SCHEMA_PATTERNS,
    SCHEMA_PATTERNS_COMPILED_BYTES,
};
use crate::schema::ahead::{self, MOST, Part};
use crate::schema::error::SchemaError;
use crate::schema::options::options;

/// Size classes of compiled patterns, in bytes. Steps are counted by class, so that small changes
/// of the library that compiles patterns do not change them.
const SIZES: [u64; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, PATTERN_COMPILED_BYTES];

/// Product of text bytes and compiled pattern bytes that counts as one step. For each byte of the
/// text, the engine may visit every state of the pattern, which takes about ten nanoseconds for
/// each KiB of the compiled pattern.
const STEP: u64 = 16 << 10;

/// Letters of the escapes that the validator translates, each in a pass over the pattern.
const TRANSLATED: &[u8] = b"cdDsSwW";

/// Patterns of one schema, with their compiled sizes.
#[derive(Default)]
pub(super) struct Patterns {
    sizes: BTreeMap<String, u64>,
    /// Size of all compiled patterns, in bytes.
    compiled: u64,
    /// Whether a `pattern` has look-around, so that [`keyword`] has to replace the keyword of the
    /// validator.
    pub(super) look_ahead: bool,
}

impl Patterns {
    /// Returns the approximate compiled size of a `pattern`, in bytes. The pattern may have
    /// look-around.
    pub(super) fn keyword_size(&mut self, pattern: &str) -> Result<u64, SchemaError> {
        // A longer pattern is not split, because its parts could be many times as long. `size`
        // rejects it.
        let short = Some(pattern).filter(|pattern| pattern.len() as u64 <= PATTERN_BYTES);
        let Some(parts) = short.and_then(ahead::parts) else { return self.size(pattern) };
        self.look_ahead = true;
        let mut size = 0;
        for part in &parts {
            size += self.size(&part.pattern)?;
        }
        Ok(size)
    }

    /// Returns the approximate compiled size of a pattern without look-around, in bytes. Compiles
    /// equal patterns once.
    pub(super) fn size(&mut self, pattern: &str) -> Result<u64, SchemaError> {
        if let Some(size) = self.sizes.get(pattern) {
            return Ok(*size);
        }
        check_length(pattern)?;
        if escapes(pattern) > PATTERN_ESCAPES {
            let message = format!(
                "a pattern of the schema has more than {PATTERN_ESCAPES} escapes such as `\\d`: \
                 repeat one with `\\d{{4}}`, or write a class such as `[0-9]`"
            );
            return Err(Exceeded::new("pattern_escapes", PATTERN_ESCAPES, message).into());
        }
        if self.sizes.len() as u64 >= SCHEMA_PATTERNS {
            let message = format!("the schema has more than {SCHEMA_PATTERNS} different patterns");
            return Err(Exceeded::new("schema_patterns", SCHEMA_PATTERNS, message).into());
        }
        let bytes = compiled_bytes(pattern).ok_or_else(|| unusable(pattern))?;
        self.compiled += bytes;
        if self.compiled > SCHEMA_PATTERNS_COMPILED_BYTES {
            let allowed = SCHEMA_PATTERNS_COMPILED_BYTES;
            let message = format!(
                "the patterns of the schema compile to more than {allowed} bytes: repeat less in \
                 them, as in `[a-z]{{1,500}}`, and limit lengths with `maxLength`"
            );
            return Err(Exceeded::new("schema_patterns_compiled", allowed, message).into());
        }
        let size = SIZES.into_iter().find(|size| bytes <= *size);
        let size = size.unwrap_or(PATTERN_COMPILED_BYTES);
        self.sizes.insert(pattern.to_owned(), size);
        Ok(size)
    }

    /// Returns the maximum memory, in bytes, that the validator takes to match the patterns on one
    /// thread.
    pub(super) fn memory(&self) -> u64 {
        /// Factor from the size of a compiled pattern to the size of the lookup tables that the
        /// regular expression engine builds for it, both in bytes.
        const TABLES: u64 = 64;
        let of = |size: &u64| {
            let tables = size.saturating_mul(TABLES).min(PATTERN_COMPILED_BYTES);
            // The engine compiles the pattern for both directions. Matching can fill the cache of
            // states, whose size `options` limits.
            2 * *size + tables + PATTERN_COMPILED_BYTES
        };
        self.sizes.values().map(of).sum()
    }
}

/// Checks the length of a pattern.
fn check_length(pattern: &str) -> Result<(), Exceeded> {
    if pattern.len() as u64 <= PATTERN_BYTES {
        return Ok(());
    }
    let message = format!("a pattern of the schema has more than {PATTERN_BYTES} bytes");
    Err(Exceeded::new("pattern_bytes", PATTERN_BYTES, message))
}

/// Checks the lengths of all patterns in the definitions of a schema, also of those that nothing
/// refers to. In drafts 4 to 7, the validator checks them too, in time proportional to the square
/// of their lengths.
pub(super) fn check_lengths(definitions: &Value) -> Result<(), Exceeded> {
    match definitions {
        Value::Array(items) => items.iter().try_for_each(check_lengths),
        Value::Object(fields) => {
            let keyword = fields.get("pattern").and_then(Value::as_str);
            let properties = fields.get("patternProperties").and_then(Value::as_object);
            let names = properties.into_iter().flat_map(Map::keys).map(String::as_str);
            keyword.into_iter().chain(names).try_for_each(check_length)?;
            fields.values().try_for_each(check_lengths)
        }
        _ => Ok(()),
    }
}

/// Returns the number of escapes that the validator translates. Also counts `\\d`, which is an
/// escaped backslash and a letter.
fn escapes(pattern: &str) -> u64 {
    let pairs = pattern.as_bytes().windows(2);
    pairs.filter(|pair| pair[0] == b'\\' && TRANSLATED.contains(&pair[1])).count() as u64
}

/// Compiles a pattern with the options of the validator and returns the size, in bytes. Returns
/// `None` if the pattern cannot be compiled or is too large.
fn compiled_bytes(pattern: &str) -> Option<u64> {
    // The validator compares a text with such a pattern directly.
    if jsonschema_regex::analyze_pattern(pattern).is_some() {
        return Some(SIZES[0]);
    }
    let translated = jsonschema_regex::to_rust_regex(pattern).ok()?;
    let config = NFA::config().nfa_size_limit(Some(PATTERN_COMPILED_BYTES as usize));
    let compiled = NFA::compiler().configure(config).build(&translated).ok()?;
    // The limit applies during compilation, when a pattern takes about twice the memory.
    Some(2 * compiled.memory_usage() as u64)
}

/// Returns the error for a pattern that the validator cannot match.
pub(super) fn unusable(pattern: &str) -> SchemaError {
    SchemaError::Broken(format!(
        "the pattern `{pattern}` cannot be used: it is not a regular expression, needs \
         backtracking (back-references do, and look-around except at the beginning and the end of \
         a `pattern`, as in `^(?=.*[0-9])`, at most {MOST} times), or compiles to more than \
         {PATTERN_COMPILED_BYTES} bytes"
    ))
}

/// Returns the number of steps of matching a string against patterns with the total compiled size
/// `sizes`.
pub(super) fn steps(text: &str, sizes: u64) -> u64 {
    (text.len() as u64 + 1).saturating_mul(sizes) / STEP
}

/// The parts of a pattern, and whether a string must match each.
type Parts = Vec<(bool, Arc<Validator>)>;

/// Compiled patterns without look-around, by their text.
type Compiled = HashMap<String, Arc<Validator>>;

/// A `pattern` keyword of a schema in which some pattern has look-around.
struct Pattern {
    parts: Parts,
    pattern: String,
}

/// A keyword, or the reason why it cannot be created.
type Made<'a> = Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>>;

/// Returns a factory for the `pattern` keywords of one schema. The factory compiles equal parts of
/// patterns once.
pub(super) fn keyword()
-> impl for<'a> Fn(&'a Map<String, Value>, &'a Value, Location) -> Made<'a> + Send + Sync + 'static
{
    let compiled: Mutex<Compiled> = Mutex::default();
    move |_schema, value, _place| {
        let pattern = value.as_str().unwrap_or_default().to_owned();
        let mut compiled = compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = compile(&pattern, &mut compiled)?;
        Ok(Box::new(Pattern { parts, pattern }))
    }
}

fn compile(pattern: &str, compiled: &mut Compiled) -> Result<Parts, ValidationError<'static>> {
    let whole = || vec![Part { is_wanted: true, pattern: pattern.to_owned() }];
    let parts = ahead::parts(pattern).unwrap_or_else(whole).into_iter();
    let parts = parts.map(|part| Ok((part.is_wanted, compile_part(part.pattern, compiled)?)));
    parts.collect()
}

fn compile_part(
    pattern: String,
    compiled: &mut Compiled,
) -> Result<Arc<Validator>, ValidationError<'static>> {
    if let Some(known) = compiled.get(&pattern) {
        return Ok(known.clone());
    }
    let part = Arc::new(options().build(&json!({ "pattern": pattern }))?);
    compiled.insert(pattern, part.clone());
    Ok(part)
}

impl<'i> Keyword<'i> for Pattern {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) {
            return Ok(());
        }
        Err(ValidationError::custom(format!("{value} does not match \"{}\"", self.pattern)))
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        let matches =
            |(is_wanted, part): &(bool, Arc<Validator>)| part.is_valid(value) == *is_wanted;
        !value.is_string() || self.parts.iter().all(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_patterns_are_compiled_once() {
        let mut patterns = Patterns::default();
        let size = patterns.size("^[a-z]{1,100}x$").unwrap();
        let compiled = patterns.compiled;
        assert!(compiled > 0 && compiled <= size, "{compiled} {size}");
        assert_eq!(patterns.size("^[a-z]{1,100}x$"), Ok(size));
        assert_eq!((patterns.compiled, patterns.sizes.len()), (compiled, 1));
    }

    /// A few expensive parts can be combined to thousands of patterns.
    #[test]
    fn equal_parts_of_patterns_are_compiled_once() {
        let mut compiled = Compiled::default();
        let one = compile("^(?=.*a)(?=.*b)c", &mut compiled).unwrap();
        let other = compile("^(?=.*b)(?=.*a)c", &mut compiled).unwrap();
        assert_eq!((one.len(), other.len(), compiled.len()), (3, 3, 3));
        assert!(Arc::ptr_eq(&one[0].1, &other[1].1) && Arc::ptr_eq(&one[2].1, &other[2].1));
    }

    #[test]
    fn pattern_size_is_rounded_up_to_a_size_class() {
        let mut patterns = Patterns::default();
        for (pattern, size) in [
            ("^ready$", SIZES[0]),
            (r"^\d{4}-\d{2}-\d{2}$", SIZES[0]),
            ("^[ab]*a[ab]{900}c", SIZES[2]),
            ("^(?:[ab]{100}){130}", SIZES[4]),
        ] {
            assert_eq!(patterns.size(pattern), Ok(size), "{pattern}");
        }
    }
}
