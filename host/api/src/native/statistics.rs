//! Statistics of ended runs.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use utoipa::IntoParams;
use wattle_graph::failure::code;
use wattle_graph::id::AppName;
use wattle_run::ports::Statistics;
use wattle_run::ports::statistics::{StatisticsGroup, StatisticsQuery, StatisticsStep};

use crate::document::statistics::StatisticsDocument;
use crate::native::list_scope::ListScope;
use crate::native::tenant_scope::operator_only_problem;
use crate::native::threads::invalid_query;
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;

/// Selects statistics.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StatisticsParams {
    /// Time in the first interval, in milliseconds since 1970. By default, the report has 60
    /// intervals.
    from_ms: Option<i64>,
    /// Time in the last interval, in milliseconds since 1970; now by default.
    to_ms: Option<i64>,
    /// Length of an interval: `minute`, `hour` (default) or `day`, all in UTC. Minutes are kept for
    /// a day, hours for 30 days, days for two years.
    #[param(value_type = Option<String>)]
    step: StatisticsStep,
    /// One series for each `app`, `model` or `tenant`; by default, one series of all counts. Only
    /// the operator can use `tenant`.
    #[param(value_type = Option<String>)]
    by: Option<StatisticsGroup>,
    /// Only runs of this app.
    #[param(value_type = Option<String>)]
    app: Option<AppName>,
    /// Only runs of this tenant; `*` selects the runs of all tenants. Only the operator can name
    /// another tenant than the tenant of the request.
    tenant: Option<String>,
}

/// Counts the runs that ended or were interrupted on all hosts of the store, and their model calls,
/// over time. A run and its calls are counted in the interval in which the run ended.
#[utoipa::path(get, path = "/api/v1/statistics",
    extensions(("x-wattle-access" = json!({ "scope": "admin", "share": "other" }))), tag = "host",
    params(StatisticsParams),
    responses(
        (status = 200, body = StatisticsDocument),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_statistics(
    State(statistics): State<Option<Arc<dyn Statistics>>>,
    scope: ListScope,
    params: Result<Query<StatisticsParams>, QueryRejection>,
) -> Result<Json<StatisticsDocument>, Problem> {
    let Query(params) = params.map_err(invalid_query)?;
    let StatisticsParams { from_ms, to_ms, step, by: group, app, tenant } = params;
    let tenant = scope.tenant(tenant.as_deref())?;
    if let (Some(StatisticsGroup::Tenant), Some(tenant)) = (group, &tenant) {
        return Err(operator_only_problem("`by=tenant`", tenant));
    }
    let statistics =
        statistics.ok_or_else(|| Problem::new(code::NOT_FOUND, "this host keeps no statistics"))?;
    let query = StatisticsQuery { step, from_ms, to_ms, group, app, tenant };
    let report = statistics.read(&query).await?;
    Ok(Json(StatisticsDocument::new(step, report)))
}
