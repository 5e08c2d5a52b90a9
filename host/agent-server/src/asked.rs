//! From what a client asks for to the run that is to be.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use uuid::Uuid;
use wattle_graph::definition::NodeSet;
use wattle_graph::id::{CheckpointId, NodeName, RunId};
use wattle_run::call::runs::Runs as _;
use wattle_run::ports::store::{Durability, RunOptions, ThreadRecord, ThreadStatus};

use crate::agents::Agents;
use crate::begin::answers;
use crate::doc::run::{RunDoc, Waiting, Work};
use crate::fault::Fault;
use crate::graphs::{self, AgentGraph};
use crate::wire::id::checkpoint_of;
use crate::wire::request::{Command, Invalid, Nodes, RunCreate};

/// Keys of `config.configurable` that name places, not values for nodes.
const PLACES: &[&str] =
    &["thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map", "run_id"];

/// Fields of the request that stand in the document of the run.
const KWARGS: &[&str] = &[
    "input",
    "command",
    "config",
    "context",
    "stream_mode",
    "interrupt_before",
    "interrupt_after",
    "webhook",
    "feedback_keys",
    "durability",
];

/// The run that a request asks for on a thread. Nothing is written.
///
/// # Errors
///
/// 422 for what has not the right form, 400 for what does not go together or cannot be answered,
/// 409 for a thread of another graph.
pub(crate) async fn run(
    agents: &Agents,
    graph: &AgentGraph,
    thread: &ThreadRecord,
    run: RunId,
    request: &RunCreate,
) -> Result<RunDoc, Fault> {
    check_graph(agents, graph, thread)?;
    let work = work(agents, graph, thread, request).await?;
    let now_ms = agents.now_ms();
    let after_ms = request.after_seconds.unwrap_or(0.0) * 1000.0;
    Ok(RunDoc {
        kwargs: kwargs(request, thread, graph, &run),
        metadata: metadata(request, graph),
        run,
        thread: thread.id.clone(),
        tenant: thread.tenant.clone(),
        assistant: graph.assistant().to_string(),
        graph_id: graph.id.clone(),
        app: graph.app.name.clone(),
        graph: graph.name().clone(),
        work,
        options: options(request)?,
        context: context(request),
        strategy: request.multitask_strategy.unwrap_or_default(),
        created_ms: now_ms,
        due_ms: now_ms.saturating_add(after_ms as i64),
        state: Waiting::Pending,
        temporary: None,
    })
}

/// A thread stays with the graph that it began with.
fn check_graph(agents: &Agents, graph: &AgentGraph, thread: &ThreadRecord) -> Result<(), Fault> {
    if thread.is_blank() || (thread.app == graph.app.name && thread.graph == *graph.name()) {
        return Ok(());
    }
    let own = graphs::id_of(agents.engine().catalog(), &thread.app, &thread.graph);
    let (id, wanted) = (&thread.id, &graph.id);
    let text = format!("thread `{id}` is of graph `{own}`; run `{wanted}` on another thread");
    Err(Fault::conflict(text))
}

async fn work(
    agents: &Agents,
    graph: &AgentGraph,
    thread: &ThreadRecord,
    request: &RunCreate,
) -> Result<Work, Fault> {
    let channels = graphs::conversations(&graph.app, &graph.pack);
    let input = request.read_input(&channels, &mut fresh)?;
    if let Some(input) = &input {
        check_input(graph, input)?;
    }
    let checkpoint = checkpoint(thread, request)?;
    if let Some(command) = request.command() {
        return answer(agents, thread, command, checkpoint).await;
    }
    match (input, checkpoint) {
        (input, Some(checkpoint)) => Ok(Work::Fork { checkpoint, input }),
        (Some(input), None) => Ok(Work::Start { input }),
        (None, None) if thread.is_blank() => {
            let id = &thread.id;
            Err(Fault::value(format!("thread `{id}` has not run yet, so its run needs an `input`")))
        }
        (None, None) => Ok(Work::GoOn),
    }
}

/// The id of a new run.
///
/// # Errors
///
/// None: a UUID is an id.
pub(crate) fn new_run() -> Result<RunId, Fault> {
    RunId::new(fresh()).map_err(|error| Fault::unprocessable(error.to_string()))
}

/// An id for a message that has none.
pub(crate) fn fresh() -> String {
    Uuid::now_v7().to_string()
}

/// What the engine would refuse is refused before the run stands in a queue.
fn check_input(graph: &AgentGraph, input: &Value) -> Result<(), Fault> {
    let Value::Object(fields) = input else {
        return Err(Fault::unprocessable("`input` must be an object of channel values"));
    };
    let channels = graph.pack.graph.channels();
    let Some(name) = fields.keys().find(|name| !channels.keys().any(|it| it.as_str() == *name))
    else {
        return Ok(());
    };
    let known: Vec<String> = channels.keys().map(|channel| format!("`{channel}`")).collect();
    let (id, known) = (&graph.id, known.join(", "));
    let text =
        format!("graph `{id}` has no channel `{name}`, which `input` names; it has: {known}");
    Err(Fault::unprocessable(text))
}

