//! `[eval]`: settings of `wattle eval`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::config::ConfigProblem;

/// `[eval]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvalConfig {
    /// Prices by model name. Prices are set per model and not per route, because a route can call
    /// several models.
    pub prices: BTreeMap<String, Price>,
}

/// Price of a million tokens of a model. All prices are in the same currency.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Price of input tokens.
    pub input: f64,
    /// Price of output tokens.
    pub output: f64,
}

impl EvalConfig {
    pub(super) fn check(&self, problems: &mut Vec<ConfigProblem>) {
        for (model, price) in &self.prices {
            let is_price = |number: f64| number.is_finite() && number >= 0.0;
            if !is_price(price.input) || !is_price(price.output) {
                problems.push(ConfigProblem {
                    key: format!("eval.prices.{model}"),
                    message: "a price must not be negative".into(),
                    hint: Some("write `{ input = 0.15, output = 0.60 }`".into()),
                });
            }
        }
    }
}
