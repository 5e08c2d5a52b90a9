//! Assistants: graphs with settings. Each graph has a default assistant, which cannot be changed.

mod graph;
mod search;

use axum::extract::State;
use axum::http::StatusCode;
use futures::FutureExt as _;
use serde_json::{Map, Value};
use tokio::sync::watch;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;
use wattle_api::detached;
use wattle_api::response::Json;
use wattle_run::engine::Engine;
use wattle_run::metadata::json_contains;
use wattle_run::ports::memory::MemoryScope;
use wattle_run::ports::store::{ThreadQuery, ThreadSummary};
use wattle_run::thread_walk::ThreadWalk;

use crate::assistants::{self, default_assistant, find_stored, find_versioned};
use crate::error::ApiError;
use crate::extractors::{Caller, JsonBody, PathParams, parse_uuid};
use crate::graphs::{self, NotFound};
use crate::page::{self, Page};
use crate::query::QueryParams;
use crate::records::assistant::{AssistantRecord, AssistantVersion, assistant_records};
use crate::records::{Versioned, retry_on_conflict};
use crate::route::search::DEFAULT_PAGE_SIZE;
use crate::route::threads::delete_thread;
use crate::state::AgentServer;
use crate::wire::request::{
    AssistantCreate, AssistantLatest, AssistantPatch, AssistantVersions, Config, IfExists,
    RequestError, normalize_context,
};
use crate::wire::response::Assistant;
use crate::wire::schemas::ErrorDocument;

/// Maximum number of assistants, or of versions of an assistant, in a response.
const MAX_PAGE_SIZE: usize = 1_000;

/// Maximum number of assistants of a tenant, in addition to the default assistants. A list reads
/// the records of all assistants of the tenant. Concurrent requests can exceed the limit by a few.
const MAX_ASSISTANTS_PER_TENANT: usize = 1_000;

/// Maximum number of versions of an assistant. A list reads all of them, and no version is deleted
/// before its assistant.
const MAX_VERSIONS: u32 = 1_000;

/// Maximum size of one version in bytes, because lists contain whole versions.
const MAX_VERSION_BYTES: usize = 64 << 10;

/// Name of an assistant that is created without a name.
const DEFAULT_NAME: &str = "Untitled";

/// Metadata key of a thread that contains the id of the assistant of its first run.
const ASSISTANT_ID: &str = "assistant_id";

pub(super) fn routes() -> OpenApiRouter<AgentServer> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(search::search))
        .routes(routes!(search::count))
        .routes(routes!(read, update, delete))
        .routes(routes!(versions))
        .routes(routes!(latest))
        .routes(routes!(graph::graph))
        .routes(routes!(graph::schemas))
        .routes(routes!(graph::subgraphs))
        .routes(routes!(graph::subgraph))
}

