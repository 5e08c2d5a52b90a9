//! Threads as documents: what the engine knows of them, with what only this server knows.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use wattle_graph::failure::code;
use wattle_graph::id::{CheckpointId, Namespace, RunId};
use wattle_project::agent_server::failure::error_of;
use wattle_project::agent_server::lens::Lens;
use wattle_run::hostcall::runs::Runs as _;
use wattle_run::ports::store::{StoreError, ThreadRecord, ThreadStatus as Stands};
use wattle_run::travel::StateView;

use crate::agents::Agents;
use crate::asked::run::AskedRun;
use crate::fault::Fault;
use crate::graphs;
use crate::wire::shape::{Task, Thread, ThreadState, ThreadStatus};

/// Fact of a thread that was made for one run without a thread; lists leave it out.
pub(crate) const TEMPORARY: &str = "__temporary";

/// How a thread is shown. One whose code is gone shows its messages as they are stored.
pub(crate) fn lens(agents: &Agents, record: &ThreadRecord) -> Lens {
    let catalog = agents.engine().catalog();
    let code = catalog.version(&record.app, &record.graph, record.version);
    Lens {
        thread: record.id.clone(),
        origin: record.origin().clone(),
        channels: code.map(|(app, pack)| graphs::conversations(&app, &pack)).unwrap_or_default(),
    }
}

/// How the thread of a run is shown, also if the run has not bound it to its graph yet.
pub(crate) fn run_lens(agents: &Agents, record: &ThreadRecord, asked: &AskedRun) -> Lens {
    let shown = lens(agents, record);
    if !record.is_blank() {
        return shown;
    }
    let graph = graphs::by_name(agents.engine().catalog(), &asked.app, &asked.graph);
    let channels = graph.map(|graph| graphs::conversations(&graph.app, &graph.pack));
    Lens { channels: channels.unwrap_or_default(), ..shown }
}

/// What a thread does, also if only this server knows that.
pub(crate) fn status(agents: &Agents, record: &ThreadRecord) -> ThreadStatus {
    if agents.engine().is_waiting(&record.id) {
        return ThreadStatus::Busy;
    }
    record.status.into()
}

/// A thread as a document.
pub(crate) async fn thread(agents: &Agents, record: &ThreadRecord) -> Result<Thread, Fault> {
    let state = state_of(agents, record, &Namespace::root(), None).await?;
    thread_at(agents, record, state).await
}

/// The same with a state that was read already; without one if nobody wants to see it.
pub(crate) async fn thread_at(
    agents: &Agents,
    record: &ThreadRecord,
    state: Option<StateView>,
) -> Result<Thread, Fault> {
    let mut thread = Thread::new(&lens(agents, record), record, state.as_ref());
    thread.status = status(agents, record);
    if record.status == Stands::Error
        && let Some(view) = agents.engine().thread(&record.id).await?
    {
        thread.error = view.failure.as_ref().map(error_of);
    }
    Ok(thread)
}

/// A point of a thread; `None` if it has none yet.
pub(crate) async fn state_of(
    agents: &Agents,
    record: &ThreadRecord,
    namespace: &Namespace,
    checkpoint: Option<CheckpointId>,
) -> Result<Option<StateView>, Fault> {
    if record.is_blank() {
        return Ok(None);
    }
    match agents.engine().state(&record.id, namespace, checkpoint).await {
        Ok(view) => Ok(Some(view)),
        // A subgraph that has not run yet has none either.
        Err(failure) if failure.code == code::NOT_FOUND && checkpoint.is_none() => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

/// Facts that stand in the metadata of every state of a thread.
pub(crate) fn facts(record: &ThreadRecord) -> Map<String, Value> {
    let known = ["graph_id", "assistant_id"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), record.metadata.get(name)?.clone())));
    known.collect()
}

