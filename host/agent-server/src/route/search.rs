//! Searches for threads.
//!
//! The store filters by tenant and status, and returns the keys of the threads. If a request has a
//! condition on metadata, this module reads the threads with their metadata instead, page by page,
//! and keeps only the keys of those that match. If a request names at most
//! [`MAX_DIRECT_LOOKUPS`] ids, this module reads the named threads one by one, and keeps their
//! records for the response up to a limit of memory. Values are compared thread by thread, in
//! order, until the page is full or the limit of states is reached.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue};
use axum::{Extension, Json};
use serde_json::{Map, Value, json};
use wattle_api::guard::open_requests::RequestPermit;
use wattle_api::traffic::Traffic;
use wattle_graph::failure::code;
use wattle_graph::id::{Namespace, ThreadId};
use wattle_graph::weight::weight;
use wattle_run::engine::Engine;
use wattle_run::limit::LIST_BYTES;
use wattle_run::metadata::json_contains;
use wattle_run::ports::store::{
    StoreError, ThreadHead, ThreadKey, ThreadQuery, ThreadRecord, ThreadStatus as StoredStatus,
    ThreadSummary,
};
use wattle_run::thread_walk::ThreadWalk;

use crate::error::ApiError;
use crate::extractors::{Caller, JsonBody};
use crate::page::{self, Page, ReadStates};
use crate::view;
use crate::wire::extract::Extract;
use crate::wire::request::{SortOrder, ThreadCount, ThreadSearch};
use crate::wire::response::ThreadStatus;
use crate::wire::schemas::ThreadPart;

/// Default number of items in a response.
pub(super) const DEFAULT_PAGE_SIZE: usize = 10;

/// Maximum number of threads in a response. Each thread contains its whole state, so [`Page`] also
/// limits the bytes of a response.
const MAX_PAGE_SIZE: usize = 1_000;

/// Maximum number of ids for which each thread is read separately. For more ids, the search lists
/// all threads, which takes one request to a remote store per 1000 threads.
const MAX_DIRECT_LOOKUPS: usize = 100;

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
const STATE_FIELDS: &[&str] = &["state_updated_at", "values", "interrupts"];

/// Returns the response headers with the total number of matches and the offset of the next page.
pub(super) fn pagination_headers(total: usize, offset: usize, shown: usize) -> HeaderMap {
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
    State(engine): State<Engine>,
    State(traffic): State<Arc<Traffic>>,
    caller: Caller,
    permit: Option<Extension<RequestPermit>>,
    JsonBody(request): JsonBody<ThreadSearch>,
) -> Result<(HeaderMap, Page), ApiError> {
    let reads_states = request.values.as_ref().is_some_and(|values| !values.is_empty());
    if reads_states && let Some(Extension(permit)) = &permit {
        permit.leave_control(&traffic)?;
    }
    let extract = Extract::parse(&request.extract.unwrap_or_default());
    let extract = extract.map_err(ApiError::unprocessable)?;
    let filter = ThreadFilter {
        ids: request.ids.as_deref(),
        metadata: request.metadata.as_ref(),
        values: request.values.as_ref(),
        status: request.status,
    };
    let mut found = filter.find(&engine, &caller).await?;
    sort(&mut found, request.sort_by.as_deref(), request.sort_order.unwrap_or_default())?;
    let offset = request.offset.unwrap_or(0);
    let limit = page::size(request.limit, DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)?;
    // One thread beyond the page shows whether a next page exists.
    let most = offset.saturating_add(limit + 1);
    let found = filter.match_values(&engine, &caller, found, most).await?;
    let (total, of_page) = (found.len(), found.into_iter().skip(offset).take(limit));
    let (mut page, listed) = (Page::new(caller.response.clone()), of_page.len());
    for thread in of_page {
        let record = match thread.record {
            Some(record) => Some(*record),
            None => listed_record(&engine, &caller, &thread.id).await?,
        };
        // A thread that was deleted or has expired meanwhile is left out.
        if let Some(record) = record {
            page.push(
                &render_thread(&engine, &record, request.select.as_deref(), &extract).await?,
            )?;
        }
    }
    Ok((pagination_headers(total, offset, listed), page))
}

