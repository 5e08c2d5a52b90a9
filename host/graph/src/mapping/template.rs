//! JSON templates with expressions.

use serde_json::{Map, Value};

use crate::expr::expression::{CelExpression, Variables};
use crate::limit::Exceeded;
use crate::mapping::budget::ProjectionBudget;

/// Prefix of a string that is an expression.
const EXPRESSION_PREFIX: char = '=';

/// Suffix of a key that is left out if its value is `null`.
const OPTIONAL_SUFFIX: char = '?';

/// Maximum nesting of a template, in levels. Templates are written by hand, and rendering is
/// recursive.
const DEPTH_LIMIT: usize = 32;

/// A JSON template with expressions.
#[derive(Clone, Debug)]
pub(super) enum Template {
    Fixed(Value),
    Expression(CelExpression),
    List(Vec<Template>),
    Object(Vec<Field>),
}

/// One field of an object.
#[derive(Clone, Debug)]
pub(super) struct Field {
    key: String,
    is_optional: bool,
    value: Template,
}

impl Template {
    /// Compiles a template. `known` are the variables that its expressions may use.
    pub(super) fn parse(value: &Value, known: &[&str]) -> Result<Self, String> {
        Self::parse_at(value, known, DEPTH_LIMIT)
    }

    fn parse_at(value: &Value, known: &[&str], depth_left: usize) -> Result<Self, String> {
        let depth_left = depth_left
            .checked_sub(1)
            .ok_or_else(|| "the template is nested too deeply".to_owned())?;
        Ok(match value {
            Value::String(text) => match text.strip_prefix(EXPRESSION_PREFIX) {
                Some(rest) if rest.starts_with(EXPRESSION_PREFIX) => Self::Fixed(rest.into()),
                Some(expression) => Self::Expression(CelExpression::parse(expression, known)?),
                None => Self::Fixed(value.clone()),
            },
            Value::Array(items) => {
                let items = items.iter().map(|item| Self::parse_at(item, known, depth_left));
                Self::List(items.collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let field = |(key, value): (&String, &Value)| {
                    let name = key.strip_suffix(OPTIONAL_SUFFIX);
                    let value = Self::parse_at(value, known, depth_left)?;
                    let key = name.unwrap_or(key).to_owned();
                    Ok::<_, String>(Field { key, is_optional: name.is_some(), value })
                };
                Self::Object(fields.iter().map(field).collect::<Result<_, _>>()?)
            }
            other => Self::Fixed(other.clone()),
        })
    }

    /// Returns the JSON value of the template, with the results of its expressions. An expression
    /// that fails yields `null`.
    pub(super) fn render(
        &self,
        variables: &Variables<'_>,
        budget: &mut ProjectionBudget,
    ) -> Result<Value, Exceeded> {
        Ok(match self {
            Self::Fixed(value) => value.clone(),
            Self::Expression(expression) => budget.eval_owned(expression, variables)?,
            Self::List(items) => {
                let items = items.iter().map(|item| item.render(variables, budget));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Self::Object(fields) => {
                let mut object = Map::new();
                for field in fields {
                    let value = field.value.render(variables, budget)?;
                    if !(field.is_optional && value.is_null()) {
                        object.insert(field.key.clone(), value);
                    }
                }
                Value::Object(object)
            }
        })
    }

    /// Returns true if an expression uses the variable.
    pub(super) fn uses(&self, variable: &str) -> bool {
        match self {
            Self::Fixed(_) => false,
            Self::Expression(expression) => expression.uses(variable),
            Self::List(items) => items.iter().any(|item| item.uses(variable)),
            Self::Object(fields) => fields.iter().any(|field| field.value.uses(variable)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_a_template_share_one_budget() {
        let text = "x".repeat(20 << 20);
        let state = json!(text);
        let variables = Variables::from([("state", &state)]);
        let render = |template: Value| {
            let template = Template::parse(&template, &["state"]).unwrap();
            template.render(&variables, &mut ProjectionBudget::default())
        };
        let rendered = render(json!({ "a": "=state", "b": ["=state", "=state"], "c": "=1 + 1" }));
        let rendered = rendered.unwrap();
        assert_eq!(
            (&rendered["a"], &rendered["b"][1], &rendered["c"]),
            (&state, &state, &json!(2))
        );
        let exceeded = render(json!({ "a": "=state", "b": ["=state", "=state", "=state"] }));
        assert_eq!(exceeded.unwrap_err().limit, "projection_bytes");
    }
}
