//! The state of a thread: reads at any position of its history, and updates at the current or an
//! earlier checkpoint.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::HeaderMap;
use futures::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::watch;
use wattle_api::detached;
use wattle_api::response::Json;
use wattle_graph::event::Write;
use wattle_graph::id::{AppName, ChannelName, GraphName, Namespace, NodeName};
use wattle_graph::step::{Edit, EditAs};
use wattle_run::engine::Engine;
use wattle_run::ports::store::ThreadRecord;
use wattle_run::time_travel::EditThread;

use crate::assistants;
use crate::error::ApiError;
use crate::extractors::{Caller, JsonBody, PathParams};
use crate::graphs;
use crate::message_reader::MessageReader;
use crate::namespaces;
use crate::query::QueryParams;
use crate::resolve::{END_ALIASES, Point, parse_point};
use crate::unknown_keys::{IgnoredKeys, UnknownKeys};
use crate::view;
use crate::wire::request::{StateRequest, StateUpdate, Superstep, UpdateInput};
use crate::wire::response::ThreadState;
use crate::wire::schemas::{ErrorDocument, StateUpdated, ThreadStatePart};

/// Node names with which clients mark an update as the input of a run: [`INPUT_NODE`] for the
/// superstep in which the input is pending, and [`START_NODE`] for the superstep that writes the
/// input to the channels.
const INPUT_ALIASES: &[&str] = &[START_NODE, INPUT_NODE];
const START_NODE: &str = "__start__";
const INPUT_NODE: &str = "__input__";
const COPY_NODE: &str = "__copy__";

/// Metadata key of a thread that contains the id of its graph.
const GRAPH_ID: &str = "graph_id";

/// Reads the current state of a thread.
#[utoipa::path(get, path = "/threads/{id}/state",
    operation_id = "agent_get_state", tag = "agent-threads",
    params(
        ("id" = String, Path, description = "id of the thread"),
        ("subgraphs" = Option<bool>, Query, description = "true to include the states of subgraphs"),
        ("select" = Option<Vec<String>>, Query, description = "fields to return; `values.<channel>` is the value of one channel")),
    responses((status = 200, body = ThreadStatePart)))]
pub(super) async fn get(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    query: QueryParams,
) -> Result<Json<Value>, ApiError> {
    let record = caller.thread(&engine, &id).await?;
    let state =
        read(&engine, &record, &Namespace::root(), None, query.get_bool("subgraphs")?).await?;
    Ok(Json(view::select_state_fields(&state, &query.list("select"))?))
}

/// Reads the state of a thread at a checkpoint.
#[utoipa::path(get, path = "/threads/{id}/state/{checkpoint}",
    operation_id = "agent_get_state_by_id", tag = "agent-threads",
    params(
        ("id" = String, Path, description = "id of the thread"),
        ("checkpoint" = String, Path, description = "id of the checkpoint"),
        ("subgraphs" = Option<bool>, Query, description = "true to include the states of subgraphs"),
        ("select" = Option<Vec<String>>, Query, description = "fields to return; `values.<channel>` is the value of one channel")),
    responses((status = 200, body = ThreadStatePart)))]
pub(super) async fn get_by_id(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams((id, checkpoint)): PathParams<(String, String)>,
    query: QueryParams,
) -> Result<Json<Value>, ApiError> {
    let record = caller.thread(&engine, &id).await?;
    let root = Namespace::root();
    let state =
        read(&engine, &record, &root, Some(&checkpoint), query.get_bool("subgraphs")?).await?;
    Ok(Json(view::select_state_fields(&state, &query.list("select"))?))
}

/// Reads the state of a thread, or of one of its subgraphs, at a checkpoint.
#[utoipa::path(post, path = "/threads/{id}/state/checkpoint",
    extensions(("x-wattle-access" = json!({ "scope": "read" }))),
    operation_id = "agent_get_state_at", tag = "agent-threads",
    params(("id" = String, Path, description = "id of the thread")),
    request_body = StateRequest,
    responses((status = 200, body = ThreadStatePart)))]
