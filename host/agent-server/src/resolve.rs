//! Resolves a run request into a run specification. Writes nothing.

pub(crate) mod run;

use serde_json::{Map, Value, json};
use wattle_graph::definition::NodeSet;
use wattle_graph::event::{Send, Write};
use wattle_graph::id::{ChannelName, CheckpointId, END, NodeName, RunId};
use wattle_graph::step;
use wattle_project::agent_server::id::{checkpoint_of, input_of};
use wattle_run::blocking::{block_in_place_in_turn, is_long_validation};
use wattle_run::caller_id::CallerId;
use wattle_run::engine::{Engine, answers_by_interrupt};
use wattle_run::hostcall::runs::{CreateRun, RunService as _};
use wattle_run::ports::store::{
    Durability, RunAnswers, RunKind, RunOptions, StaleAnswers, ThreadRecord, ThreadStatus,
};

use crate::assistants::with_assistant_defaults;
use crate::error::ApiError;
use crate::extractors::Caller;
use crate::graphs::{self, AgentGraph};
use crate::message_reader::{MessageReader, new_message_id};
use crate::resolve::run::{ClientFields, EngineFields, RequestedRun};
use crate::unknown_keys::{IgnoredKeys, UnknownKeys};
use crate::wire::request::{Goto, NodeSelection, RunCommand, RunCreate};

/// Keys of `config.configurable` that address a thread, a checkpoint or a run. They are not part of
/// the run context.
const RESERVED_CONFIGURABLE_KEYS: &[&str] =
    &["thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map", "run_id"];

/// Names that clients use for the end of a graph in `goto` and `as_node`.
pub(crate) const END_ALIASES: &[&str] = &["__end__", END];

