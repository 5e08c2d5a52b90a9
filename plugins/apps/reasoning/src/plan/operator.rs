//! Operators of conditions, as models write them and as the data service accepts them.
//!
//! A condition keeps its meaning or is not executed. The data service declares its operators in the
//! schema of its tool. A condition with another operator is written in an equivalent form if there
//! is one; otherwise the user has to replace it. A word that names no operator has no such form.

use wattle_plugin::prelude::{Failure, Value, json, tools};

use crate::plan::{Filter, Mode};

/// Failure code of a condition that the data service cannot express.
pub(crate) const UNSUPPORTED: &str = "unsupported-condition";

/// Operators of a data service that declares none.
const USUAL: &[Operator] = &[Operator::Eq, Operator::Like, Operator::In];

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Eq,
    Ne,
    Like,
    NotLike,
    In,
    NotIn,
    Gt,
    Gte,
    Lt,
    Lte,
}

/// Each operator with its name at the data service, the other forms that models write, and its name
/// in questions to the user.
const ALL: &[(Operator, &str, &[&str], &str)] = &[
    (Operator::Eq, "eq", &["", "=", "==", "equals", "is", "等于"], "等于"),
    (Operator::Ne, "ne", &["!=", "<>", "neq", "not_eq", "not", "is_not", "不等于"], "不等于"),
    (Operator::Like, "like", &["contains", "ilike", "包含"], "包含"),
    (Operator::NotLike, "not_like", &["not_contains", "不包含"], "不包含"),
    (Operator::In, "in", &["one_of"], "属于"),
    (Operator::NotIn, "not_in", &["nin", "notin"], "不属于"),
    (Operator::Gt, "gt", &[">", "大于"], "大于"),
    (Operator::Gte, "gte", &[">=", "ge"], "不小于"),
    (Operator::Lt, "lt", &["<", "小于"], "小于"),
    (Operator::Lte, "lte", &["<=", "le"], "不大于"),
];

impl Operator {
    /// Returns the operator that a word names, or `None` if it names none. An empty word is `eq`.
    pub(crate) fn read(word: &str) -> Option<Self> {
        let word = word.trim().to_lowercase().replace([' ', '-'], "_");
        let is_meant = |(_, name, others, _): &&(Self, &str, &[&str], &str)| {
            *name == word || others.contains(&word.as_str())
        };
        ALL.iter().find(is_meant).map(|(operator, ..)| *operator)
    }

    /// Returns the names of all operators, for a model that wrote another word.
    pub(crate) fn all_names() -> Vec<&'static str> {
        ALL.iter().map(|(_, name, ..)| *name).collect()
    }

    /// Returns the name at the data service.
    pub(crate) fn name(self) -> &'static str {
        ALL.iter().find(|(operator, ..)| *operator == self).map_or("eq", |(_, name, ..)| name)
    }

    fn word(self) -> &'static str {
        ALL.iter().find(|(operator, ..)| *operator == self).map_or("", |(.., word)| word)
    }
}

/// Operators that the data service supports.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operators(Vec<Operator>);

impl Operators {
    /// Returns the operators of a service that declares none.
    #[cfg(test)]
    pub(crate) fn usual() -> Self {
        Self(USUAL.to_vec())
    }

    /// Reads the operators from the schema that the service declares for its tool.
    pub(crate) fn declared() -> Result<Self, Failure> {
        let tool = Mode::Query.tool();
        let known = tools::list()?.into_iter().find(|info| info.name == tool);
        let schema = known.map(|info| info.arguments_schema).unwrap_or_default();
        Ok(Self::of_schema(&schema))
    }

    fn of_schema(schema: &Value) -> Self {
        let names = schema.pointer("/properties/filters/items/properties/op/enum");
        let names = names.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let known: Vec<Operator> = names
            .filter_map(|given| ALL.iter().find(|(_, name, ..)| *name == given))
            .map(|(operator, ..)| *operator)
            .collect();
        if known.is_empty() { Self(USUAL.to_vec()) } else { Self(known) }
    }

