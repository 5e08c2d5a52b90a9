//! JSON bodies of models and their prices.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_run::ports::statistics::ModelPrice;

/// The models that the operator configured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ModelsDocument {
    /// Routes by name.
    pub routes: BTreeMap<String, RouteModelsDocument>,
    /// Prices by model.
    pub prices: BTreeMap<String, ModelPriceDocument>,
}

/// The models of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RouteModelsDocument {
    /// Models in the order in which they are called, by their names at the providers. A model that
    /// an alias replaces comes before its replacement.
    pub models: Vec<String>,
}

/// Price of a million tokens of a model. All prices are in the same currency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ModelPriceDocument {
    /// Price of input tokens.
    pub input: f64,
    /// Price of output tokens.
    pub output: f64,
}

impl From<ModelPrice> for ModelPriceDocument {
    fn from(ModelPrice { input, output }: ModelPrice) -> Self {
        Self { input, output }
    }
}
