//! Reads threads, runs, events, and checkpoints with their pending events.

mod tuples;

use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row as _};
use wattle_graph::event::Event;
use wattle_graph::id::{AppName, CheckpointId, Namespace, RunId, ThreadId};
use wattle_graph::limit::SHORT_JSON_BYTES;
use wattle_graph::weight::VALUE_BYTES;
use wattle_run::limit::{HISTORY_BYTES, LIST_BYTES};
use wattle_run::ports::store::{
    CheckpointOutline, CheckpointParts, CheckpointQuery, CheckpointTuple, ListPage, RunRecord,
    RunSummary, StoreError, ThreadHead, ThreadOrder, ThreadQuery, ThreadSummary,
};
use wattle_run::reads::{LargeRead, begin_large_read};

use crate::codec::{unpack, unpacked_bytes};
use crate::error::corrupt;
use crate::page::{EventPage, PageBuilder};
use crate::postgres::column::{bytes, count, size};
use crate::postgres::database::{Database, PgTransaction};
use crate::postgres::decode::decode_on_blocking_pool;
use crate::postgres::retry::sqlx_error;
use crate::postgres::size::{record_bytes, record_start};
use crate::postgres::stage::status_names;
use crate::postgres::thread_row::{SELECT_HEAD, thread_head};
use crate::postgres::value::Chains;
use crate::query::checkpoint_matches;
use tuples::{Meta, PendingEvents, UndecodedTuples, versions_of};

/// The operation that lists threads, for errors.
const LIST_THREADS: &str = "list threads";

/// The operation that lists the runs of a thread, for errors.
const LIST_RUNS: &str = "list runs";

/// Maximum number of checkpoints whose `CheckpointMeta` one statement reads.
const META_PAGE: usize = 128;

/// Maximum length of the `CheckpointMeta`s that one statement reads, in bytes of JSON, unless a
/// single one has more. They are decoded together, before it is known how many fit on a page, and
/// take at most about [`HISTORY_BYTES`] of memory (see `wattle_graph::weight::most_weight`).
const META_BYTES: u64 = HISTORY_BYTES / (VALUE_BYTES / 2);

/// Number of checkpoints whose values one statement reads.
const VALUE_PAGE: usize = 32;

/// Number of batches whose events one statement reads.
const EVENT_PAGE: usize = 128;

const NUMBER: &str = "SELECT number FROM threads WHERE id = $1 AND record IS NOT NULL";

