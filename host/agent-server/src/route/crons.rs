//! Crons: create, search, read, change and delete.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;
use wattle_project::agent_server::time::format_time_with_micros;
use wattle_run::engine::Engine;
use wattle_run::metadata::json_contains;

use crate::assistants;
use crate::create_run::RunCreator;
use crate::crons::signal::CronSignal;
use crate::error::ApiError;
use crate::extractors::{Caller, JsonBody, PathParams, parse_thread_id, parse_uuid};
use crate::graphs;
use crate::page::{self, Page};
use crate::records::cron::{CronRecord, DueEntry, cron_records, due_entries};
use crate::records::{Versioned, retry_on_conflict};
use crate::resolve;
use crate::route::search::{DEFAULT_PAGE_SIZE, pagination_headers};
use crate::state::AgentServer;
use crate::view;
use crate::wire::request::{CronCreate, CronPatch, CronSearch, SortOrder, parse_run};
use crate::wire::response::Cron;
use crate::wire::schedule::{Schedule, parse_time};
use crate::wire::schemas::{CronCount, CronPart, ErrorDocument};

/// Maximum number of crons of a tenant. A list reads the records of all crons of the tenant.
const MAX_CRONS_PER_TENANT: usize = 1_000;

/// Maximum number of crons of all tenants, because the scheduler reads all entries several times a
/// minute.
const MAX_CRONS: usize = 10_000;

/// Maximum size in bytes of the run request of a cron, because lists of crons contain whole
/// requests.
const MAX_PAYLOAD_BYTES: usize = 64 << 10;

/// Maximum number of crons in a response.
const MAX_PAGE_SIZE: usize = 1_000;

/// Fields that `select` accepts.
const FIELDS: &[&str] = &[
    "cron_id",
    "assistant_id",
    "thread_id",
    "on_run_completed",
    "end_time",
    "schedule",
    "timezone",
    "created_at",
    "updated_at",
    "user_id",
    "payload",
    "next_run_date",
    "metadata",
    "enabled",
    NOW,
];

/// Field of the response that contains the current time.
const NOW: &str = "now";

pub(super) fn routes() -> OpenApiRouter<AgentServer> {
    OpenApiRouter::new()
        .routes(routes!(create_on_thread))
        .routes(routes!(create))
        .routes(routes!(search))
        .routes(routes!(count))
        .routes(routes!(read, update, delete))
}