/// Fields of the request that are returned in the `kwargs` of the run.
const KWARGS_FIELDS: &[&str] = &[
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

/// Resolves a caller's request into a run on a thread, and into the request to the engine. Writes
/// nothing.
///
/// # Errors
///
/// 422 for an invalid value, 400 for values that cannot be combined or an interrupt that cannot be
/// answered, 409 for a thread of another graph.
pub(crate) async fn resolve_run(
    engine: &Engine,
    unknown_keys: UnknownKeys,
    caller: &Caller,
    graph: &AgentGraph,
    thread: &ThreadRecord,
    run: RunId,
    request: &RunCreate,
) -> Result<(RequestedRun, CreateRun), ApiError> {
    check_graph(engine, graph, thread)?;
    let request = with_assistant_defaults(graph, request);
    let request = &*request;
    let mut ignored = IgnoredKeys::default();
    let kind = resolve_kind(engine, unknown_keys, graph, thread, request, &mut ignored).await?;
    let context = context(request);
    let checked = &graph.graph_version.graph;
    let is_long = is_long_validation(checked, [&context]);
    let owner = CallerId::of_run(caller.principal.as_ref(), &graph.app.name);
    block_in_place_in_turn(owner, is_long, || checked.check_context(&context)).await?;
    let now_ms = engine.ports().clock.now_ms();
    let after_ms = request.after_seconds.unwrap_or(0.0) * 1000.0;
    let client = ClientFields {
        kwargs: kwargs(request, thread, graph, &run),
        metadata: metadata(request, graph, &ignored),
        assistant: graph.assistant().to_string(),
        assistant_version: graph.stored.as_ref().map_or(1, |stored| stored.record.used.number),
        graph_id: graph.id.clone(),
        strategy: request.multitask_strategy.unwrap_or_default().into(),
    };
    let mut requested = RequestedRun {
        run,
        thread: thread.id.clone(),
        tenant: thread.tenant.clone(),
        app: graph.app.name.clone(),
        graph: graph.name().clone(),
        created_ms: now_ms,
        due_ms: now_ms.saturating_add(after_ms as i64),
        client,
    };
    let engine_fields = EngineFields {
        kind,
        stale_answers: stale_answers(request),
        options: options(graph, request),
        context,
        principal: caller.principal.clone(),
    };
    let create = requested.request(engine_fields, caller.is_cron);
    Ok((requested, create))
}

/// Checks that the graph of a run is the graph of the first run of the thread.
///
/// # Errors
///
/// 409 for a thread of another graph.
pub(crate) fn check_graph(
    engine: &Engine,
    graph: &AgentGraph,
    thread: &ThreadRecord,
) -> Result<(), ApiError> {
    if thread.is_unbound() || (thread.app == graph.app.name && thread.graph == *graph.name()) {
        return Ok(());
    }
    let thread_graph = graphs::graph_id(engine.catalog(), &thread.app, &thread.graph);
    let (id, wanted) = (&thread.id, &graph.id);
    let text =
        format!("thread `{id}` is of graph `{thread_graph}`; run `{wanted}` on another thread");
    Err(ApiError::conflict(text))
}

async fn resolve_kind(
    engine: &Engine,
    unknown_keys: UnknownKeys,
    graph: &AgentGraph,
    thread: &ThreadRecord,
    request: &RunCreate,
    ignored: &mut IgnoredKeys,
) -> Result<RunKind, ApiError> {
    let channels = graphs::message_channels(&graph.app, &graph.graph_version);
    let reader = MessageReader::default();
    let input = reader.read(|context| request.read_input(&channels, context))?;
    let input = input.map(|input| filter_input(unknown_keys, graph, input, ignored)).transpose()?;
    let checkpoint = resolve_point(thread, request)?;
    if let Some(command) = request.command() {
        let checkpoint = match checkpoint {
            Some(Point::BeforeInput(_)) => {
                let text =
                    "a `command` cannot start before an input; name a checkpoint after the input";
                return Err(ApiError::unprocessable(text));
            }
            Some(Point::Checkpoint(checkpoint)) => Some(checkpoint),
            None => None,
        };
        let stale = stale_answers(request);
        let target = CommandTarget { graph, thread, checkpoint, stale, reader };
        return resolve_command(engine, unknown_keys, command, target, ignored).await;
    }
    match (input, checkpoint) {
        (input, Some(Point::Checkpoint(checkpoint))) => Ok(RunKind::Fork { checkpoint, input }),
        // The state of this checkpoint already contains the input, because the input made the
        // checkpoint.
        (None, Some(Point::BeforeInput(checkpoint))) => {
            Ok(RunKind::Fork { checkpoint, input: None })
        }
        (Some(input), Some(Point::BeforeInput(checkpoint))) => {
            Ok(RunKind::Redo { checkpoint, input })
        }
        (Some(input), None) => Ok(RunKind::Start { input }),
        (None, None) if thread.is_unbound() => {
            let id = &thread.id;
            Err(ApiError::bad_request(format!(
                "thread `{id}` has not run yet, so its run needs an `input`"
            )))
        }
        (None, None) => Ok(RunKind::Continue),
    }
}

/// Returns a new run id.
///
/// # Errors
///
/// No error occurs in practice, because a UUID is a valid run id.
pub(crate) fn new_run_id() -> Result<RunId, ApiError> {
    RunId::new(new_message_id()).map_err(|error| ApiError::unprocessable(error.to_string()))
}

/// Returns an input without the keys that name no channel of the graph. If the server does not
/// ignore such keys, this function rejects them, because the engine would reject the run only after
/// the run was enqueued.
fn filter_input(
    unknown_keys: UnknownKeys,
    graph: &AgentGraph,
    input: Value,
    ignored: &mut IgnoredKeys,
) -> Result<Value, ApiError> {
    let Value::Object(mut fields) = input else {
        return Err(ApiError::unprocessable("`input` must be an object of channel values"));
    };
    match unknown_keys {
        UnknownKeys::Ignore => {
            fields.retain(|name, _| ignored.keep("input", name, has_channel(graph, name)));
        }
        UnknownKeys::Reject => check_channels(graph, "input", fields.keys())?,
    }
    Ok(Value::Object(fields))
}

fn has_channel(graph: &AgentGraph, name: &str) -> bool {
    graph.graph_version.graph.channels().contains_key(name)
}

fn check_channels<'n>(
    graph: &AgentGraph,
    field: &str,
    mut names: impl Iterator<Item = &'n String>,
) -> Result<(), ApiError> {
    let Some(name) = names.find(|name| !has_channel(graph, name)) else { return Ok(()) };
    let channels = graph.graph_version.graph.channels();
    let known: Vec<String> = channels.keys().map(|channel| format!("`{channel}`")).collect();
    let (id, known) = (&graph.id, known.join(", "));
    let text =
        format!("graph `{id}` has no channel `{name}`, which `{field}` names; it has: {known}");
    Err(ApiError::unprocessable(text))
}

/// What a command applies to.
struct CommandTarget<'a> {
    graph: &'a AgentGraph,
    thread: &'a ThreadRecord,
    checkpoint: Option<CheckpointId>,
    /// What happens to answers whose interrupts are not pending.
    stale: StaleAnswers,
    /// Reads the messages of the command, after those of the input.
    reader: MessageReader,
}

