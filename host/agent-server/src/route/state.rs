//! The state of a thread: read at any of its points, changed where it stands or from an earlier one.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use wattle_graph::event::Write;
use wattle_graph::id::{AppName, ChannelName, END, GraphName, Namespace, NodeName};
use wattle_graph::step::{Edit, EditAs};
use wattle_run::call::travel::EditThread;
use wattle_run::ports::store::ThreadRecord;

use crate::agents::Agents;
use crate::asked::{fresh, of_thread};
use crate::caller::{Body, Caller, Place};
use crate::fault::Fault;
use crate::graphs;
use crate::query::Query;
use crate::view;
use crate::wire::id::namespace_of;
use crate::wire::request::{StateRequest, StateUpdate};
use crate::wire::shape::ThreadState;

/// Names that clients have for what is no node of the graph.
const INPUTS: &[&str] = &["__start__", "__input__"];
const COPY: &str = "__copy__";
const ENDS: &[&str] = &["__end__", END];

/// The fact of a thread that says which graph it is to run.
const GRAPH_ID: &str = "graph_id";

/// Where a thread stands.
pub(super) async fn get(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    query: Query,
) -> Result<Json<ThreadState>, Fault> {
    let record = caller.thread(&agents, &id).await?;
    read(&agents, &record, &Namespace::root(), None, query.flag("subgraphs")?).await
}

/// A thread at one of its checkpoints.
pub(super) async fn by_id(
    State(agents): State<Agents>,
    caller: Caller,
    Place((id, checkpoint)): Place<(String, String)>,
    query: Query,
) -> Result<Json<ThreadState>, Fault> {
    let record = caller.thread(&agents, &id).await?;
    let root = Namespace::root();
    read(&agents, &record, &root, Some(&checkpoint), query.flag("subgraphs")?).await
}

/// A thread, or a graph nested in it, at one of its checkpoints.
pub(super) async fn at(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    Body(request): Body<StateRequest>,
) -> Result<Json<ThreadState>, Fault> {
    let record = caller.thread(&agents, &id).await?;
    let checkpoint = &request.checkpoint;
    let namespace = namespace_of(&checkpoint.checkpoint_ns);
    let named = checkpoint.checkpoint_id.as_deref();
    read(&agents, &record, &namespace, named, request.subgraphs.unwrap_or(false)).await
}

async fn read(
    agents: &Agents,
    record: &ThreadRecord,
    namespace: &Namespace,
    checkpoint: Option<&str>,
    with_nested: bool,
) -> Result<Json<ThreadState>, Fault> {
    let checkpoint = checkpoint.filter(|id| !id.is_empty());
    let checkpoint = checkpoint.map(|id| of_thread(record, id)).transpose()?;
    let found = view::state_of(agents, record, namespace, checkpoint).await?;
    match found {
        Some(view) => Ok(Json(view::state(agents, record, &view, with_nested).await?)),
        None if checkpoint.is_none() => Ok(Json(ThreadState::blank(&view::lens(agents, record)))),
        None => Err(Fault::missing("checkpoint of thread", record.id.as_str())),
    }
}

/// Writes to the state as if a node had finished with that.
pub(super) async fn update(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    Body(request): Body<StateUpdate>,
) -> Result<Json<Value>, Fault> {
    let record = caller.thread(&agents, &id).await?;
    let (app, graph) = graph_of(&agents, &record)?;
    let channels = graphs::by_name(agents.engine().catalog(), &app, &graph)
        .map(|known| graphs::conversations(&known.app, &known.pack))
        .unwrap_or_default();
    let edit = Edit { as_node: writer(&request)?, writes: writes(&request, &channels)? };
    let checkpoint = request.checkpoint_id().map(|id| of_thread(&record, id)).transpose()?;
    let place = request.checkpoint.as_ref().map(|checkpoint| checkpoint.checkpoint_ns.as_str());
    let edited = EditThread {
        thread: record.id.clone(),
        namespace: namespace_of(place.unwrap_or_default()),
        app: Some(app),
        graph: Some(graph),
        tenant: record.tenant.clone(),
        checkpoint,
        supersteps: vec![vec![edit]],
        metadata: Default::default(),
    };
    let view = agents.engine().edit(edited).await?;
    let checkpoint = view::lens(&agents, &record).checkpoint(&view.namespace, view.checkpoint);
    Ok(Json(json!({
        "checkpoint": checkpoint,
        "configurable": checkpoint,
        "checkpoint_id": checkpoint.checkpoint_id,
    })))
}

/// The graph of a thread; of one that has not run yet the one that its facts name.
fn graph_of(agents: &Agents, record: &ThreadRecord) -> Result<(AppName, GraphName), Fault> {
    if !record.is_blank() {
        return Ok((record.app.clone(), record.graph.clone()));
    }
    let Some(named) = record.metadata.get(GRAPH_ID).and_then(Value::as_str) else {
        let id = &record.id;
        let text = format!(
            "thread `{id}` has no graph yet; run it first, or make it with `{GRAPH_ID}` in its \
             metadata"
        );
        return Err(Fault::value(text));
    };
    let graph = graphs::find(agents.engine().catalog(), named)?;
    Ok((graph.app.name.clone(), graph.name().clone()))
}

fn writer(request: &StateUpdate) -> Result<EditAs, Fault> {
    Ok(match request.as_node.as_deref() {
        None if request.values.as_ref().is_none_or(Value::is_null) => EditAs::Copy,
        None => EditAs::Infer,
        Some(name) if INPUTS.contains(&name) => EditAs::Input,
        Some(COPY) => EditAs::Copy,
        Some(name) if ENDS.contains(&name) => EditAs::End,
        Some(name) => EditAs::Node(
            NodeName::new(name).map_err(|error| Fault::unprocessable(error.to_string()))?,
        ),
    })
}

fn writes(request: &StateUpdate, channels: &BTreeSet<String>) -> Result<Vec<Write>, Fault> {
    let mut writes = Vec::new();
    let each = match request.values.clone() {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(each)) => each,
        Some(one) => vec![one],
    };
    for values in each {
        let one = StateUpdate { values: Some(values), ..StateUpdate::default() };
        let Value::Object(fields) = one.read(channels, &mut fresh)? else {
            let text = "`values` must be an object of channel values, or a list of such";
            return Err(Fault::unprocessable(text));
        };
        for (name, value) in fields {
            let channel = ChannelName::new(&name);
            let channel = channel.map_err(|error| Fault::unprocessable(error.to_string()))?;
            writes.push(Write { channel, value, overwrite: false });
        }
    }
    Ok(writes)
}