/// Selects the newest checkpoint, and earlier checkpoints as long as the total length of all
/// selected checkpoints is at most `$6` bytes of JSON.
const CHECKPOINTS: &str = concat!(
    "SELECT meta FROM (
        SELECT checkpoint, meta, row_number() OVER newest AS nth,
            (sum(",
    record_bytes!("meta"),
    ") OVER newest)::bigint AS bytes
        FROM (
            SELECT checkpoint, meta, ",
    record_start!("meta"),
    " AS start FROM batches
            WHERE thread = $1 AND checkpoint IS NOT NULL
                AND ($2::bytea IS NULL OR namespace = $2)
                AND ($3::bigint IS NULL OR checkpoint < $3)
                AND ($4::bigint IS NULL OR checkpoint = $4)
            ORDER BY checkpoint DESC LIMIT $5) AS page
        WINDOW newest AS (ORDER BY checkpoint DESC)) AS page
    WHERE bytes <= $6 OR nth = 1 ORDER BY checkpoint DESC"
);

/// Selects the first batch after an event, and later batches as long as the total length of all
/// selected batches is at most `$4` bytes of JSON.
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

/// Selects threads with the columns of their order, as the records of a [`page_statement`].
const THREADS: &str = "
    SELECT id, updated_ms, record FROM threads
    WHERE record IS NOT NULL AND id > $4 AND ($5::text IS NULL OR app = $5)
        AND ($6::text[] IS NULL OR status = ANY($6))
        AND ($7::bytea IS NULL OR tenant = $7)
        AND ($8::bigint IS NULL OR expires_ms <= $8)
        AND ($9::bigint IS NULL OR ttl_ends_ms <= $9)
        AND ($10::bigint IS NULL OR status <> 'interrupted' OR expires_ms IS NULL
            OR expires_ms > $10)";

/// Order of threads by their last update, newest first, as the order of a [`page_statement`].
pub(super) const BY_UPDATE: &str = "updated_ms DESC, id";

/// Selects the runs of a thread with the column of their order, as the records of a
/// [`page_statement`].
const RUNS: &str = "
    SELECT place, record FROM runs
    WHERE thread = (SELECT number FROM threads WHERE id = $4 AND record IS NOT NULL)";

const RUN: &str = "SELECT record FROM runs WHERE id = $1";

/// Returns the statement that selects a page of `records` in an order. The column `listed` is the
/// number of records within the limit `$1` after the offset `$2`. The server sends the first of
/// these records, and further records as long as the total size of all sent records is at most `$3`
/// bytes. The statement contains no text of a caller, so it is safe from SQL injection.
pub(super) fn page_statement(records: &'static str, order: &'static str) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!(
        "SELECT record, listed FROM (
            SELECT record, count(*) OVER () AS listed, row_number() OVER page AS nth,
                sum(octet_length(record)) OVER page AS bytes
            FROM ({records} ORDER BY {order} LIMIT $1 OFFSET $2) AS item
            WINDOW page AS (ORDER BY {order})) AS item
        WHERE bytes <= $3 OR nth = 1 ORDER BY nth"
    ))
}

/// See [`Store::thread`](wattle_run::ports::Store::thread).
pub(super) async fn thread(
    database: &Database,
    thread: &ThreadId,
) -> Result<Option<ThreadHead>, StoreError> {
    let head = || sqlx::query(SELECT_HEAD).bind(thread.as_str().as_bytes());
    let row = database.row("read a thread", head).await?;
    row.as_ref().map(thread_head).transpose()
}

/// See [`Store::threads`](wattle_run::ports::Store::threads).
pub(super) async fn threads(
    database: &Database,
    query: &ThreadQuery,
) -> Result<ListPage<ThreadSummary>, StoreError> {
    // Without a start, an empty key precedes all ids, since no id is empty.
    let after = query.after.as_ref().map_or(&[][..], |after| after.as_str().as_bytes());
    let order = match query.order {
        ThreadOrder::Update => BY_UPDATE,
        ThreadOrder::Id => "id",
    };
    let list = || {
        sqlx::query(page_statement(THREADS, order))
            .bind(query.limit.map(one_more))
            .bind(count(query.offset))
            .bind(size(LIST_BYTES))
            .bind(after)
            .bind(query.app.as_ref().map(AppName::as_str))
            .bind(status_names(query))
            .bind(query.tenant.as_ref().map(String::as_bytes))
            .bind(query.expires_by_ms)
            .bind(query.ttl_ended_by_ms)
            .bind(query.unexpired_at_ms)
    };
    let rows = database.rows(LIST_THREADS, list).await?;
    read_page(LIST_THREADS, rows, query.limit.unwrap_or(usize::MAX), |page, packed| {
        let thread: ThreadSummary = unpack("thread", packed)?;
        page.add(thread.memory_bytes(), || Ok(thread))
    })
    .await
}

/// Reads the rows of a [`page_statement`]. `add` adds a packed record to the page, and returns
/// whether the record fits.
async fn read_page<T: Send + 'static>(
    operation: &'static str,
    rows: Vec<PgRow>,
    limit: usize,
    add: impl Fn(&mut PageBuilder<T>, &[u8]) -> Result<bool, StoreError> + Send + 'static,
) -> Result<ListPage<T>, StoreError> {
    let decode = move || {
        let mut page = PageBuilder::new(limit, LIST_BYTES);
        for row in &rows {
            if !add(&mut page, bytes(row, "record")?)? {
                break;
            }
        }
        if is_cut(&rows)? {
            page.truncate();
        }
        Ok(page.finish())
    };
    decode_on_blocking_pool(operation, None, decode).await
}

