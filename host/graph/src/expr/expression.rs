//! CEL expressions over named JSON values, for projections of the event log and for cache keys.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use cel::common::types::CelNull;
use cel::common::value::Val;
use cel::parser::{Expression, PrattParser};
use serde_json::Value;

use super::{CONDITION_LIMIT_BYTES, ConditionBudget, DEPTH_LIMIT, EvalError, NESTING_LIMIT};
use super::{context, failed, first_line, json, metered, references};

/// The variables of an expression, by name.
pub type Variables<'a> = BTreeMap<&'static str, &'a Value>;

/// A compiled expression.
#[derive(Clone)]
pub struct CelExpression {
    text: String,
    kind: Kind,
    variables: BTreeSet<String>,
}

#[derive(Clone)]
enum Kind {
    /// `a.b.c`: the value is returned unchanged, with the order of its keys.
    Path(Vec<String>),
    Expression(Box<Expression>),
}

impl std::fmt::Debug for CelExpression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CelExpression").field(&self.text).finish()
    }
}

impl CelExpression {
    /// Compiles an expression that may use the variables `known`.
    ///
    /// # Errors
    ///
    /// A human-readable message if the text is too long, does not parse or uses a variable that is
    /// not in `known`.
    pub fn parse(text: &str, known: &[&str]) -> Result<Self, String> {
        let text = text.trim();
        if text.len() > CONDITION_LIMIT_BYTES {
            return Err(format!("an expression may have at most {CONDITION_LIMIT_BYTES} bytes"));
        }
        let wrong = |reason: String| format!("`{text}` is not a valid expression: {reason}");
        let expression = PrattParser::new()
            .max_recursion_depth(NESTING_LIMIT)
            .parse(text)
            .map_err(|errors| wrong(first_line(&errors.to_string())))?;
        let names = references::collect(&expression, DEPTH_LIMIT).map_err(wrong)?;
        let mut variables: BTreeSet<String> = names.other_variables.into_iter().collect();
        if names.whole_state || !names.channels.is_empty() {
            variables.insert("state".to_owned());
        }
        if let Some(other) = variables.iter().find(|name| !known.contains(&name.as_str())) {
            let known = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            return Err(wrong(format!("`{other}` is not known here, expected one of {known}")));
        }
        let kind = match path(text).filter(|path| known.contains(&path[0].as_str())) {
            Some(path) => Kind::Path(path),
            None => Kind::Expression(Box::new(metered::metered(&expression))),
        };
        Ok(Self { text: text.to_owned(), kind, variables })
    }

    /// Returns true if the expression uses a variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.variables.contains(variable)
    }

    /// Evaluates the expression. Variables that are not given are `null`.
    ///
    /// # Errors
    ///
    /// A human-readable message if the evaluation fails or takes too many steps.
    pub fn eval(&self, variables: &Variables<'_>) -> Result<Value, String> {
        let value = self.eval_within(variables, &ConditionBudget::default());
        value.map(Cow::into_owned).map_err(|error| error.to_string())
    }

    /// Evaluates the expression within a budget of steps. Variables that are not given are `null`.
    /// The value of a path such as `a.b.c` is borrowed and takes no steps.
    ///
    /// # Errors
    ///
    /// [`EvalError`] if the evaluation fails or takes more steps than the budget has left.
    pub(crate) fn eval_within<'v>(
        &self,
        variables: &Variables<'v>,
        budget: &ConditionBudget,
    ) -> Result<Cow<'v, Value>, EvalError> {
        let failed = |error: String| EvalError::Failed(format!("`{}` failed: {error}", self.text));
        match &self.kind {
            Kind::Path(path) => resolve_path(path, variables).map(Cow::Borrowed).map_err(failed),
            Kind::Expression(expression) => {
                let result = self.evaluate(expression, variables, budget);
                budget.check(&self.text).map_err(EvalError::Limit)?;
                result.map(Cow::Owned).map_err(failed)
            }
        }
    }

    /// Returns the length of the expression, in bytes.
    pub(crate) fn text_bytes(&self) -> u64 {
        self.text.len() as u64
    }

    fn evaluate(
        &self,
        expression: &Expression,
        variables: &Variables<'_>,
        budget: &ConditionBudget,
    ) -> Result<Value, String> {
        let mut context = context(budget);
        for name in &self.variables {
            let value: Box<dyn Val + '_> = match variables.get(name.as_str()) {
                Some(value) => json::to_cel(value, budget).map_err(|error| failed::told(&error))?,
                None => Box::new(CelNull),
            };
            context.add_variable_as_val(name.as_str(), value);
        }
        let value =
            cel::Value::resolve(expression, &context).map_err(|error| failed::told(&error))?;
        json::from_cel(&value).ok_or_else(|| "the result has no JSON form".to_owned())
    }
}

/// Returns the segments of a path such as `a.b.c`, and `None` for any other expression.
fn path(text: &str) -> Option<Vec<String>> {
    /// Keywords, which are not variables.
    const LITERALS: [&str; 4] = ["true", "false", "null", "in"];
    let is_name = |part: &str| {
        let mut letters = part.chars();
        letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            && !LITERALS.contains(&part)
    };
    let parts: Vec<String> = text.split('.').map(ToOwned::to_owned).collect();
    parts.iter().all(|part| is_name(part)).then_some(parts)
}

fn resolve_path<'v>(path: &[String], variables: &Variables<'v>) -> Result<&'v Value, String> {
    let Some((root, keys)) = path.split_first() else { return Ok(&Value::Null) };
    let mut value = variables.get(root.as_str()).copied().unwrap_or(&Value::Null);
    for key in keys {
        value = value.get(key).ok_or_else(|| format!("there is no `{key}`"))?;
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{CelExpression, Variables};

    #[test]
    fn expressions_evaluate() {
        let (event, state) = (json!({"z": 1, "a": [1, 2]}), json!({"name": "Ada"}));
        let variables = Variables::from([("event", &event), ("state", &state)]);
        for (text, wanted) in [
            ("event", event.clone()),
            ("event.a", json!([1, 2])),
            ("event.a.map(n, n * 2)", json!([2, 4])),
            ("'x-' + state.name", json!("x-Ada")),
            ("size(event.a) > 1 ? event.z : 0", json!(1)),
            ("{'n': event.z, 'b': true}", json!({"b": true, "n": 1})),
            ("null", Value::Null),
            ("string(event.z) + '.5'", json!("1.5")),
            ("has(event.missing)", json!(false)),
        ] {
            let expression = CelExpression::parse(text, &["event", "state"]).unwrap();
            assert_eq!(expression.eval(&variables), Ok(wanted), "{text}");
        }
        for text in ["event.missing", "state.name.deeper", "event.z + 'x'"] {
            let expression = CelExpression::parse(text, &["event", "state"]).unwrap();
            assert!(expression.eval(&variables).is_err(), "{text}");
        }
    }

    #[test]
    fn keys_with_equal_texts_collapse_deterministically() {
        for _ in 0..20 {
            let expression =
                CelExpression::parse("{1: 'int', '1': 'text', true: 1, 'true': 2}", &[]);
            let value = expression.unwrap().eval(&Variables::new());
            assert_eq!(value, Ok(json!({"1": "text", "true": 2})));
        }
    }

    #[test]
    fn invalid_expressions_are_rejected() {
        let error = CelExpression::parse("even.z", &["event"]).unwrap_err();
        assert!(error.contains("`even` is not known") && error.contains("`event`"), "{error}");
        assert!(CelExpression::parse("event.", &["event"]).is_err());
        assert!(CelExpression::parse("state.x", &["event"]).is_err());
    }
}
