//! Hosts that share the store.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use wattle_run::engine::Engine;

use crate::document::host::HostDocument;
use crate::native::tenant_scope::OperatorOnly;
use crate::problem::{Problem, ProblemDocument};
use crate::traffic::Traffic;

/// Lists the live hosts that share the store, with version and load. Only for the operator.
#[utoipa::path(get, path = "/api/v1/hosts",
    extensions(("x-wattle-access" = json!({ "scope": "admin", "share": "control" }))), tag = "host",
    responses(
        (status = 200, body = Vec<HostDocument>),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_hosts(
    State(engine): State<Engine>,
    State(traffic): State<Arc<Traffic>>,
    _: OperatorOnly,
) -> Result<Json<Vec<HostDocument>>, Problem> {
    let this = engine.holder();
    let hosts = engine.hosts().await?;
    let documents = hosts.into_iter().map(|host| {
        let own = (host.holder == *this).then_some(&*traffic);
        HostDocument::new(host, own)
    });
    Ok(Json(documents.collect()))
}
