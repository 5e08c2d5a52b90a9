//! Tokens that the model calls of a run used, by model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wattle_graph::event::{Called, Tokens};

use crate::ports::statistics::ModelPrices;

/// Maximum number of models with an own count. The record of a run has all of them, and services
/// choose the names that they report.
const MODELS: usize = 32;

/// Maximum length of the name of a model with an own count, in bytes.
const NAME_BYTES: usize = 200;

/// Name under which all further models count together. No price has this name.
const OTHER: &str = "";

/// Tokens that the model calls of a run used, by model. Reused results count for the run that
/// received them first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUsage {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    models: BTreeMap<String, Tokens>,
    /// True if some calls of the run were not counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_partial: bool,
}

impl ModelUsage {
    /// Creates the usage of a run whose calls so far are not counted.
    pub fn partial() -> Self {
        Self { is_partial: true, ..Self::default() }
    }

    /// Returns true if the run made no model calls that used tokens.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Counts the tokens of a call.
    pub fn count(&mut self, called: &Called) {
        let Some((model, tokens)) = called.model_tokens() else { return };
        let is_known = self.models.contains_key(model);
        let has_room = self.models.len() < MODELS && model.len() <= NAME_BYTES;
        let name = if is_known || has_room { model } else { OTHER };
        let sum = self.models.entry(name.to_owned()).or_default();
        sum.input = sum.input.saturating_add(tokens.input);
        sum.output = sum.output.saturating_add(tokens.output);
    }

    /// Returns the cost of the tokens of models with a price. Returns `None` if no model has one,
    /// and if some calls were not counted.
    pub fn cost(&self, prices: &ModelPrices) -> Option<f64> {
        let costs = self.models.iter().filter_map(|(model, tokens)| {
            let price = prices.get(model)?;
            Some(price.cost(tokens.input, tokens.output))
        });
        costs.reduce(|sum, cost| sum + cost).filter(|_| !self.is_partial)
    }

    /// Returns the approximate size in memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let bytes = |model: &String| size_of::<(String, Tokens)>() + model.len();
        self.models.keys().map(bytes).sum::<usize>() as u64
    }
}

/// Returns the cost of one call. Returns `None` if the model has no price, and for a call that used
/// no tokens.
pub fn call_cost(called: &Called, prices: &ModelPrices) -> Option<f64> {
    let (model, tokens) = called.model_tokens()?;
    prices.get(model).map(|price| price.cost(tokens.input, tokens.output))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ports::statistics::ModelPrice;

    /// Returns a call of a model that used a million tokens in each direction.
    fn called(model: &str) -> Called {
        let result = json!({ "model": "as-reported", "attempts": [{ "model": "first" },
            { "model": model }] });
        serde_json::from_value(json!({ "task": "t", "node": "n", "call": 0, "batch": 0,
            "function": "llm.complete", "digest": "0".repeat(64), "request": {},
            "result": { "Ok": result }, "started_ms": 0, "duration_us": 1,
            "tokens": { "input": 1_000_000, "output": 1_000_000 } }))
        .unwrap()
    }

    fn prices() -> ModelPrices {
        ModelPrices::from([("mini".to_owned(), ModelPrice { input: 0.5, output: 2.0 })])
    }

    #[test]
    fn only_tokens_of_models_with_a_price_have_a_cost() {
        let mut usage = ModelUsage::default();
        assert_eq!((usage.is_empty(), usage.cost(&prices())), (true, None));
        usage.count(&called("free"));
        assert_eq!((usage.is_empty(), usage.cost(&prices())), (false, None));
        usage.count(&called("mini"));
        usage.count(&called("mini"));
        usage.count(&Called { reused: Some(3), ..called("mini") });
        usage.count(&Called { tokens: None, ..called("mini") });
        assert_eq!(usage.cost(&prices()), Some(5.0));
        assert_eq!(call_cost(&called("mini"), &prices()), Some(2.5));
        assert_eq!(call_cost(&called("free"), &prices()), None);
    }

    #[test]
    fn a_usage_without_all_calls_has_no_cost() {
        let mut usage = ModelUsage::partial();
        usage.count(&called("mini"));
        let stored = serde_json::to_value(&usage).unwrap();
        assert_eq!(serde_json::from_value::<ModelUsage>(stored).unwrap(), usage);
        assert_eq!(usage.cost(&prices()), None);
    }

    #[test]
    fn the_number_of_models_is_bounded() {
        let mut usage = ModelUsage::default();
        usage.count(&called("mini"));
        for number in 0..2 * MODELS {
            usage.count(&called(&format!("m-{number}")));
        }
        usage.count(&called(&"x".repeat(NAME_BYTES + 1)));
        usage.count(&called("mini"));
        assert_eq!(usage.models.len(), MODELS + 1);
        assert_eq!(usage.cost(&prices()), Some(5.0));
    }
}