/// Returns whether the server did not send all rows of a list.
pub(super) fn is_cut(rows: &[PgRow]) -> Result<bool, StoreError> {
    let Some(row) = rows.first() else { return Ok(false) };
    let listed: i64 = row.try_get("listed").map_err(|error| corrupt("list", error))?;
    Ok(count(rows.len()) < listed)
}

/// See [`Store::run`](wattle_run::ports::Store::run).
pub(super) async fn run(database: &Database, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
    let read = || sqlx::query(RUN).bind(run.as_str().as_bytes());
    let row = database.row("read a run", read).await?;
    row.map(|row| unpack("run", bytes(&row, "record")?)).transpose()
}

/// See [`Store::runs`](wattle_run::ports::Store::runs).
pub(super) async fn runs(
    database: &Database,
    thread: &ThreadId,
    skip: usize,
    limit: usize,
) -> Result<ListPage<RunSummary>, StoreError> {
    let rows = run_rows(database, "place", thread, skip, limit).await?;
    read_page(LIST_RUNS, rows, limit, |page, packed| {
        let run: RunSummary = unpack("run", packed)?;
        page.add(run.memory_bytes(), || Ok(run))
    })
    .await
}

/// See [`Store::newest_runs`](wattle_run::ports::Store::newest_runs).
pub(super) async fn newest_runs(
    database: &Database,
    thread: &ThreadId,
    skip: usize,
    limit: usize,
) -> Result<ListPage<RunRecord>, StoreError> {
    let rows = run_rows(database, "place DESC", thread, skip, limit).await?;
    read_page(LIST_RUNS, rows, limit, |page, packed| {
        page.add(unpacked_bytes(packed), || unpack("run", packed))
    })
    .await
}

async fn run_rows(
    database: &Database,
    order: &'static str,
    thread: &ThreadId,
    skip: usize,
    limit: usize,
) -> Result<Vec<PgRow>, StoreError> {
    let list = || {
        let list = sqlx::query(page_statement(RUNS, order)).bind(one_more(limit)).bind(count(skip));
        list.bind(size(LIST_BYTES)).bind(thread.as_str().as_bytes())
    };
    database.rows(LIST_RUNS, list).await
}

/// Reads a checkpoint with several statements, in a turn of the request that needs it.
pub(super) async fn checkpoint_multi(
    database: &Database,
    thread: &ThreadId,
    namespace: &Namespace,
    id: Option<CheckpointId>,
) -> Result<Option<CheckpointTuple>, StoreError> {
    let large = begin_large_read().await;
    let mut snapshot = database.snapshot("read a checkpoint").await?;
    one_tuple(&mut snapshot, thread, (namespace, id), CheckpointParts::All, &large).await
}

/// Reads a checkpoint with its thread, and without its values, with several statements, in a turn of
/// the request that needs it.
pub(super) async fn outline_multi(
    database: &Database,
    thread: &ThreadId,
    namespace: &Namespace,
    id: CheckpointId,
) -> Result<Option<CheckpointOutline>, StoreError> {
    let large = begin_large_read().await;
    let mut snapshot = database.snapshot("read a checkpoint").await?;
    let head = sqlx::query(SELECT_HEAD).bind(thread.as_str().as_bytes());
    let row = head.fetch_optional(&mut *snapshot).await.map_err(sqlx_error("read a thread"))?;
    let Some(head) = row.as_ref().map(thread_head).transpose()? else { return Ok(None) };
    let parts = CheckpointParts::WithoutValues;
    let tuple = one_tuple(&mut snapshot, thread, (namespace, Some(id)), parts, &large).await?;
    Ok(tuple.map(|tuple| CheckpointOutline { head, tuple }))
}

