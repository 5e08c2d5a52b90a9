//! Coercions of an invalid document that have only one possible meaning: a null where a property
//! may be absent, a number or boolean in quotes, and an enum value in another case.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, JsonTypeSet, ValidationError};
use serde_json::{Number, Value};

/// A change at one path of a document.
pub(super) struct Coercion {
    path: String,
    /// The value after the coercion. `None` to drop the null at the path or, if the value at the
    /// path is not null, all null members below the path.
    coerced: Option<Value>,
}

/// Returns the coercions for a violation.
pub(super) fn for_error(error: &ValidationError<'_>) -> Vec<Coercion> {
    let path = error.instance_path().as_str().to_owned();
    match coerced_value(error) {
        Some(meant) => vec![Coercion { path, coerced: Some(meant) }],
        None => for_branch(error).unwrap_or_else(|| vec![Coercion { path, coerced: None }]),
    }
}

impl Coercion {
    /// Applies the coercion to a document. Returns whether the document changed.
    pub(super) fn apply(self, document: &mut Value) -> bool {
        let Some(meant) = self.coerced else { return drop_nulls(document, &self.path) };
        match document.pointer_mut(&self.path) {
            Some(value) if *value != meant => {
                *value = meant;
                true
            }
            _ => false,
        }
    }
}

/// Returns the coercions for the first alternative each of whose violations has a coercion.
fn for_branch(error: &ValidationError<'_>) -> Option<Vec<Coercion>> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return None;
    };
    context.iter().find_map(|branch| {
        let mends = branch.iter().map(|error| {
            let path = error.instance_path().as_str().to_owned();
            coerced_value(error).map(|meant| Coercion { path, coerced: Some(meant) })
        });
        mends.collect::<Option<Vec<_>>>().filter(|mends| !mends.is_empty())
    })
}

fn coerced_value(error: &ValidationError<'_>) -> Option<Value> {
    let Value::String(text) = error.instance().as_ref() else { return None };
    match error.kind() {
        ValidationErrorKind::Type { kind } => parse_quoted(text.trim(), types(kind)),
        ValidationErrorKind::Enum { options } => {
            let mut same = options.as_array()?.iter().filter(|option| {
                option.as_str().is_some_and(|option| option.eq_ignore_ascii_case(text.trim()))
            });
            same.next().filter(|_| same.next().is_none()).cloned()
        }
        _ => None,
    }
}

fn types(kind: &TypeKind) -> JsonTypeSet {
    match kind {
        TypeKind::Single(single) => JsonTypeSet::empty().insert(*single),
        TypeKind::Multiple(many) => *many,
    }
}

/// Returns the number or boolean within quotes, if the schema permits its type.
fn parse_quoted(text: &str, wanted: JsonTypeSet) -> Option<Value> {
    let number = || {
        let number: Number = serde_json::from_str(text).ok()?;
        let is_whole = number.is_i64() || number.is_u64();
        let fits =
            wanted.contains(JsonType::Number) || (is_whole && wanted.contains(JsonType::Integer));
        fits.then(|| Value::Number(number))
    };
    let truth = || {
        let truth: bool = serde_json::from_str(text).ok()?;
        wanted.contains(JsonType::Boolean).then_some(Value::Bool(truth))
    };
    number().or_else(truth)
}

/// Drops the null at a path that the validator reports. If the value at the path is not a null,
/// drops every null member below the path, because the validator reports alternatives at the path
/// where they start. Strict decoding makes models write `null` for a property that they would omit.
/// Returns whether a null was dropped.
fn drop_nulls(document: &mut Value, place: &str) -> bool {
    match document.pointer_mut(place) {
        Some(Value::Null) => {}
        Some(inner) => return drop_null_members(inner),
        None => return false,
    }
    let Some((parent, name)) = place.rsplit_once('/') else { return false };
    let name = name.replace("~1", "/").replace("~0", "~");
    match document.pointer_mut(parent) {
        Some(Value::Object(map)) => map.shift_remove(&name).is_some(),
        _ => false,
    }
}

fn drop_null_members(value: &mut Value) -> bool {
    match value {
        Value::Object(map) => {
            let before = map.len();
            map.retain(|_, member| !member.is_null());
            let dropped = map.len() < before;
            map.values_mut().fold(dropped, |dropped, member| drop_null_members(member) || dropped)
        }
        Value::Array(items) => {
            let mut dropped = false;
            for item in items {
                dropped |= drop_null_members(item);
            }
            dropped
        }
        _ => false,
    }
}
