//! Maintenance: sizes, mentions of blobs, checks whether the store can be written, and compaction.

use std::collections::{BTreeMap, HashSet};

use sqlx::{AssertSqlSafe, Executor as _, Row as _, SqlSafeStr as _};
use wattle_graph::id::{AppName, Digest, ThreadId};
use wattle_run::limit::LIST_BYTES;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    CompactionReport, MentionPage, Owner, OwnerUsage, PinnedVersions, StoreError, StoreUsage,
};

use crate::codec::unpack;
use crate::error::{backend, corrupt};
use crate::postgres::database::Database;
use crate::postgres::decode::decode_on_blocking_pool;
use crate::postgres::retry::{RetryState, sqlx_error};
use crate::query::add_pin;

const SIZE: &str = "
    SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
    WHERE relnamespace = to_regnamespace(quote_ident($1)) AND relkind = 'r'";

/// Rewrites the only row of the table `format`.
const UPDATE_FORMAT: &str = "UPDATE format SET number = number";

/// Maximum number of attempts of [`check_writable`], which lock the same row on all hosts. Each
/// attempt waits at most for the lock timeout, so all attempts take at most four seconds. A
/// readiness probe waits for five seconds.
const MAX_PROBE_ATTEMPTS: u32 = 10;

const TABLES: [&str; 8] =
    ["threads", "batches", "channel_values", "runs", "mentions", "blobs", "blob_chunks", "memory"];

const MENTIONS: &str = "
    SELECT EXISTS (SELECT 1 FROM mentions WHERE blob = $2
        AND thread = (SELECT number FROM threads WHERE id = $1 AND record IS NOT NULL))";

const STORED_BYTES: &str = "
    SELECT bytes + octet_length(record) FROM threads WHERE id = $1 AND record IS NOT NULL";

const USAGE: &str = "
    SELECT count(*), coalesce(sum(bytes + octet_length(record)), 0)::bigint FROM threads
    WHERE record IS NOT NULL AND ($1::bytea IS NULL OR id = $1)
        AND ($2::text IS NULL OR app = $2) AND ($3::bytea IS NULL OR tenant = $3)";

const TOTAL_USAGE: &str = "
    SELECT app, tenant, count(*), coalesce(sum(bytes + octet_length(record)), 0)::bigint
    FROM threads WHERE record IS NOT NULL GROUP BY app, tenant";

/// Selects a page of threads by their ids. A thread without mentions has a row without a blob.
const MENTIONED: &str = "
    WITH page AS (
        SELECT id, number FROM threads
        WHERE record IS NOT NULL AND id > $1 AND ($2::bytea IS NULL OR id = $2)
            AND ($3::text IS NULL OR app = $3) AND ($4::bytea IS NULL OR tenant = $4)
        ORDER BY id LIMIT $5)
    SELECT page.id, mentions.blob FROM page LEFT JOIN mentions ON mentions.thread = page.number
    ORDER BY page.id";

/// Number of threads whose mentions one statement reads. Most threads have few mentions.
const MENTIONED_THREADS: i64 = 256;

/// Sends the first record, and further records as long as the total size of all sent records is at
/// most `$3` bytes.
const PINNED: &str = "
    SELECT id, record FROM (
        SELECT id, record, row_number() OVER page AS nth,
            sum(octet_length(record)) OVER page AS bytes
        FROM (
            SELECT id, record FROM threads
            WHERE record IS NOT NULL AND ($1::bytea IS NULL OR id > $1)
            ORDER BY id LIMIT $2) AS thread
        WINDOW page AS (ORDER BY id)) AS thread
    WHERE bytes <= $3 OR nth = 1 ORDER BY id";

/// Maximum number of records that one statement reads.
const PINNED_THREADS: i64 = 256;

const UNMENTIONED: &str = "
    SELECT blob FROM unnest($1::bytea[]) AS blob
    WHERE NOT EXISTS (SELECT 1 FROM mentions WHERE mentions.blob = blob.blob)";

/// Maximum number of blobs that one statement looks up.
const BLOBS_PER_STATEMENT: usize = 10_000;

/// Rewrites a row without a change. Retries only after a lock timeout, since any other error would
/// also fail a write. See [`Store::check_writable`](wattle_run::ports::Store::check_writable).
pub(super) async fn check_writable(database: &Database) -> Result<(), StoreError> {
    let mut retry = RetryState::on_lock_timeout(MAX_PROBE_ATTEMPTS);
    loop {
        match sqlx::query(UPDATE_FORMAT).execute(&database.read_pool).await {
            Ok(_) => return Ok(()),
            Err(error) => retry.wait_or_fail("verify that it can be written", error).await?,
        }
    }
}

