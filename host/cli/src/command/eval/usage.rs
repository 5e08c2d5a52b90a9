//! Usage and cost of the model calls of a thread.

use std::collections::BTreeSet;

use serde::Serialize;
use wattle_graph::event::{Called, EventKind};
use wattle_graph::llm::Completion;
use wattle_run::ports::statistics::ModelPrices;

use crate::client::Client;
use crate::error::Error;

/// Model calls, tokens and cost.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct ModelUsage {
    pub(super) model_calls: u64,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    /// Cost in the currency of the prices; `None` if a price is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<f64>,
    /// Models of completions that have no price.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) without_price: BTreeSet<String>,
}

impl ModelUsage {
    /// Reads the usage from the event log of a thread.
    pub(super) async fn read(
        client: &Client,
        thread: &str,
        prices: &ModelPrices,
    ) -> Result<Self, Error> {
        let mut events = client.events(thread, 0).await?;
        let mut usage = Self::default();
        while let Some(event) = events.next().await? {
            if let EventKind::Called(called) = event.kind {
                usage.count_call(&called, prices);
            }
        }
        Ok(usage)
    }

    fn count_call(&mut self, called: &Called, prices: &ModelPrices) {
        // A reused completion was already counted for the run that received it first.
        let (Some(tokens), None) = (called.tokens, called.reused) else { return };
        self.model_calls += 1;
        self.input_tokens += tokens.input;
        self.output_tokens += tokens.output;
        let names = called.completion().map(price_names).unwrap_or_default();
        if let Some(price) = names.iter().find_map(|name| prices.get(name)) {
            *self.cost.get_or_insert_default() += price.cost(tokens.input, tokens.output);
        } else if let Some(name) = names.last() {
            self.without_price.insert(name.clone());
        }
    }

    /// Adds the counts of `other` to this usage.
    pub(super) fn add(&mut self, other: &Self) {
        self.model_calls += other.model_calls;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        if let Some(cost) = other.cost {
            *self.cost.get_or_insert_default() += cost;
        }
        self.without_price.extend(other.without_price.iter().cloned());
    }
}

/// Returns the names under which the model of a completion may have a price: the name that the
/// provider reports, which can end with a date, and the name that the route requested.
fn price_names(completion: Completion) -> Vec<String> {
    let requested = completion.attempts.into_iter().next_back().map(|attempt| attempt.model);
    [completion.model].into_iter().chain(requested).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wattle_run::ports::statistics::ModelPrice;

    use super::*;

    fn called(result: &Value, more: &Value) -> Called {
        let mut document = json!({ "task": "t", "node": "n", "call": 0, "function": "llm.complete",
            "digest": "0".repeat(64), "request": {}, "result": result, "started_ms": 0,
            "duration_us": 1, "batch": 0, "tokens": { "input": 1_000_000, "output": 500_000 } });
        for (key, value) in more.as_object().unwrap() {
            document[key] = value.clone();
        }
        serde_json::from_value(document).unwrap()
    }

    /// Returns a completion of a model. `requested` lists the requested models.
    fn completion(model: &str, requested: &[&str]) -> Value {
        let attempt = |model: &&str| json!({ "provider": "p", "model": model });
        let attempts: Vec<Value> = requested.iter().map(attempt).collect();
        json!({ "Ok": { "parts": [], "finish_reason": "stop", "usage": {}, "model": model,
            "attempts": attempts } })
    }

    #[test]
    fn tokens_are_priced_by_the_model_of_the_completion() {
        let price = ModelPrice { input: 0.15, output: 0.6 };
        let prices = ModelPrices::from([("mini".to_owned(), price)]);
        let mut usage = ModelUsage::default();
        let dated = completion("mini-2024-07-18", &["large", "mini"]);
        usage.count_call(&called(&dated, &json!({})), &prices);
        assert_eq!((usage.model_calls, usage.cost), (1, Some(0.45)));
        usage.count_call(&called(&dated, &json!({ "reused": 3 })), &prices);
        usage.count_call(&called(&dated, &json!({ "tokens": null })), &prices);
        assert_eq!(usage.model_calls, 1, "nothing was paid for");
        usage.count_call(&called(&completion("other", &[]), &json!({})), &prices);
        assert_eq!((usage.input_tokens, usage.output_tokens), (2_000_000, 1_000_000));
        assert_eq!(usage.without_price, BTreeSet::from(["other".to_owned()]));
        let mut sum = ModelUsage::default();
        sum.add(&usage);
        sum.add(&usage);
        assert_eq!((sum.model_calls, sum.cost), (4, Some(0.9)));
    }
}
