//! `[eval]`: settings of `wattle eval`. Also checks prices.

use serde::Deserialize;
use wattle_run::ports::statistics::ModelPrices;

use crate::config::ConfigProblem;

/// `[eval]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvalConfig {
    /// Prices by model name, which override the prices under `[model.prices]`.
    pub prices: ModelPrices,
}

/// Checks the prices of a table.
pub(super) fn check_prices(table: &str, prices: &ModelPrices, problems: &mut Vec<ConfigProblem>) {
    for (model, price) in prices {
        let is_price = |number: f64| number.is_finite() && number >= 0.0;
        if !is_price(price.input) || !is_price(price.output) {
            problems.push(ConfigProblem {
                key: format!("{table}.{model}"),
                message: "a price must not be negative".into(),
                hint: Some("write `{ input = 0.15, output = 0.60 }`".into()),
            });
        }
    }
}
