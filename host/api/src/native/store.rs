//! Maintenance of the store: compaction, verification, backups.

use std::path::Path;

use axum::Json;
use axum::extract::State;
use tokio::sync::{oneshot, watch};
use wattle_graph::failure::{Failure, code};
use wattle_run::engine::Engine;
use wattle_run::ports::Ports;
use wattle_run::ports::store::Damage;

use crate::detached;
use crate::document::store::{BackupDocument, CompactionDocument, DamageReportDocument};
use crate::native::tenant_scope::{RequestRole, operator_only_problem};
use crate::problem::{Problem, ProblemDocument};

/// Rejects a request that is not the operator's.
fn check_operator(role: RequestRole) -> Result<(), Problem> {
    if role.is_operator {
        return Ok(());
    }
    let tenant = role.tenant.unwrap_or_default();
    Err(operator_only_problem("the store", &tenant))
}

/// Verifies all stored data, and lists all damage. Only for the operator.
#[utoipa::path(get, path = "/api/v1/store/verify",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "store",
    responses(
        (status = 200, body = DamageReportDocument),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 501, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn verify_store(
    State(engine): State<Engine>,
    role: RequestRole,
) -> Result<Json<DamageReportDocument>, Problem> {
    check_operator(role)?;
    let ports = engine.ports();
    let mut report = ports.store.find_damage().await?;
    report.damaged.extend(ports.memory.find_damage().await?);
    report.damaged.extend(ports.blobs.find_damage().await?);
    Ok(Json(report.into()))
}

/// Copies threads, blobs and the long-term memory into a new folder of the data folder. Only for
/// the operator.
#[utoipa::path(post, path = "/api/v1/store/backup",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "store",
    responses(
        (status = 200, body = BackupDocument),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 501, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn back_up_store(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    role: RequestRole,
) -> Result<Json<BackupDocument>, Problem> {
    check_operator(role)?;
    let (sender, result) = oneshot::channel();
    let work = back_up(engine.ports().clone(), sender);
    // If the client disconnects, `back_up` also deletes the unfinished folder.
    detached::run(stopping, work).await;
    let result = result.await.map_err(|_| Failure::internal("the backup was aborted"))?;
    Ok(Json(result?))
}

/// Returns unused space of the store to the file system. Only for the operator.
#[utoipa::path(post, path = "/api/v1/store/compact",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "store",
    responses(
        (status = 200, body = CompactionDocument),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn compact_store(
    State(engine): State<Engine>,
    role: RequestRole,
) -> Result<Json<CompactionDocument>, Problem> {
    check_operator(role)?;
    Ok(Json(engine.compact().await?.into()))
}

/// Creates a backup. The folder is deleted if the backup fails or the client has disconnected.
async fn back_up(ports: Ports, sender: oneshot::Sender<Result<BackupDocument, Failure>>) {
    let folder = match ports.store.begin_backup().await {
        Ok(folder) => folder,
        Err(error) => {
            // The client may have disconnected.
            let _ = sender.send(Err(error.into()));
            return;
        }
    };
    let result = match copy(&ports, &folder).await {
        Ok(_) if sender.is_closed() => Err(Failure::new(code::CANCELLED, "client disconnected")),
        Ok(damaged) => finish(&ports, &folder, damaged).await,
        Err(failure) => Err(failure),
    };
    if let Err(failure) = &result {
        tracing::warn!(%failure, "backup failed");
        if let Err(error) = ports.store.drop_backup(&folder).await {
            tracing::warn!(%error, "an unfinished backup remains until the next start");
        }
    }
    let _ = sender.send(result);
}

/// Copies all stored data into a folder. Returns the damaged blobs.
async fn copy(ports: &Ports, folder: &Path) -> Result<Vec<Damage>, Failure> {
    // Copy the blobs before the threads. Otherwise a sweep could delete a blob that a copied thread
    // refers to before the blob is copied.
    ports.blobs.backup(folder).await?;
    ports.store.backup(folder).await?;
    ports.memory.backup(folder).await?;
    // Copy the blobs that threads refer to since the first copy.
    ports.blobs.backup(folder).await
}

async fn finish(
    ports: &Ports,
    folder: &Path,
    damaged: Vec<Damage>,
) -> Result<BackupDocument, Failure> {
    let folder = ports.store.finish_backup(folder).await?;
    let damaged = damaged.into_iter().map(Into::into).collect();
    Ok(BackupDocument { folder: folder.display().to_string(), damaged })
}
