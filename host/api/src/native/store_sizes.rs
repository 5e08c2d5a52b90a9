//! Sizes of the store.

use std::sync::Arc;

use axum::extract::State;
use wattle_run::engine::Engine;

use crate::document::store_sizes::StoreSizesDocument;
use crate::native::tenant_scope::OperatorOnly;
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;
use crate::store_sizes::StoreSizes;

/// Measures the threads of each app and tenant in the store, and the files of the data folder. A
/// measurement is at most a minute old. Only for the operator.
#[utoipa::path(get, path = "/api/v1/store/sizes",
    extensions(("x-wattle-access" = json!({ "scope": "admin", "share": "other" }))), tag = "store",
    responses(
        (status = 200, body = StoreSizesDocument),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub(crate) async fn get_store_sizes(
    State(engine): State<Engine>,
    State(sizes): State<Arc<StoreSizes>>,
    _: OperatorOnly,
) -> Result<Json<StoreSizesDocument>, Problem> {
    Ok(Json(sizes.read(engine.ports()).await?))
}