    /// Returns the names of the operators, for the model.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|operator| operator.name()).collect()
    }

    /// Returns conditions with supported operators that together have the same meaning.
    ///
    /// # Errors
    ///
    /// [`UNSUPPORTED`] if there are none.
    pub(crate) fn express(
        &self,
        field: &str,
        label: &str,
        operator: Operator,
        value: &Value,
    ) -> Result<Vec<Filter>, Failure> {
        let has = |operator: Operator| self.0.contains(&operator);
        let one = |operator: Operator, value: Value| {
            vec![Filter { field: field.to_owned(), op: operator.name(), value }]
        };
        let values = match value {
            Value::Array(items) => items.clone(),
            single => vec![single.clone()],
        };
        match (operator, values.as_slice()) {
            // Several values always mean a choice among them.
            (Operator::Eq | Operator::In, _) if value.is_array() || operator == Operator::In => {
                match values.as_slice() {
                    _ if has(Operator::In) => Ok(one(Operator::In, Value::Array(values))),
                    [single] if has(Operator::Eq) => Ok(one(Operator::Eq, single.clone())),
                    _ => Err(unsupported(label, operator.word(), value)),
                }
            }
            (Operator::Ne, [single]) if has(Operator::Ne) => Ok(one(Operator::Ne, single.clone())),
            (Operator::Ne | Operator::NotIn, _) if has(Operator::NotIn) => {
                Ok(one(Operator::NotIn, Value::Array(values)))
            }
            (Operator::Ne | Operator::NotIn, _) if has(Operator::Ne) => {
                Ok(values.into_iter().flat_map(|value| one(Operator::Ne, value)).collect())
            }
            (operator, [single]) if has(operator) => Ok(one(operator, single.clone())),
            _ => Err(unsupported(label, operator.word(), value)),
        }
    }
}

/// Returns the failure of a condition that the data service cannot express. `word` is its operator
/// for users, or the word of the model if that names no operator.
pub(crate) fn unsupported(label: &str, word: &str, value: &Value) -> Failure {
    let value = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts = items
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
            texts.collect::<Vec<_>>().join("、")
        }
        other => other.to_string(),
    };
    let condition = [label, word, value.as_str()].join(" ").trim_end().to_owned();
    let message = format!("the data service cannot express the condition `{condition}`");
    Failure::new(UNSUPPORTED, message).with_details(json!({ "condition": condition }))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Value, json};

    use super::{Operator, Operators};

    fn service(names: &[&str]) -> Operators {
        let op = json!({ "enum": names });
        let filters = json!({ "items": { "properties": { "op": op } } });
        Operators::of_schema(&json!({ "properties": { "filters": filters } }))
    }

    /// Returns the conditions as `op value`. If the operator is refused, returns the refused
    /// condition, from the details of the failure.
    fn express(names: &[&str], op: &str, value: Value) -> Vec<String> {
        let operator = Operator::read(op).unwrap();
        match service(names).express("phone", "客户电话", operator, &value) {
            Ok(filters) => filters.iter().map(|it| format!("{} {}", it.op, it.value)).collect(),
            Err(failure) => vec![failure.details.unwrap()["condition"].to_string()],
        }
    }

    #[test]
    fn s1_50_other_words_of_models_name_operators_and_an_empty_one_is_eq() {
        for word in ["eq", "=", "等于", "", " "] {
            assert_eq!(Operator::read(word), Some(Operator::Eq), "{word}");
        }
        assert_eq!(Operator::read("LIKE"), Some(Operator::Like));
        assert_eq!(Operator::read("NOT IN"), Some(Operator::NotIn));
        assert_eq!(Operator::read("!="), Some(Operator::Ne));
    }

    #[test]
    fn s1_48_words_that_name_no_operator_are_never_equality() {
        for word in ["exclude", "between", "starts_with", "is_null", "median", "eq?"] {
            assert_eq!(Operator::read(word), None, "{word}");
        }
        for name in Operator::all_names() {
            assert_eq!(Operator::read(name).map(Operator::name), Some(name));
        }
    }

    #[test]
    fn s1_50_service_without_declared_operators_has_three() {
        assert_eq!(Operators::of_schema(&json!({})).names(), ["eq", "like", "in"]);
        assert_eq!(service(&["eq", "ne", "soundex"]).names(), ["eq", "ne"]);
    }

    #[test]
    fn exclusions_keep_their_meaning_or_are_rejected() {
        let everybody_but = |names: &[&str], value| express(names, "ne", value);
        assert_eq!(everybody_but(&["eq", "ne"], json!("1")), ["ne \"1\""]);
        assert_eq!(everybody_but(&["eq", "not_in"], json!("1")), ["not_in [\"1\"]"]);
        assert_eq!(express(&["ne"], "not_in", json!(["1", "2"])), ["ne \"1\"", "ne \"2\""]);
        let refused = everybody_but(&["eq", "like", "in"], json!("13800138000"));
        assert_eq!(refused, ["\"客户电话 不等于 13800138000\""]);
    }

    #[test]
    fn comparisons_never_become_equality() {
        assert_eq!(express(&["eq", "gt"], ">", json!(5)), ["gt 5"]);
        assert_eq!(express(&["eq"], ">", json!(5)), ["\"客户电话 大于 5\""]);
        assert_eq!(express(&["eq", "in"], "eq", json!([1, 2])), ["in [1,2]"]);
        assert_eq!(express(&["eq"], "in", json!([1])), ["eq 1"]);
    }
}
