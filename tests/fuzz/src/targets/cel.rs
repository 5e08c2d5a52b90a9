//! CEL. The first line is a condition and an expression, the rest is JSON for their variables. An
//! evaluation stays within its budget of steps, is deterministic, and fails with a short message.

use serde_json::{Value, json};
use wattle_graph::checkpoint::Values;
use wattle_graph::expr::expression::{CelExpression, Variables};
use wattle_graph::expr::{Condition, ConditionBudget};
use wattle_graph::id::ChannelName;
use wattle_graph::limit::CONDITION_MESSAGE_BYTES;

use super::lines;

/// Evaluates a text as a condition and as an expression.
pub fn run(bytes: &[u8]) {
    let Some((text, state)) = lines(bytes) else { return };
    let state = serde_json::from_str(state).unwrap_or_else(|_| json!({ "a": 1, "b": [1, 2, "c"] }));
    if let Ok(condition) = Condition::parse(text) {
        let values = values(&state);
        let decide = || condition.eval(&values, &ConditionBudget::default());
        assert_eq!(decide(), decide(), "{text}");
        assert_eq!(condition.text(), text);
        assert!(condition.channels().len() <= text.len());
    }
    if let Ok(formula) = CelExpression::parse(text, &["state", "event"]) {
        let event = json!({ "type": "custom", "data": state });
        let variables = Variables::from([("state", &state), ("event", &event)]);
        let value = formula.eval(&variables);
        assert_eq!(value, formula.eval(&variables), "{text}");
        if let Err(why) = value {
            // The message quotes the expression.
            assert!(why.len() <= 2 * (text.len() + CONDITION_MESSAGE_BYTES), "{} bytes", why.len());
        }
    }
}

fn values(state: &Value) -> Values {
    let mut values = Values::new();
    for (name, value) in state.as_object().into_iter().flatten() {
        if let Ok(name) = ChannelName::new(name) {
            values.insert(name, value.clone().into());
        }
    }
    values
}
