//! `[eval]`: what `wattle eval` needs beside a data set.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::config::ConfigProblem;

/// `[eval]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvalConfig {
    /// Prices by the name of the model. A route may answer with one of several models, so a price
    /// belongs to a model and not to a route.
    pub prices: BTreeMap<String, Price>,
}

/// What a million tokens of a model cost, in any one currency.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// For tokens that the model reads.
    pub input: f64,
    /// For tokens that the model writes.
    pub output: f64,
}

impl EvalConfig {
    pub(super) fn check(&self, problems: &mut Vec<ConfigProblem>) {
        for (model, price) in &self.prices {
            let is_price = |number: f64| number.is_finite() && number >= 0.0;
            if !is_price(price.input) || !is_price(price.output) {
                problems.push(ConfigProblem {
                    key: format!("eval.prices.{model}"),
                    message: "a price is a number that is not negative".into(),
                    hint: Some("write `{ input = 0.15, output = 0.60 }`".into()),
                });
            }
        }
    }
}
