//! Webhooks and crons of clients.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use utoipa::IntoParams;
use wattle_graph::failure::code;
use wattle_run::ports::ClientJobs;
use wattle_run::ports::client_jobs::{CronQuery, JobPageQuery, WebhookQuery, WebhookStatus};

use crate::document::Page;
use crate::document::client_job::{CronDocument, WebhookDocument};
use crate::native::list_scope::ListScope;
use crate::native::tenant_scope::RequestRole;
use crate::native::threads::invalid_query;
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;

/// Default number of webhooks or crons in a page.
const DEFAULT_JOBS: usize = 50;

/// Maximum number of webhooks or crons in a page. The record of each cron, and that of its
/// assistant, are read one after the other.
const MAX_JOBS: usize = 100;

/// Selects webhooks.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WebhookParams {
    /// `pending` (default): the run has not ended, or another attempt follows. `abandoned`: no
    /// attempt follows; such webhooks are kept for 30 days. `delivered`: a receiver accepted the
    /// webhook; the newest of them are kept for 30 days.
    #[param(value_type = Option<String>)]
    status: WebhookStatus,
    /// Only webhooks of this tenant; `*` for those of all tenants. For the operator; other requests
    /// can name their own tenant only.
    tenant: Option<String>,
    /// Maximum number of webhooks, up to 100; 50 by default.
    limit: Option<usize>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Selects crons.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CronParams {
    /// Only crons of this tenant; `*` for those of all tenants. For the operator; other requests
    /// can name their own tenant only.
    tenant: Option<String>,
    /// Maximum number of crons, up to 100; 50 by default.
    limit: Option<usize>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Lists webhooks with their newest attempts: pending ones by run, abandoned and delivered ones
/// newest first. A page with a `next_cursor` may be short or empty, because one request examines at
/// most 20,000 webhooks of all tenants.
#[utoipa::path(get, path = "/api/v1/webhooks",
    extensions(("x-wattle-access" = json!({ "scope": "admin", "share": "other" }))), tag = "host",
    params(WebhookParams),
    responses(
        (status = 200, body = Page<WebhookDocument>),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_webhooks(
    State(jobs): State<Option<Arc<dyn ClientJobs>>>,
    scope: ListScope,
    role: RequestRole,
    params: Result<Query<WebhookParams>, QueryRejection>,
) -> Result<Json<Page<WebhookDocument>>, Problem> {
    let Query(WebhookParams { status, tenant, limit, cursor }) = params.map_err(invalid_query)?;
    let tenant = scope.tenant(tenant.as_deref())?;
    let jobs = jobs.ok_or_else(no_jobs)?;
    let page = jobs.webhooks(&WebhookQuery { status, tenant, page: page(limit, cursor) }).await?;
    let items = page.items.into_iter();
    let items = items.map(|webhook| WebhookDocument::new(webhook, role.is_operator)).collect();
    Ok(Json(Page::by_cursor(items, page.next)))
}

/// Lists crons, oldest first, with their newest and their next run. A page with a `next_cursor` may
/// be short or empty, because one request examines at most 20,000 crons of all tenants.
#[utoipa::path(get, path = "/api/v1/crons",
    extensions(("x-wattle-access" = json!({ "scope": "read", "share": "other" }))), tag = "host",
    params(CronParams),
    responses(
        (status = 200, body = Page<CronDocument>),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_crons(
    State(jobs): State<Option<Arc<dyn ClientJobs>>>,
    scope: ListScope,
    params: Result<Query<CronParams>, QueryRejection>,
) -> Result<Json<Page<CronDocument>>, Problem> {
    let Query(CronParams { tenant, limit, cursor }) = params.map_err(invalid_query)?;
    let tenant = scope.tenant(tenant.as_deref())?;
    let jobs = jobs.ok_or_else(no_jobs)?;
    let page = jobs.crons(&CronQuery { tenant, page: page(limit, cursor) }).await?;
    let items = page.items.into_iter().map(Into::into).collect();
    Ok(Json(Page::by_cursor(items, page.next)))
}

fn page(limit: Option<usize>, after: Option<String>) -> JobPageQuery {
    JobPageQuery { after, limit: limit.unwrap_or(DEFAULT_JOBS).clamp(1, MAX_JOBS) }
}

fn no_jobs() -> Problem {
    let detail = "this host has no webhooks and crons: the Agent Server API is turned off; set \
                  `agent_server = true` under `[server]`";
    Problem::new(code::NOT_FOUND, detail)
}
