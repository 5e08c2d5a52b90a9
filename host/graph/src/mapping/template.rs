//! JSON templates with expressions.

use serde_json::{Map, Value};

use crate::expr::expression::{CelExpression, Variables};

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
                    let key_text = name.unwrap_or(key).to_owned();
                    Ok::<_, String>(Field { key: key_text, is_optional: name.is_some(), value })
                };
                Self::Object(fields.iter().map(field).collect::<Result<_, _>>()?)
            }
            other => Self::Fixed(other.clone()),
        })
    }

    /// Returns the JSON value of the template, with the results of its expressions. An expression
    /// that fails yields `null`.
    pub(super) fn render(&self, variables: &Variables<'_>) -> Value {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Expression(expression) => expression.eval(variables).unwrap_or_default(),
            Self::List(items) => items.iter().map(|item| item.render(variables)).collect(),
            Self::Object(fields) => {
                let mut object = Map::new();
                for field in fields {
                    let value = field.value.render(variables);
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