/// Resolves the `command` of a request.
async fn resolve_command(
    engine: &Engine,
    unknown_keys: UnknownKeys,
    command: &RunCommand,
    target: CommandTarget<'_>,
    ignored: &mut IgnoredKeys,
) -> Result<RunKind, ApiError> {
    let CommandTarget { graph, thread, checkpoint, stale, reader } = target;
    let channels = graphs::message_channels(&graph.app, &graph.graph_version);
    let mut updates = reader.read(|context| command.read_update(&channels, context))?;
    let (mut goto, mut sends) = (Vec::new(), Vec::new());
    for one in reader.read(|context| command.read_goto(&channels, context))? {
        match one {
            Goto::Node(name) if END_ALIASES.contains(&name.as_str()) => {}
            Goto::Node(name) => goto.push(find_node(graph, &name)?),
            Goto::Send { node: name, input } => {
                sends.push(Send { node: find_node(graph, &name)?, input, timeout_ms: None });
            }
        }
    }
    match unknown_keys {
        UnknownKeys::Ignore => updates
            .retain(|(name, _)| ignored.keep("command.update", name, has_channel(graph, name))),
        UnknownKeys::Reject => {
            check_channels(graph, "command.update", updates.iter().map(|(name, _)| name))?;
        }
    }
    let writes = updates.into_iter().map(|(name, value)| {
        let channel = ChannelName::new(&name);
        channel.map(|channel| Write { channel, value, overwrite: false })
    });
    let writes = writes.collect::<Result<Vec<_>, _>>();
    let writes = writes.map_err(|error| ApiError::unprocessable(error.to_string()))?;
    // Interrupts are pending only at the current checkpoint, so the request may name only the
    // current checkpoint.
    let checkpoint = match &command.resume {
        Some(resume) => {
            check_answerable(engine, thread, resume, checkpoint, stale).await?;
            None
        }
        None => checkpoint,
    };
    let is_plain = writes.is_empty() && goto.is_empty() && sends.is_empty();
    match &command.resume {
        Some(resume) if is_plain => {
            Ok(RunKind::Answer { answer: RunAnswers::Matched(resume.clone()) })
        }
        // A command whose keys were all ignored has no effect, but is not an error.
        None if is_plain && ignored.is_empty() => {
            Err(ApiError::bad_request("`command` is empty; set `update`, `resume` or `goto`"))
        }
        resume => Ok(RunKind::Command {
            command: step::Command { writes, goto, sends, skips_entry: false },
            answer: resume.clone().map(RunAnswers::Matched),
            checkpoint,
        }),
    }
}

/// Finds a node of the graph by its name.
fn find_node(graph: &AgentGraph, name: &str) -> Result<NodeName, ApiError> {
    let nodes = graph.graph_version.graph.nodes();
    if let Some(node) = nodes.keys().find(|node| node.as_str() == name) {
        return Ok(node.clone());
    }
    let known: Vec<String> = nodes.keys().map(|node| format!("`{node}`")).collect();
    let (id, known) = (&graph.id, known.join(", "));
    let text =
        format!("graph `{id}` has no node `{name}`, which `command.goto` names; it has: {known}");
    Err(ApiError::unprocessable(text))
}

/// Checks that `resume` can answer the pending interrupts of the thread. If no interrupt is
/// pending, the engine decides whether the run continues past a breakpoint.
async fn check_answerable(
    engine: &Engine,
    thread: &ThreadRecord,
    resume: &Value,
    checkpoint: Option<CheckpointId>,
    stale: StaleAnswers,
) -> Result<(), ApiError> {
    if thread.is_unbound() {
        let text = format!("thread `{}` has not run yet, so it has no interrupts", thread.id);
        return Err(ApiError::bad_request(text));
    }
    if checkpoint.is_some() {
        let head = engine.ports().store.thread(&thread.id).await?;
        if head.and_then(|head| head.current) != checkpoint {
            let text = "interrupts are answered at the current checkpoint; omit the checkpoint";
            return Err(ApiError::bad_request(text));
        }
    }
    // A running or pending run can still raise interrupts, so the engine matches the answers when
    // the new run starts.
    if thread.status == ThreadStatus::Running || engine.has_pending(&thread.id).await? {
        return Ok(());
    }
    let view = engine.thread(&thread.id).await?;
    let interrupts = view.map(|view| view.interrupts).unwrap_or_default();
    let answers = answers_by_interrupt(&interrupts, resume, stale);
    answers.map(drop).map_err(|failure| ApiError::bad_request(failure.message))
}

fn resolve_point(thread: &ThreadRecord, request: &RunCreate) -> Result<Option<Point>, ApiError> {
    let configured = || {
        let configurable = request.config.as_ref()?.configurable.as_ref()?;
        configurable.get("checkpoint_id")?.as_str()
    };
    let named = request.checkpoint_id().or_else(configured);
    if named.is_some() && !request.checkpoint_ns().is_empty() {
        let text = "a run starts from a checkpoint of the root graph, not from one of a subgraph; \
                    edit the subgraph with `POST /threads/{id}/state`, then run the thread";
        return Err(ApiError::unprocessable(text));
    }
    named.map(|id| parse_point(thread, id)).transpose()
}