/// See [`Store::compact`](wattle_run::ports::Store::compact). Autovacuum does the same from time to
/// time: it frees space for new rows, and returns free pages at the end of a table.
pub(super) async fn compact(database: &Database) -> Result<CompactionReport, StoreError> {
    let before_bytes = size(database).await?;
    let trying = sqlx_error("compact its tables");
    let mut connection = database.read_pool.acquire().await.map_err(&trying)?;
    // A vacuum may take any time, so the timeouts of this connection are disabled. The connection
    // is closed after the vacuum.
    connection.close_on_drop();
    connection.execute("SET statement_timeout TO 0").await.map_err(&trying)?;
    connection.execute("SET lock_timeout TO 0").await.map_err(&trying)?;
    for table in TABLES {
        let vacuum = AssertSqlSafe(format!("VACUUM (ANALYZE) {table}")).into_sql_str();
        connection.execute(vacuum).await.map_err(&trying)?;
    }
    Ok(CompactionReport { before_bytes, after_bytes: size(database).await? })
}

async fn size(database: &Database) -> Result<u64, StoreError> {
    let size = || sqlx::query(SIZE).bind(&database.schema);
    scalar::<i64>(database, "read its size", size)
        .await
        .map(|size| size.unwrap_or(0).cast_unsigned())
}

/// See [`Store::mentions`](wattle_run::ports::Store::mentions).
pub(super) async fn mentions(
    database: &Database,
    thread: &ThreadId,
    blob: BlobRef,
) -> Result<bool, StoreError> {
    let mentions = || {
        let id = thread.as_str().as_bytes();
        sqlx::query(MENTIONS).bind(id).bind(blob.0.as_bytes().as_slice())
    };
    scalar(database, "read mentions of blobs", mentions).await.map(|found| found.unwrap_or(false))
}

/// See [`Store::usage`](wattle_run::ports::Store::usage).
pub(super) async fn usage(database: &Database, of: &Owner) -> Result<OwnerUsage, StoreError> {
    const OPERATION: &str = "read the sizes of threads";
    let (thread, app, tenant) = columns(of);
    let sum = || sqlx::query(USAGE).bind(thread).bind(app).bind(tenant);
    let Some(row) = database.row(OPERATION, sum).await? else { return Ok(OwnerUsage::default()) };
    let read = |column| row.try_get::<i64, _>(column).map_err(sqlx_error(OPERATION));
    Ok(OwnerUsage { threads: read(0)?.cast_unsigned(), bytes: read(1)?.cast_unsigned() })
}

/// See [`Store::total_usage`](wattle_run::ports::Store::total_usage).
pub(super) async fn total_usage(database: &Database) -> Result<StoreUsage, StoreError> {
    const OPERATION: &str = "read the sizes of all threads";
    let database_bytes = Some(size(database).await?);
    let mut owners = BTreeMap::new();
    for row in database.rows(OPERATION, || sqlx::query(TOTAL_USAGE)).await? {
        let app: &str = row.try_get(0).map_err(sqlx_error(OPERATION))?;
        let app = AppName::new(app).map_err(|error| corrupt("thread", error))?;
        let tenant: Option<&[u8]> = row.try_get(1).map_err(sqlx_error(OPERATION))?;
        let tenant = tenant.map(|name| String::from_utf8_lossy(name).into_owned());
        let read = |column| row.try_get::<i64, _>(column).map_err(sqlx_error(OPERATION));
        let usage =
            OwnerUsage { threads: read(2)?.cast_unsigned(), bytes: read(3)?.cast_unsigned() };
        owners.insert((app, tenant), usage);
    }
    Ok(StoreUsage { owners, database_bytes })
}

/// Returns the values of the columns `id`, `app` and `tenant` for the threads of an owner; `None`
/// for any value.
fn columns(of: &Owner) -> (Option<&[u8]>, Option<&str>, Option<&[u8]>) {
    match of {
        Owner::Thread(thread) => (Some(thread.as_str().as_bytes()), None, None),
        Owner::App(app) => (None, Some(app.as_str()), None),
        Owner::Tenant(tenant) => (None, None, Some(tenant.as_bytes())),
    }
}

