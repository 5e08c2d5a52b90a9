//! The list of the runs of all threads.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use utoipa::IntoParams;
use wattle_graph::event::RunStatus;
use wattle_graph::id::{AppName, GraphName};
use wattle_run::engine::Engine;
use wattle_run::ports::store::{RunCursor, RunSearch};

use crate::document::Page;
use crate::document::run_summary::RunSummaryDocument;
use crate::guard::open_requests::RequestPermit;
use crate::native::list_scope::ListScope;
use crate::native::thread_filter::{check_length, parse_cursor, range};
use crate::native::threads::{invalid_query, page_size};
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;
use crate::state::ConfiguredModels;
use crate::traffic::Traffic;

/// Selects the runs to list. All conditions must hold.
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
    /// Only runs that were requested at or after this time, in milliseconds since 1970.
    created_from_ms: Option<i64>,
    /// Only runs that were requested at or before this time, in milliseconds since 1970.
    created_to_ms: Option<i64>,
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
    /// Those of [`ListScope::tenant`]; `invalid` if a text is too long, or if the cursor is none of
    /// this list.
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
            created_ms: range(self.created_from_ms, self.created_to_ms),
            after: parse_cursor(self.cursor.as_deref(), RunCursor::parse)?,
            limit: page_size(self.limit),
            ..RunSearch::default()
        })
    }
}

/// Lists the runs of all threads that have not expired, newest request first. A page may be short
/// or even empty and have a `next_cursor`: one request examines at most 20,000 runs. A request with
/// a condition other than `app` and `tenant` does not count as one of the control plane.
#[utoipa::path(get, path = "/api/v1/runs",
    extensions(("x-wattle-access" = json!({ "scope": "read", "share": "control" }))),
    tag = "runs",
    params(RunConditions),
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
    conditions: Result<Query<RunConditions>, QueryRejection>,
) -> Result<Json<Page<RunSummaryDocument>>, Problem> {
    let Query(conditions) = conditions.map_err(invalid_query)?;
    let search = conditions.into_search(scope)?;
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