pub(super) async fn get_at_checkpoint(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    JsonBody(request): JsonBody<StateRequest>,
) -> Result<Json<Value>, ApiError> {
    let record = caller.thread(&engine, &id).await?;
    let checkpoint = &request.checkpoint;
    let namespace = namespaces::find(&engine, &record, &checkpoint.checkpoint_ns).await?;
    let nested = request.subgraphs.unwrap_or(false);
    let state = read(&engine, &record, &namespace, checkpoint.id(), nested).await?;
    Ok(Json(view::select_state_fields(&state, &request.select.unwrap_or_default())?))
}

async fn read(
    engine: &Engine,
    record: &ThreadRecord,
    namespace: &Namespace,
    checkpoint: Option<&str>,
    with_nested: bool,
) -> Result<ThreadState, ApiError> {
    let checkpoint = checkpoint.filter(|id| !id.is_empty());
    let point = checkpoint.map(|id| parse_point(record, id)).transpose()?;
    let checkpoint = point.map(|point| match point {
        Point::Checkpoint(checkpoint) | Point::BeforeInput(checkpoint) => checkpoint,
    });
    let found = view::load_state(engine, record, namespace, checkpoint).await?;
    match found {
        Some(made) if matches!(point, Some(Point::BeforeInput(_))) => {
            view::before_input(engine, record, &made).await
        }
        Some(view) => view::state(engine, record, &view, with_nested).await,
        None if checkpoint.is_none() => Ok(ThreadState::empty(&view::thread_info(engine, record))),
        None => Err(ApiError::missing("checkpoint of thread", record.id.as_str())),
    }
}

