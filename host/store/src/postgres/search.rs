//! Searches of threads: the server selects by the columns of a thread, the host by its record. The
//! table has no columns for further conditions, because hosts of the previous version would not
//! write them.

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{Postgres, Row as _};
use wattle_graph::id::AppName;
use wattle_run::limit::LIST_BYTES;
use wattle_run::ports::store::{
    StoreError, TenantFilter, ThreadCounts, ThreadCursor, ThreadQuery, ThreadSearch,
    ThreadSearchPage, ThreadSummary,
};

use crate::codec::{unpack, unpacked_bytes};
use crate::error::corrupt;
use crate::postgres::column::{bytes, count as rows, size};
use crate::postgres::database::Database;
use crate::postgres::decode::decode_on_blocking_pool;
use crate::postgres::history::{BY_UPDATE, is_cut, page_statement};
use crate::postgres::stage::{status_names, status_of};
use crate::search::{Examiner, SearchCounts, SearchPage};

const OPERATION: &str = "search threads";

/// Number of threads that one statement of a search reads, if the host compares their records.
const SEARCH_ROWS: usize = 500;

/// Selects the threads after a position, as the records of a [`page_statement`].
const SEARCHED: &str = "
    SELECT id, updated_ms, record FROM threads
    WHERE record IS NOT NULL AND updated_ms BETWEEN $4 AND $5
        AND ($6::text IS NULL OR app = $6)
        AND ($7::text[] IS NULL OR status = ANY($7))
        AND ($8::bytea IS NULL OR tenant = $8)
        AND (NOT $9::bool OR tenant IS NULL)
        AND ($10::bigint IS NULL OR status <> 'interrupted' OR expires_ms IS NULL
            OR expires_ms > $10)
        AND ($11::bytea IS NULL OR updated_ms < $5 OR id > $11)";

/// Counts threads by the value of their status column.
const COUNTED: &str = "
    SELECT status, count(*) AS threads FROM threads
    WHERE record IS NOT NULL AND updated_ms BETWEEN $1 AND $2
        AND ($3::text IS NULL OR app = $3)
        AND ($4::text[] IS NULL OR status = ANY($4))
        AND ($5::bytea IS NULL OR tenant = $5)
        AND (NOT $6::bool OR tenant IS NULL)
        AND ($7::bigint IS NULL OR status <> 'interrupted' OR expires_ms IS NULL
            OR expires_ms > $7)
    GROUP BY status";

/// See [`Store::search_threads`](wattle_run::ports::Store::search_threads).
pub(super) async fn search(
    database: &Database,
    search: &ThreadSearch,
) -> Result<ThreadSearchPage, StoreError> {
    let page = SearchPage::new(search);
    Ok(examine_all(database, search, search.after.clone(), page).await?.finish())
}

/// See [`Store::count_threads`](wattle_run::ports::Store::count_threads).
pub(super) async fn count(
    database: &Database,
    search: &ThreadSearch,
) -> Result<ThreadCounts, StoreError> {
    let mut counts = SearchCounts::new(search);
    if search.compares_records() {
        return Ok(examine_all(database, search, None, counts).await?.finish());
    }
    let (oldest, newest) = (*search.updated_ms.start(), *search.updated_ms.end());
    let list = || bind_conditions(sqlx::query(COUNTED), search, oldest, newest);
    for row in database.rows(OPERATION, list).await? {
        let read = |error: sqlx::Error| corrupt("thread", error);
        let name: &str = row.try_get("status").map_err(read)?;
        let status = status_of(name)
            .ok_or_else(|| corrupt("thread", format!("its status `{name}` is unknown")))?;
        counts.add(status, row.try_get::<i64, _>("threads").map_err(read)?.cast_unsigned());
    }
    Ok(counts.finish())
}

/// Reads threads in the order of a search until the examiner needs no further threads. Each
/// statement sees the newest state, so a thread that is updated between two statements may be
/// missed, but no thread is read twice.
async fn examine_all<E: Examiner + Send + 'static>(
    database: &Database,
    search: &ThreadSearch,
    after: Option<ThreadCursor>,
    mut examiner: E,
) -> Result<E, StoreError> {
    let most = if search.compares_records() {
        SEARCH_ROWS
    } else {
        search.limit.saturating_add(1).min(SEARCH_ROWS)
    };
    let mut position = after;
    loop {
        let found = rows_after(database, search, position.as_ref(), most).await?;
        let is_end = found.len() < most && !is_cut(&found)?;
        // Records take long to decode and to compare.
        let decode = move || examine(examiner, &found);
        (examiner, position) = decode_on_blocking_pool(OPERATION, None, decode).await?;
        if is_end || position.is_none() {
            return Ok(examiner);
        }
    }
}

/// Reads the rows of threads after a position.
async fn rows_after(
    database: &Database,
    search: &ThreadSearch,
    position: Option<&ThreadCursor>,
    most: usize,
) -> Result<Vec<PgRow>, StoreError> {
    let (oldest, newest) = (*search.updated_ms.start(), *search.updated_ms.end());
    let position = position.filter(|position| position.updated_ms <= newest);
    let newest = position.map_or(newest, |position| position.updated_ms);
    let list = || {
        let page = sqlx::query(page_statement(SEARCHED, BY_UPDATE));
        let page = page.bind(rows(most)).bind(0_i64).bind(size(LIST_BYTES));
        bind_conditions(page, search, oldest, newest)
            .bind(position.map(|position| position.thread.as_str().as_bytes()))
    };
    database.rows(OPERATION, list).await
}

/// Binds the conditions that columns answer, in the order of the statements: the times of the
/// update, the app, the statuses, the tenant, or that there is none, and the time of the expiry.
fn bind_conditions<'q>(
    query: Query<'q, Postgres, PgArguments>,
    search: &'q ThreadSearch,
    oldest: i64,
    newest: i64,
) -> Query<'q, Postgres, PgArguments> {
    query
        .bind(oldest)
        .bind(newest)
        .bind(search.app.as_ref().map(AppName::as_str))
        .bind(statuses(search))
        .bind(search.tenant.name().map(str::as_bytes))
        .bind(search.tenant == TenantFilter::None)
        .bind(search.unexpired_at_ms)
}

/// Examines rows in order. Returns the position of the last row; `None` if the examiner needs no
/// further threads.
fn examine<E: Examiner>(
    mut examiner: E,
    rows: &[PgRow],
) -> Result<(E, Option<ThreadCursor>), StoreError> {
    let mut last = None;
    for row in rows {
        let packed = bytes(row, "record")?;
        let thread: ThreadSummary = unpack("thread", packed)?;
        last = Some(ThreadCursor::from(&thread));
        if !examiner.examine(thread, unpacked_bytes(packed)) {
            return Ok((examiner, None));
        }
    }
    Ok((examiner, last))
}

/// Returns the names in the status column that a search matches; `None` for all.
fn statuses(search: &ThreadSearch) -> Option<Vec<&'static str>> {
    status_names(&ThreadQuery { status: search.status, ..ThreadQuery::default() })
}
