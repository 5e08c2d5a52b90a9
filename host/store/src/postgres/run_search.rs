//! Searches and counts of the runs of all threads: the server selects by the columns of the threads,
//! the host by the records. The order is that of the rows, which is the order of the requests.

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use wattle_graph::id::AppName;
use wattle_run::limit::LIST_BYTES;
use wattle_run::ports::store::{
    RunCounts, RunCursor, RunSearch, RunSearchPage, RunSummary, StoreError,
};

use crate::codec::{unpack, unpacked_bytes};
use crate::error::corrupt;
use crate::postgres::column::{bytes, count as rows, size};
use crate::postgres::database::Database;
use crate::postgres::decode::decode_on_blocking_pool;
use crate::postgres::history::is_cut;
use crate::run_search::{ExaminedRun, RunExaminer, RunPage, RunSearchCounts, RunThread};

const OPERATION: &str = "search runs";

/// Number of runs that one statement of a search reads, if the host compares their records.
const SEARCH_ROWS: usize = 500;

/// Selects the newest runs before the position `$3`, each with the record of its thread. The column
/// `listed` is the number of runs within the limit `$1`. The server sends the first of them, and
/// further ones as long as the total size of all sent records is at most `$2` bytes.
const RUNS: &str = "
    SELECT place, record, thread, listed FROM (
        SELECT place, record, thread, count(*) OVER () AS listed, row_number() OVER page AS nth,
            sum(octet_length(record) + octet_length(thread)) OVER page AS bytes
        FROM (
            SELECT runs.place, runs.record, threads.record AS thread
            FROM runs JOIN threads ON threads.number = runs.thread
            WHERE threads.record IS NOT NULL AND ($3::bigint IS NULL OR runs.place < $3)
                AND ($4::text IS NULL OR threads.app = $4)
                AND ($5::bytea IS NULL OR threads.tenant = $5)
                AND ($6::bigint IS NULL OR threads.status <> 'interrupted'
                    OR threads.expires_ms IS NULL OR threads.expires_ms > $6)
            ORDER BY runs.place DESC LIMIT $1) AS item
        WINDOW page AS (ORDER BY place DESC)) AS item
    WHERE bytes <= $2 OR nth = 1 ORDER BY nth";

/// See [`Store::search_runs`](wattle_run::ports::Store::search_runs).
pub(super) async fn search(
    database: &Database,
    search: &RunSearch,
) -> Result<RunSearchPage, StoreError> {
    let most = if search.compares_records() {
        SEARCH_ROWS
    } else {
        search.limit.saturating_add(1).min(SEARCH_ROWS)
    };
    let position = search.after.as_ref().map(|after| after.position);
    let page = RunPage::new(search);
    Ok(examine_all(database, search, position, most, page).await?.finish())
}

/// See [`Store::count_runs`](wattle_run::ports::Store::count_runs). No column has the status of a
/// run, so each count reads records.
pub(super) async fn count(
    database: &Database,
    search: &RunSearch,
) -> Result<RunCounts, StoreError> {
    let counts = RunSearchCounts::new(search);
    Ok(examine_all(database, search, None, SEARCH_ROWS, counts).await?.finish())
}

/// Reads runs from a position on, at most `most` in a statement, until the examiner needs no further
/// runs. Each statement sees the newest state, but no run is read twice, since no run changes its
/// position.
async fn examine_all<E: RunExaminer + Send + 'static>(
    database: &Database,
    search: &RunSearch,
    mut position: Option<i64>,
    most: usize,
    mut examiner: E,
) -> Result<E, StoreError> {
    loop {
        let found = rows_before(database, search, position, most).await?;
        let is_end = found.len() < most && !is_cut(&found)?;
        // Records take long to decode and to compare.
        let decode = move || examine(examiner, &found);
        (examiner, position) = decode_on_blocking_pool(OPERATION, None, decode).await?;
        if is_end || position.is_none() {
            return Ok(examiner);
        }
    }
}

/// Reads the rows of runs before a position; the newest ones without it.
async fn rows_before(
    database: &Database,
    search: &RunSearch,
    position: Option<i64>,
    most: usize,
) -> Result<Vec<PgRow>, StoreError> {
    let list = || {
        sqlx::query(RUNS)
            .bind(rows(most))
            .bind(size(LIST_BYTES))
            .bind(position)
            .bind(search.app.as_ref().map(AppName::as_str))
            .bind(search.tenant.as_ref().map(String::as_bytes))
            .bind(search.unexpired_at_ms)
    };
    database.rows(OPERATION, list).await
}

/// Examines rows in order. Returns the position of the last row; `None` if the examiner needs no
/// further runs.
fn examine<E: RunExaminer>(
    mut examiner: E,
    rows: &[PgRow],
) -> Result<(E, Option<i64>), StoreError> {
    let mut last = None;
    for row in rows {
        let (packed, packed_thread) = (bytes(row, "record")?, bytes(row, "thread")?);
        let run: RunSummary = unpack("run", packed)?;
        let thread: RunThread = unpack("thread", packed_thread)?;
        let place: i64 = row.try_get("place").map_err(|error| corrupt("run", error))?;
        last = Some(place);
        let position = RunCursor { position: place, run: run.id.clone() };
        let bytes = unpacked_bytes(packed).saturating_add(unpacked_bytes(packed_thread));
        let examined = ExaminedRun { position, run, thread, bytes };
        if !examiner.examine(examined, || unpack("thread", packed_thread))? {
            return Ok((examiner, None));
        }
    }
    Ok((examiner, last))
}