/// Returns a thread with the selected fields. Reads its state only if a selected field needs it.
async fn render_thread(
    engine: &Engine,
    record: &ThreadRecord,
    fields: Option<&[String]>,
    extract: &Extract,
) -> Result<Value, ApiError> {
    let fields = fields.filter(|fields| !fields.is_empty());
    let is_state_field = |field: &String| STATE_FIELDS.contains(&field.as_str());
    let needs_state =
        !extract.is_empty() || fields.is_none_or(|fields| fields.iter().any(is_state_field));
    let state = if needs_state {
        view::load_state(engine, record, &Namespace::root(), None).await?
    } else {
        None
    };
    let thread = view::thread_with_state(engine, record, state).await?;
    let mut document = view::select_fields(&thread, fields, FIELDS)?;
    if !extract.is_empty() {
        document["extracted"] = extract.apply(&json!(thread));
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
    State(engine): State<Engine>,
    caller: Caller,
    JsonBody(request): JsonBody<ThreadCount>,
) -> Result<Json<usize>, ApiError> {
    let filter = ThreadFilter {
        ids: None,
        metadata: request.metadata.as_ref(),
        values: request.values.as_ref(),
        status: request.status,
    };
    let found = filter.find(&engine, &caller).await?;
    Ok(Json(filter.match_values(&engine, &caller, found, usize::MAX).await?.len()))
}

/// A thread that matches a search, with its sort keys.
struct MatchedThread {
    id: ThreadId,
    status: ThreadStatus,
    created_ms: i64,
    updated_ms: i64,
    /// The record, if the search read it and it fits in the memory for records.
    record: Option<Box<ThreadRecord>>,
}

impl From<ThreadKey> for MatchedThread {
    fn from(thread: ThreadKey) -> Self {
        let ThreadKey { id, status, stopped, created_ms, updated_ms, .. } = thread;
        let status = ThreadStatus::from_stored(status, stopped);
        Self { id, status, created_ms, updated_ms, record: None }
    }
}

struct ThreadFilter<'r> {
    ids: Option<&'r [String]>,
    metadata: Option<&'r Map<String, Value>>,
    values: Option<&'r Map<String, Value>>,
    status: Option<ThreadStatus>,
}

impl ThreadFilter<'_> {
    /// Returns the threads that match all conditions except the conditions on values.
    async fn find(&self, engine: &Engine, caller: &Caller) -> Result<Vec<MatchedThread>, ApiError> {
        let ids = self.ids.map(|ids| ids.iter().map(String::as_str).collect::<HashSet<_>>());
        let mut found = Vec::new();
        match &ids {
            Some(ids) if ids.len() <= MAX_DIRECT_LOOKUPS => {
                // Remaining memory for records. All records together may use as much memory as a
                // page of a list.
                let mut room = LIST_BYTES;
                // An invalid id matches no thread.
                for id in ids.iter().filter_map(|id| ThreadId::new(*id).ok()) {
                    let Some(record) = find_record(engine, caller, &id).await? else { continue };
                    let thread = ThreadSummary::from(&record);
                    if !self.matches_summary(engine, &thread) {
                        continue;
                    }
                    let bytes = thread.memory_bytes().saturating_add(weight(&record.context));
                    let record = room.checked_sub(bytes).map(|left| {
                        room = left;
                        Box::new(record)
                    });
                    let key = ThreadKey::from(&thread);
                    found.push(MatchedThread { record, ..MatchedThread::from(key) });
                }
            }
            _ => {
                let query = ThreadQuery {
                    tenant: caller.tenant.clone(),
                    // A thread with a pending run is busy, whatever status it has in the store.
                    status: self.status.and_then(store_status),
                    stopped_as_interrupted: true,
                    ..ThreadQuery::default()
                };
                let mut walk = engine.walk_threads(query);
                let is_named = |id: &str| ids.as_ref().is_none_or(|ids| ids.contains(id));
                while let Some(threads) = self.next_keys(engine, &mut walk).await? {
                    let named = threads.into_iter().filter(|thread| is_named(thread.id.as_str()));
                    found.extend(named.map(MatchedThread::from));
                }
            }
        }
        Ok(found)
    }

    /// Returns the keys of the threads of the next page that match all conditions except the
    /// conditions on ids and values. Returns `None` after the last page.
    async fn next_keys(
        &self,
        engine: &Engine,
        walk: &mut ThreadWalk<'_>,
    ) -> Result<Option<Vec<ThreadKey>>, ApiError> {
        if self.metadata.is_some_and(|wanted| !wanted.is_empty()) {
            let threads = walk.next().await?;
            let matching = |threads: Vec<ThreadSummary>| {
                let threads = threads.iter().filter(|thread| self.matches_summary(engine, thread));
                threads.map(ThreadKey::from).collect()
            };
            return Ok(threads.map(matching));
        }
        let mut threads = walk.next_keys().await?;
        if let Some(threads) = &mut threads {
            threads.retain(|thread| self.matches_key(engine, thread));
        }
        Ok(threads)
    }

    /// Returns at most `most` threads that contain the values. Each comparison reads the state of a
    /// thread.
    async fn match_values(
        &self,
        engine: &Engine,
        caller: &Caller,
        found: Vec<MatchedThread>,
        most: usize,
    ) -> Result<Vec<MatchedThread>, ApiError> {
        let Some(values) = self.values.filter(|values| !values.is_empty()) else {
            return Ok(found);
        };
        let (mut with_values, mut read) = (Vec::new(), ReadStates::default());
        for thread in found {
            if with_values.len() == most {
                break;
            }
            if has_values(engine, caller, &thread.id, values, &mut read).await? {
                with_values.push(thread);
            }
        }
        Ok(with_values)
    }

    /// Returns whether a thread is visible and has the status, whatever its metadata.
    fn matches_key(&self, engine: &Engine, thread: &ThreadKey) -> bool {
        let status = || view::status(engine, &thread.id, thread.status, thread.stopped);
        !thread.is_stateless && self.status.is_none_or(|wanted| status() == wanted)
    }

    fn matches_summary(&self, engine: &Engine, thread: &ThreadSummary) -> bool {
        let has_metadata = self.metadata.is_none_or(|wanted| {
            wanted.iter().all(|(name, value)| {
                thread.metadata.get(name).is_some_and(|known| json_contains(known, value))
            })
        });
        has_metadata && self.matches_key(engine, &ThreadKey::from(thread))
    }
}

