//! The drawing of the graph of an assistant, and the schemas of the graph and of its subgraphs.

use axum::extract::State;
use serde_json::{Map, Value, json};
use wattle_api::response::Json;
use wattle_graph::graph::NodeKind;
use wattle_graph::id::{GraphName, NodeName};
use wattle_run::app::{App, GraphVersion};
use wattle_run::engine::Engine;

use crate::assistants;
use crate::error::ApiError;
use crate::extractors::{Caller, PathParams};
use crate::graphs::AgentGraph;
use crate::query::QueryParams;
use crate::route::drawable_graph;
use crate::wire::schemas::{Drawing, ErrorDocument, GraphSchemas};

/// Separator of the levels of a namespace.
const NAMESPACE_SEPARATOR: char = '|';

/// Maximum number of levels of subgraphs in a response. An app can have any number of levels of
/// subgraphs.
const MAX_SUBGRAPH_LEVELS: usize = 16;

async fn resolve(engine: &Engine, caller: &Caller, id: &str) -> Result<AgentGraph, ApiError> {
    assistants::find(engine, caller.tenant.as_ref(), id).await
}

/// Draws the graph of an assistant. With `xray`, subgraphs replace the nodes that run them.
#[utoipa::path(get, path = "/assistants/{id}/graph",
    operation_id = "agent_get_graph", tag = "agent-assistants",
    params(
        ("id" = String, Path, description = "id of an assistant, or name of a graph"),
        ("xray" = Option<String>, Query, description = "number of levels of subgraphs to draw, or `true` for all levels")),
    responses(
        (status = 200, body = Drawing),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn graph(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    query: QueryParams,
) -> Result<Json<Value>, ApiError> {
    let found = resolve(&engine, &caller, &id).await?;
    let depth = depth(&query)?.min(MAX_SUBGRAPH_LEVELS);
    Ok(Json(drawable_graph::draw(&found.app, &found.graph_version.graph, depth)))
}

/// Returns the number of levels of subgraphs to draw.
fn depth(query: &QueryParams) -> Result<usize, ApiError> {
    match query.get("xray").and_then(|text| text.parse().ok()) {
        Some(depth) => Ok(depth),
        None => Ok(if query.get_bool("xray")? { usize::MAX } else { 0 }),
    }
}

/// Returns the schemas of the graph of an assistant.
#[utoipa::path(get, path = "/assistants/{id}/schemas",
    operation_id = "agent_get_schemas", tag = "agent-assistants",
    params(("id" = String, Path, description = "id of an assistant, or name of a graph")),
    responses(
        (status = 200, body = GraphSchemas),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn schemas(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<Json<Value>, ApiError> {
    let found = resolve(&engine, &caller, &id).await?;
    Ok(Json(schemas_of(&found.id, &found.graph_version)))
}

/// Returns the schemas of a graph. The channels are the properties of the input, output and state
/// schemas. The schema of the run context is in two fields, because some clients read
/// `config_schema` and other clients read `context_schema`.
fn schemas_of(id: &str, graph_version: &GraphVersion) -> Value {
    let definition = graph_version.graph.definition();
    let (channels, context) = (&definition.channels, &definition.context_schema);
    let properties: Map<String, Value> =
        channels.iter().map(|(name, channel)| (name.to_string(), channel.schema.clone())).collect();
    let schema = json!({ "type": "object", "title": id, "properties": properties });
    json!({
        "graph_id": id,
        "input_schema": schema,
        "output_schema": schema,
        "state_schema": schema,
        "config_schema": context,
        "context_schema": context,
    })
}

/// Returns the schemas of the subgraphs that run as nodes, by namespace.
#[utoipa::path(get, path = "/assistants/{id}/subgraphs",
    operation_id = "agent_get_subgraphs", tag = "agent-assistants",
    params(
        ("id" = String, Path, description = "id of an assistant, or name of a graph"),
        ("recurse" = Option<bool>, Query, description = "true to include subgraphs of subgraphs")),
    responses(
        (status = 200, body = BTreeMap<String, GraphSchemas>),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn subgraphs(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    query: QueryParams,
) -> Result<Json<Value>, ApiError> {
    let found = resolve(&engine, &caller, &id).await?;
    let levels = if query.get_bool("recurse")? { MAX_SUBGRAPH_LEVELS } else { 1 };
    let mut schemas_by_namespace = Map::new();
    collect_schemas(&found.app, &found.graph_version, "", levels, &mut schemas_by_namespace);
    Ok(Json(Value::Object(schemas_by_namespace)))
}

/// Returns the schemas of the subgraph with a namespace. The response is empty if it does not
/// exist.
#[utoipa::path(get, path = "/assistants/{id}/subgraphs/{namespace}",
    operation_id = "agent_get_subgraph", tag = "agent-assistants",
    params(
        ("id" = String, Path, description = "id of an assistant, or name of a graph"),
        ("namespace" = String, Path, description = "names of nodes from the outermost one, separated by `|`"),
        ("recurse" = Option<bool>, Query, description = "true to include subgraphs of subgraphs")),
    responses(
        (status = 200, body = BTreeMap<String, GraphSchemas>),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn subgraph(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams((id, namespace)): PathParams<(String, String)>,
    query: QueryParams,
) -> Result<Json<Value>, ApiError> {
    let found = resolve(&engine, &caller, &id).await?;
    let levels = if query.get_bool("recurse")? { MAX_SUBGRAPH_LEVELS } else { 1 };
    let mut schemas_by_namespace = Map::new();
    collect_schemas(&found.app, &found.graph_version, "", levels, &mut schemas_by_namespace);
    let wanted = strip_task_ids(&namespace);
    schemas_by_namespace.retain(|name, _| *name == wanted);
    Ok(Json(Value::Object(schemas_by_namespace)))
}

/// Removes the task ids from a namespace.
fn strip_task_ids(namespace: &str) -> String {
    let level = |level: &str| level.split(':').next().unwrap_or_default().to_owned();
    namespace.split(NAMESPACE_SEPARATOR).map(level).collect::<Vec<_>>().join("|")
}

fn collect_schemas(
    app: &App,
    graph_version: &GraphVersion,
    parent: &str,
    levels: usize,
    schemas_by_namespace: &mut Map<String, Value>,
) {
    if levels == 0 {
        return;
    }
    for (node, graph, nested) in subgraph_nodes(app, graph_version) {
        let name = if parent.is_empty() {
            node.to_string()
        } else {
            format!("{parent}{NAMESPACE_SEPARATOR}{node}")
        };
        schemas_by_namespace.insert(name.clone(), schemas_of(graph.as_str(), nested));
        collect_schemas(app, nested, &name, levels - 1, schemas_by_namespace);
    }
}

fn subgraph_nodes<'a>(
    app: &'a App,
    graph_version: &'a GraphVersion,
) -> impl Iterator<Item = (&'a NodeName, &'a GraphName, &'a GraphVersion)> {
    graph_version.graph.nodes().iter().filter_map(|(name, node)| match &node.body {
        NodeKind::Graph { graph, .. } => Some((name, graph, app.graphs.get(graph)?.as_ref())),
        NodeKind::Plugin { .. } => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_ids_are_removed_from_a_namespace() {
        assert_eq!(strip_task_ids("a:0af3|b|c:1.2"), "a|b|c");
        assert_eq!(strip_task_ids("a"), "a");
    }
}
