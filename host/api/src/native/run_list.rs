//! The list and the counts of the runs of all threads.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, RawQuery, State};
use serde::Deserialize;
use utoipa::IntoParams;
use wattle_graph::event::RunStatus;
use wattle_graph::id::{AppName, GraphName};
use wattle_run::engine::Engine;
use wattle_run::ports::store::{RunCursor, RunSearch};

use crate::document::Page;
use crate::document::run_summary::{RunCountsDocument, RunSummaryDocument};
use crate::guard::open_requests::RequestPermit;
use crate::native::list_scope::ListScope;
use crate::native::thread_filter::{
    check_length, parse_cursor, parse_metadata, parse_query, range,
};
use crate::native::threads::{invalid_query, page_size};
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;
use crate::state::ConfiguredModels;
use crate::traffic::Traffic;

/// Names of the parameters of [`RunPageParams`].
const PAGE_PARAMS: [&str; 2] = ["limit", "cursor"];

/// The conditions of a list or a count of runs. All of them must hold.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunConditions {
    /// Only runs of threads of this app.
    #[param(value_type = Option<String>)]
    app: Option<AppName>,
    /// Only runs of threads of this graph.
    #[param(value_type = Option<String>)]
    graph: Option<GraphName>,
    /// Only runs with this status: `pending`, `running`, `completed`, `interrupted`, `failed` or
    /// `cancelled`.
    #[param(value_type = Option<String>)]
    status: Option<RunStatus>,
    /// Only runs of threads of this tenant; `*` for those of all tenants. For the operator; other
    /// requests can name their own tenant only.
    tenant: Option<String>,
    /// Only runs that failed with this code.
    failure: Option<String>,
    /// Only runs that contain this text in their id, thread, app, graph or failure. Letters match
    /// in either case. At most 512 bytes.
    text: Option<String>,
    /// Only runs of threads whose metadata contains the fields of this JSON object. Nested objects
    /// may have additional fields.
    metadata: Option<String>,
    /// Only runs that were requested at or after this time, in milliseconds since 1970.
    created_from_ms: Option<i64>,
    /// Only runs that were requested at or before this time, in milliseconds since 1970.
    created_to_ms: Option<i64>,
}

/// The page of a list of runs.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunPageParams {
    /// Maximum number of runs, up to 500; 50 by default.
    limit: Option<usize>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

impl RunConditions {
    /// Returns the search for these conditions, within the tenants of a scope.
    ///
    /// # Errors
    ///
    /// Those of [`ListScope::tenant`]; `invalid` if a text is too long, or if `metadata` is not a
    /// JSON object.
    fn into_search(self, scope: ListScope) -> Result<RunSearch, Problem> {
        check_length("text", self.text.as_deref())?;
        check_length("failure", self.failure.as_deref())?;
        Ok(RunSearch {
            tenant: scope.tenant(self.tenant.as_deref())?,
            app: self.app,
            graph: self.graph,
            status: self.status,
            failure: self.failure,
            text: self.text.filter(|text| !text.is_empty()),
            metadata: parse_metadata(self.metadata.as_deref())?,
            created_ms: range(self.created_from_ms, self.created_to_ms),
            ..RunSearch::default()
        })
    }
}

impl RunPageParams {
    /// Returns a search for this page.
    ///
    /// # Errors
    ///
    /// `invalid` if the cursor is none of this list.
    fn of(&self, search: RunSearch) -> Result<RunSearch, Problem> {
        let after = parse_cursor(self.cursor.as_deref(), RunCursor::parse)?;
        Ok(RunSearch { after, limit: page_size(self.limit), ..search })
    }
}

/// Lists the runs of all threads that have not expired, newest request first. A page may be short
/// or even empty and have a `next_cursor`: one request examines at most 20,000 runs. A request with
/// a condition other than `app` and `tenant` does not count as one of the control plane.
#[utoipa::path(get, path = "/api/v1/runs",
    extensions(("x-wattle-access" = json!({ "scope": "read", "share": "control" }))),
    tag = "runs",
    params(RunConditions, RunPageParams),
    responses(
        (status = 200, body = Page<RunSummaryDocument>),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_all_runs(
    State(engine): State<Engine>,
    State(traffic): State<Arc<Traffic>>,
    State(models): State<Arc<ConfiguredModels>>,
    scope: ListScope,
    permit: Option<Extension<RequestPermit>>,
    RawQuery(query): RawQuery,
) -> Result<Json<Page<RunSummaryDocument>>, Problem> {
    let (conditions, page): (RunConditions, RunPageParams) =
        parse_query(query.as_deref(), &PAGE_PARAMS)?;
    let search = page.of(conditions.into_search(scope)?)?;
    if search.compares_records()
        && let Some(Extension(permit)) = &permit
    {
        permit.leave_control(&traffic)?;
    }
    let found = engine.search_runs(search).await?;
    let items = found.items.into_iter().map(|run| RunSummaryDocument::new(run, &models.prices));
    let items = items.collect();
    Ok(Json(Page::by_cursor(items, found.next)))
}

/// Counts the runs of all threads by status, without those of expired threads. `is_complete` is
/// false if more than 20,000 runs have to be examined: for the conditions `text` and `metadata`, and
/// in a store of PostgreSQL for any count. The numbers are then too low.
#[utoipa::path(get, path = "/api/v1/run-counts",
    extensions(("x-wattle-access" = json!({ "scope": "read", "share": "other" }))),
    tag = "runs",
    params(RunConditions),
    responses(
        (status = 200, body = RunCountsDocument),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn count_runs(
    State(engine): State<Engine>,
    scope: ListScope,
    conditions: Result<Query<RunConditions>, QueryRejection>,
) -> Result<Json<RunCountsDocument>, Problem> {
    let Query(conditions) = conditions.map_err(invalid_query)?;
    let counts = engine.count_runs(conditions.into_search(scope)?).await?;
    Ok(Json(counts.into()))
}
