//! Pending interrupts of all threads.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use utoipa::IntoParams;
use wattle_graph::id::{AppName, GraphName};
use wattle_run::engine::Engine;
use wattle_run::ports::store::{TenantFilter, ThreadSearch};

use crate::document::Page;
use crate::document::interrupt::PendingInterruptDocument;
use crate::native::list_scope::ListScope;
use crate::native::thread_filter::PageParams;
use crate::native::threads::invalid_query;
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;

/// Selects the threads whose interrupts are listed.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct InterruptFilter {
    /// Only threads of this app.
    #[param(value_type = Option<String>)]
    app: Option<AppName>,
    /// Only threads of this graph.
    #[param(value_type = Option<String>)]
    graph: Option<GraphName>,
    /// Only threads of this tenant; `*` selects the threads of all tenants. Only the operator can
    /// name another tenant than the tenant of the request.
    tenant: Option<String>,
    /// Maximum number of threads, up to 50, which is the default. A thread may have several
    /// interrupts.
    limit: Option<usize>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Lists the pending interrupts of all interrupted threads: threads with the newest update first,
/// and the interrupts of a thread oldest first. A page with a `next_cursor` may be short or empty.
/// Answer with `POST /api/v1/threads/{thread}/resume`.
#[utoipa::path(get, path = "/api/v1/interrupts",
    extensions(("x-wattle-access" = json!({ "scope": "read", "share": "other" }))),
    tag = "threads",
    params(InterruptFilter),
    responses(
        (status = 200, body = Page<PendingInterruptDocument>),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_interrupts(
    State(engine): State<Engine>,
    scope: ListScope,
    filter: Result<Query<InterruptFilter>, QueryRejection>,
) -> Result<Json<Page<PendingInterruptDocument>>, Problem> {
    let Query(InterruptFilter { app, graph, tenant, limit, cursor }) =
        filter.map_err(invalid_query)?;
    let tenant = TenantFilter::named_or_any(scope.tenant(tenant.as_deref())?);
    let search = ThreadSearch { app, graph, tenant, ..ThreadSearch::default() };
    let search = PageParams { limit, offset: 0, cursor }.of(search)?;
    let found = engine.pending_interrupts(search).await?;
    let items = found.threads.into_iter().flat_map(PendingInterruptDocument::of_thread).collect();
    Ok(Json(Page::by_cursor(items, found.next)))
}
