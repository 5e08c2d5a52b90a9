//! Assistants: each graph is one by itself.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::{Map, Value, json};

use crate::agents::Agents;
use crate::caller::{Body, Caller, Place};
use crate::fault::Fault;
use crate::graphs::{self, AgentGraph};
use crate::route::drawing;
use crate::route::search::{PAGE, holds, pagination};
use crate::view;
use crate::wire::request::{AssistantCount, AssistantSearch, SortOrder};
use crate::wire::shape::Assistant;

/// Most assistants of one answer.
const LARGEST_PAGE: usize = 1_000;

/// Fields that `select` knows.
const FIELDS: &[&str] = &[
    "assistant_id",
    "graph_id",
    "name",
    "description",
    "config",
    "context",
    "created_at",
    "updated_at",
    "metadata",
    "version",
];

/// Lists assistants.
pub(super) async fn search(
    State(agents): State<Agents>,
    _: Caller,
    Body(request): Body<AssistantSearch>,
) -> Result<(HeaderMap, Json<Vec<Value>>), Fault> {
    let wanted = AssistantCount {
        metadata: request.metadata,
        graph_id: request.graph_id,
        name: request.name,
    };
    let mut found = find(&agents, &wanted);
    sort(&mut found, request.sort_by.as_deref())?;
    if request.sort_order == Some(SortOrder::Desc) {
        found.reverse();
    }
    let (total, offset) = (found.len(), request.offset.unwrap_or(0));
    let limit = request.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let shown = found.iter().skip(offset).take(limit);
    let shown = shown.map(|it| view::select(it, request.select.as_deref(), FIELDS));
    let shown = shown.collect::<Result<Vec<_>, _>>()?;
    Ok((pagination(total, offset, shown.len()), Json(shown)))
}

/// Counts assistants.
pub(super) async fn count(
    State(agents): State<Agents>,
    _: Caller,
    Body(request): Body<AssistantCount>,
) -> Json<usize> {
    Json(find(&agents, &request).len())
}

fn find(agents: &Agents, wanted: &AssistantCount) -> Vec<Assistant> {
    let all = graphs::all(agents.engine().catalog());
    let mut found: Vec<Assistant> = all.iter().map(assistant).collect();
    found.retain(|assistant| {
        let graph = wanted.graph_id.as_ref().is_none_or(|id| *id == assistant.graph_id);
        let name = wanted
            .name
            .as_ref()
            .is_none_or(|name| assistant.name.to_lowercase().contains(&name.to_lowercase()));
        let facts = wanted.metadata.as_ref().is_none_or(|facts| {
            holds(&Value::Object(assistant.metadata.clone()), &Value::Object(facts.clone()))
        });
        graph && name && facts
    });
    found
}

fn sort(found: &mut [Assistant], by: Option<&str>) -> Result<(), Fault> {
    match by {
        None | Some("created_at" | "updated_at" | "graph_id" | "name") => {
            found.sort_by(|one, other| one.graph_id.cmp(&other.graph_id));
        }
        Some("assistant_id") => {
            found.sort_by(|one, other| one.assistant_id.cmp(&other.assistant_id));
        }
        Some(other) => {
            let text = format!(
                "`sort_by` is assistant_id, graph_id, name, created_at or updated_at, not `{other}`"
            );
            return Err(Fault::unprocessable(text));
        }
    }
    Ok(())
}

/// A graph is there since its app was loaded, which nobody writes down.
fn assistant(graph: &AgentGraph) -> Assistant {
    let doc = &graph.app.doc;
    Assistant::of_graph(&graph.id, (!doc.is_empty()).then(|| doc.clone()), 0)
}

/// Reads an assistant.
pub(super) async fn get(
    State(agents): State<Agents>,
    _: Caller,
    Place(id): Place<String>,
) -> Result<Json<Assistant>, Fault> {
    Ok(Json(assistant(&by_id(&agents, &id)?)))
}

fn by_id(agents: &Agents, id: &str) -> Result<AgentGraph, Fault> {
    graphs::find(agents.engine().catalog(), id)
}

/// Nodes and ways of its graph.
pub(super) async fn graph(
    State(agents): State<Agents>,
    _: Caller,
    Place(id): Place<String>,
) -> Result<Json<Value>, Fault> {
    let found = by_id(&agents, &id)?;
    Ok(Json(drawing::of(&found.pack.graph)))
}

/// What its runs take and give.
pub(super) async fn schemas(
    State(agents): State<Agents>,
    _: Caller,
    Place(id): Place<String>,
) -> Result<Json<Value>, Fault> {
    let found = by_id(&agents, &id)?;
    let channels = &found.pack.graph.definition().channels;
    let properties: Map<String, Value> =
        channels.iter().map(|(name, channel)| (name.to_string(), channel.schema.clone())).collect();
    let schema = json!({ "type": "object", "title": found.id, "properties": properties });
    Ok(Json(json!({
        "graph_id": found.id,
        "input_schema": schema,
        "output_schema": schema,
        "state_schema": schema,
        "config_schema": null,
        "context_schema": null,
    })))
}
