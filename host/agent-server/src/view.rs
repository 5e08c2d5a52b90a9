//! Threads and states as JSON, from the data of the engine and of this server.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use wattle_graph::failure::code;
use wattle_graph::id::{CheckpointId, Namespace, RunId, ThreadId};
use wattle_project::agent_server::failure::{cancelled, error_of};
use wattle_project::agent_server::thread_info::ThreadInfo;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::RunService as _;
use wattle_run::ports::store::{StoreError, ThreadRecord, ThreadStatus as StoredStatus};
use wattle_run::time_travel::StateView;

use crate::error::ApiError;
use crate::graphs;
use crate::resolve::run::RequestedRun;
use crate::wire::response::{Task, Thread, ThreadState, ThreadStatus};

/// Returns the render context of a thread. If the code of the thread is not loaded, messages are
/// rendered as they are stored, so callers load the code first.
pub(crate) fn thread_info(engine: &Engine, record: &ThreadRecord) -> ThreadInfo {
    let catalog = engine.catalog();
    let code = catalog.pinned_version(&record.app, &record.graph, record.version);
    ThreadInfo {
        thread: record.id.clone(),
        origin: record.origin().clone(),
        channels: code
            .map(|(app, graph_version)| graphs::message_channels(&app, &graph_version))
            .unwrap_or_default(),
    }
}

/// Returns the render context of the thread of a run. Works also before the run has bound the
/// thread to its graph.
pub(crate) fn run_thread_info(
    engine: &Engine,
    record: &ThreadRecord,
    requested: &RequestedRun,
) -> ThreadInfo {
    let shown = thread_info(engine, record);
    if !record.is_unbound() {
        return shown;
    }
    let graph = graphs::by_name(engine.catalog(), &requested.app, &requested.graph);
    let channels = graph.map(|graph| graphs::message_channels(&graph.app, &graph.graph_version));
    ThreadInfo { channels: channels.unwrap_or_default(), ..shown }
}

/// Returns the status of a thread. A thread with a pending run is busy, whatever status its record
/// has.
pub(crate) fn status(
    engine: &Engine,
    thread: &ThreadId,
    status: StoredStatus,
    stopped: bool,
) -> ThreadStatus {
    if engine.has_known_pending(thread) {
        return ThreadStatus::Busy;
    }
    ThreadStatus::from_stored(status, stopped)
}

/// Describes a thread, with its current state, as JSON.
pub(crate) async fn thread(engine: &Engine, record: &ThreadRecord) -> Result<Thread, ApiError> {
    let state = load_state(engine, record, &Namespace::root(), None).await?;
    thread_with_state(engine, record, state).await
}

/// Describes a thread as JSON, with a state that was read before, or without a state.
pub(crate) async fn thread_with_state(
    engine: &Engine,
    record: &ThreadRecord,
    state: Option<StateView>,
) -> Result<Thread, ApiError> {
    let mut thread = Thread::new(&thread_info(engine, record), record, state.as_ref());
    thread.status = status(engine, &record.id, record.status, record.stopped);
    if record.stopped {
        thread.error = Some(cancelled());
    } else if record.status == StoredStatus::Error
        && let Some(view) = engine.thread(&record.id).await?
    {
        thread.error = view.failure.as_ref().map(error_of);
    }
    Ok(thread)
}

/// Reads a state of a thread. Returns `None` if the thread has no state yet.
pub(crate) async fn load_state(
    engine: &Engine,
    record: &ThreadRecord,
    namespace: &Namespace,
    checkpoint: Option<CheckpointId>,
) -> Result<Option<StateView>, ApiError> {
    if record.is_unbound() {
        return Ok(None);
    }
    match engine.state(&record.id, namespace, checkpoint).await {
        Ok(view) => Ok(Some(view)),
        // A subgraph that has not run yet has no state.
        Err(failure) if failure.code == code::NOT_FOUND && checkpoint.is_none() => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

/// Returns the metadata of a thread that is part of each of its states.
pub(crate) fn graph_metadata(record: &ThreadRecord) -> Map<String, Value> {
    let known = ["graph_id", "assistant_id"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), record.metadata.get(name)?.clone())));
    known.collect()
}

/// Describes a state of a thread as JSON. With `with_nested`, includes the states of its subgraphs.
pub(crate) async fn state(
    engine: &Engine,
    record: &ThreadRecord,
    view: &StateView,
    with_nested: bool,
) -> Result<ThreadState, ApiError> {
    let (thread_info, graph_metadata) = (thread_info(engine, record), graph_metadata(record));
    let mut state = ThreadState::new(&thread_info, view, &graph_metadata);
    state
        .metadata
        .insert("run_id".to_owned(), run_of_state(engine, record, view).await?.as_str().into());
    if with_nested {
        for (task, shown) in view.tasks.iter().zip(&mut state.tasks) {
            let Some(namespace) = &task.namespace else { continue };
            let nested = load_nested(engine, record, namespace, task.child).await?;
            let is_known = |nested: &StateView| task.child.is_some() || existed_at(nested, view);
            if let Some(nested) = nested.filter(is_known) {
                attach_nested(engine, record, &nested, shown).await?;
            }
        }
    }
    Ok(state)
}

