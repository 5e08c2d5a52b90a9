//! JSON templates with expressions.

use serde_json::{Map, Value};

use crate::expr::expression::{CelExpression, Variables};
use crate::limit::RENDERED_BYTES;
use crate::weight::weight;

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
    /// yields `null` if it fails, or if its value and the values before it exceed
    /// [`RENDERED_BYTES`].
    pub(super) fn render(&self, variables: &Variables<'_>) -> Value {
        let mut left = RENDERED_BYTES;
        self.render_within(variables, &mut left)
    }

    /// Renders the template with values of at most the weight `left`, and subtracts their weight
    /// from `left`.
    fn render_within(&self, variables: &Variables<'_>, left: &mut u64) -> Value {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Expression(expression) => {
                let value = expression.eval(variables).unwrap_or_default();
                match left.checked_sub(weight(&value)) {
                    Some(rest) => {
                        *left = rest;
                        value
                    }
                    None => Value::Null,
                }
            }
            Self::List(items) => {
                items.iter().map(|item| item.render_within(variables, left)).collect()
            }
            Self::Object(fields) => {
                let mut object = Map::new();
                for field in fields {
                    let value = field.value.render_within(variables, left);
                    if !(field.is_optional && value.is_null()) {
                        object.insert(field.key.clone(), value);
                    }
                }
                Value::Object(object)
            }
        }
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
    fn values_beyond_the_limit_of_a_template_are_null() {
        let text = "x".repeat(20 << 20);
        let state = json!(text);
        let template = json!({ "a": "=state", "b": ["=state", "=state", "=state"], "c": "=1 + 1" });
        let template = Template::parse(&template, &["state"]).unwrap();
        let rendered = template.render(&Variables::from([("state", &state)]));
        assert_eq!((&rendered["a"], &rendered["b"][1]), (&state, &state));
        assert_eq!((&rendered["b"][2], &rendered["c"]), (&Value::Null, &json!(2)));
    }
}