/// Reads a checkpoint by its id, or the newest one of the namespace.
async fn one_tuple(
    snapshot: &mut PgTransaction,
    thread: &ThreadId,
    (namespace, id): (&Namespace, Option<CheckpointId>),
    parts: CheckpointParts,
    large: &LargeRead,
) -> Result<Option<CheckpointTuple>, StoreError> {
    let Some(number) = thread_number(snapshot, thread).await? else { return Ok(None) };
    let filter = CheckpointFilter { namespace: Some(namespace), before: None, id };
    let metas = checkpoint_metas(snapshot, number, &filter, 1, large).await?;
    let mut page = PageBuilder::new(1, HISTORY_BYTES);
    add_tuples(snapshot, number, metas, parts, &mut page, large).await?;
    Ok(page.into_items().pop())
}

/// See [`Store::checkpoints`](wattle_run::ports::Store::checkpoints).
pub(super) async fn checkpoints(
    database: &Database,
    thread: &ThreadId,
    query: &CheckpointQuery,
) -> Result<ListPage<CheckpointTuple>, StoreError> {
    let large = begin_large_read().await;
    let mut snapshot = database.snapshot("list checkpoints").await?;
    let mut page = PageBuilder::new(query.limit.unwrap_or(usize::MAX), HISTORY_BYTES);
    let Some(number) = thread_number(&mut snapshot, thread).await? else {
        return Ok(page.finish());
    };
    let namespace = query.namespace.as_ref();
    let mut filter = CheckpointFilter { namespace, before: query.before, id: None };
    while !page.is_full() {
        let metas = checkpoint_metas(&mut snapshot, number, &filter, META_PAGE, &large).await?;
        let Some((oldest, _)) = metas.last() else { return Ok(page.finish()) };
        filter.before = Some(oldest.id);
        let matching = metas.into_iter().filter(|(meta, _)| checkpoint_matches(query, meta));
        let mut matching = matching.peekable();
        while matching.peek().is_some() && !page.is_full() {
            let wanted = page.left().min(VALUE_PAGE);
            let group: Vec<Meta> = matching.by_ref().take(wanted).collect();
            add_tuples(&mut snapshot, number, group, query.parts, &mut page, &large).await?;
        }
    }
    page.truncate();
    Ok(page.finish())
}

/// See [`Store::events`](wattle_run::ports::Store::events).
pub(super) async fn events(
    database: &Database,
    thread: &ThreadId,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let mut page = EventPage::new(limit);
    let mut after = i64::try_from(after).unwrap_or(i64::MAX);
    let first_seq = after.cast_unsigned().saturating_add(1);
    while !page.is_full() {
        let batches = page.left().min(EVENT_PAGE);
        let bytes_left = size(page.bytes_left());
        let read = || {
            let read = sqlx::query(EVENTS).bind(thread.as_str().as_bytes()).bind(after);
            read.bind(count(batches)).bind(bytes_left)
        };
        let rows = database.rows("read events", read).await?;
        if let Some(last) = rows.last() {
            after = last.try_get("last_seq").map_err(|error| corrupt("events", error))?;
        }
        // The log ends here, or further batches do not fit.
        let is_last = rows.len() < batches;
        page = add_events(page, rows, first_seq).await?;
        if is_last {
            break;
        }
    }
    Ok(page.into_events())
}

/// Decodes batches of events, and adds the events from `first_seq` on to a page. Short batches are
/// decoded on the calling task.
async fn add_events(
    mut page: EventPage,
    rows: Vec<PgRow>,
    first_seq: u64,
) -> Result<EventPage, StoreError> {
    let lengths = rows.iter().map(|row| bytes(row, "events").map(unpacked_bytes));
    let json_bytes: u64 = lengths.sum::<Result<_, _>>()?;
    let add = move || {
        for row in &rows {
            if page.is_full() {
                break;
            }
            page.add(bytes(row, "events")?, &(first_seq..=u64::MAX))?;
        }
        Ok(page)
    };
    if json_bytes <= SHORT_JSON_BYTES {
        return add();
    }
    decode_on_blocking_pool("read events", None, add).await
}