async fn answer(
    agents: &Agents,
    thread: &ThreadRecord,
    command: &Command,
    checkpoint: Option<CheckpointId>,
) -> Result<Work, Fault> {
    for (field, wish) in [("command.update", &command.update), ("command.goto", &command.goto)] {
        if wish.is_some() {
            return Err(Invalid::Unsupported(field).into());
        }
    }
    let Some(resume) = command.resume.clone() else {
        return Err(Fault::unprocessable("`command` needs `resume`"));
    };
    if checkpoint.is_some() {
        let text = "a question is answered where the thread stands; leave out the checkpoint";
        return Err(Fault::value(text));
    }
    if thread.is_blank() {
        let text = format!("thread `{}` has not run yet, so nothing can be answered", thread.id);
        return Err(Fault::value(text));
    }
    // A run at work may still ask, so what waits for it is matched when its turn comes.
    if thread.status != ThreadStatus::Running && !agents.queue().has_waiting(&thread.id) {
        let view = agents.engine().thread(&thread.id).await?;
        let open = view.map(|view| view.interrupts).unwrap_or_default();
        answers(&open, &resume).map_err(|failure| Fault::value(failure.message))?;
    }
    Ok(Work::Answer { resume })
}

fn checkpoint(thread: &ThreadRecord, request: &RunCreate) -> Result<Option<CheckpointId>, Fault> {
    let configured = || {
        let configurable = request.config.as_ref()?.configurable.as_ref()?;
        configurable.get("checkpoint_id")?.as_str()
    };
    let named = request.checkpoint_id().or_else(configured);
    named.map(|id| of_thread(thread, id)).transpose()
}

/// A checkpoint of a thread by the id that clients know.
///
/// # Errors
///
/// 404 if it is none of this thread.
pub(crate) fn of_thread(thread: &ThreadRecord, id: &str) -> Result<CheckpointId, Fault> {
    checkpoint_of(thread.origin(), id).ok_or_else(|| Fault::missing("checkpoint", id))
}

fn options(request: &RunCreate) -> Result<RunOptions, Fault> {
    let config = request.config.as_ref();
    Ok(RunOptions {
        recursion_limit: config.and_then(|config| config.recursion_limit),
        max_concurrency: config.and_then(|config| config.max_concurrency),
        interrupt_before: request.interrupt_before.as_ref().map(nodes).transpose()?,
        interrupt_after: request.interrupt_after.as_ref().map(nodes).transpose()?,
        durability: durability(request),
    })
}

fn nodes(nodes: &Nodes) -> Result<NodeSet, Fault> {
    let Some(names) = nodes.names() else { return Ok(NodeSet::All) };
    let names: Result<BTreeSet<_>, _> = names.into_iter().map(NodeName::new).collect();
    names.map(NodeSet::Named).map_err(|error| Fault::unprocessable(error.to_string()))
}

/// `async` asks that a step does not wait for the checkpoint before it. Output commit, the default,
/// keeps that and loses nothing that anybody saw.
fn durability(request: &RunCreate) -> Durability {
    match (request.durability.as_deref(), request.checkpoint_during) {
        (Some("sync"), _) => Durability::Sync,
        (Some("exit"), _) | (None, Some(false)) => Durability::Exit,
        _ => Durability::Commit,
    }
}

fn context(request: &RunCreate) -> Value {
    match request.run_context() {
        Value::Object(mut values) => {
            values.retain(|name, _| !PLACES.contains(&name.as_str()));
            if values.is_empty() { Value::Null } else { Value::Object(values) }
        }
        other => other,
    }
}

fn metadata(request: &RunCreate, graph: &AgentGraph) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("created_by".into(), "system".into());
    metadata.extend(request.metadata.clone().unwrap_or_default());
    metadata.insert("graph_id".into(), graph.id.clone().into());
    metadata.insert("assistant_id".into(), graph.assistant().to_string().into());
    metadata
}

fn kwargs(
    request: &RunCreate,
    thread: &ThreadRecord,
    graph: &AgentGraph,
    run: &RunId,
) -> Map<String, Value> {
    let Ok(Value::Object(asked)) = serde_json::to_value(request) else { return Map::new() };
    let field = |name: &&str| {
        let value = asked.get(*name).cloned().unwrap_or_default();
        ((*name).to_owned(), value)
    };
    let mut kwargs: Map<String, Value> = KWARGS.iter().map(field).collect();
    if !kwargs["config"].is_object() {
        kwargs.insert("config".into(), json!({}));
    }
    let places = json!({
        "run_id": run,
        "thread_id": thread.id,
        "graph_id": graph.id,
        "assistant_id": graph.assistant(),
    });
    if let (Value::Object(places), Some(config)) = (places, kwargs["config"].as_object_mut()) {
        let configurable = config.entry("configurable").or_insert_with(|| json!({}));
        if let Some(configurable) = configurable.as_object_mut() {
            configurable.extend(places);
        }
    }
    kwargs.insert("subgraphs".into(), request.stream_subgraphs.unwrap_or(false).into());
    kwargs.insert("resumable".into(), request.stream_resumable.unwrap_or(false).into());
    kwargs
}
