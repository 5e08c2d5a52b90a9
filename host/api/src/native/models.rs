//! Models that the operator configured.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use wattle_run::engine::Engine;

use crate::document::model::{ModelsDocument, RouteModelsDocument};
use crate::native::tenant_scope::OperatorOnly;
use crate::problem::ProblemDocument;
use crate::state::ConfiguredModels;

/// Describes the configured routes, with the names of their models, and the prices of models. Only
/// for the operator.
#[utoipa::path(get, path = "/api/v1/models",
    extensions(("x-wattle-access" = json!({ "scope": "admin", "share": "control" }))), tag = "host",
    responses(
        (status = 200, body = ModelsDocument),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_models(
    State(engine): State<Engine>,
    State(configured): State<Arc<ConfiguredModels>>,
    _: OperatorOnly,
) -> Json<ModelsDocument> {
    let model = &engine.ports().model;
    let routes = configured.routes.iter().map(|route| {
        let models = model.configured_models(route);
        (route.clone(), RouteModelsDocument { models })
    });
    let prices = configured.prices.iter();
    Json(ModelsDocument {
        routes: routes.collect(),
        prices: prices.map(|(model, price)| (model.clone(), (*price).into())).collect(),
    })
}