/// Creates an assistant.
#[utoipa::path(post, path = "/assistants",
    operation_id = "agent_create_assistant", tag = "agent-assistants",
    request_body = AssistantCreate,
    responses(
        (status = 200, body = Assistant),
        (status = 400, body = ErrorDocument),
        (status = 404, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
async fn create(
    State(engine): State<Engine>,
    caller: Caller,
    JsonBody(request): JsonBody<AssistantCreate>,
) -> Result<Json<Assistant>, ApiError> {
    let graph = graphs::find_for_assistant(engine.catalog(), &request.graph_id)?;
    let (config, context) = normalize_context(request.config, request.context)?;
    check_config(&config)?;
    let id = match &request.assistant_id {
        Some(id) => parse_uuid("assistant", id)?,
        None => Uuid::now_v7(),
    };
    let if_exists = request.if_exists.unwrap_or_default();
    if let Ok(assistant) = find_by_uuid(&engine, &caller, id).await? {
        return on_existing(assistant, if_exists);
    }
    check_count(&engine, &caller).await?;
    let now_ms = engine.ports().clock.now_ms();
    let used = AssistantVersion {
        number: 1,
        created_ms: now_ms,
        graph_id: graph.id,
        config,
        context,
        metadata: request.metadata.unwrap_or_default(),
        name: request.name.unwrap_or_else(|| DEFAULT_NAME.to_owned()),
        description: request.description,
    };
    check_size(&engine, &used)?;
    let assistant = id.to_string();
    let record =
        AssistantRecord { id: assistant, created_ms: now_ms, updated_ms: now_ms, newest: 1, used };
    if let Some(record) = record.insert(engine.ports(), &scope(&caller)).await? {
        return Ok(Json(record.to_body()));
    }
    // Another host has created the assistant meanwhile.
    match find_by_uuid(&engine, &caller, id).await? {
        Ok(assistant) => on_existing(assistant, if_exists),
        Err(_) => Err(write_conflict(&id.to_string())),
    }
}

/// Returns the response to a request to create an assistant whose id exists.
fn on_existing(assistant: Assistant, if_exists: IfExists) -> Result<Json<Assistant>, ApiError> {
    match if_exists {
        IfExists::DoNothing => Ok(Json(assistant)),
        IfExists::Raise => {
            let id = assistant.assistant_id;
            Err(ApiError::conflict(format!("assistant `{id}` exists already")))
        }
    }
}

async fn check_count(engine: &Engine, caller: &Caller) -> Result<(), ApiError> {
    let all: Vec<AssistantRecord> = assistant_records(engine.ports(), scope(caller)).list().await?;
    if all.len() >= MAX_ASSISTANTS_PER_TENANT {
        return Err(ApiError::conflict("the maximum number of assistants is reached; delete some"));
    }
    Ok(())
}

fn check_size(engine: &Engine, version: &AssistantVersion) -> Result<(), ApiError> {
    engine.check_context_size(&version.context)?;
    let texts = version.name.len() + version.description.as_ref().map_or(0, String::len);
    let objects = [&version.config, &version.metadata];
    let objects = objects.map(|fields| Value::Object(fields.clone()).to_string().len());
    let bytes = texts + objects.iter().sum::<usize>() + version.context.to_string().len();
    if bytes > MAX_VERSION_BYTES {
        let text =
            format!("the assistant has {bytes} bytes, more than the limit of {MAX_VERSION_BYTES}");
        return Err(ApiError::unprocessable(text));
    }
    Ok(())
}

/// Returns the error for an assistant that other requests changed during every attempt.
fn write_conflict(id: &str) -> ApiError {
    ApiError::conflict(format!("assistant `{id}` is being changed by other requests; try again"))
}

fn scope(caller: &Caller) -> MemoryScope {
    MemoryScope::Host(caller.tenant.clone())
}

/// Checks that the settings can be parsed as the configuration of a run.
fn check_config(config: &Map<String, Value>) -> Result<(), ApiError> {
    let read = serde_json::from_value::<Config>(config.clone().into());
    read.map(drop).map_err(|error| {
        let why = format!("`config` of the request is invalid: {error}");
        RequestError::Unprocessable(why).into()
    })
}

/// Returns the assistant with a UUID: a default assistant, or an assistant that a client created.
async fn find_by_uuid(
    engine: &Engine,
    caller: &Caller,
    id: Uuid,
) -> Result<Result<Assistant, NotFound>, ApiError> {
    if let Some(record) = find_stored(engine, caller.tenant.as_ref(), id).await? {
        return Ok(Ok(record.to_body()));
    }
    let graph = graphs::by_uuid(engine.catalog(), id);
    Ok(graph.map(|graph| default_assistant(&graph)))
}

/// Reads an assistant, by its id or by the name of a graph.
#[utoipa::path(get, path = "/assistants/{id}",
    operation_id = "agent_get_assistant", tag = "agent-assistants",
    params(("id" = String, Path, description = "id of an assistant, or name of a graph")),
    responses((status = 200, body = Assistant)))]