/// Updates the state of a thread as if a node had finished with the given writes.
#[utoipa::path(post, path = "/threads/{id}/state",
    operation_id = "agent_update_state", tag = "agent-threads",
    params(("id" = String, Path, description = "id of the thread")),
    request_body = StateUpdate,
    responses(
        (status = 200, body = StateUpdated,
            headers(("X-Wattle-Ignored-Keys" = String, description = "keys that name no channel and were ignored, form-encoded and separated by commas; missing if there are none"))),
        (status = 400, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn update(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    State(unknown_keys): State<UnknownKeys>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    JsonBody(request): JsonBody<StateUpdate>,
) -> Result<(HeaderMap, Json<Value>), ApiError> {
    let record = caller.thread(&engine, &id).await?;
    if engine.has_pending(&record.id).await? {
        let text = format!("thread `{id}` has a pending run; change the state after that run");
        return Err(ApiError::conflict(text));
    }
    let namespace = request.checkpoint.as_ref().map(|checkpoint| checkpoint.checkpoint_ns.as_str());
    let namespace = namespaces::find(&engine, &record, namespace.unwrap_or_default()).await?;
    let target = EditTarget::load(&engine, unknown_keys, &record, &namespace).await?;
    let mut ignored = IgnoredKeys::default();
    let edit = target.edit(request.values.as_ref(), request.as_node.as_deref(), &mut ignored)?;
    let checkpoint = match request.checkpoint_id().map(|id| parse_point(&record, id)).transpose()? {
        Some(Point::BeforeInput(_)) => {
            let text = "the state before an input cannot be changed; start a run from this state \
                        with another `input`";
            return Err(ApiError::unprocessable(text));
        }
        Some(Point::Checkpoint(checkpoint)) => Some(checkpoint),
        None => None,
    };
    let edited = EditThread {
        namespace,
        checkpoint,
        principal: caller.principal.clone(),
        ..target.request(&record, vec![vec![edit]])
    };
    let own = engine.clone();
    let future = async move { Ok(own.edit(edited).await?) };
    let view = detached::run(stopping, future.boxed()).await.unwrap_or_else(ApiError::panicked)?;
    let checkpoint =
        view::thread_info(&engine, &record).checkpoint(&view.namespace, view.checkpoint);
    let updated = json!({
        "checkpoint": checkpoint,
        "configurable": checkpoint,
        "checkpoint_id": checkpoint.checkpoint_id,
    });
    Ok((ignored.headers(), Json(updated)))
}

/// Writes the history of a new thread. Returns the keys that were ignored.
///
/// # Errors
///
/// 400 if the metadata of the thread contains no graph, 422 for supersteps that do not match the
/// graph.
pub(super) async fn write_history(
    engine: &Engine,
    unknown_keys: UnknownKeys,
    caller: &Caller,
    record: &ThreadRecord,
    steps: Vec<Superstep>,
) -> Result<IgnoredKeys, ApiError> {
    let target = EditTarget::load(engine, unknown_keys, record, &Namespace::root()).await?;
    let mut ignored = IgnoredKeys::default();
    let edits = |step: Superstep| -> Result<Vec<Edit>, ApiError> {
        step.updates.into_iter().map(|update| target.history_edit(update, &mut ignored)).collect()
    };
    let steps = join_input_supersteps(steps).into_iter().map(edits).collect::<Result<_, _>>()?;
    let principal = caller.principal.clone();
    let edit = EditThread { principal, ..target.request(record, steps) };
    engine.edit(edit).await?;
    Ok(ignored)
}

/// Joins the two supersteps of an input into one, because the engine makes a single checkpoint for
/// an input. The joined superstep has the node of the first superstep and the values of the second.
/// Reads derive the state before the input from this checkpoint.
fn join_input_supersteps(steps: Vec<Superstep>) -> Vec<Superstep> {
    let mut whole = Vec::with_capacity(steps.len());
    let mut steps = steps.into_iter().peekable();
    while let Some(mut step) = steps.next() {
        if only_writer(&step) == Some(INPUT_NODE)
            && let Some(written) = steps.next_if(|next| only_writer(next) == Some(START_NODE))
        {
            for (update, written) in step.updates.iter_mut().zip(written.updates) {
                *update = UpdateInput { as_node: update.as_node.take(), ..written };
            }
        }
        whole.push(step);
    }
    whole
}

/// Returns the node (`as_node`) of the only update of a superstep; `None` if the superstep has
/// several updates or the update names no node.
fn only_writer(step: &Superstep) -> Option<&str> {
    match step.updates.as_slice() {
        [only] => only.as_node.as_deref(),
        _ => None,
    }
}

/// The graph of a thread, for edits of its state.
struct EditTarget {
    app: AppName,
    graph: GraphName,
    /// The message channels of the graph and of its subgraphs.
    message_channels: BTreeSet<String>,
    /// The channels of the edited graph. `None` if keys that name no channel are not ignored; the
    /// engine then rejects such keys.
    channels: Option<BTreeSet<ChannelName>>,
    /// Reads the messages of all updates of the request.
    reader: MessageReader,
}

impl EditTarget {
    async fn load(
        engine: &Engine,
        unknown_keys: UnknownKeys,
        record: &ThreadRecord,
        namespace: &Namespace,
    ) -> Result<Self, ApiError> {
        let (app, graph) = graph_of_thread(engine, record).await?;
        let known = graphs::by_name(engine.catalog(), &app, &graph);
        let message_channels =
            known.as_ref().map(|known| graphs::message_channels(&known.app, &known.graph_version));
        let channels = match unknown_keys {
            UnknownKeys::Reject => None,
            UnknownKeys::Ignore if record.is_unbound() => {
                known.map(|known| known.graph_version.graph.channels().keys().cloned().collect())
            }
            UnknownKeys::Ignore => engine.channels(&record.id, namespace).await?,
        };
        let message_channels = message_channels.unwrap_or_default();
        Ok(Self { app, graph, message_channels, channels, reader: MessageReader::default() })
    }

    /// Returns whether a key of an update names a channel. Any other key is recorded as ignored.
    fn accepts(&self, field: &str, key: &str, ignored: &mut IgnoredKeys) -> bool {
        let channels = self.channels.as_ref();
        channels.is_none_or(|channels| ignored.keep(field, key, channels.contains(key)))
    }

    fn request(&self, record: &ThreadRecord, supersteps: Vec<Vec<Edit>>) -> EditThread {
        EditThread {
            thread: record.id.clone(),
            namespace: Namespace::root(),
            app: Some(self.app.clone()),
            graph: Some(self.graph.clone()),
            tenant: record.tenant.clone(),
            checkpoint: None,
            supersteps,
            metadata: Default::default(),
            principal: None,
        }
    }

    fn edit(
        &self,
        values: Option<&Value>,
        as_node: Option<&str>,
        ignored: &mut IgnoredKeys,
    ) -> Result<Edit, ApiError> {
        Ok(Edit { as_node: parse_as_node(values, as_node)?, writes: self.writes(values, ignored)? })
    }

    fn writes(
        &self,
        values: Option<&Value>,
        ignored: &mut IgnoredKeys,
    ) -> Result<Vec<Write>, ApiError> {
        let mut writes = Vec::new();
        let each = match values {
            None | Some(Value::Null) => &[],
            Some(Value::Array(each)) => each.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        for values in each {
            let one = StateUpdate { values: Some(values.clone()), ..StateUpdate::default() };
            let channels = &self.message_channels;
            let read = self.reader.read(|context| one.channel_values(channels, context))?;
            let Value::Object(fields) = read else {
                let text =
                    "`values` must be an object of channel values, or an array of such objects";
                return Err(ApiError::unprocessable(text));
            };
            for field in fields {
                if self.accepts("values", &field.0, ignored) {
                    writes.push(channel_write(field)?);
                }
            }
        }
        Ok(writes)
    }

    /// Converts an update of a past superstep. An update cannot select the nodes that run next,
    /// because the next superstep of the request contains these nodes.
    fn history_edit(
        &self,
        update: UpdateInput,
        ignored: &mut IgnoredKeys,
    ) -> Result<Edit, ApiError> {
        let is_input = update.as_node.as_deref() == Some(INPUT_NODE);
        let edit = self.superstep_edit(update, ignored)?;
        let as_node = if is_input { EditAs::RunInput } else { edit.as_node };
        Ok(Edit { as_node, ..edit })
    }

    fn superstep_edit(
        &self,
        update: UpdateInput,
        ignored: &mut IgnoredKeys,
    ) -> Result<Edit, ApiError> {
        let UpdateInput { values, command, as_node } = update;
        let as_node = as_node.as_deref();
        let Some(command) = command else { return self.edit(values.as_ref(), as_node, ignored) };
        if command.goto.is_some() || command.resume.is_some() {
            let text = "a `command` in `supersteps` can only have an `update`; the next superstep \
                        contains the nodes that ran next";
            return Err(ApiError::unprocessable(text));
        }
        let channels = &self.message_channels;
        let mut written = self.reader.read(|context| command.read_update(channels, context))?;
        written.retain(|(name, _)| self.accepts("command.update", name, ignored));
        let writes = written.into_iter().map(channel_write).collect::<Result<_, _>>()?;
        Ok(Edit { as_node: parse_as_node(Some(&Value::Bool(true)), as_node)?, writes })
    }
}

/// Returns the graph of a thread. If the thread has not run yet, its metadata contains the graph.
async fn graph_of_thread(
    engine: &Engine,
    record: &ThreadRecord,
) -> Result<(AppName, GraphName), ApiError> {
    if !record.is_unbound() {
        return Ok((record.app.clone(), record.graph.clone()));
    }
    let Some(named) = record.metadata.get(GRAPH_ID).and_then(Value::as_str) else {
        let id = &record.id;
        let text = format!(
            "thread `{id}` has no graph yet; run the thread first, or create it with \
             `{GRAPH_ID}` in its metadata"
        );
        return Err(ApiError::bad_request(text));
    };
    let graph = assistants::find(engine, record.tenant.as_ref(), named).await?;
    Ok((graph.app.name.clone(), graph.name().clone()))
}

fn parse_as_node(values: Option<&Value>, as_node: Option<&str>) -> Result<EditAs, ApiError> {
    Ok(match as_node {
        None if values.is_none_or(Value::is_null) => EditAs::Copy,
        None => EditAs::Infer,
        Some(name) if INPUT_ALIASES.contains(&name) => EditAs::Input,
        Some(COPY_NODE) => EditAs::Copy,
        Some(name) if END_ALIASES.contains(&name) => EditAs::End,
        Some(name) => EditAs::Node(
            NodeName::new(name).map_err(|error| ApiError::unprocessable(error.to_string()))?,
        ),
    })
}

fn channel_write((name, value): (String, Value)) -> Result<Write, ApiError> {
    let channel = ChannelName::new(&name);
    let channel = channel.map_err(|error| ApiError::unprocessable(error.to_string()))?;
    Ok(Write { channel, value, overwrite: false })
}