/// A position in the history of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// The state of a checkpoint.
    Checkpoint(CheckpointId),
    /// The state before the input that made a checkpoint.
    BeforeInput(CheckpointId),
}

/// Parses the id of a position in the history, in the format of this API.
///
/// # Errors
///
/// 404 if the id is not an id of this thread.
pub(crate) fn parse_point(thread: &ThreadRecord, id: &str) -> Result<Point, ApiError> {
    match input_of(thread.origin(), id) {
        Some(made) => Ok(Point::BeforeInput(made)),
        None => parse_checkpoint_id(thread, id).map(Point::Checkpoint),
    }
}

/// Parses the id of a checkpoint, in the format of this API.
///
/// # Errors
///
/// 404 if the id is not an id of this thread.
pub(crate) fn parse_checkpoint_id(
    thread: &ThreadRecord,
    id: &str,
) -> Result<CheckpointId, ApiError> {
    checkpoint_of(thread.origin(), id).ok_or_else(|| ApiError::missing("checkpoint", id))
}

fn options(graph: &AgentGraph, request: &RunCreate) -> RunOptions {
    let config = request.config.as_ref();
    RunOptions {
        recursion_limit: config.and_then(|config| config.recursion_limit),
        max_concurrency: config.and_then(|config| config.max_concurrency),
        interrupt_before: request.interrupt_before.as_ref().map(|named| to_node_set(graph, named)),
        interrupt_after: request.interrupt_after.as_ref().map(|named| to_node_set(graph, named)),
        durability: durability(request),
    }
}

/// Converts a selection of nodes. Ignores names of nodes that the graph does not have, like a
/// LangGraph server, because clients send the same list to several graphs.
fn to_node_set(graph: &AgentGraph, named: &NodeSelection) -> NodeSet {
    let Some(names) = named.names() else { return NodeSet::All };
    let known = graph.graph_version.graph.nodes().keys();
    NodeSet::Named(
        known.filter(|node| names.iter().any(|name| name == node.as_str())).cloned().collect(),
    )
}

/// Returns what happens to answers whose interrupts are not pending. LangGraph servers ignore such
/// answers unless the request is strict, so that a client can send an answer twice.
fn stale_answers(request: &RunCreate) -> StaleAnswers {
    if request.strict_resume.unwrap_or_default() {
        StaleAnswers::Reject
    } else {
        StaleAnswers::Ignore
    }
}

/// Returns the durability of a run. The durability `async` of LangGraph becomes the default,
/// `commit`: with both, a superstep does not wait until the previous checkpoint is durable. With
/// `commit`, a crash also loses nothing that a client has received.
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
            values.retain(|name, _| !RESERVED_CONFIGURABLE_KEYS.contains(&name.as_str()));
            if values.is_empty() { Value::Null } else { Value::Object(values) }
        }
        other => other,
    }
}

fn metadata(request: &RunCreate, graph: &AgentGraph, ignored: &IgnoredKeys) -> Map<String, Value> {
    let mut metadata = match &graph.stored {
        Some(stored) => stored.record.used.metadata.clone(),
        None => Map::from_iter([("created_by".to_owned(), "system".into())]),
    };
    metadata.extend(request.metadata.clone().unwrap_or_default());
    metadata.insert("graph_id".into(), graph.id.clone().into());
    metadata.insert("assistant_id".into(), graph.assistant().to_string().into());
    ignored.add_to_metadata(&mut metadata);
    metadata
}

fn kwargs(
    request: &RunCreate,
    thread: &ThreadRecord,
    graph: &AgentGraph,
    run: &RunId,
) -> Map<String, Value> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(request) else { return Map::new() };
    let field = |name: &&str| {
        let value = fields.remove(*name).unwrap_or_default();
        ((*name).to_owned(), value)
    };
    let mut kwargs: Map<String, Value> = KWARGS_FIELDS.iter().map(field).collect();
    if !kwargs["config"].is_object() {
        kwargs.insert("config".into(), json!({}));
    }
    let ids = json!({
        "run_id": run,
        "thread_id": thread.id,
        "graph_id": graph.id,
        "assistant_id": graph.assistant(),
    });
    if let (Value::Object(ids), Some(config)) = (ids, kwargs["config"].as_object_mut()) {
        let configurable = config.entry("configurable").or_insert_with(|| json!({}));
        if let Some(configurable) = configurable.as_object_mut() {
            configurable.extend(ids);
        }
    }
    kwargs.insert("subgraphs".into(), request.stream_subgraphs.unwrap_or(false).into());
    kwargs.insert("resumable".into(), request.stream_resumable.unwrap_or(false).into());
    kwargs
}