/// Returns the number of a thread that exists.
pub(super) async fn thread_number(
    transaction: &mut PgTransaction,
    thread: &ThreadId,
) -> Result<Option<i64>, StoreError> {
    let number = sqlx::query_scalar(NUMBER).bind(thread.as_str().as_bytes());
    number.fetch_optional(&mut **transaction).await.map_err(sqlx_error("find a thread"))
}

/// A filter for checkpoints.
struct CheckpointFilter<'a> {
    namespace: Option<&'a Namespace>,
    before: Option<CheckpointId>,
    id: Option<CheckpointId>,
}

/// Reads the `CheckpointMeta` of checkpoints, newest first: at most `limit` checkpoints with
/// [`META_BYTES`] together, and at least one if any checkpoint matches.
async fn checkpoint_metas(
    snapshot: &mut PgTransaction,
    number: i64,
    filter: &CheckpointFilter<'_>,
    limit: usize,
    large: &LargeRead,
) -> Result<Vec<Meta>, StoreError> {
    // An id that does not fit the column is greater than all stored ids.
    let signed = |id: CheckpointId| i64::try_from(id.0).unwrap_or(i64::MAX);
    let rows = sqlx::query(CHECKPOINTS)
        .bind(number)
        .bind(filter.namespace.map(|namespace| namespace.as_str().as_bytes()))
        .bind(filter.before.map(signed))
        .bind(filter.id.map(signed))
        .bind(count(limit))
        .bind(size(META_BYTES))
        .fetch_all(&mut **snapshot)
        .await
        .map_err(sqlx_error("read checkpoints"))?;
    let decode = move || rows.iter().map(meta).collect();
    decode_on_blocking_pool("read checkpoints", Some(large.clone()), decode).await
}

fn meta(row: &PgRow) -> Result<Meta, StoreError> {
    let packed = bytes(row, "meta")?;
    Ok((unpack("checkpoint", packed)?, unpacked_bytes(packed)))
}

/// Reads the values and the pending events of checkpoints, newest first. Adds as many checkpoints
/// to a page as fit. The sizes are compared with the limit before anything is decoded.
async fn add_tuples(
    snapshot: &mut PgTransaction,
    number: i64,
    mut metas: Vec<Meta>,
    parts: CheckpointParts,
    page: &mut PageBuilder<CheckpointTuple>,
    large: &LargeRead,
) -> Result<(), StoreError> {
    let all = metas.len();
    // The first checkpoint of a page fits whatever its size.
    let first = metas.first().map(|(meta, _)| meta.id).filter(|_| page.is_empty());
    let mut pending = PendingEvents::default();
    if parts.has_events() && !metas.is_empty() {
        pending = PendingEvents::read(snapshot, number, &metas, first, page.bytes_left()).await?;
        metas.truncate(pending.complete(&metas));
    }
    let mut chains = Chains::default();
    while parts.has_values() && !metas.is_empty() {
        let is_first = first.is_some() && metas.len() == 1;
        let max_bytes = if is_first { u64::MAX } else { page.bytes_left() };
        match Chains::read(snapshot, number, &versions_of(&metas), max_bytes).await? {
            Some(read) => {
                chains = read;
                break;
            }
            None if is_first => return Err(corrupt("value", "the server did not send it")),
            None => metas.truncate(metas.len() / 2),
        }
    }
    let undecoded = UndecodedTuples::select(metas, chains, pending, page);
    let is_cut = undecoded.len() < all;
    let before = std::mem::replace(page, PageBuilder::new(0, 0));
    let decode = move || undecoded.decode_into(before);
    *page = decode_on_blocking_pool("read checkpoints", Some(large.clone()), decode).await?;
    if is_cut {
        page.truncate();
    }
    Ok(())
}

/// Returns the limit of a list plus one item, which shows whether the list continues.
fn one_more(limit: usize) -> i64 {
    count(limit.saturating_add(1))
}