/// Returns the state before the input that made a checkpoint.
pub(crate) async fn before_input(
    engine: &Engine,
    record: &ThreadRecord,
    made: &StateView,
) -> Result<ThreadState, ApiError> {
    let before = match made.parent {
        // The parent may have been pruned.
        Some(parent) => load_nested(engine, record, &made.namespace, Some(parent)).await?,
        None => None,
    };
    let values = before.map_or_else(|| json!({}), |before| before.values);
    let (thread_info, graph_metadata) = (thread_info(engine, record), graph_metadata(record));
    let mut state = ThreadState::before_input(&thread_info, made, &values, &graph_metadata);
    state
        .metadata
        .insert("run_id".to_owned(), run_of_state(engine, record, made).await?.as_str().into());
    Ok(state)
}

/// Reads a state of a task's subgraph. Returns `None` if the subgraph has not run yet, or its
/// states were deleted.
async fn load_nested(
    engine: &Engine,
    record: &ThreadRecord,
    namespace: &Namespace,
    checkpoint: Option<CheckpointId>,
) -> Result<Option<StateView>, ApiError> {
    match load_state(engine, record, namespace, checkpoint).await {
        Err(error) if error.status() == StatusCode::NOT_FOUND => Ok(None),
        found => found,
    }
}

/// Returns whether the newest state of a subgraph already existed at a checkpoint of its parent
/// graph. A subgraph that keeps its state has one namespace for all tasks, so its newest state may
/// be from a later task. Other subgraphs have one namespace per task.
fn existed_at(nested: &StateView, around: &StateView) -> bool {
    let made_at = nested.parents.get(&around.namespace);
    nested.namespace.task().is_some() || made_at.is_some_and(|at| *at <= around.checkpoint)
}

async fn attach_nested(
    engine: &Engine,
    record: &ThreadRecord,
    nested: &StateView,
    task: &mut Task,
) -> Result<(), ApiError> {
    let state = Box::pin(state(engine, record, nested, true)).await?;
    task.state = Some(Box::new(state));
    Ok(())
}

/// Returns the id of the run that wrote a state. In a copy of a thread, the result is the id of the
/// run in the original thread.
async fn run_of_state(
    engine: &Engine,
    record: &ThreadRecord,
    view: &StateView,
) -> Result<RunId, StoreError> {
    if record.origin.is_none() {
        return Ok(view.run.clone());
    }
    let run = engine.ports().store.run(&view.run).await?;
    // An edit has no run record.
    Ok(run.map_or_else(|| view.run.clone(), |run| run.origin().clone()))
}

/// Fields of a state that `select` accepts. The last entry represents fields such as
/// `values.messages`, which [`select_state_fields`] parses. This entry occurs only in the error for
/// an unknown field.
const STATE_FIELDS: &[&str] = &[
    VALUES,
    "next",
    "tasks",
    "metadata",
    "created_at",
    "checkpoint",
    "parent_checkpoint",
    "interrupts",
    "checkpoint_id",
    "parent_checkpoint_id",
    "values.<channel>",
];

/// Field of a state that contains the channel values.
const VALUES: &str = "values";

/// Returns a state with only the selected fields. A field such as `values.messages` selects the
/// value of one channel, which stays in `values`. The name of the channel is everything after the
/// first period, because names of channels may contain periods. A channel without a value is left
/// out.
///
/// # Errors
///
/// 422 for an unknown field.
pub(crate) fn select_state_fields(
    state: &ThreadState,
    fields: &[String],
) -> Result<Value, ApiError> {
    let channel = |field: &String| {
        let name = field.strip_prefix(VALUES)?.strip_prefix('.')?;
        (!name.is_empty()).then(|| name.to_owned())
    };
    let channels: BTreeSet<String> = fields.iter().filter_map(channel).collect();
    if channels.is_empty() {
        return select_fields(state, Some(fields), STATE_FIELDS);
    }
    let mut whole: Vec<String> =
        fields.iter().filter(|field| channel(field).is_none()).cloned().collect();
    let are_all_wanted = whole.iter().any(|field| field == VALUES);
    if !are_all_wanted {
        whole.push(VALUES.to_owned());
    }
    let mut document = select_fields(state, Some(&whole), STATE_FIELDS)?;
    if !are_all_wanted && let Some(values) = document[VALUES].as_object_mut() {
        values.retain(|name, _| channels.contains(name));
    }
    Ok(document)
}

/// Returns an object with only the selected fields.
///
/// # Errors
///
/// 422 for an unknown field.
pub(crate) fn select_fields<T: serde::Serialize>(
    document: &T,
    fields: Option<&[String]>,
    known: &[&str],
) -> Result<Value, ApiError> {
    let mut value = json!(document);
    let Some(fields) = fields.filter(|fields| !fields.is_empty()) else { return Ok(value) };
    if let Some(field) = fields.iter().find(|field| !known.contains(&field.as_str())) {
        let known = known.join(", ");
        let text = format!("`select` names the unknown field `{field}`; known fields are {known}");
        return Err(ApiError::unprocessable(text));
    }
    if let Value::Object(document) = &mut value {
        document.retain(|name, _| fields.contains(name));
    }
    Ok(value)
}