/// See [`Store::mentioned_blobs`](wattle_run::ports::Store::mentioned_blobs).
pub(super) async fn mentioned(
    database: &Database,
    of: &Owner,
    from: Option<&str>,
) -> Result<MentionPage, StoreError> {
    const OPERATION: &str = "read mentions of blobs";
    let after = from.unwrap_or_default().as_bytes();
    let (thread, app, tenant) = columns(of);
    let list = || {
        let query = sqlx::query(MENTIONED).bind(after).bind(thread).bind(app).bind(tenant);
        query.bind(MENTIONED_THREADS)
    };
    let mut page = MentionPage::default();
    let (mut seen, mut newest) = (0_i64, Vec::new());
    for row in database.rows(OPERATION, list).await? {
        let id: &[u8] = row.try_get(0).map_err(sqlx_error(OPERATION))?;
        if newest != id {
            newest = id.to_vec();
            seen += 1;
        }
        if let Some(bytes) = row.try_get::<Option<&[u8]>, _>(1).map_err(sqlx_error(OPERATION))? {
            let bytes = bytes.try_into().map_err(|error| backend(OPERATION, error))?;
            page.blobs.push(BlobRef(Digest::from_bytes(bytes)));
        }
    }
    if seen == MENTIONED_THREADS {
        page.next = Some(String::from_utf8_lossy(&newest).into_owned());
    }
    Ok(page)
}

/// See [`Store::pinned_versions`](wattle_run::ports::Store::pinned_versions).
pub(super) async fn pinned(database: &Database) -> Result<PinnedVersions, StoreError> {
    const OPERATION: &str = "list the versions of threads";
    let mut pinned = PinnedVersions { is_complete: true, ..PinnedVersions::default() };
    let mut after: Option<Vec<u8>> = None;
    loop {
        let page = || {
            let page = sqlx::query(PINNED).bind(after.as_deref()).bind(PINNED_THREADS);
            page.bind(i64::try_from(LIST_BYTES).unwrap_or(i64::MAX))
        };
        let rows = database.rows(OPERATION, page).await?;
        let decode = move || {
            for row in &rows {
                let record: &[u8] = row.try_get(1).map_err(sqlx_error(OPERATION))?;
                add_pin(&mut pinned, unpack("thread record", record));
            }
            let last = rows.last().map(|row| row.try_get::<Vec<u8>, _>(0)).transpose();
            Ok((pinned, last.map_err(sqlx_error(OPERATION))?))
        };
        (pinned, after) = decode_on_blocking_pool(OPERATION, None, decode).await?;
        if after.is_none() {
            return Ok(pinned);
        }
    }
}

/// See [`Store::stored_bytes`](wattle_run::ports::Store::stored_bytes).
pub(super) async fn stored_bytes(
    database: &Database,
    thread: &ThreadId,
) -> Result<u64, StoreError> {
    let stored = || sqlx::query(STORED_BYTES).bind(thread.as_str().as_bytes());
    let stored = scalar::<i64>(database, "read the size of a thread", stored).await?;
    Ok(stored.unwrap_or(0).cast_unsigned())
}

/// See [`Mentions`](crate::sweep::Mentions).
pub(super) async fn unmentioned(
    database: &Database,
    blobs: &[BlobRef],
) -> Result<Vec<BlobRef>, StoreError> {
    const OPERATION: &str = "read mentions of blobs";
    let mut unmentioned: HashSet<Digest> = HashSet::new();
    for page in blobs.chunks(BLOBS_PER_STATEMENT) {
        let digests: Vec<&[u8]> = page.iter().map(|blob| blob.0.as_bytes().as_slice()).collect();
        let select = || sqlx::query(UNMENTIONED).bind(&digests);
        for row in database.rows(OPERATION, select).await? {
            let bytes: &[u8] = row.try_get(0).map_err(sqlx_error(OPERATION))?;
            let bytes = bytes.try_into().map_err(|error| backend(OPERATION, error))?;
            unmentioned.insert(Digest::from_bytes(bytes));
        }
    }
    Ok(blobs.iter().filter(|blob| unmentioned.contains(&blob.0)).copied().collect())
}

async fn scalar<'q, T>(
    database: &Database,
    operation: &'static str,
    query: impl Fn() -> sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>,
) -> Result<Option<T>, StoreError>
where
    T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    let row = database.row(operation, query).await?;
    row.map(|row| row.try_get(0).map_err(sqlx_error(operation))).transpose()
}
