//! Time travel: history, edits and forks.

use std::collections::BTreeMap;

use axum::extract::{Path, Query, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;
use wattle_graph::event::Write;
use wattle_graph::failure::code;
use wattle_graph::id::{
    AppName, ChannelName, CheckpointId, END, GraphName, Namespace, NodeName, TaskId, ThreadId,
};
use wattle_graph::step::{Edit, EditAs};
use wattle_run::engine::Engine;
use wattle_run::time_travel::{CallRef, EditThread, ForkFrom, ForkInto, ForkThread, HistoryQuery};

use crate::body::JsonBody;
use crate::document::run::RunDocument;
use crate::document::thread::CheckpointDocument;
use crate::document::time_travel::{EditDocument, EditsDocument, ForkCallDocument, ForkDocument};
use crate::native::request_principal::RequestPrincipal;
use crate::native::runs;
use crate::native::tenant_scope::TenantScope;
use crate::native::threads::{invalid_id, invalid_query, page_size};
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;

/// Path segment that selects the current checkpoint.
const LATEST: &str = "latest";

/// The `as_node` of an edit that writes as an input.
const AS_INPUT: &str = "__input__";

/// The `as_node` of an edit that changes nothing.
const AS_COPY: &str = "__copy__";

/// Selects the checkpoints to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct HistoryFilter {
    /// Only checkpoints older than the checkpoint with this number.
    before: Option<u64>,
    /// Maximum number of checkpoints, up to 500; 50 by default. A page is shorter if its
    /// checkpoints would exceed 32 MiB; only an empty page marks the end of the history.
    limit: Option<usize>,
    /// True to include the state of each checkpoint.
    state: bool,
    /// Namespace of a subgraph; the root graph by default.
    namespace: String,
    /// A JSON object with values that a checkpoint must have: `source`, `step`, `run`, or keys of
    /// the metadata.
    filter: Option<String>,
}

