//! Reads threads, runs, events, and checkpoints with their pending events.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::Row as _;
use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, Values};
use wattle_graph::event::Event;
use wattle_graph::id::{AppName, CheckpointId, Namespace, RunId, ThreadId};
use wattle_run::ports::store::{
    CheckpointParts, CheckpointQuery, CheckpointTuple, ListPage, RunRecord, StoreError, ThreadHead,
    ThreadQuery, ThreadRecord,
};

use crate::codec::unpack;
use crate::error::corrupt;
use crate::page::EventPage;
use crate::postgres::head::{HEAD, checkpoint_id, record, thread_head};
use crate::postgres::link::{Begun, Link, while_trying};
use crate::postgres::size::{record_bytes, record_start};
use crate::postgres::stage::status_word;
use crate::postgres::value;
use crate::query::checkpoint_matches;

/// Checkpoints whose `CheckpointMeta` one statement reads.
const META_PAGE: usize = 128;

/// Checkpoints whose values one statement reads.
const VALUE_PAGE: usize = 32;

/// Batches whose events one statement reads.
const EVENT_PAGE: usize = 128;

const NUMBER: &str = "SELECT number FROM threads WHERE id = $1 AND record IS NOT NULL";

const CHECKPOINTS: &str = "
    SELECT checkpoint, meta FROM batches
    WHERE thread = $1 AND checkpoint IS NOT NULL AND ($2::bytea IS NULL OR namespace = $2)
        AND ($3::bigint IS NULL OR checkpoint < $3) AND ($4::bigint IS NULL OR checkpoint = $4)
    ORDER BY checkpoint DESC LIMIT $5";

const PENDING: &str = "
    SELECT base, events FROM batches
    WHERE thread = $1 AND base = ANY($2) AND events IS NOT NULL ORDER BY place";

