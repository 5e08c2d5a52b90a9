//! JSON Schema, with bounds on the cost of compilation and validation.
//!
//! Schemas come from guests, apps, MCP servers and clients. A small schema can keep a validator
//! busy forever: with definitions that double, patterns that backtrack, or recursion over deep
//! values. Every use of JSON Schema in the host goes through [`Schema`].
//!
//! [`Schema::compile`] bounds the schema itself: its bytes, nodes, nesting and patterns, and the
//! number of subschemas that apply to one location of a value. References stay within the document.
//! An engine without backtracking matches the patterns; look-around is rewritten as patterns
//! without look-around. Each pattern is compiled once to measure its size, before the validator
//! compiles it. This takes a fraction of the time of the validator, so a schema that is too large
//! is rejected early.
//!
//! [`Schema::validate`] counts the steps before it validates. One step is one keyword applied to
//! one value; keywords that read a whole value (`uniqueItems`, `enum`, `pattern`) and the format
//! `regex` count more. The count assumes that no check ends early and that all alternatives are
//! tried. It depends only on the schema and the value, so a replay has the same result.
//!
//! Validations on behalf of one caller share a [`StepBudget`]: a thousand writes of one outcome
//! take no more steps than one large write.

mod ahead;
mod budget;
mod cost;
mod error;
mod json_pointer;
mod options;
mod outline;
mod pattern;
pub mod reference;
mod regex_format;
mod unique;

use std::fmt;
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use crate::limit::{Exceeded, SCHEMA_EXPLAINED_STEPS, SCHEMA_MESSAGE_BYTES};
use crate::schema::options::options;
use crate::schema::outline::Outline;
use crate::suggest;

pub use crate::schema::budget::StepBudget;
pub use crate::schema::error::SchemaError;

/// The types that a schema can name.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

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

/// Whether a schema enforces its formats (`email`, `date` and the like).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Formats {
    /// As the draft of the schema requires. Most drafts do not enforce formats.
    OfDraft,
    /// All formats are enforced.
    Enforced,
}

/// A source of compiled schemas, such as a cache.
pub trait SchemaSource {
    /// Returns a compiled schema.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] if the value is not a JSON Schema, or exceeds a limit.
    fn compiled(&self, schema: &Value, formats: Formats) -> Result<Arc<Schema>, SchemaError>;
}