async fn read(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<Json<Assistant>, ApiError> {
    if let Ok(uuid) = Uuid::try_parse(&id) {
        let found = find_by_uuid(&engine, &caller, uuid).await?;
        let missing = |why: NotFound| why.into_error(|| ApiError::missing("assistant", &id));
        return found.map(Json).map_err(missing);
    }
    let found = assistants::find(&engine, caller.tenant.as_ref(), &id).await?;
    Ok(Json(default_assistant(&found)))
}

/// Reads an assistant that a client created, in the form that a compare-and-swap needs.
async fn get_stored(
    engine: &Engine,
    caller: &Caller,
    id: &str,
) -> Result<Versioned<AssistantRecord>, ApiError> {
    let why = match graphs::look_up(engine.catalog(), id) {
        Ok(graph) => {
            let graph = &graph.id;
            let text = format!(
                "assistant `{id}` is the default assistant of graph `{graph}`, which cannot be \
                 changed or deleted; create another assistant of the graph"
            );
            return Err(ApiError::conflict(text));
        }
        Err(why) => why,
    };
    let uuid = match parse_uuid("assistant", id) {
        Ok(uuid) => uuid,
        Err(malformed) => return Err(why.into_error(|| malformed)),
    };
    let found = find_versioned(engine, caller.tenant.as_ref(), uuid).await?;
    found.ok_or_else(|| why.into_error(|| ApiError::missing("assistant", id)))
}

/// Changes an assistant: creates a version that later runs use.
#[utoipa::path(patch, path = "/assistants/{id}",
    operation_id = "agent_update_assistant", tag = "agent-assistants",
    params(("id" = String, Path, description = "id of an assistant, or name of a graph")),
    request_body = AssistantPatch,
    responses(
        (status = 200, body = Assistant),
        (status = 400, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
async fn update(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    JsonBody(request): JsonBody<AssistantPatch>,
) -> Result<Json<Assistant>, ApiError> {
    apply_change(&engine, &caller, &id, &AssistantChange::NewVersion(Box::new(request))).await
}

fn no_version(assistant: &str, number: u32) -> ApiError {
    ApiError::missing(&format!("version {number} of the assistant"), assistant)
}

/// Returns the version that a change of an assistant creates.
fn new_version(
    engine: &Engine,
    record: &AssistantRecord,
    request: AssistantPatch,
) -> Result<AssistantVersion, ApiError> {
    if record.newest >= MAX_VERSIONS {
        let text = format!(
            "assistant `{}` has the maximum of {MAX_VERSIONS} versions; create another assistant",
            record.id
        );
        return Err(ApiError::conflict(text));
    }
    let AssistantVersion { graph_id, config, context, metadata, name, description, .. } =
        record.used.clone();
    let graph_id = match &request.graph_id {
        Some(id) => graphs::find_for_assistant(engine.catalog(), id)?.id,
        None => graph_id,
    };
    let (config, context) = match (request.config, request.context) {
        (None, None) => (config, context),
        // `config.configurable` contains the values of the old context, so a new context replaces
        // `config.configurable`.
        (None, context) => {
            let mut config = config;
            config.remove("configurable");
            normalize_context(Some(config), context)?
        }
        // The context is kept unless the request has a context or `config.configurable`.
        (Some(given), None) if !given.contains_key("configurable") => {
            normalize_context(Some(given), Some(context))?
        }
        (given, further) => normalize_context(given, further)?,
    };
    check_config(&config)?;
    let (now_ms, number) = (engine.ports().clock.now_ms(), record.newest.saturating_add(1));
    let mut metadata = metadata;
    metadata.extend(request.metadata.unwrap_or_default());
    let used = AssistantVersion {
        number,
        created_ms: now_ms,
        graph_id,
        config,
        context,
        metadata,
        name: request.name.unwrap_or(name),
        description: request.description.or(description),
    };
    check_size(engine, &used)?;
    Ok(used)
}

/// Deletes an assistant with its versions, and its threads if `delete_threads` is set.
#[utoipa::path(delete, path = "/assistants/{id}",
    operation_id = "agent_delete_assistant", tag = "agent-assistants",
    params(
        ("id" = String, Path, description = "id of an assistant, or name of a graph"),
        ("delete_threads" = Option<bool>, Query, description = "true to also delete the threads whose first run used the assistant")),
    responses(
        (status = 204),
        (status = 409, body = ErrorDocument)))]
async fn delete(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    query: QueryParams,
) -> Result<StatusCode, ApiError> {
    let with_threads = query.get_bool("delete_threads")?;
    let until = stopping.clone();
    let future =
        async move { delete_with_threads(&engine, &until, &caller, &id, with_threads).await };
    detached::run(stopping, future.boxed()).await.unwrap_or_else(ApiError::panicked)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn delete_with_threads(
    engine: &Engine,
    stopping: &watch::Receiver<bool>,
    caller: &Caller,
    id: &str,
    with_threads: bool,
) -> Result<(), ApiError> {
    let record = get_stored(engine, caller, id).await?.value;
    if with_threads {
        let all = ThreadQuery { tenant: caller.tenant.clone(), ..ThreadQuery::default() };
        let mut walk = ThreadWalk::new(engine.ports().store.as_ref(), all);
        let uses_assistant = |it: &ThreadSummary| {
            // An operator sees the threads of all tenants. Ids are unique only within a tenant, so
            // the tenants are compared.
            it.tenant == caller.tenant
                && it.metadata.get(ASSISTANT_ID).is_some_and(|id| *id == record.id.as_str())
        };
        while let Some(threads) = walk.next().await? {
            for thread in threads.into_iter().filter(uses_assistant) {
                delete_thread(engine, stopping, thread.id, thread.tenant).await?;
            }
        }
    }
    Ok(record.delete(engine.ports(), &scope(caller)).await?)
}

/// Lists the versions of an assistant, newest first.
#[utoipa::path(post, path = "/assistants/{id}/versions",
    extensions(("x-wattle-access" = json!({ "scope": "read" }))),
    operation_id = "agent_list_assistant_versions", tag = "agent-assistants",
    params(("id" = String, Path, description = "id of an assistant, or name of a graph")),
    request_body = AssistantVersions,
    responses((status = 200, body = Vec<Assistant>)))]
