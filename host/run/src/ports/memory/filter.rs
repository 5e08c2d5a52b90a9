//! Parses filters as guests and clients write them: an object that maps fields to values or to
//! operators.

use serde_json::{Map, Value};
use wattle_graph::failure::{Failure, code};

use crate::json::check_depth;
use crate::ports::memory::{Compare, Condition};

/// Prefix of an operator.
const OPERATOR_PREFIX: char = '$';

/// The operators by name.
const OPERATORS: &[(&str, Compare)] = &[
    ("$eq", Compare::Eq),
    ("$ne", Compare::Ne),
    ("$gt", Compare::Gt),
    ("$gte", Compare::Gte),
    ("$lt", Compare::Lt),
    ("$lte", Compare::Lte),
];

/// Parses a filter such as `{"kind": "fact", "age": {"$gte": 18, "$lt": 65}}`. An object with keys
/// that begin with `$` contains operators. For any other value, the field must equal the value.
///
/// # Errors
///
/// `invalid` if the filter is not an object, has an unknown operator, or mixes operators with
/// fields.
pub fn parse_filter(filter: &Value) -> Result<Vec<Condition>, Failure> {
    check_depth("the filter", filter)?;
    let Value::Object(fields) = filter else {
        return Err(invalid("a filter is an object of fields, such as `{\"kind\": \"fact\"}`"));
    };
    let mut conditions = Vec::new();
    for (field, wanted) in fields {
        if field.starts_with(OPERATOR_PREFIX) {
            return Err(invalid(&format!(
                "`{field}` is an operator where a field is expected; write \
                 `{{\"field\": {{\"{field}\": value}}}}`"
            )));
        }
        match wanted
            .as_object()
            .filter(|inner| inner.keys().any(|key| key.starts_with(OPERATOR_PREFIX)))
        {
            Some(operators) => read_operators(field, operators, &mut conditions)?,
            None => conditions.push(Condition {
                field: field.clone(),
                compare: Compare::Eq,
                value: wanted.clone(),
            }),
        }
    }
    Ok(conditions)
}

fn read_operators(
    field: &str,
    operators: &Map<String, Value>,
    conditions: &mut Vec<Condition>,
) -> Result<(), Failure> {
    for (name, value) in operators {
        let known = OPERATORS.iter().find(|(operator, _)| operator == name);
        let compare = known.map(|(_, compare)| *compare).ok_or_else(|| {
            let known: Vec<&str> = OPERATORS.iter().map(|(operator, _)| *operator).collect();
            let shown: String = name.chars().take(SHOWN_CHARS).collect();
            invalid(&format!("`{field}` has unknown operator `{shown}`; use {}", known.join(", ")))
        })?;
        conditions.push(Condition { field: field.to_owned(), compare, value: value.clone() });
    }
    Ok(())
}

/// Characters of an unknown operator that the message shows.
const SHOWN_CHARS: usize = 40;

fn invalid(message: &str) -> Failure {
    Failure::new(code::INVALID, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn filter_compares_fields_with_values_or_by_operators() {
        let filter = json!({ "kind": "fact", "age": { "$gte": 18, "$lt": 65 }, "at": { "x": 1 } });
        let condition =
            |field: &str, compare, value| Condition { field: field.to_owned(), compare, value };
        let wanted = vec![
            condition("kind", Compare::Eq, json!("fact")),
            condition("age", Compare::Gte, json!(18)),
            condition("age", Compare::Lt, json!(65)),
            condition("at", Compare::Eq, json!({ "x": 1 })),
        ];
        assert_eq!(parse_filter(&filter).unwrap(), wanted);
        assert_eq!(parse_filter(&json!({})).unwrap(), vec![]);
    }

    #[test]
    fn invalid_filters_are_rejected() {
        for filter in [
            json!([]),
            json!("x"),
            json!({ "$or": [] }),
            json!({ "a": { "$in": [1] } }),
            json!({ "a": { "$gt": 1, "b": 2 } }),
        ] {
            assert_eq!(parse_filter(&filter).unwrap_err().code, "invalid", "{filter}");
        }
    }
}
