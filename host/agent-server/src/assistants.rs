//! Assistants by their ids: the default assistant of each graph, and assistants that clients
//! created.

use std::borrow::Cow;

use serde_json::{Map, Value};
use uuid::Uuid;
use wattle_graph::failure::Failure;
use wattle_run::engine::Engine;
use wattle_run::ports::memory::MemoryScope;

use crate::error::ApiError;
use crate::graphs::{self, AgentGraph, StoredAssistant};
use crate::records::Versioned;
use crate::records::assistant::{AssistantRecord, assistant_records};
use crate::wire::request::{Config, RunCreate};
use crate::wire::response::Assistant;

/// Resolves the id of an assistant, or the name of a graph, to a graph with settings.
///
/// # Errors
///
/// 404 for an unknown UUID, 422 for an unknown name, 409 for an assistant whose graph is not
/// loaded, 503 while an app that may have the graph is loaded for the first time.
pub(crate) async fn find(
    engine: &Engine,
    tenant: Option<&String>,
    id: &str,
) -> Result<AgentGraph, ApiError> {
    let catalog = engine.catalog();
    let missing = match graphs::find(catalog, id) {
        Ok(graph) => return Ok(graph),
        Err(error) => error,
    };
    let Ok(uuid) = Uuid::try_parse(id) else { return Err(missing) };
    let record = find_stored(engine, tenant, uuid).await?.ok_or(missing)?;
    let graph = &record.used.graph_id;
    let graph = graphs::by_id(catalog, graph).map_err(|why| {
        why.into_error(|| {
            ApiError::conflict(format!(
                "assistant `{id}` is of graph `{graph}`, which is not loaded"
            ))
        })
    })?;
    Ok(AgentGraph { stored: Some(StoredAssistant { id: uuid, record }), ..graph })
}

/// Reads an assistant that a client created.
pub(crate) async fn find_stored(
    engine: &Engine,
    tenant: Option<&String>,
    id: Uuid,
) -> Result<Option<AssistantRecord>, Failure> {
    Ok(find_versioned(engine, tenant, id).await?.map(|versioned| versioned.value))
}

/// Reads an assistant that a client created, in the form that a compare-and-swap needs.
pub(crate) async fn find_versioned(
    engine: &Engine,
    tenant: Option<&String>,
    id: Uuid,
) -> Result<Option<Versioned<AssistantRecord>>, Failure> {
    let scope = MemoryScope::Host(tenant.cloned());
    assistant_records(engine.ports(), scope).get_versioned(&id.to_string()).await
}

/// Lists the assistants of a tenant, the default assistants of graphs first.
pub(crate) async fn list(
    engine: &Engine,
    tenant: Option<&String>,
) -> Result<Vec<Assistant>, Failure> {
    let scope = MemoryScope::Host(tenant.cloned());
    let stored: Vec<AssistantRecord> = assistant_records(engine.ports(), scope).list().await?;
    let graphs = graphs::list(engine.catalog());
    let defaults = graphs.iter().map(default_assistant);
    Ok(defaults.chain(stored.iter().map(AssistantRecord::to_body)).collect())
}

/// Returns the default assistant of a graph. Its creation time is 0, because no record contains the
/// time at which the app was loaded.
pub(crate) fn default_assistant(graph: &AgentGraph) -> Assistant {
    let doc = &graph.app.doc;
    Assistant::for_graph(&graph.id, (!doc.is_empty()).then(|| doc.clone()), 0)
}

/// Returns the request with the settings of its assistant as defaults. Settings and context are
/// merged key by key; values of the request replace the values of the assistant.
pub(crate) fn with_assistant_defaults<'r>(
    graph: &AgentGraph,
    request: &'r RunCreate,
) -> Cow<'r, RunCreate> {
    let Some(StoredAssistant { record, .. }) = &graph.stored else { return Cow::Borrowed(request) };
    let context = merge(&record.used.context, request.run_context());
    let requested = request.config.as_ref().and_then(|config| serde_json::to_value(config).ok());
    let config = merge(&Value::Object(record.used.config.clone()), requested.unwrap_or_default());
    let mut config: Config = serde_json::from_value(config).unwrap_or_default();
    config.configurable = context.as_object().cloned();
    Cow::Owned(RunCreate { config: Some(config), context: Some(context), ..request.clone() })
}

/// Merges two objects key by key, without merging nested objects. A key of `value` replaces the
/// same key of `under`. If either value is not an object, the result is `value`, or `under` if
/// `value` is `null`.
fn merge(under: &Value, value: Value) -> Value {
    match (under, value) {
        (Value::Object(under), Value::Object(fields)) => {
            let mut all: Map<String, Value> = under.clone();
            all.extend(fields);
            Value::Object(all)
        }
        (under, Value::Null) => under.clone(),
        (_, value) => value,
    }
}
