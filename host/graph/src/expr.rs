//! CEL: conditions over the state here, expressions over other values in [`formula`].

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use cel::common::types::CelBool;
use cel::parser::{Expression, PrattParser};
use cel::{Context, Env};

use crate::checkpoint::Values;

pub mod formula;
mod json;
mod names;

/// Longest condition in bytes: conditions choose a way, they do not compute. Also bounds chains,
/// which the parser does not count as nesting.
pub const CONDITION_LIMIT_BYTES: usize = 1024;

/// Deepest nesting of a condition as written.
const NESTING_LIMIT: u16 = 32;

/// Deepest tree of a condition, chains and expanded macros included: evaluation is recursive.
const DEPTH_LIMIT: usize = 64;

/// CEL's standard functions, built once.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A compiled condition.
///
/// It sees one variable, `state`. A channel without a value is `null` in it, so that
/// `state.x == null` asks whether there is one.
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
    /// A sentence that says what is wrong, if the text is too long, does not parse or uses another
    /// variable than `state`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > CONDITION_LIMIT_BYTES {
            return Err(format!("a condition may have at most {CONDITION_LIMIT_BYTES} bytes"));
        }
        let expression = PrattParser::new()
            .max_recursion_depth(NESTING_LIMIT)
            .parse(text)
            .map_err(|errors| first_line(&errors.to_string()))?;
        let names = names::collect(&expression, DEPTH_LIMIT)?;
        if let Some(other) = names.others.first() {
            return Err(format!("`{other}` is not known here: write `state.{other}`"));
        }
        Ok(Self {
            text: text.to_owned(),
            expression,
            channels: names.channels,
            whole_state: names.whole_state,
        })
    }

    /// The text it was compiled from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The channels that it names as `state.x` or `state["x"]`.
    pub fn channels(&self) -> BTreeSet<String> {
        self.channels.clone()
    }

    /// Decides the condition.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong, if the evaluation fails or gives no boolean.
    pub fn eval(&self, state: &Values) -> Result<bool, String> {
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        context.add_variable_from_value("state", self.view(state));
        let failed = |error: String| format!("`{}` failed: {error}", self.text);
        let value = cel::Value::resolve_val(&self.expression, &context)
            .map_err(|error| failed(error.to_string()))?;
        let decided = value.downcast_ref::<CelBool>().map(|decided| *decided.inner());
        decided.ok_or_else(|| failed("the result is neither true nor false".to_owned()))
    }

    /// The part of the state that the condition can see.
    fn view(&self, state: &Values) -> cel::Value {
        let named = self.channels.iter().map(|name| {
            let value = state.get(name.as_str()).map_or(cel::Value::Null, |v| json::to_cel(v));
            (name.clone(), value)
        });
        let mut view: std::collections::HashMap<String, cel::Value> = named.collect();
        if self.whole_state {
            view.extend(state.iter().map(|(name, value)| (name.to_string(), json::to_cel(value))));
        }
        view.into()
    }
}

/// The first message of the parser without its prefix.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("ERROR: <input>:").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests;
