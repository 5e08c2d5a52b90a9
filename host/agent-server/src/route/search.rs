//! Searches for threads.
//!
//! The store filters by tenant and status. Metadata is compared in this module, with the records
//! that the store lists. If a request names only a few ids, these threads are read one by one.
//! Values are compared thread by thread, in order, until the page is full or the limit of states is
//! reached.

use std::cmp::Ordering;
use std::collections::HashSet;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue};
use axum::{Extension, Json};
use serde_json::{Map, Value, json};
use wattle_api::guard::open::Slot;
use wattle_api::traffic::Cut;
use wattle_graph::id::{Namespace, ThreadId};
use wattle_run::ports::store::{ThreadQuery, ThreadRecord, ThreadStatus as Stands};

use crate::agents::Agents;
use crate::caller::{Body, Caller};
use crate::fault::Fault;
use crate::page::{Looks, Page};
use crate::view::{self, TEMPORARY};
use crate::wire::extract::Extract;
use crate::wire::outline::ThreadPart;
use crate::wire::request::{SortOrder, ThreadCount, ThreadSearch};
use crate::wire::shape::ThreadStatus;

/// Default number of items in a response.
pub(super) const PAGE: usize = 10;

/// Maximum number of threads in a response. Each thread contains its whole state, so [`Page`]
/// limits their total size as well.
const LARGEST_PAGE: usize = 1_000;

/// Maximum number of ids for which each thread is read separately. For more ids, all threads are
/// listed, which is a single request to a remote store.
const NAMED: usize = 100;

/// Fields that `select` accepts.
const FIELDS: &[&str] = &[
    "thread_id",
    "created_at",
    "updated_at",
    "state_updated_at",
    "metadata",
    "config",
    "context",
    "status",
    "values",
    "interrupts",
    "error",
    "ttl",
];

/// Fields that are read from the state.
const OF_STATE: &[&str] = &["state_updated_at", "values", "interrupts"];

/// Returns the response headers with the total number of matches and the offset of the next page.
pub(super) fn pagination(total: usize, offset: usize, shown: usize) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("x-pagination-total", HeaderValue::from(total));
    let next = offset.saturating_add(shown);
    if next < total {
        headers.insert("x-pagination-next", HeaderValue::from(next));
    }
    headers
}

/// Lists threads.
#[utoipa::path(post, path = "/threads/search",
    extensions(("x-wattle-access" = json!({ "scope": "read", "share": "control" }))),
    operation_id = "agent_search_threads", tag = "agent-threads",
    request_body = ThreadSearch,
    responses(
        (status = 200, body = Vec<ThreadPart>,
            headers(("X-Pagination-Total" = usize, description = "total number of matches; with `values`, a lower bound"),
                ("X-Pagination-Next" = usize, description = "offset of the next page")))))]
pub(super) async fn search(
    State(agents): State<Agents>,
    caller: Caller,
    slot: Option<Extension<Slot>>,
    Body(request): Body<ThreadSearch>,
) -> Result<(HeaderMap, Page), Fault> {
    if request.values.as_ref().is_some_and(|values| !values.is_empty()) {
        leave_control(&agents, slot.as_deref())?;
    }
    let extract = Extract::read(&request.extract.unwrap_or_default());
    let extract = extract.map_err(Fault::unprocessable)?;
    let wanted = Wanted {
        ids: request.ids.as_deref(),
        metadata: request.metadata.as_ref(),
        values: request.values.as_ref(),
        status: request.status,
    };
    let mut found = wanted.records(&agents, &caller).await?;
    sort(&mut found, request.sort_by.as_deref(), request.sort_order.unwrap_or_default())?;
    let offset = request.offset.unwrap_or(0);
    let limit = request.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    // One more thread than the page contains shows whether there is a next page.
    let found = wanted.with_values(&agents, found, offset.saturating_add(limit + 1)).await?;
    let total = found.len();
    let mut page = Page::new(caller.response.clone());
    for record in found.iter().skip(offset).take(limit) {
        page.push(&shown(&agents, record, request.select.as_deref(), &extract).await?)?;
    }
    Ok((pagination(total, offset, page.len()), page))
}

