//! Looking after everything that is stored: what is damaged, and copies of it.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_run::ports::store::{Damage, Survey};

use crate::native::scope::{Authority, not_the_tenants};
use crate::problem::{Problem, ProblemDocument};
use crate::state::ApiState;

/// A copy that was made.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BackupDocument {
    /// The folder on the machine of the server.
    pub folder: String,
    /// Blobs that are damaged and were left out.
    #[schema(value_type = Vec<Value>)]
    pub damaged: Vec<Damage>,
}

fn operator(authority: Authority) -> Result<(), Problem> {
    if authority.is_operator {
        return Ok(());
    }
    let tenant = authority.tenant.unwrap_or_default();
    Err(not_the_tenants("the store", &tenant))
}

/// Reads everything that is stored and names what is damaged. Only for the operator.
#[utoipa::path(get, path = "/api/v1/store/verify",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "store",
    responses(
        (status = 200, body = Value, description = "threads, damaged"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 501, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn verify_store(
    State(state): State<ApiState>,
    authority: Authority,
) -> Result<Json<Survey>, Problem> {
    operator(authority)?;
    let ports = state.engine.ports();
    let mut survey = ports.store.survey().await?;
    survey.damaged.extend(ports.blobs.survey().await?);
    Ok(Json(survey))
}

/// Copies threads, blobs and the long-term memory into a new folder of the data folder. Only for the
/// operator.
#[utoipa::path(post, path = "/api/v1/store/backup",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "store",
    responses(
        (status = 200, body = BackupDocument),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 501, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn back_up_store(
    State(state): State<ApiState>,
    authority: Authority,
) -> Result<Json<BackupDocument>, Problem> {
    operator(authority)?;
    let ports = state.engine.ports();
    let folder = ports.store.begin_backup().await?;
    // Blobs that threads mention when they are copied must not be swept before.
    ports.blobs.backup(&folder).await?;
    ports.store.backup(&folder).await?;
    ports.memory.backup(&folder).await?;
    // Those that threads began to mention meanwhile.
    let damaged = ports.blobs.backup(&folder).await?;
    Ok(Json(BackupDocument { folder: folder.display().to_string(), damaged }))
}
