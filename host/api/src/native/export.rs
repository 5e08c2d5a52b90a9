//! Exports of threads.

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::TryStreamExt as _;
use futures::stream::BoxStream;
use serde::Deserialize;
use utoipa::IntoParams;
use wattle_graph::failure::{Failure, code};
use wattle_run::engine::Engine;
use wattle_run::export::ExportParts;

use crate::native::tenant_scope::{RequestRole, TenantScope, operator_only_problem};
use crate::native::threads::invalid_query;
use crate::problem::{Problem, ProblemDocument};

/// Selects the contents of an export.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExportQuery {
    /// True to include the code, its grants and its settings; operator only. Default: true for the
    /// operator if the code is available.
    code: Option<bool>,
    /// True to include the blobs that the thread refers to. Default: true.
    blobs: Option<bool>,
}

/// Exports a thread as one file of JSON lines, which `wattle replay` reads.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/export", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread"), ExportQuery),
    responses(
        (status = 200, body = String, content_type = "application/x-ndjson"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn export_thread(
    State(engine): State<Engine>,
    scope: TenantScope,
    role: RequestRole,
    Path(id): Path<String>,
    query: Result<Query<ExportQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(invalid_query)?;
    let is_operator = role.is_operator;
    if query.code == Some(true) && !is_operator {
        let tenant = role.tenant.unwrap_or_default();
        return Err(operator_only_problem("the code of apps", &tenant));
    }
    let record = scope.thread(&engine, &id).await?;
    let parts = ExportParts {
        // A thread that has never run has no code.
        code: query.code.unwrap_or(is_operator) && !record.is_unbound(),
        blobs: query.blobs.unwrap_or(true),
    };
    let lines = match engine.export(&record.id, parts).await {
        Err(failure) if query.code.is_none() && failure.code == code::UNAVAILABLE => {
            engine.export(&record.id, ExportParts { code: false, ..parts }).await
        }
        lines => lines,
    };
    Ok(file(lines?))
}

/// Selects the contents of a test.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TestQuery {
    /// True to include the blobs that the thread refers to. Default: true.
    blobs: Option<bool>,
}

/// Exports a thread as a test of later code: one file of JSON lines, which `wattle test` reads. The
/// file has no code, no metadata and no principals; it has the inputs, answers and results of the
/// thread.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/test", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread"), TestQuery),
    responses(
        (status = 200, body = String, content_type = "application/x-ndjson"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn export_test(
    State(engine): State<Engine>,
    scope: TenantScope,
    Path(id): Path<String>,
    query: Result<Query<TestQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(invalid_query)?;
    let record = scope.thread(&engine, &id).await?;
    Ok(file(engine.export_test(&record.id, query.blobs.unwrap_or(true)).await?))
}

fn file(lines: BoxStream<'static, Result<Bytes, Failure>>) -> Response {
    let lines = lines.map_err(|failure| std::io::Error::other(failure.message));
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (headers, Body::from_stream(lines)).into_response()
}
