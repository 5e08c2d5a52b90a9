//! JSON Schema, with bounds on what a schema and a value can cost.
//!
//! Schemas come from guests, apps, servers and clients. A small one can make a validator work for
//! ever: definitions that double, patterns that backtrack, recursion over deep values. Every use
//! of JSON Schema in the host goes through [`Schema`].
//!
//! [`Schema::compile`] bounds a schema by itself: bytes, nodes, nesting, patterns, and how many
//! schemas apply to one place of a value. References stay within the document. Patterns are
//! matched by an engine that does not backtrack; look-around is taken apart into patterns without.
//!
//! [`Schema::validate`] counts the work before it begins. One step is one keyword applied to one
//! value; keywords that look at all of a value (`uniqueItems`, `enum`, `pattern`) count more. The
//! count assumes that nothing ends early and that all alternatives are tried, so it depends on
//! schema and value only, and a replay comes to the same result.

mod ahead;
mod cost;
mod outline;
mod pattern;
mod place;
pub mod reference;
mod unique;

use std::fmt;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use crate::limit::{
    Exceeded, PATTERN_COMPILED_BYTES, SCHEMA_EXPLAINED_STEPS, SCHEMA_MESSAGE_BYTES,
};
use crate::schema::outline::Outline;

/// A compiled schema.
pub struct Schema {
    validator: Validator,
    outline: Outline,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").finish_non_exhaustive()
    }
}

/// Why a schema was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It is no schema, or uses what this host does not accept.
    #[error("{0}")]
    Broken(String),
    /// It is too large.
    #[error("{0}")]
    Limit(Exceeded),
}

impl From<Exceeded> for SchemaError {
    fn from(exceeded: Exceeded) -> Self {
        Self::Limit(exceeded)
    }
}

/// Why a value was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// It does not fit: a sentence that says what, and where.
    #[error("{0}")]
    Invalid(String),
    /// To find out takes more work than is allowed.
    #[error("{0}")]
    Limit(Exceeded),
}

impl From<Exceeded> for Misfit {
    fn from(exceeded: Exceeded) -> Self {
        Self::Limit(exceeded)
    }
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] if the value is no JSON Schema, or exceeds a limit.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        Self::with(schema, options(PATTERN_COMPILED_BYTES))
    }

    /// Compiles a schema whose formats (`email`, `date` and the like) a text must have, whatever its draft says
    /// of them.
    ///
    /// # Errors
    ///
    /// As [`Schema::compile`].
    pub fn compile_with_formats(schema: &Value) -> Result<Self, SchemaError> {
        Self::with(schema, options(PATTERN_COMPILED_BYTES).should_validate_formats(true))
    }

    fn with(
        schema: &Value,
        mut options: jsonschema::ValidationOptions<'static>,
    ) -> Result<Self, SchemaError> {
        let outline = Outline::of(schema)?;
        if outline.looks_ahead {
            options = options.with_keyword("pattern", pattern::keyword());
        }
        let validator =
            options.build(schema).map_err(|error| SchemaError::Broken(describe(&error)))?;
        Ok(Self { validator, outline })
    }

    /// Whether a `pattern` can be matched without backtracking.
    pub fn takes_pattern(pattern: &str) -> bool {
        pattern::Patterns::default().keyword_size(pattern).is_ok()
    }

    /// Whether a value fits.
    ///
    /// # Errors
    ///
    /// [`Misfit::Invalid`] with the first thing that does not fit, [`Misfit::Limit`] if finding
    /// out takes too much work.
    pub fn validate(&self, value: &Value) -> Result<(), Misfit> {
        match self.check(value)? {
            Verdict::Fits => Ok(()),
            Verdict::Unexplained => Err(Misfit::Invalid(unexplained())),
            Verdict::Explained => match self.validator.validate(value) {
                Ok(()) => Ok(()),
                Err(error) => Err(Misfit::Invalid(describe(&error))),
            },
        }
    }

    /// What does not fit, at most so many sentences; empty if the value fits.
    ///
    /// # Errors
    ///
    /// The limit, if finding out takes too much work.
    pub fn violations(&self, value: &Value, most: usize) -> Result<Vec<String>, Exceeded> {
        Ok(match self.check(value)? {
            Verdict::Fits => Vec::new(),
            Verdict::Unexplained => vec![unexplained()],
            Verdict::Explained => {
                let errors = self.validator.iter_errors(value).take(most);
                errors.map(|error| describe(&error)).collect()
            }
        })
    }

    /// The same as the validator sees it, for callers that mend values. `None` if the value does
    /// not fit and is too large to say where.
    ///
    /// # Errors
    ///
    /// The limit, if finding out takes too much work.
    pub fn errors<'v>(
        &'v self,
        value: &'v Value,
    ) -> Result<Option<Vec<ValidationError<'v>>>, Exceeded> {
        Ok(match self.check(value)? {
            Verdict::Fits => Some(Vec::new()),
            Verdict::Unexplained => None,
            Verdict::Explained => Some(self.validator.iter_errors(value).collect()),
        })
    }

    fn check(&self, value: &Value) -> Result<Verdict, Exceeded> {
        let told = cost::count(&self.outline, value)?;
        Ok(if self.validator.is_valid(value) {
            Verdict::Fits
        } else if told <= SCHEMA_EXPLAINED_STEPS {
            Verdict::Explained
        } else {
            Verdict::Unexplained
        })
    }
}

enum Verdict {
    Fits,
    /// It does not fit, and the validator may say why.
    Explained,
    Unexplained,
}

fn unexplained() -> String {
    "the value does not fit the schema; value and schema are too large to say where".to_owned()
}

/// Options of every validator; compiled patterns have at most so many bytes.
fn options(pattern_bytes: u64) -> jsonschema::ValidationOptions<'static> {
    let patterns = PatternOptions::regex()
        .size_limit(pattern_bytes as usize)
        .dfa_size_limit(pattern_bytes as usize);
    jsonschema::options()
        .offline()
        .with_pattern_options(patterns)
        .with_keyword("uniqueItems", unique::keyword)
}

/// What does not fit a schema, and where.
pub fn describe(error: &ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let text = cut(error.to_string());
    if place.is_empty() { text } else { format!("{text} at `{}`", cut(place)) }
}

/// A sentence without its end if it is long.
fn cut(mut text: String) -> String {
    if text.len() > SCHEMA_MESSAGE_BYTES {
        let end = (0..=SCHEMA_MESSAGE_BYTES).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or_default());
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests;
