//! Commands that read states.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::id::Namespace;
use wattle_project::agent_server::time::format_time_with_micros;
use wattle_run::ports::store::ThreadRecord;
use wattle_run::time_travel::{HistoryQuery, StateView};

use super::run::no_checkpoint;
use super::{CommandContext, to_command_error};
use crate::namespaces;
use crate::page;
use crate::resolve::parse_checkpoint_id;
use crate::view;
use crate::wire::command::{CommandError, ErrorCode, GetState, ListCheckpoints};

/// Default number of checkpoints in a reply.
const DEFAULT_PAGE_SIZE: usize = 10;

/// Maximum number of checkpoints in a reply. A read of a checkpoint leaves out its state, but
/// includes the events after it.
const MAX_PAGE_SIZE: usize = 100;

/// Separator of the levels of a namespace.
const NAMESPACE_SEPARATOR: &str = "|";

/// Returns the current state of a thread or of one of its subgraphs.
pub(super) async fn get(
    context: &CommandContext<'_>,
    params: GetState,
) -> Result<Value, CommandError> {
    let found = match context.find().await? {
        Some(record) => {
            let namespace = namespace(context, &record, &params.namespace).await?;
            let state = view::load_state(context.engine(), &record, &namespace, None).await;
            let state = state.map_err(|error| to_command_error(&error))?;
            state.map(|state| (view::thread_info(context.engine(), &record), state))
        }
        None => None,
    };
    let Some((thread_info, state)) = found else {
        let (thread, name) = (context.thread, params.namespace.join(NAMESPACE_SEPARATOR));
        if name.is_empty() {
            return Ok(json!({ "values": {} }));
        }
        let why = format!("no graph has run in `{name}` of thread `{thread}`");
        return Err(CommandError::new(ErrorCode::NoSuchNamespace, why));
    };
    let mut values = thread_info.values(&state.values);
    if let (Value::Object(values), Some(keys)) = (&mut values, &params.keys) {
        values.retain(|name, _| keys.contains(name));
    }
    let address = thread_info.checkpoint(&state.namespace, state.checkpoint);
    let checkpoint = json!({ "id": address.checkpoint_id, "ns": address.checkpoint_ns });
    Ok(json!({ "values": values, "checkpoint": checkpoint }))
}

/// Lists the checkpoints of a thread, newest first, without their states.
pub(super) async fn list(
    context: &CommandContext<'_>,
    params: ListCheckpoints,
) -> Result<Value, CommandError> {
    let Some(record) = context.find().await?.filter(|record| !record.is_unbound()) else {
        return Ok(json!({ "checkpoints": [] }));
    };
    let limit = page::size(params.limit, DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);
    let limit = limit.map_err(|error| to_command_error(&error))?;
    let before = params.before.as_deref().map(|id| parse_checkpoint_id(&record, id)).transpose();
    let query = HistoryQuery {
        namespace: namespace(context, &record, &params.namespace).await?,
        before: before.map_err(|error| no_checkpoint(&error))?,
        filter: BTreeMap::new(),
        limit: Some(limit),
        without_states: true,
    };
    let past = context.engine().history(&record.id, query).await;
    let past = past.map_err(|failure| to_command_error(&failure.into()))?;
    let (thread_info, graph_metadata) =
        (view::thread_info(context.engine(), &record), view::graph_metadata(&record));
    let point = |view: &StateView| {
        let mut metadata = graph_metadata.clone();
        metadata.extend(view.metadata.clone());
        metadata.insert("source".to_owned(), json!(view.source));
        metadata.insert("run_id".to_owned(), json!(view.run));
        json!({
            "id": thread_info.checkpoint_id(view.checkpoint),
            "timestamp": format_time_with_micros(view.at_ms),
            "step": view.step,
            "node_name": view.writers.first(),
            "metadata": metadata,
        })
    };
    let points: Vec<Value> = past.items.iter().map(point).collect();
    Ok(json!({ "checkpoints": points }))
}

async fn namespace(
    context: &CommandContext<'_>,
    record: &ThreadRecord,
    levels: &[String],
) -> Result<Namespace, CommandError> {
    let found = namespaces::find(context.engine(), record, &levels.join(NAMESPACE_SEPARATOR)).await;
    found.map_err(|error| to_command_error(&error))
}