async fn versions(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    JsonBody(request): JsonBody<AssistantVersions>,
) -> Result<Page, ApiError> {
    let all = match graphs::look_up(engine.catalog(), &id) {
        Ok(graph) => vec![default_assistant(&graph)],
        Err(_) => {
            let record = get_stored(&engine, &caller, &id).await?.value;
            let all = record.versions(engine.ports(), &scope(&caller)).await?;
            all.iter().map(|version| version.to_body(&record.id)).collect()
        }
    };
    let wanted = Value::Object(request.metadata.unwrap_or_default());
    let found = all.into_iter().filter(|it| json_contains(&it.metadata.clone().into(), &wanted));
    let limit = page::size(request.limit, DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)?;
    let mut page = Page::new(caller.response.clone());
    for version in found.skip(request.offset.unwrap_or(0)).take(limit) {
        page.push(&version)?;
    }
    Ok(page)
}

/// Selects the version of an assistant that later runs use.
#[utoipa::path(post, path = "/assistants/{id}/latest",
    operation_id = "agent_set_assistant_version", tag = "agent-assistants",
    params(("id" = String, Path, description = "id of an assistant, or name of a graph")),
    request_body = AssistantLatest,
    responses((status = 200, body = Assistant)))]
async fn latest(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    JsonBody(request): JsonBody<AssistantLatest>,
) -> Result<Json<Assistant>, ApiError> {
    if let Ok(graph) = graphs::look_up(engine.catalog(), &id) {
        let default = default_assistant(&graph);
        let is_version = default.version == request.version;
        return if is_version { Ok(Json(default)) } else { Err(no_version(&id, request.version)) };
    }
    apply_change(&engine, &caller, &id, &AssistantChange::SelectVersion(request.version)).await
}

/// A change of an assistant.
enum AssistantChange {
    /// Creates a version, which becomes the version in use.
    NewVersion(Box<AssistantPatch>),
    /// Selects an existing version by its number.
    SelectVersion(u32),
}

/// Changes an assistant by compare-and-swap.
async fn apply_change(
    engine: &Engine,
    caller: &Caller,
    id: &str,
    change: &AssistantChange,
) -> Result<Json<Assistant>, ApiError> {
    let (ports, scope) = (engine.ports(), scope(caller));
    let changed = retry_on_conflict(|| async {
        let old = get_stored(engine, caller, id).await?;
        let used = match change {
            AssistantChange::NewVersion(patch) => {
                new_version(engine, &old.value, AssistantPatch::clone(patch))?
            }
            AssistantChange::SelectVersion(number) => {
                let used = old.value.version(ports, &scope, *number).await?;
                let used = used.filter(|it| it.number <= old.value.newest);
                used.ok_or_else(|| no_version(id, *number))?
            }
        };
        let newest = old.value.newest.max(used.number);
        let record = AssistantRecord {
            updated_ms: engine.ports().clock.now_ms(),
            newest,
            used,
            ..old.value.clone()
        };
        Ok::<_, ApiError>(record.replace(ports, &scope, &old).await?)
    });
    let record = changed.await?.ok_or_else(|| write_conflict(id))?;
    Ok(Json(record.to_body()))
}