/// Selects the first batch after an event, and those after it while all of them together have at
/// most `$4` bytes of JSON.
const EVENTS: &str = concat!(
    "SELECT last_seq, events FROM (
        SELECT last_seq, events, row_number() OVER log AS nth,
            (sum(",
    record_bytes!("events"),
    ") OVER log)::bigint AS bytes
        FROM (
            SELECT last_seq, events, ",
    record_start!("events"),
    " AS start FROM batches
            WHERE thread = (SELECT number FROM threads WHERE id = $1 AND record IS NOT NULL)
                AND last_seq > $2 AND events IS NOT NULL
            ORDER BY last_seq LIMIT $3) AS page
        WINDOW log AS (ORDER BY last_seq)) AS page
    WHERE bytes <= $4 OR nth = 1 ORDER BY last_seq"
);

const THREADS: &str = "
    SELECT record FROM threads
    WHERE record IS NOT NULL AND ($1::text IS NULL OR app = $1)
        AND ($2::text IS NULL OR status = $2) AND ($3::bytea IS NULL OR tenant = $3)
        AND ($4::bigint IS NULL OR expires_ms <= $4) AND ($5::bigint IS NULL OR ttl_ends_ms <= $5)
    ORDER BY updated_ms DESC, id LIMIT $6 OFFSET $7";

const RUN: &str = "SELECT record FROM runs WHERE id = $1";

const RUNS: &str = "
    SELECT record FROM runs
    WHERE thread = (SELECT number FROM threads WHERE id = $1 AND record IS NOT NULL)
    ORDER BY place";

const NEWEST_RUNS: &str = "
    SELECT record FROM runs
    WHERE thread = (SELECT number FROM threads WHERE id = $1 AND record IS NOT NULL)
    ORDER BY place DESC LIMIT $2 OFFSET $3";

/// See [`Store::thread`](wattle_run::ports::Store::thread).
pub(super) async fn thread(
    link: &Link,
    thread: &ThreadId,
) -> Result<Option<ThreadHead>, StoreError> {
    let head = || sqlx::query(HEAD).bind(thread.as_str().as_bytes());
    let row = link.row("read a thread", head).await?;
    row.as_ref().map(thread_head).transpose()
}

/// See [`Store::threads`](wattle_run::ports::Store::threads).
pub(super) async fn threads(
    link: &Link,
    query: &ThreadQuery,
) -> Result<Vec<ThreadRecord>, StoreError> {
    let list = || {
        sqlx::query(THREADS)
            .bind(query.app.as_ref().map(AppName::as_str))
            .bind(query.status.map(status_word))
            .bind(query.tenant.as_ref().map(String::as_bytes))
            .bind(query.expires_by_ms)
            .bind(query.ttl_ended_by_ms)
            .bind(query.limit.map(count))
            .bind(count(query.offset))
    };
    link.rows("list threads", list).await?.iter().map(record).collect()
}

/// See [`Store::run`](wattle_run::ports::Store::run).
pub(super) async fn run(link: &Link, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
    let read = || sqlx::query(RUN).bind(run.as_str().as_bytes());
    let row = link.row("read a run", read).await?;
    row.map(|row| unpack("run", bytes(&row, "record")?)).transpose()
}

/// See [`Store::runs`](wattle_run::ports::Store::runs).
pub(super) async fn runs(link: &Link, thread: &ThreadId) -> Result<Vec<RunRecord>, StoreError> {
    let list = || sqlx::query(RUNS).bind(thread.as_str().as_bytes());
    let rows = link.rows("list runs", list).await?;
    rows.iter().map(|row| unpack("run", bytes(row, "record")?)).collect()
}

/// See [`Store::newest_runs`](wattle_run::ports::Store::newest_runs).
pub(super) async fn newest_runs(
    link: &Link,
    thread: &ThreadId,
    skip: usize,
    limit: usize,
) -> Result<Vec<RunRecord>, StoreError> {
    let list = || {
        let list = sqlx::query(NEWEST_RUNS).bind(thread.as_str().as_bytes());
        list.bind(count(limit)).bind(count(skip))
    };
    let rows = link.rows("list runs", list).await?;
    rows.iter().map(|row| unpack("run", bytes(row, "record")?)).collect()
}

/// Reads a checkpoint with several statements.
pub(super) async fn step_by_step(
    link: &Link,
    thread: &ThreadId,
    namespace: &Namespace,
    id: Option<CheckpointId>,
) -> Result<Option<CheckpointTuple>, StoreError> {
    let mut snapshot = link.snapshot("read a checkpoint").await?;
    let Some(number) = number(&mut snapshot, thread).await? else { return Ok(None) };
    let selection = Selection { namespace: Some(namespace), before: None, id };
    let metas = metas(&mut snapshot, number, &selection, 1).await?;
    Ok(tuples(&mut snapshot, number, metas, CheckpointParts::All).await?.pop())
}

/// See [`Store::checkpoints`](wattle_run::ports::Store::checkpoints).
pub(super) async fn checkpoints(
    link: &Link,
    thread: &ThreadId,
    query: &CheckpointQuery,
) -> Result<ListPage<CheckpointTuple>, StoreError> {
    let mut snapshot = link.snapshot("list checkpoints").await?;
    let Some(number) = number(&mut snapshot, thread).await? else { return Ok(ListPage::empty()) };
    let limit = query.limit.unwrap_or(usize::MAX);
    let namespace = query.namespace.as_ref();
    let mut selection = Selection { namespace, before: query.before, id: None };
    let mut matching = Vec::new();
    while matching.len() < limit {
        let page = metas(&mut snapshot, number, &selection, META_PAGE).await?;
        let Some(oldest) = page.last() else { break };
        selection.before = Some(oldest.id);
        matching.extend(page.into_iter().filter(|meta| checkpoint_matches(query, meta)));
    }
    let is_last = matching.len() < limit;
    matching.truncate(limit);
    let mut items = Vec::with_capacity(matching.len());
    let mut matching = matching.into_iter().peekable();
    while matching.peek().is_some() {
        let page = matching.by_ref().take(VALUE_PAGE).collect();
        items.extend(tuples(&mut snapshot, number, page, query.parts).await?);
    }
    Ok(ListPage { items, is_last })
}

/// See [`Store::events`](wattle_run::ports::Store::events).
pub(super) async fn events(
    link: &Link,
    thread: &ThreadId,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let mut page = EventPage::new(limit);
    let mut after = i64::try_from(after).unwrap_or(i64::MAX);
    let seqs = after.cast_unsigned().saturating_add(1)..=u64::MAX;
    while !page.is_full() {
        let batches = page.left().min(EVENT_PAGE);
        let bytes_left = i64::try_from(page.bytes_left()).unwrap_or(i64::MAX);
        let read = || {
            let read = sqlx::query(EVENTS).bind(thread.as_str().as_bytes()).bind(after);
            read.bind(count(batches)).bind(bytes_left)
        };
        let rows = link.rows("read events", read).await?;
        for row in &rows {
            page.add(bytes(row, "events")?, &seqs)?;
            after = row.try_get("last_seq").map_err(|error| corrupt("events", error))?;
        }
        // The log ends here, or further batches do not fit.
        if rows.len() < batches {
            break;
        }
    }
    Ok(page.into_events())
}

/// Returns the number of a thread that exists.
pub(super) async fn number(
    transaction: &mut Begun,
    thread: &ThreadId,
) -> Result<Option<i64>, StoreError> {
    let number = sqlx::query_scalar(NUMBER).bind(thread.as_str().as_bytes());
    number.fetch_optional(&mut **transaction).await.map_err(while_trying("find a thread"))
}

/// A filter for checkpoints.
struct Selection<'a> {
    namespace: Option<&'a Namespace>,
    before: Option<CheckpointId>,
    id: Option<CheckpointId>,
}