/// The state of a thread at one of its points, with those of its subgraphs if wanted.
pub(crate) async fn state(
    agents: &Agents,
    record: &ThreadRecord,
    view: &StateView,
    with_nested: bool,
) -> Result<ThreadState, Fault> {
    let (lens, facts) = (lens(agents, record), facts(record));
    let mut state = ThreadState::new(&lens, view, &facts);
    state.metadata.insert("run_id".to_owned(), run_of(agents, record, view).await?.as_str().into());
    if with_nested {
        for (task, shown) in view.tasks.iter().zip(&mut state.tasks) {
            let Some(namespace) = &task.namespace else { continue };
            let nested = nested(agents, record, namespace, task.child).await?;
            let is_known = |nested: &StateView| task.child.is_some() || had_begun(nested, view);
            if let Some(nested) = nested.filter(is_known) {
                nest(agents, record, &nested, shown).await?;
            }
        }
    }
    Ok(state)
}

/// The point before the input that made a state.
pub(crate) async fn before_input(
    agents: &Agents,
    record: &ThreadRecord,
    made: &StateView,
) -> Result<ThreadState, Fault> {
    let before = match made.parent {
        // It may have been pruned.
        Some(parent) => nested(agents, record, &made.namespace, Some(parent)).await?,
        None => None,
    };
    let values = before.map_or_else(|| json!({}), |before| before.values);
    let (lens, facts) = (lens(agents, record), facts(record));
    let mut state = ThreadState::before_input(&lens, made, &values, &facts);
    state.metadata.insert("run_id".to_owned(), run_of(agents, record, made).await?.as_str().into());
    Ok(state)
}

/// Where the graph of a task stands; `None` if it has not run yet or its states are gone.
async fn nested(
    agents: &Agents,
    record: &ThreadRecord,
    namespace: &Namespace,
    checkpoint: Option<CheckpointId>,
) -> Result<Option<StateView>, Fault> {
    match state_of(agents, record, namespace, checkpoint).await {
        Err(fault) if fault.status() == StatusCode::NOT_FOUND => Ok(None),
        found => found,
    }
}

/// Whether the newest state of a subgraph is none that came only after a point of the graph
/// around it. One that keeps its state has it from task to task; others are of one task alone.
fn had_begun(nested: &StateView, around: &StateView) -> bool {
    let made_at = nested.parents.get(&around.namespace);
    nested.namespace.task().is_some() || made_at.is_some_and(|at| *at <= around.checkpoint)
}

async fn nest(
    agents: &Agents,
    record: &ThreadRecord,
    nested: &StateView,
    task: &mut Task,
) -> Result<(), Fault> {
    let state = Box::pin(state(agents, record, nested, true)).await?;
    task.state = Some(Box::new(state));
    Ok(())
}

/// The run that made a state. In a copy of a thread it is the run of the thread that was copied, as
/// everything else of the state is.
async fn run_of(
    agents: &Agents,
    record: &ThreadRecord,
    view: &StateView,
) -> Result<RunId, StoreError> {
    if record.origin.is_none() {
        return Ok(view.run.clone());
    }
    let run = agents.ports().store.run(&view.run).await?;
    // An edit of a state is no run.
    Ok(run.map_or_else(|| view.run.clone(), |run| run.origin().clone()))
}

/// Fields of a state that `select` knows.
const STATE_FIELDS: &[&str] = &[
    "values",
    "next",
    "tasks",
    "metadata",
    "created_at",
    "checkpoint",
    "parent_checkpoint",
    "interrupts",
    "checkpoint_id",
    "parent_checkpoint_id",
];

/// Only some fields of a state.
///
/// # Errors
///
/// 422 for one that it cannot have.
pub(crate) fn selected(state: &ThreadState, fields: &[String]) -> Result<Value, Fault> {
    select(state, Some(fields), STATE_FIELDS)
}

/// Only some fields of a document.
///
/// # Errors
///
/// 422 for one that it cannot have.
pub(crate) fn select<T: serde::Serialize>(
    document: &T,
    fields: Option<&[String]>,
    known: &[&str],
) -> Result<Value, Fault> {
    let mut value = json!(document);
    let Some(fields) = fields.filter(|fields| !fields.is_empty()) else { return Ok(value) };
    if let Some(field) = fields.iter().find(|field| !known.contains(&field.as_str())) {
        let known = known.join(", ");
        return Err(Fault::unprocessable(format!("`select` names `{field}`; it knows {known}")));
    }
    if let Value::Object(document) = &mut value {
        document.retain(|name, _| fields.contains(name));
    }
    Ok(value)
}
