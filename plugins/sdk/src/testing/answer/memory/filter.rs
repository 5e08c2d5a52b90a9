//! Filters of a search, with the semantics of the host.

use std::cmp::Ordering;

use serde_json::Value;

use crate::failure::Failure;

/// A condition on a field.
pub(super) struct Condition<'f> {
    field: &'f str,
    operator: &'f str,
    value: &'f Value,
}

/// Parses a filter.
pub(super) fn read(filter: &Value) -> Result<Vec<Condition<'_>>, Failure> {
    let Some(fields) = filter.as_object() else { return Err(invalid(&filter.to_string())) };
    let mut conditions = Vec::new();
    for (field, value) in fields {
        let is_operator = |key: &String| key.starts_with('$');
        match value.as_object().filter(|inner| inner.keys().any(is_operator)) {
            Some(operators) => {
                for (operator, value) in operators {
                    check(operator)?;
                    conditions.push(Condition { field, operator, value });
                }
            }
            None if is_operator(field) => return Err(invalid(field)),
            None => conditions.push(Condition { field, operator: "$eq", value }),
        }
    }
    Ok(conditions)
}

fn check(operator: &str) -> Result<(), Failure> {
    match operator {
        "$eq" | "$ne" | "$gt" | "$gte" | "$lt" | "$lte" => Ok(()),
        other => Err(invalid(other)),
    }
}

fn invalid(what: &str) -> Failure {
    let message = format!(
        "a filter maps fields to values, or to the operators `$eq`, `$ne`, `$gt`, `$gte`, `$lt` \
         and `$lte`, not to `{what}`"
    );
    Failure::new("invalid", message)
}

impl Condition<'_> {
    /// Returns true if a document satisfies the condition.
    pub(super) fn holds(&self, document: &Value) -> bool {
        let found = document.get(self.field).unwrap_or(&Value::Null);
        let order = order(found, self.value);
        match self.operator {
            "$eq" => found == self.value || order == Some(Ordering::Equal),
            "$ne" => found != self.value && order != Some(Ordering::Equal),
            "$gt" => order == Some(Ordering::Greater),
            "$gte" => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            "$lt" => order == Some(Ordering::Less),
            _ => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        }
    }
}

fn order(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64()?.partial_cmp(&other.as_f64()?),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        _ => None,
    }
}
