//! The node cache of an app.

use axum::Json;
use axum::extract::{Path, Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use wattle_graph::failure::code;
use wattle_graph::id::{GraphName, NodeName};
use wattle_run::engine::Engine;

use crate::native::apps;
use crate::native::tenant_scope::TenantScope;
use crate::native::threads::{invalid_id, invalid_query};
use crate::problem::{Problem, ProblemDocument};

/// Selects the cache entries to delete.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CacheFilter {
    /// Only entries of this graph.
    graph: Option<String>,
    /// Only entries of this node of `graph`.
    node: Option<String>,
}

/// The number of deleted cache entries.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ForgottenDocument)]
pub struct ClearedCacheDocument {
    /// Number of deleted entries.
    pub cleared: usize,
}

/// Deletes the cache entries of the nodes of an app, for the tenant of the request.
#[utoipa::path(delete, path = "/api/v1/apps/{app}/cache", tag = "apps",
    params(("app" = String, Path, description = "name of the app"), CacheFilter),
    responses(
        (status = 200, body = ClearedCacheDocument),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn clear_cache(
    State(engine): State<Engine>,
    scope: TenantScope,
    Path(app): Path<String>,
    filter: Result<Query<CacheFilter>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<ClearedCacheDocument>, Problem> {
    let Query(filter) = filter.map_err(invalid_query)?;
    let app = apps::find(&engine, &app)?;
    let graph = filter.graph.map(GraphName::new).transpose().map_err(invalid_id)?;
    let node = filter.node.map(NodeName::new).transpose().map_err(invalid_id)?;
    if node.is_some() && graph.is_none() {
        return Err(Problem::new(code::INVALID, "`node` requires `graph`"));
    }
    if let Some(graph) = &graph {
        apps::find_graph(&app, graph.as_str())?;
    }
    let tenant = scope.tenant.as_deref();
    let cleared = engine.clear_cache(tenant, &app.name, graph.as_ref(), node.as_ref()).await?;
    Ok(Json(ClearedCacheDocument { cleared }))
}