/// Counts a search that reads states as another request than one of the control plane, which would
/// have no room for others meanwhile.
fn leave_control(agents: &Agents, slot: Option<&Slot>) -> Result<(), Fault> {
    let Some(slot) = slot else { return Ok(()) };
    slot.leave_control().map_err(|problem| {
        agents.api().traffic.cut(Cut::Requests);
        problem.into()
    })
}

/// Returns a thread with the selected fields. Reads its state only if a selected field needs it.
async fn shown(
    agents: &Agents,
    record: &ThreadRecord,
    fields: Option<&[String]>,
    extract: &Extract,
) -> Result<Value, Fault> {
    let fields = fields.filter(|fields| !fields.is_empty());
    let is_of_state = |field: &String| OF_STATE.contains(&field.as_str());
    let reads = !extract.is_empty() || fields.is_none_or(|fields| fields.iter().any(is_of_state));
    let state =
        if reads { view::state_of(agents, record, &Namespace::root(), None).await? } else { None };
    let thread = view::thread_at(agents, record, state).await?;
    let mut document = view::select(&thread, fields, FIELDS)?;
    if !extract.is_empty() {
        document["extracted"] = extract.of(&json!(thread));
    }
    Ok(document)
}

/// Counts threads.
#[utoipa::path(post, path = "/threads/count",
    extensions(("x-wattle-access" = json!({ "scope": "read" }))),
    operation_id = "agent_count_threads", tag = "agent-threads",
    request_body = ThreadCount,
    responses((status = 200, body = usize, content_type = "application/json")))]
pub(super) async fn count(
    State(agents): State<Agents>,
    caller: Caller,
    Body(request): Body<ThreadCount>,
) -> Result<Json<usize>, Fault> {
    let wanted = Wanted {
        ids: None,
        metadata: request.metadata.as_ref(),
        values: request.values.as_ref(),
        status: request.status,
    };
    let found = wanted.records(&agents, &caller).await?;
    Ok(Json(wanted.with_values(&agents, found, usize::MAX).await?.len()))
}

struct Wanted<'r> {
    ids: Option<&'r [String]>,
    metadata: Option<&'r Map<String, Value>>,
    values: Option<&'r Map<String, Value>>,
    status: Option<ThreadStatus>,
}

impl Wanted<'_> {
    /// Returns the threads that match all conditions except those on values.
    async fn records(&self, agents: &Agents, caller: &Caller) -> Result<Vec<ThreadRecord>, Fault> {
        let ids = self.ids.map(|ids| ids.iter().map(String::as_str).collect::<HashSet<_>>());
        let mut found = match &ids {
            Some(ids) if ids.len() <= NAMED => named(agents, caller, ids).await?,
            _ => self.listed(agents, caller).await?,
        };
        let is_named = |id: &str| ids.as_ref().is_none_or(|ids| ids.contains(id));
        found.retain(|record| is_named(record.id.as_str()) && self.has_facts(agents, record));
        Ok(found)
    }

    async fn listed(&self, agents: &Agents, caller: &Caller) -> Result<Vec<ThreadRecord>, Fault> {
        let query = ThreadQuery {
            tenant: caller.tenant.clone(),
            // A thread with a pending run is busy, whatever status it has in the store.
            status: self.status.and_then(store_status),
            ..ThreadQuery::default()
        };
        Ok(agents.ports().store.threads(&query).await?)
    }

    /// Returns at most `most` threads that contain the values. Each comparison reads the state of a
    /// thread.
    async fn with_values(
        &self,
        agents: &Agents,
        found: Vec<ThreadRecord>,
        most: usize,
    ) -> Result<Vec<ThreadRecord>, Fault> {
        let Some(values) = self.values.filter(|values| !values.is_empty()) else {
            return Ok(found);
        };
        let (mut with_values, mut looks) = (Vec::new(), Looks::default());
        for record in found {
            if with_values.len() == most {
                break;
            }
            if has_values(agents, &record, values, &mut looks).await? {
                with_values.push(record);
            }
        }
        Ok(with_values)
    }

    fn has_facts(&self, agents: &Agents, record: &ThreadRecord) -> bool {
        let is_shown = !record.metadata.contains_key(TEMPORARY);
        let stands = self.status.is_none_or(|status| view::status(agents, record) == status);
        let facts = self.metadata.is_none_or(|wanted| {
            wanted.iter().all(|(name, value)| {
                record.metadata.get(name).is_some_and(|known| holds(known, value))
            })
        });
        is_shown && stands && facts
    }
}

