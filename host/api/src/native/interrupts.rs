//! The list and the count of pending interrupts of all threads.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, RawQuery, State};
use serde::Deserialize;
use utoipa::IntoParams;
use wattle_graph::id::{AppName, GraphName};
use wattle_run::engine::Engine;
use wattle_run::ports::store::{TenantFilter, ThreadSearch};

use crate::document::Page;
use crate::document::interrupt::{InterruptCountsDocument, PendingInterruptDocument};
use crate::native::list_scope::ListScope;
use crate::native::thread_filter::{PageParams, parse_query};
use crate::native::threads::invalid_query;
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;

/// Names of the parameters of [`InterruptPageParams`].
const PAGE_PARAMS: [&str; 2] = ["limit", "cursor"];

/// Selects the threads whose interrupts are listed or counted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct InterruptConditions {
    /// Only threads of this app.
    #[param(value_type = Option<String>)]
    app: Option<AppName>,
    /// Only threads of this graph.
    #[param(value_type = Option<String>)]
    graph: Option<GraphName>,
    /// Only threads of this tenant; `*` selects the threads of all tenants. Only the operator can
    /// name another tenant than the tenant of the request.
    tenant: Option<String>,
}

/// The page of a list of pending interrupts.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct InterruptPageParams {
    /// Maximum number of threads, up to 50, which is the default. A thread may have several
    /// interrupts.
    limit: Option<usize>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

impl InterruptConditions {
    /// Returns the search for these conditions, within the tenants of a scope.
    ///
    /// # Errors
    ///
    /// The errors of [`ListScope::tenant`].
    fn into_search(self, scope: ListScope) -> Result<ThreadSearch, Problem> {
        let Self { app, graph, tenant } = self;
        let tenant = TenantFilter::named_or_any(scope.tenant(tenant.as_deref())?);
        Ok(ThreadSearch { app, graph, tenant, ..ThreadSearch::default() })
    }
}

/// Lists the pending interrupts of all interrupted threads: threads with the newest update first,
/// and the interrupts of a thread oldest first. A page with a `next_cursor` may be short or empty.
/// Answer with `POST /api/v1/threads/{thread}/resume`.
#[utoipa::path(get, path = "/api/v1/interrupts",
    extensions(("x-wattle-access" = json!({ "scope": "read", "share": "other" }))),
    tag = "threads",
    params(InterruptConditions, InterruptPageParams),
    responses(
        (status = 200, body = Page<PendingInterruptDocument>),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_interrupts(
    State(engine): State<Engine>,
    scope: ListScope,
    RawQuery(query): RawQuery,
) -> Result<Json<Page<PendingInterruptDocument>>, Problem> {
    let (conditions, page): (InterruptConditions, InterruptPageParams) =
        parse_query(query.as_deref(), &PAGE_PARAMS)?;
    let InterruptPageParams { limit, cursor } = page;
    let search = conditions.into_search(scope)?;
    let search = PageParams { limit, offset: 0, cursor }.of(search)?;
    let found = engine.pending_interrupts(search).await?;
    let items = found.threads.into_iter().flat_map(PendingInterruptDocument::of_thread).collect();
    Ok(Json(Page::by_cursor(items, found.next)))
}

/// Counts the pending interrupts of all interrupted threads. `is_complete` is false if they are on
/// more than ten pages of the list, of 50 threads each; the number is then that of these pages.
#[utoipa::path(get, path = "/api/v1/interrupt-counts",
    extensions(("x-wattle-access" = json!({ "scope": "read", "share": "other" }))),
    tag = "threads",
    params(InterruptConditions),
    responses(
        (status = 200, body = InterruptCountsDocument),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn count_interrupts(
    State(engine): State<Engine>,
    scope: ListScope,
    conditions: Result<Query<InterruptConditions>, QueryRejection>,
) -> Result<Json<InterruptCountsDocument>, Problem> {
    let Query(conditions) = conditions.map_err(invalid_query)?;
    let count = engine.count_interrupts(conditions.into_search(scope)?).await?;
    Ok(Json(count.into()))
}