/// Returns a thread that the caller may access. Returns `None` if the thread has expired.
async fn find_record(
    engine: &Engine,
    caller: &Caller,
    id: &ThreadId,
) -> Result<Option<ThreadRecord>, ApiError> {
    let head = engine.visible_thread(id).await?;
    Ok(accessible_record(caller, head))
}

/// Returns the record of a listed key; see [`find_record`]. The store lists keys without reading
/// their records. A thread with a damaged record is logged and left out, as in other lists.
async fn listed_record(
    engine: &Engine,
    caller: &Caller,
    id: &ThreadId,
) -> Result<Option<ThreadRecord>, ApiError> {
    match engine.visible_thread(id).await {
        Err(error) if error.code == code::BROKEN => {
            tracing::error!(thread = %id, %error, "damaged thread is not listed");
            Ok(None)
        }
        head => Ok(accessible_record(caller, head?)),
    }
}

fn accessible_record(caller: &Caller, head: Option<ThreadHead>) -> Option<ThreadRecord> {
    head.map(|head| head.record).filter(|record| caller.can_access(record))
}

/// Returns the status by which the store filters. Returns `None` if several statuses of the store
/// match.
fn store_status(status: ThreadStatus) -> Option<StoredStatus> {
    match status {
        ThreadStatus::Interrupted => Some(StoredStatus::Interrupted),
        ThreadStatus::Error => Some(StoredStatus::Error),
        ThreadStatus::Idle => Some(StoredStatus::Idle),
        ThreadStatus::Busy => None,
    }
}

async fn has_values(
    engine: &Engine,
    caller: &Caller,
    id: &ThreadId,
    wanted: &Map<String, Value>,
    read: &mut ReadStates,
) -> Result<bool, ApiError> {
    // Pending tasks have not changed the values, so only the checkpoint is read.
    let latest = engine.ports().store.thread_snapshot(id).await;
    // The damage may be that of the record, or that of the state.
    if matches!(latest, Err(StoreError::Corrupt { .. }))
        && listed_record(engine, caller, id).await?.is_none()
    {
        return Ok(false);
    }
    let latest = latest?.filter(|latest| caller.can_access(&latest.head.record));
    let Some((head, tuple)) = latest.and_then(|latest| Some((latest.head, latest.tuple?))) else {
        return Ok(false);
    };
    let state = tuple.checkpoint.state();
    read.charge(&state)?;
    engine.load_code(&head.record).await;
    let values = view::thread_info(engine, &head.record).values(&state);
    Ok(wanted
        .iter()
        .all(|(name, value)| values.get(name).is_some_and(|it| json_contains(it, value))))
}

fn sort(found: &mut [MatchedThread], by: Option<&str>, order: SortOrder) -> Result<(), ApiError> {
    let compare: fn(&MatchedThread, &MatchedThread) -> Ordering = match by.unwrap_or("updated_at") {
        "thread_id" => |one, other| one.id.cmp(&other.id),
        "created_at" => |one, other| one.created_ms.cmp(&other.created_ms),
        "updated_at" | "state_updated_at" => |one, other| one.updated_ms.cmp(&other.updated_ms),
        "status" => |one, other| (one.status as u8).cmp(&(other.status as u8)),
        other => {
            let text = format!(
                "`sort_by` must be thread_id, status, created_at, updated_at or state_updated_at, \
                 not `{other}`"
            );
            return Err(ApiError::unprocessable(text));
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