/// Reads the `CheckpointMeta` of checkpoints, newest first.
async fn metas(
    snapshot: &mut Begun,
    number: i64,
    selection: &Selection<'_>,
    limit: usize,
) -> Result<Vec<CheckpointMeta>, StoreError> {
    // An id that does not fit the column is greater than all stored ids.
    let signed = |id: CheckpointId| i64::try_from(id.0).unwrap_or(i64::MAX);
    let rows = sqlx::query(CHECKPOINTS)
        .bind(number)
        .bind(selection.namespace.map(|namespace| namespace.as_str().as_bytes()))
        .bind(selection.before.map(signed))
        .bind(selection.id.map(signed))
        .bind(count(limit))
        .fetch_all(&mut **snapshot)
        .await
        .map_err(while_trying("read checkpoints"))?;
    rows.iter().map(|row| unpack("checkpoint", bytes(row, "meta")?)).collect()
}

/// Reads the values and the pending events of checkpoints.
async fn tuples(
    snapshot: &mut Begun,
    number: i64,
    metas: Vec<CheckpointMeta>,
    parts: CheckpointParts,
) -> Result<Vec<CheckpointTuple>, StoreError> {
    let wanted: BTreeSet<value::Version> = metas
        .iter()
        .filter(|_| parts.has_values())
        .flat_map(|meta| &meta.versions)
        .map(|(channel, version)| (channel.clone(), *version))
        .collect();
    let loaded = value::load(snapshot, number, &wanted).await?;
    let mut pending =
        if parts.has_events() { pending(snapshot, number, &metas).await? } else { BTreeMap::new() };
    let tuple = |meta: CheckpointMeta| {
        let value = |(channel, version): (&_, &CheckpointId)| {
            let value = loaded.get(&(Clone::clone(channel), *version))?;
            Some((Clone::clone(channel), value.clone()))
        };
        let values: Values = meta.versions.iter().filter_map(value).collect();
        let events = pending.remove(&meta.id).unwrap_or_default();
        CheckpointTuple {
            checkpoint: Checkpoint { meta, values, list_deltas: BTreeMap::new() },
            events,
        }
    };
    Ok(metas.into_iter().map(tuple).collect())
}

async fn pending(
    snapshot: &mut Begun,
    number: i64,
    metas: &[CheckpointMeta],
) -> Result<BTreeMap<CheckpointId, Vec<Event>>, StoreError> {
    let bases: Vec<i64> = metas.iter().map(|meta| meta.id.0.cast_signed()).collect();
    let rows = sqlx::query(PENDING)
        .bind(number)
        .bind(bases)
        .fetch_all(&mut **snapshot)
        .await
        .map_err(while_trying("read pending events"))?;
    let mut pending: BTreeMap<CheckpointId, Vec<Event>> = BTreeMap::new();
    for row in &rows {
        let base = checkpoint_id(row, "base").map_err(|error| corrupt("batch", error))?;
        let events: Vec<Event> = unpack("events", bytes(row, "events")?)?;
        pending.entry(base.unwrap_or_default()).or_default().extend(events);
    }
    Ok(pending)
}

/// Reads a column of packed bytes.
pub(super) fn bytes<'r>(
    row: &'r sqlx::postgres::PgRow,
    column: &str,
) -> Result<&'r [u8], StoreError> {
    row.try_get(column).map_err(|error| corrupt(column, error))
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
