//! CEL: conditions over the state, and in [`expression`] expressions over other values.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use cel::common::types::{CelBool, CelMap, CelMapKey, CelNull};
use cel::common::value::Val;
use cel::parser::{Expression, PrattParser};
use cel::{Context, ExecutionError};

use crate::checkpoint::{ChannelValue, Values};
use crate::expr::meter::{ENVIRONMENT, METER, Meter};
use crate::expr::references::References;
use crate::limit::Exceeded;

pub use crate::expr::meter::ConditionBudget;

pub mod expression;
mod failed;
mod json;
pub(crate) mod kinds;
mod meter;
mod metered;
mod references;

/// Maximum length of a condition in bytes. A condition selects a branch and does not compute. The
/// limit also bounds chains of operators, which the parser does not count as nesting.
pub const CONDITION_LIMIT_BYTES: usize = 1024;

/// Maximum nesting of a condition as written.
const NESTING_LIMIT: u16 = 32;

/// Maximum depth of the syntax tree of a condition. Chains of operators and expanded macros add to
/// the depth. Evaluation is recursive.
const DEPTH_LIMIT: usize = 64;

/// The error of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The evaluation failed, with a message for people.
    #[error("{0}")]
    Failed(String),
    /// The evaluation takes more steps than the budget has left.
    #[error("{0}")]
    Limit(Exceeded),
}

/// A compiled condition.
///
/// It reads one variable, `state`. A channel without a value is `null`, so `state.x == null` is
/// true if the channel has no value.
#[derive(Clone)]
pub struct Condition {
    text: String,
    expression: Expression,
    channels: BTreeSet<String>,
    whole_state: bool,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Condition").field(&self.text).finish()
    }
}

impl Condition {
    /// Compiles a condition.
    ///
    /// # Errors
    ///
    /// A human-readable message if the text is too long, does not parse or uses a variable other
    /// than `state`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (expression, names) = parsed(text)?;
        if let Some(other) = names.other_variables.first() {
            return Err(format!("`{other}` is not known here: write `state.{other}`"));
        }
        Ok(Self {
            text: text.to_owned(),
            expression: metered::metered(&expression),
            channels: names.channels,
            whole_state: names.whole_state,
        })
    }

    /// Returns the text of the condition.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the channels that the condition names as `state.x` or `state["x"]`.
    pub fn channels(&self) -> BTreeSet<String> {
        self.channels.clone()
    }

    /// Returns the values that the condition can read.
    pub fn values_read<'s>(&'s self, state: &'s Values) -> impl Iterator<Item = &'s ChannelValue> {
        let named = self.channels.iter().filter(move |_| !self.whole_state);
        let named = named.filter_map(move |name| state.get(name.as_str()));
        named.chain(state.values().filter(move |_| self.whole_state))
    }

    /// Evaluates the condition.
    ///
    /// # Errors
    ///
    /// [`EvalError`] if the evaluation fails, does not return a boolean or takes more steps than
    /// the budget has left.
    pub fn eval(&self, state: &Values, budget: &ConditionBudget) -> Result<bool, EvalError> {
        let result = self.decide(state, budget);
        budget.check(&self.text).map_err(EvalError::Limit)?;
        result.map_err(|error| EvalError::Failed(format!("`{}` failed: {error}", self.text)))
    }

    fn decide(&self, state: &Values, budget: &ConditionBudget) -> Result<bool, String> {
        let mut context = context(budget);
        let view = self.view(state, budget).map_err(|error| failed::told(&error))?;
        context.add_variable_as_val("state", view);
        let value = cel::Value::resolve_val(&self.expression, &context)
            .map_err(|error| failed::told(&error))?;
        let decided = value.downcast_ref::<CelBool>().map(|decided| *decided.inner());
        decided.ok_or_else(|| "the result is not a boolean".to_owned())
    }

    /// Returns the part of the state that the condition reads.
    fn view<'v>(
        &'v self,
        state: &'v Values,
        budget: &ConditionBudget,
    ) -> Result<Box<dyn Val + 'v>, ExecutionError> {
        let mut view: HashMap<CelMapKey<'v>, Box<dyn Val + 'v>> = HashMap::new();
        for name in &self.channels {
            let value: Box<dyn Val + 'v> = match state.get(name.as_str()) {
                Some(value) => json::channel_to_cel(value, budget)?,
                None => Box::new(CelNull),
            };
            view.insert(name.as_str().into(), value);
        }
        for (name, value) in state.iter().filter(|_| self.whole_state) {
            if !self.channels.contains(name.as_str()) {
                view.insert(name.as_str().into(), json::channel_to_cel(value, budget)?);
            }
        }
        Ok(Box::new(CelMap::from(view)))
    }
}

/// Parses a condition. Returns its tree, whose depth is limited, and the names in it.
fn parsed(text: &str) -> Result<(Expression, References), String> {
    if text.len() > CONDITION_LIMIT_BYTES {
        return Err(format!("a condition may have at most {CONDITION_LIMIT_BYTES} bytes"));
    }
    let expression = PrattParser::new()
        .max_recursion_depth(NESTING_LIMIT)
        .parse(text)
        .map_err(|errors| first_line(&errors.to_string()))?;
    let names = references::collect(&expression, DEPTH_LIMIT)?;
    Ok((expression, names))
}

/// Creates a context in which expressions count their steps.
fn context<'v>(budget: &ConditionBudget) -> Context<'static, 'v> {
    let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
    context.add_variable_as_val(METER, Box::new(Meter(budget.clone())));
    context
}

/// Returns the first message of the parser, without its prefix.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("ERROR: <input>:").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests;