/// Creates a cron. Each of its runs has a thread of its own.
#[utoipa::path(post, path = "/runs/crons", operation_id = "agent_create_cron", tag = "agent-crons",
    request_body = CronCreate,
    responses(
        (status = 200, body = Cron),
        (status = 400, body = ErrorDocument),
        (status = 404, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
async fn create(
    State(creator): State<RunCreator>,
    State(cron_signal): State<Arc<CronSignal>>,
    caller: Caller,
    JsonBody(request): JsonBody<CronCreate>,
) -> Result<Json<Cron>, ApiError> {
    create_cron(&creator, &cron_signal, &caller, None, &request).await
}

/// Creates a cron whose runs are on one thread.
#[utoipa::path(post, path = "/threads/{id}/runs/crons",
    operation_id = "agent_create_thread_cron", tag = "agent-crons",
    params(("id" = String, Path, description = "id of the thread")),
    request_body = CronCreate,
    responses(
        (status = 200, body = Cron),
        (status = 400, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
async fn create_on_thread(
    State(engine): State<Engine>,
    State(creator): State<RunCreator>,
    State(cron_signal): State<Arc<CronSignal>>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    JsonBody(request): JsonBody<CronCreate>,
) -> Result<Json<Cron>, ApiError> {
    let thread = caller.thread(&engine, &id).await?;
    create_cron(&creator, &cron_signal, &caller, Some(thread.id.to_string()), &request).await
}

async fn create_cron(
    creator: &RunCreator,
    cron_signal: &CronSignal,
    caller: &Caller,
    thread: Option<String>,
    request: &CronCreate,
) -> Result<Json<Cron>, ApiError> {
    let ports = creator.engine().ports();
    let now_ms = ports.clock.now_ms();
    let mut record = CronRecord {
        cron: Uuid::now_v7(),
        tenant: caller.tenant.clone(),
        assistant: String::new(),
        thread,
        schedule: request.schedule.clone(),
        timezone: request.timezone.clone(),
        end_ms: request.end_time.as_deref().map(parse_end_time).transpose()?,
        enabled: request.enabled.unwrap_or(true),
        on_run_completed: request.on_run_completed,
        payload: request.payload(),
        created_ms: now_ms,
        updated_ms: now_ms,
        revision: Uuid::now_v7(),
    };
    record.assistant = validate(creator, &record).await?;
    let entries: Vec<DueEntry> = due_entries(ports).list().await?;
    let own = entries.iter().filter(|due| due.tenant == caller.tenant).count();
    if own >= MAX_CRONS_PER_TENANT || entries.len() >= MAX_CRONS {
        return Err(ApiError::conflict("the maximum number of crons is reached; delete some"));
    }
    record.save(ports, now_ms).await?;
    cron_signal.wake();
    Ok(Json(record.to_body(now_ms)))
}

/// Checks a cron. Rejects a cron whose runs would all fail. Returns the id of the assistant.
async fn validate(creator: &RunCreator, record: &CronRecord) -> Result<String, ApiError> {
    let engine = creator.engine();
    let schedule = Schedule::parse(&record.schedule, record.timezone.as_deref());
    let schedule = schedule.map_err(ApiError::unprocessable)?;
    if schedule.next_after(engine.ports().clock.now_ms()).is_none() {
        let text = format!("`schedule` matches no future time: `{}`", record.schedule);
        return Err(ApiError::unprocessable(text));
    }
    let bytes = Value::Object(record.payload.clone()).to_string().len();
    if bytes > MAX_PAYLOAD_BYTES {
        let text =
            format!("the payload has {bytes} bytes, more than the limit of {MAX_PAYLOAD_BYTES}");
        return Err(ApiError::unprocessable(text));
    }
    let run = parse_run(&record.payload)?;
    creator.check(&run)?;
    if record.thread.is_none() && run.command().is_some() {
        return Err(ApiError::bad_request("a cron without a thread must not have a `command`"));
    }
    let graph = assistants::find(engine, record.tenant.as_ref(), &run.assistant_id).await?;
    // A cron that is disabled creates no runs. It can be changed even if its thread has run another
    // graph since the cron was created.
    if record.enabled
        && let Some(id) = &record.thread
        && let Some(head) = engine.visible_thread(&parse_thread_id(id)?).await?
    {
        resolve::check_graph(engine, &graph, &head.record)?;
    }
    Ok(graph.assistant().to_string())
}

fn parse_end_time(text: &str) -> Result<i64, ApiError> {
    parse_time(text)
        .ok_or_else(|| ApiError::unprocessable(format!("`end_time` is invalid: `{text}`")))
}

/// Reads a cron.
#[utoipa::path(get, path = "/runs/crons/{cron}",
    operation_id = "agent_get_cron", tag = "agent-crons",
    params(("cron" = String, Path, description = "id of the cron")),
    responses((status = 200, body = Cron)))]
async fn read(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<Json<Cron>, ApiError> {
    let record = find(&engine, &caller, &id).await?.value;
    Ok(Json(record.to_body(engine.ports().clock.now_ms())))
}

/// Reads a cron that the caller may access. Crons are stored by tenant. For the operator, who may
/// access the crons of all tenants, the [`DueEntry`] of the cron is read first, because the entry
/// names the tenant.
async fn find(
    engine: &Engine,
    caller: &Caller,
    id: &str,
) -> Result<Versioned<CronRecord>, ApiError> {
    let cron = parse_uuid("cron", id)?.to_string();
    let missing = || ApiError::missing("cron", id);
    let mut tenant = caller.tenant.clone();
    if tenant.is_none() {
        let due: Option<DueEntry> = due_entries(engine.ports()).get(&cron).await?;
        tenant = due.ok_or_else(missing)?.tenant;
    }
    cron_records(engine.ports(), tenant.as_ref()).get_versioned(&cron).await?.ok_or_else(missing)
}

/// Changes a cron.
#[utoipa::path(patch, path = "/runs/crons/{cron}",
    operation_id = "agent_update_cron", tag = "agent-crons",
    params(("cron" = String, Path, description = "id of the cron")),
    request_body = CronPatch,
    responses(
        (status = 200, body = Cron),
        (status = 400, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
async fn update(
    State(engine): State<Engine>,
    State(creator): State<RunCreator>,
    State(cron_signal): State<Arc<CronSignal>>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    JsonBody(change): JsonBody<CronPatch>,
) -> Result<Json<Cron>, ApiError> {
    let changed = retry_on_conflict(|| async {
        let old = find(&engine, &caller, &id).await?;
        let (mut record, now_ms) = (old.value.clone(), engine.ports().clock.now_ms());
        apply(&mut record, change.clone())?;
        record.assistant = validate(&creator, &record).await?;
        record.updated_ms = now_ms;
        record.revision = Uuid::now_v7();
        let changed = record.replace(engine.ports(), now_ms, &old).await?;
        Ok::<_, ApiError>(changed.map(|record| record.to_body(now_ms)))
    });
    let write_conflict =
        || ApiError::conflict(format!("cron `{id}` is being changed by other requests; try again"));
    let changed = changed.await?.ok_or_else(write_conflict)?;
    cron_signal.wake();
    Ok(Json(changed))
}

fn apply(record: &mut CronRecord, change: CronPatch) -> Result<(), ApiError> {
    for (name, value) in change.payload() {
        match (record.payload.get_mut(&name), value) {
            // Metadata is merged, like the metadata of threads.
            (Some(Value::Object(known)), Value::Object(further)) if name == "metadata" => {
                known.extend(further);
            }
            (_, value) => drop(record.payload.insert(name, value)),
        }
    }
    if let Some(schedule) = change.schedule {
        record.schedule = schedule;
    }
    if let Some(timezone) = change.timezone {
        record.timezone = timezone;
    }
    if let Some(end_time) = change.end_time {
        record.end_ms = end_time.as_deref().map(parse_end_time).transpose()?;
    }
    record.enabled = change.enabled.unwrap_or(record.enabled);
    record.on_run_completed = change.on_run_completed.or(record.on_run_completed);
    Ok(())
}

/// Deletes a cron.
#[utoipa::path(delete, path = "/runs/crons/{cron}",
    operation_id = "agent_delete_cron", tag = "agent-crons",
    params(("cron" = String, Path, description = "id of the cron")),
    responses((status = 204)))]
async fn delete(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<StatusCode, ApiError> {
    find(&engine, &caller, &id).await?.value.delete(engine.ports()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes the crons of a thread before the thread is deleted.
pub(super) async fn delete_crons_of_thread(
    engine: &Engine,
    tenant: Option<&String>,
    thread: &str,
) -> Result<(), ApiError> {
    let entries: Vec<DueEntry> = due_entries(engine.ports()).list().await?;
    let is_of_thread =
        |due: &&DueEntry| due.tenant.as_ref() == tenant && due.thread.as_deref() == Some(thread);
    for due in entries.iter().filter(is_of_thread) {
        match due.read_cron(engine.ports()).await? {
            Some(record) => record.delete(engine.ports()).await?,
            None => due.delete(engine.ports()).await?,
        }
    }
    Ok(())
}

/// Returns all crons of a tenant, or of all tenants.
async fn list_records(
    engine: &Engine,
    tenant: Option<&String>,
) -> Result<Vec<CronRecord>, ApiError> {
    let entries: Vec<DueEntry> = due_entries(engine.ports()).list().await?;
    let mut records = Vec::new();
    for due in entries.iter().filter(|due| tenant.is_none() || due.tenant.as_ref() == tenant) {
        records.extend(due.read_cron(engine.ports()).await?);
    }
    Ok(records)
}

/// Lists crons.
#[utoipa::path(post, path = "/runs/crons/search",
    extensions(("x-wattle-access" = json!({ "scope": "read" }))),
    operation_id = "agent_search_crons", tag = "agent-crons",
    request_body = CronSearch,
    responses(
        (status = 200, body = Vec<CronPart>,
            headers(("X-Pagination-Total" = usize, description = "total number of matches"),
                ("X-Pagination-Next" = usize, description = "offset of the next page"))),
        (status = 404, body = ErrorDocument)))]
async fn search(
    State(engine): State<Engine>,
    caller: Caller,
    JsonBody(request): JsonBody<CronSearch>,
) -> Result<(HeaderMap, Page), ApiError> {
    let now_ms = engine.ports().clock.now_ms();
    let mut found = find_matching(&engine, &caller, &request).await?;
    sort(&mut found, request.sort_by.as_deref(), request.sort_order.unwrap_or_default())?;
    let offset = request.offset.unwrap_or(0);
    let limit = page::size(request.limit, DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)?;
    let fields = request.select.as_deref();
    let includes_now = fields.is_some_and(|fields| fields.iter().any(|field| field == NOW));
    let mut page = Page::new(caller.response.clone());
    for cron in found.iter().skip(offset).take(limit) {
        let mut shown = view::select_fields(cron, fields, FIELDS)?;
        if includes_now {
            shown[NOW] = json!(format_time_with_micros(now_ms));
        }
        page.push(&shown)?;
    }
    Ok((pagination_headers(found.len(), offset, page.len()), page))
}

/// Counts crons.
#[utoipa::path(post, path = "/runs/crons/count",
    extensions(("x-wattle-access" = json!({ "scope": "read" }))),
    operation_id = "agent_count_crons", tag = "agent-crons",
    request_body = CronCount,
    responses(
        (status = 200, body = usize, content_type = "application/json"),
        (status = 404, body = ErrorDocument)))]
async fn count(
    State(engine): State<Engine>,
    caller: Caller,
    JsonBody(request): JsonBody<CronSearch>,
) -> Result<Json<usize>, ApiError> {
    Ok(Json(find_matching(&engine, &caller, &request).await?.len()))
}

async fn find_matching(
    engine: &Engine,
    caller: &Caller,
    request: &CronSearch,
) -> Result<Vec<Cron>, ApiError> {
    let assistant = match request.assistant_id.as_deref() {
        Some(id) if Uuid::try_parse(id).is_err() => {
            Some(graphs::find(engine.catalog(), id)?.assistant().to_string())
        }
        id => id.map(str::to_owned),
    };
    let now_ms = engine.ports().clock.now_ms();
    let matches = |cron: &Cron| {
        let metadata = request.metadata.as_ref();
        assistant.as_ref().is_none_or(|id| *id == cron.assistant_id)
            && (request.thread_id.is_none() || request.thread_id == cron.thread_id)
            && request.enabled.is_none_or(|enabled| enabled == cron.enabled)
            && metadata.is_none_or(|wanted| {
                wanted.iter().all(|(name, value)| {
                    cron.metadata.get(name).is_some_and(|known| json_contains(known, value))
                })
            })
    };
    let records = list_records(engine, caller.tenant.as_ref()).await?;
    Ok(records.iter().map(|record| record.to_body(now_ms)).filter(matches).collect())
}

/// Sorts crons. A missing value is the smallest. Times are compared as strings, because all times
/// have the same format.
fn sort(found: &mut [Cron], by: Option<&str>, order: SortOrder) -> Result<(), ApiError> {
    let key: fn(&Cron) -> Option<&String> = match by.unwrap_or("created_at") {
        "cron_id" => |cron| Some(&cron.cron_id),
        "assistant_id" => |cron| Some(&cron.assistant_id),
        "thread_id" => |cron| cron.thread_id.as_ref(),
        "created_at" => |cron| Some(&cron.created_at),
        "updated_at" => |cron| Some(&cron.updated_at),
        "next_run_date" => |cron| cron.next_run_date.as_ref(),
        "end_time" => |cron| cron.end_time.as_ref(),
        other => {
            return Err(ApiError::unprocessable(format!("crons cannot be sorted by `{other}`")));
        }
    };
    found.sort_by(|one, other| {
        let ascending = (key(one), &one.cron_id).cmp(&(key(other), &other.cron_id));
        if order == SortOrder::Asc { ascending } else { ascending.reverse() }
    });
    Ok(())
}