/// Returns the threads with the given ids that the caller may access. Skips invalid ids.
async fn named(
    agents: &Agents,
    caller: &Caller,
    ids: &HashSet<&str>,
) -> Result<Vec<ThreadRecord>, Fault> {
    let mut found = Vec::with_capacity(ids.len());
    for id in ids.iter().filter_map(|id| ThreadId::new(*id).ok()) {
        let head = agents.ports().store.thread(&id).await?;
        found.extend(head.map(|head| head.record).filter(|record| caller.may_see(record)));
    }
    Ok(found)
}

/// Returns the status by which the store filters. Returns `None` if several statuses of the store
/// match.
fn store_status(status: ThreadStatus) -> Option<Stands> {
    match status {
        ThreadStatus::Interrupted => Some(Stands::Interrupted),
        ThreadStatus::Error => Some(Stands::Error),
        ThreadStatus::Idle => Some(Stands::Idle),
        ThreadStatus::Busy => None,
    }
}

/// Returns whether a value contains another one. Objects may have additional fields.
pub(super) fn holds(known: &Value, wanted: &Value) -> bool {
    match (known, wanted) {
        (Value::Object(known), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, value)| known.get(name).is_some_and(|known| holds(known, value))),
        _ => known == wanted,
    }
}

async fn has_values(
    agents: &Agents,
    record: &ThreadRecord,
    wanted: &Map<String, Value>,
    looks: &mut Looks,
) -> Result<bool, Fault> {
    // Pending tasks have not changed the values, so only the checkpoint is read.
    let latest = agents.ports().store.thread_snapshot(&record.id).await?;
    let Some(tuple) = latest.and_then(|latest| latest.tuple) else { return Ok(false) };
    let state = tuple.checkpoint.state();
    looks.count(&state)?;
    let values = view::lens(agents, record).values(&state);
    Ok(wanted.iter().all(|(name, value)| values.get(name).is_some_and(|it| holds(it, value))))
}

fn sort(found: &mut [ThreadRecord], by: Option<&str>, order: SortOrder) -> Result<(), Fault> {
    let compare: fn(&ThreadRecord, &ThreadRecord) -> Ordering = match by.unwrap_or("updated_at") {
        "thread_id" => |one, other| one.id.cmp(&other.id),
        "created_at" => |one, other| one.created_ms.cmp(&other.created_ms),
        "updated_at" | "state_updated_at" => |one, other| one.updated_ms.cmp(&other.updated_ms),
        "status" => |one, other| (one.status as u8).cmp(&(other.status as u8)),
        other => {
            let text = format!(
                "`sort_by` must be thread_id, status, created_at, updated_at or state_updated_at, \
                 not `{other}`"
            );
            return Err(Fault::unprocessable(text));
        }
    };
    // Threads with equal values are sorted by creation time, and then by id, so that pages neither
    // skip nor repeat a thread.
    found.sort_by(|one, other| {
        let order_of = compare(one, other)
            .then(one.created_ms.cmp(&other.created_ms))
            .then_with(|| one.id.cmp(&other.id));
        match order {
            SortOrder::Asc => order_of,
            SortOrder::Desc => order_of.reverse(),
        }
    });
    Ok(())
}
