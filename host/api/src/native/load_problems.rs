//! Files and folders that could not be loaded.

use axum::Json;
use axum::extract::State;
use wattle_run::engine::Engine;

use crate::document::LoadProblem;
use crate::native::tenant_scope::OperatorOnly;
use crate::problem::ProblemDocument;

/// Lists the files and folders that could not be loaded. The previously loaded version of each
/// remains active. Only for the operator.
#[utoipa::path(get, path = "/api/v1/problems",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "host",
    responses(
        (status = 200, body = Vec<LoadProblem>),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_problems(
    State(engine): State<Engine>,
    _: OperatorOnly,
) -> Json<Vec<LoadProblem>> {
    let problems = engine.catalog().problems().into_iter().map(|problem| LoadProblem {
        path: problem.path.display().to_string(),
        at_ms: problem.at_ms,
        message: problem.message,
        app: problem.app.map(|name| name.to_string()),
    });
    Json(problems.collect())
}
