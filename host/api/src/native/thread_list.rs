//! Lists and counts of threads.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, RawQuery, State};
use wattle_run::engine::Engine;
use wattle_run::ports::store::{ThreadCursor, ThreadSearch};

use crate::document::Page;
use crate::document::thread::{ThreadCountsDocument, ThreadSummary};
use crate::guard::open_requests::RequestPermit;
use crate::native::list_scope::ListScope;
use crate::native::thread_filter::{
    PageParams, ThreadConditions, no_offset, offset_query, parse_list,
};
use crate::native::threads::invalid_query;
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;
use crate::traffic::Traffic;

/// Lists threads that have not expired, newest update first. A page with a `next_cursor` may be
/// short or empty, because one request examines at most 20,000 threads. A request with a condition
/// other than `app`, `status`, `tenant` and the time of the update does not count as a
/// control-plane request.
#[utoipa::path(get, path = "/api/v1/threads",
    extensions(("x-wattle-access" = json!({ "scope": "read", "share": "control" }))),
    tag = "threads",
    params(ThreadConditions, PageParams),
    responses(
        (status = 200, body = Page<ThreadSummary>),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_threads(
    State(engine): State<Engine>,
    State(traffic): State<Arc<Traffic>>,
    scope: ListScope,
    permit: Option<Extension<RequestPermit>>,
    RawQuery(query): RawQuery,
) -> Result<Json<Page<ThreadSummary>>, Problem> {
    let (conditions, params) = parse_list(query.as_deref())?;
    let search = params.of(conditions.into_search(scope)?)?;
    if search.compares_records()
        && let Some(Extension(permit)) = &permit
    {
        permit.leave_control(&traffic)?;
    }
    let page = if params.offset > 0 {
        page_at(&engine, &search, params.offset).await?
    } else {
        first_page(&engine, search).await?
    };
    Ok(Json(page))
}

/// Counts threads by status, without expired threads. `is_complete` is false if the conditions
/// `text` or `metadata` require that more than 20,000 threads are examined; the numbers are then
/// too low.
#[utoipa::path(get, path = "/api/v1/thread-counts",
    extensions(("x-wattle-access" = json!({ "scope": "read", "share": "other" }))),
    tag = "threads",
    params(ThreadConditions),
    responses(
        (status = 200, body = ThreadCountsDocument),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn count_threads(
    State(engine): State<Engine>,
    scope: ListScope,
    conditions: Result<Query<ThreadConditions>, QueryRejection>,
) -> Result<Json<ThreadCountsDocument>, Problem> {
    let Query(conditions) = conditions.map_err(invalid_query)?;
    let search = conditions.into_search(scope)?;
    let counts = engine.count_threads(search).await?;
    Ok(Json(counts.into()))
}

/// Returns the page of a search. A list without a cursor can also be continued by its offset.
async fn first_page(engine: &Engine, search: ThreadSearch) -> Result<Page<ThreadSummary>, Problem> {
    let can_skip = offset_query(&search, 0).is_some();
    let found = engine.search_threads(search).await?;
    let has_offset = can_skip && found.next.is_some();
    Ok(Page {
        next_offset: has_offset.then_some(found.items.len()),
        next_cursor: found.next.map(|next| next.to_string()),
        items: found.items.into_iter().map(Into::into).collect(),
    })
}

/// Returns the page that begins at an offset.
async fn page_at(
    engine: &Engine,
    search: &ThreadSearch,
    offset: usize,
) -> Result<Page<ThreadSummary>, Problem> {
    let query = offset_query(search, offset).ok_or_else(no_offset)?;
    let found = engine.list_threads(query).await?;
    let next = found.items.last().filter(|_| !found.is_last).map(ThreadCursor::from);
    Ok(Page {
        next_offset: (!found.is_last).then(|| offset.saturating_add(found.items.len())),
        next_cursor: next.map(|next| next.to_string()),
        items: found.items.into_iter().map(Into::into).collect(),
    })
}