/// Lists the checkpoints of a thread, newest first.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/history", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread"), HistoryFilter),
    responses(
        (status = 200, body = Vec<CheckpointDocument>),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_history(
    State(engine): State<Engine>,
    scope: TenantScope,
    Path(id): Path<String>,
    filter: Result<Query<HistoryFilter>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Vec<CheckpointDocument>>, Problem> {
    let Query(filter) = filter.map_err(invalid_query)?;
    let record = scope.thread(&engine, &id).await?;
    let query = HistoryQuery {
        namespace: Namespace::new(filter.namespace),
        before: filter.before.map(CheckpointId),
        filter: filter.filter.as_deref().map_or(Ok(BTreeMap::new()), parse_metadata_filter)?,
        limit: Some(page_size(filter.limit)),
        without_states: !filter.state,
    };
    let views = engine.history(&record.id, query).await?.items.into_iter();
    Ok(Json(views.map(|view| CheckpointDocument::new(view, filter.state)).collect()))
}

fn parse_metadata_filter(text: &str) -> Result<BTreeMap<String, Value>, Problem> {
    serde_json::from_str(text).map_err(|error| {
        Problem::new(code::INVALID, format!("`filter` is not a JSON object: {error}"))
    })
}

/// Selects a graph of a thread.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct NamespaceQuery {
    /// Namespace of a subgraph; the root graph by default.
    namespace: String,
}

/// Returns a checkpoint of a thread: its state, the tasks that run next, and the pending
/// interrupts.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/checkpoints/{checkpoint}", tag = "threads",
    params(
        ("thread" = String, Path, description = "id of the thread"),
        ("checkpoint" = String, Path, description = "number of the checkpoint, or `latest`"),
        NamespaceQuery),
    responses(
        (status = 200, body = CheckpointDocument),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_checkpoint(
    State(engine): State<Engine>,
    scope: TenantScope,
    Path((id, checkpoint)): Path<(String, String)>,
    query: Result<Query<NamespaceQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<CheckpointDocument>, Problem> {
    let Query(query) = query.map_err(invalid_query)?;
    let record = scope.thread(&engine, &id).await?;
    let checkpoint = match checkpoint.as_str() {
        LATEST => None,
        number => Some(number.parse().map(CheckpointId).map_err(|_| {
            let text = format!("`{number}` is not a checkpoint; use a number or `{LATEST}`");
            Problem::new(code::INVALID, text)
        })?),
    };
    let namespace = Namespace::new(query.namespace);
    let view = engine.state(&record.id, &namespace, checkpoint).await?;
    Ok(Json(CheckpointDocument::new(view, true)))
}

/// Edits the state of a thread that has no running run, or of one of its subgraphs, as if nodes had
/// finished with the given writes. With `app`, a missing thread is created.
#[utoipa::path(post, path = "/api/v1/threads/{thread}/edits", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread")),
    request_body = EditsDocument,
    responses(
        (status = 200, body = CheckpointDocument),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 501, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn edit_thread(
    State(engine): State<Engine>,
    scope: TenantScope,
    RequestPrincipal(principal): RequestPrincipal,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<EditsDocument>,
) -> Result<Json<CheckpointDocument>, Problem> {
    let thread = ThreadId::new(&id).map_err(invalid_id)?;
    if request.app.is_some() {
        runs::check_unused_or_accessible(&engine, &scope, &thread).await?;
    } else {
        scope.thread(&engine, &id).await?;
    }
    let supersteps = request.supersteps.into_iter();
    let supersteps = supersteps.map(|edits| edits.into_iter().map(edit).collect());
    let edit = EditThread {
        thread,
        app: request.app.map(AppName::new).transpose().map_err(invalid_id)?,
        graph: request.graph.map(GraphName::new).transpose().map_err(invalid_id)?,
        tenant: scope.tenant,
        namespace: Namespace::new(request.namespace),
        checkpoint: request.checkpoint.map(CheckpointId),
        supersteps: supersteps.collect::<Result<_, Problem>>()?,
        metadata: request.metadata,
        principal,
    };
    Ok(Json(CheckpointDocument::new(engine.edit(edit).await?, true)))
}

fn edit(document: EditDocument) -> Result<Edit, Problem> {
    let as_node = match document.as_node.as_deref() {
        None => EditAs::Infer,
        Some(AS_INPUT) => EditAs::Input,
        Some(AS_COPY) => EditAs::Copy,
        Some(END) => EditAs::End,
        Some(node) => EditAs::Node(NodeName::new(node).map_err(invalid_id)?),
    };
    let EditDocument { values, overwrite, .. } = document;
    if let Some(name) = overwrite.iter().find(|name| !values.contains_key(*name)) {
        let text = format!("`overwrite` names channel `{name}`, which `values` does not have");
        return Err(Problem::new(code::INVALID, text));
    }
    let writes = values.into_iter().map(|(name, value)| {
        let channel = ChannelName::new(&name).map_err(invalid_id)?;
        Ok(Write { channel, value, overwrite: overwrite.contains(&name) })
    });
    Ok(Edit { as_node, writes: writes.collect::<Result<_, Problem>>()? })
}

/// Starts a run from a checkpoint of a thread, or from a host call of any of its graphs with an
/// overridden result. The run continues the thread itself or a copy.
#[utoipa::path(post, path = "/api/v1/threads/{thread}/fork", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread")),
    request_body = ForkDocument,
    responses(
        (status = 202, body = RunDocument, description = "started"),
        (status = 200, body = RunDocument,
            description = "with `wait`: the run has ended or is interrupted"),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn fork_thread(
    State(engine): State<Engine>,
    scope: TenantScope,
    RequestPrincipal(principal): RequestPrincipal,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<ForkDocument>,
) -> Result<Response, Problem> {
    let record = scope.thread(&engine, &id).await?;
    let wait = request.wait;
    let fork = ForkThread { principal, ..fork(record.id, scope.tenant, request)? };
    let run = engine.fork(fork).await?;
    runs::run_response(&engine, run, wait).await
}

fn fork(
    thread: ThreadId,
    tenant: Option<String>,
    document: ForkDocument,
) -> Result<ForkThread, Problem> {
    let ForkDocument { checkpoint, input, call, copy, thread_id, options, .. } = document;
    let from = match (checkpoint, call) {
        (Some(checkpoint), None) => {
            ForkFrom::Checkpoint { checkpoint: CheckpointId(checkpoint), input }
        }
        (None, Some(call)) if input.is_none() => fork_at_call(call)?,
        (None, Some(_)) => {
            let text = "a fork from a call takes no `input`; use a `checkpoint`";
            return Err(Problem::new(code::INVALID, text));
        }
        _ => {
            let text = "set either `checkpoint` or `call`";
            return Err(Problem::new(code::INVALID, text));
        }
    };
    let copy_id = thread_id.map(ThreadId::new).transpose().map_err(invalid_id)?;
    let into = match (copy, copy_id) {
        (true, thread) => ForkInto::Copy { thread },
        (false, None) => ForkInto::InPlace,
        (false, Some(_)) => {
            let text = "`thread_id` is the id of the copy and requires `copy`";
            return Err(Problem::new(code::INVALID, text));
        }
    };
    Ok(ForkThread {
        run: None,
        thread,
        from,
        into,
        app: None,
        tenant,
        options: options.into(),
        principal: None,
    })
}

fn fork_at_call(document: ForkCallDocument) -> Result<ForkFrom, Problem> {
    let ForkCallDocument { seq, task, scope, call, answer, failure } = document;
    let call = match (seq, task, call) {
        (Some(seq), None, None) if scope.is_empty() => CallRef::Seq(seq),
        (None, Some(task), Some(call)) => {
            CallRef::Path { task: TaskId::new(task).map_err(invalid_id)?, scope, call }
        }
        _ => {
            let text = "select a call by `seq`, or by `task`, `scope` and `call`";
            return Err(Problem::new(code::INVALID, text));
        }
    };
    let result = match (answer, failure) {
        (Some(answer), None) => Ok(answer),
        (None, Some(failure)) => Err(failure),
        _ => {
            let text = "set either `answer` or `failure` of the call";
            return Err(Problem::new(code::INVALID, text));
        }
    };
    Ok(ForkFrom::Call { call, result })
}