/// Error of validating a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// The value violates the schema. The message describes the violation and its location.
    #[error("{0}")]
    Invalid(String),
    /// The validation takes more steps than its budget has left.
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
    /// [`SchemaError`] if the value is not a JSON Schema, or exceeds a limit.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        Self::with(schema, options())
    }

    /// Compiles a schema and enforces its formats (`email`, `date` and the like), even if its draft
    /// does not.
    ///
    /// # Errors
    ///
    /// See [`Schema::compile`].
    pub fn compile_with_formats(schema: &Value) -> Result<Self, SchemaError> {
        Self::with(schema, options().should_validate_formats(true))
    }

    fn with(
        schema: &Value,
        mut options: jsonschema::ValidationOptions<'static>,
    ) -> Result<Self, SchemaError> {
        let outline = Outline::of(schema)?;
        if outline.looks_ahead {
            options = options.with_keyword("pattern", pattern::keyword());
        }
        let validator = options.build(schema).map_err(|error| refused(&error))?;
        Ok(Self { validator, outline })
    }

    /// Returns true if validating even a small value can take long: many parts of the schema apply
    /// to one location of a value, or a part compares with many values or a large pattern.
    pub fn is_expensive(&self) -> bool {
        self.outline.is_expensive
    }

    /// Returns the approximate maximum memory of the compiled schema, in bytes, if one thread uses
    /// it. The result includes the memory for matching the patterns.
    pub fn memory(&self) -> u64 {
        self.outline.memory
    }

    /// Validates a value with a separate budget.
    ///
    /// # Errors
    ///
    /// [`Misfit::Invalid`] with the first violation; [`Misfit::Limit`] if the validation takes too
    /// many steps.
    pub fn validate(&self, value: &Value) -> Result<(), Misfit> {
        self.validate_within(value, &StepBudget::default())
    }

    /// Validates a value and takes the steps from a budget that other validations share.
    ///
    /// # Errors
    ///
    /// [`Misfit::Invalid`] with the first violation; [`Misfit::Limit`] if the validation takes more
    /// steps than the budget has left.
    pub fn validate_within(&self, value: &Value, budget: &StepBudget) -> Result<(), Misfit> {
        match self.check(value, budget)? {
            Verdict::Fits => Ok(()),
            Verdict::Unexplained => Err(Misfit::Invalid(unexplained())),
            Verdict::Explained => match self.validator.validate(value) {
                Ok(()) => Ok(()),
                Err(error) => Err(Misfit::Invalid(describe(&error))),
            },
        }
    }

    /// Returns descriptions of the first `most` violations; empty if the value is valid.
    ///
    /// # Errors
    ///
    /// [`Exceeded`] if the validation takes too many steps.
    pub fn violations(&self, value: &Value, most: usize) -> Result<Vec<String>, Exceeded> {
        Ok(match self.check(value, &StepBudget::default())? {
            Verdict::Fits => Vec::new(),
            Verdict::Unexplained => vec![unexplained()],
            Verdict::Explained => {
                let errors = self.validator.iter_errors(value).take(most);
                errors.map(|error| describe(&error)).collect()
            }
        })
    }

    /// Returns the violations as errors of the validator, for callers that repair values. Returns
    /// `None` if the value is invalid but too large for a description of its violations.
    ///
    /// # Errors
    ///
    /// [`Exceeded`] if the validation takes too many steps.
    pub fn errors<'v>(
        &'v self,
        value: &'v Value,
    ) -> Result<Option<Vec<ValidationError<'v>>>, Exceeded> {
        Ok(match self.check(value, &StepBudget::default())? {
            Verdict::Fits => Some(Vec::new()),
            Verdict::Unexplained => None,
            Verdict::Explained => Some(self.validator.iter_errors(value).collect()),
        })
    }

    fn check(&self, value: &Value, budget: &StepBudget) -> Result<Verdict, Exceeded> {
        let told = cost::count(&self.outline, value, budget)?;
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
    /// The value is invalid, and its violations can be described within the limit.
    Explained,
    Unexplained,
}

fn unexplained() -> String {
    "the value does not fit the schema; value and schema are too large to say where".to_owned()
}

/// Returns the error for a schema that the validator does not accept.
fn refused(error: &ValidationError<'_>) -> SchemaError {
    match (error.kind(), error.instance().as_ref()) {
        (ValidationErrorKind::Format { format }, Value::String(pattern)) if format == "regex" => {
            pattern::unusable(pattern)
        }
        // The message of the validator would name keywords of the metaschema.
        (ValidationErrorKind::AnyOf { .. }, value) => {
            let pointer = error.instance_path().to_string();
            let is_type = pointer.ends_with("/type");
            SchemaError::Broken(if is_type { bad_type(value, &pointer) } else { describe(error) })
        }
        _ => SchemaError::Broken(describe(error)),
    }
}

/// Returns the description of a `type` that is neither a type nor a list of different types.
fn bad_type(value: &Value, pointer: &str) -> String {
    let names = match value {
        Value::Array(names) => names.as_slice(),
        one => std::slice::from_ref(one),
    };
    let is_type = |name: &&Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    let pointer = cut(pointer.to_owned());
    match names.iter().find(|name| !is_type(name)) {
        Some(Value::String(name)) => {
            let known = suggest::hint(name, "the types are", TYPES.iter().copied());
            format!(
                "`{}` at `{pointer}` is not a type; {known}",
                cut(name.escape_debug().to_string())
            )
        }
        _ => format!(
            "`type` at `{pointer}` is neither a type nor a list of different types; the types are: {}",
            suggest::quoted_names(TYPES.iter())
        ),
    }
}

/// Returns a description of a violation, with its location.
pub fn describe(error: &ValidationError<'_>) -> String {
    let pointer = error.instance_path().to_string();
    let text = cut(error.to_string());
    if pointer.is_empty() { text } else { format!("{text} at `{}`", cut(pointer)) }
}

/// Truncates a long text.
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
