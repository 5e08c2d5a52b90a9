//! Leases by the clock of the server, because the clocks of the hosts may differ.

use std::time::Duration;

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use wattle_graph::id::ThreadId;
use wattle_run::limit::{LIST_BYTES, ORPHANED_PAGE};
use wattle_run::ports::store::{
    HostReport, LeaseEpoch, LeaseHolder, LiveHost, OrphanedThread, StoreError,
};

use crate::error::backend;
use crate::lease::leased_error;
use crate::postgres::database::Database;
use crate::postgres::decode::decode_on_blocking_pool;
use crate::postgres::retry::sqlx_error;
use crate::postgres::stage::ThreadRow;
use crate::postgres::thread_row::{record, thread_row};

/// A lease request renews the heartbeat of its host only if the heartbeat is older than the lease
/// duration divided by this number. Otherwise concurrent requests of one host would block one
/// another on the row of the host in `holders`.
const HEARTBEAT_DIVISOR: i64 = 5;

/// Maximum number of attempts to acquire a lease. An attempt is repeated if the lease is released
/// while its holder is looked up.
const MAX_ATTEMPTS: usize = 3;

const HEARTBEAT: &str = "
    INSERT INTO holders (holder, beat, lease_ms) VALUES ($1, clock_timestamp(), $2)
    ON CONFLICT (holder) DO UPDATE
    SET beat = greatest(holders.beat, excluded.beat), lease_ms = excluded.lease_ms";

/// Acquires a lease. Another host may commit a change while the statement waits for the row; the
/// server evaluates the condition again once the row is locked, and assigns the epoch only then.
const UPSERT_LEASE: &str = "
    WITH beating AS (
        INSERT INTO holders (holder, beat, lease_ms) SELECT $2, clock_timestamp(), $3
        WHERE NOT EXISTS (SELECT 1 FROM holders WHERE holder = $2
            AND beat > clock_timestamp() - $4 * interval '1 millisecond')
        ON CONFLICT (holder) DO UPDATE
        SET beat = greatest(holders.beat, excluded.beat), lease_ms = excluded.lease_ms)
    INSERT INTO threads AS thread (id, number, holder, epoch)
    VALUES ($1, nextval('thread_numbers'), $2, nextval('epochs'))
    ON CONFLICT (id) DO UPDATE SET holder = excluded.holder, epoch = nextval('epochs')
    WHERE thread.holder IS NULL OR thread.holder = $2
        OR NOT EXISTS (SELECT 1 FROM living WHERE living.holder = thread.holder)
    RETURNING number, record IS NOT NULL AS there, epoch, true AS lives, last_seq,
        last_checkpoint, current, seal, last_place, bytes, pending, ledger";

const HOLDER: &str = "SELECT holder FROM threads WHERE id = $1 AND holder IS NOT NULL";

/// Selects the row of a thread with a lease epoch. Waits for a transaction that is acquiring the
/// lease.
const SELECT_LEASE: &str = "SELECT FROM threads WHERE id = $1 AND epoch = $2 FOR SHARE";

const RELEASE: &str = "
    UPDATE threads SET holder = NULL, epoch = NULL WHERE id = $1 AND epoch = $2
    RETURNING record IS NULL AS is_empty";

/// Deletes a row that existed only for the lease, unless the thread has been leased or created
/// again.
const DELETE_EMPTY: &str = "DELETE FROM threads WHERE id = $1 AND epoch IS NULL AND record IS NULL";

const LEASED: &str = "
    SELECT id, threads.holder FROM threads JOIN living ON living.holder = threads.holder
    WHERE id = ANY($1) LIMIT 1";

/// Selects running threads that no other live host has leased. The status
/// [`ThreadStatus::Running`](wattle_run::ports::store::ThreadStatus) is a literal, so that the
/// server uses the partial index on running threads. Sends the first record, and further records as
/// long as the total size of all sent records is at most `$4` bytes.
const ORPHANED: &str = "
    SELECT record FROM (
        SELECT id, record, row_number() OVER page AS nth,
            sum(octet_length(record)) OVER page AS bytes
        FROM (
            SELECT id, record FROM threads WHERE record IS NOT NULL AND status = 'running'
                AND ($2::bytea IS NULL OR id > $2)
                AND NOT EXISTS (
                    SELECT 1 FROM living
                    WHERE living.holder = threads.holder AND living.holder <> $1)
            ORDER BY id LIMIT $3) AS thread
        WINDOW page AS (ORDER BY id)) AS thread
    WHERE bytes <= $4 OR nth = 1 ORDER BY id";

/// Selects the time until the next lease of another host expires, in milliseconds. The time is
/// rounded up, so that a caller that waits this long finds the lease expired.
const NEXT_EXPIRY: &str = "
    SELECT ceil(extract(epoch FROM min(until) - clock_timestamp()) * 1000)::bigint
    FROM living WHERE holder <> $1";

const REPORT: &str = "
    UPDATE holders SET version = $2, started_ms = $3, runs = $4, max_runs = $5, stopping = $6
    WHERE holder = $1";

const HOSTS: &str = "
    SELECT holder, version, started_ms, runs, max_runs, stopping,
        floor(extract(epoch FROM clock_timestamp() - beat) * 1000)::bigint AS silent_ms
    FROM holders JOIN living USING (holder) WHERE version IS NOT NULL";

/// Deletes hosts whose last heartbeat is older than a day.
const DELETE_HOLDERS: &str =
    "DELETE FROM holders WHERE beat < clock_timestamp() - interval '1 day'";

/// Deletes rows that existed only for the lease of a host that is not live. A lease that is
/// acquired while the statement runs has another epoch.
const DELETE_EMPTY_LEASES: &str = "
    DELETE FROM threads USING (
        SELECT id, epoch FROM threads AS idle WHERE record IS NULL
            AND NOT EXISTS (SELECT 1 FROM living WHERE living.holder = idle.holder)) AS old
    WHERE threads.id = old.id AND threads.epoch IS NOT DISTINCT FROM old.epoch
        AND threads.record IS NULL";

/// See [`Store::heartbeat`](wattle_run::ports::Store::heartbeat).
pub(super) async fn heartbeat(database: &Database, holder: &LeaseHolder) -> Result<(), StoreError> {
    let heartbeat = || sqlx::query(HEARTBEAT).bind(holder.0.as_bytes()).bind(database.lease_ms);
    database.rows("send the heartbeat of this host", heartbeat).await.map(drop)
}

/// See [`Store::report`](wattle_run::ports::Store::report).
pub(super) async fn report(
    database: &Database,
    holder: &LeaseHolder,
    report: &HostReport,
) -> Result<(), StoreError> {
    let HostReport { version, started_ms, runs, max_runs, is_stopping } = report;
    let update = || {
        sqlx::query(REPORT)
            .bind(holder.0.as_bytes())
            .bind(version)
            .bind(started_ms)
            .bind(i64::from(*runs))
            .bind(i64::from(*max_runs))
            .bind(is_stopping)
    };
    database.rows("report the load of this host", update).await.map(drop)
}

/// See [`Store::hosts`](wattle_run::ports::Store::hosts).
pub(super) async fn hosts(database: &Database) -> Result<Vec<LiveHost>, StoreError> {
    const OPERATION: &str = "list hosts";
    let rows = database.rows(OPERATION, || sqlx::query(HOSTS)).await?;
    rows.iter().map(host).collect::<Result<_, _>>().map_err(sqlx_error(OPERATION))
}

fn host(row: &PgRow) -> Result<LiveHost, sqlx::Error> {
    let holder: &[u8] = row.try_get("holder")?;
    let number = |name| row.try_get(name).map(|n: i64| u32::try_from(n).unwrap_or_default());
    let silent_ms: i64 = row.try_get("silent_ms")?;
    Ok(LiveHost {
        holder: LeaseHolder(String::from_utf8_lossy(holder).into_owned()),
        heartbeat_age_ms: u64::try_from(silent_ms).unwrap_or_default(),
        report: HostReport {
            version: row.try_get("version")?,
            started_ms: row.try_get("started_ms")?,
            runs: number("runs")?,
            max_runs: number("max_runs")?,
            is_stopping: row.try_get("stopping")?,
        },
    })
}

/// See [`Store::acquire_lease`](wattle_run::ports::Store::acquire_lease). Also returns the state of
/// the thread.
pub(super) async fn acquire(
    database: &Database,
    thread: &ThreadId,
    holder: &LeaseHolder,
) -> Result<(LeaseEpoch, ThreadRow), StoreError> {
    const OPERATION: &str = "lease a thread";
    let id = thread.as_str().as_bytes();
    let (lease_ms, heartbeat_ms) = (database.lease_ms, database.lease_ms / HEARTBEAT_DIVISOR);
    let upsert = || {
        sqlx::query(UPSERT_LEASE)
            .bind(id)
            .bind(holder.0.as_bytes())
            .bind(lease_ms)
            .bind(heartbeat_ms)
    };
    for _ in 0..MAX_ATTEMPTS {
        if let Some(row) = database.row(OPERATION, upsert).await? {
            let epoch: i64 = row.try_get("epoch").map_err(sqlx_error(OPERATION))?;
            let row = thread_row(&row).map_err(sqlx_error(OPERATION))?;
            return Ok((LeaseEpoch(epoch.cast_unsigned()), row));
        }
        if let Some(row) = database.row(OPERATION, || sqlx::query(HOLDER).bind(id)).await? {
            let holder: Vec<u8> = row.try_get(0).map_err(sqlx_error(OPERATION))?;
            return Err(leased_error(
                thread,
                &LeaseHolder(String::from_utf8_lossy(&holder).into_owned()),
            ));
        }
    }
    Err(backend(
        OPERATION,
        format!("the lease of `{thread}` changed during each of {MAX_ATTEMPTS} attempts"),
    ))
}

/// See [`Store::is_lease_held`](wattle_run::ports::Store::is_lease_held).
pub(super) async fn is_held(
    database: &Database,
    thread: &ThreadId,
    epoch: LeaseEpoch,
) -> Result<bool, StoreError> {
    let id = thread.as_str().as_bytes();
    let select = || sqlx::query(SELECT_LEASE).bind(id).bind(epoch.0.cast_signed());
    Ok(database.row("check a lease", select).await?.is_some())
}

/// See [`Store::release_lease`](wattle_run::ports::Store::release_lease).
pub(super) async fn release(
    database: &Database,
    thread: &ThreadId,
    epoch: LeaseEpoch,
) -> Result<(), StoreError> {
    const OPERATION: &str = "release a lease";
    let id = thread.as_str().as_bytes();
    let release = || sqlx::query(RELEASE).bind(id).bind(epoch.0.cast_signed());
    let Some(row) = database.row(OPERATION, release).await? else { return Ok(()) };
    if row.try_get("is_empty").map_err(sqlx_error(OPERATION))? {
        database.rows(OPERATION, || sqlx::query(DELETE_EMPTY).bind(id)).await?;
    }
    Ok(())
}

/// Checks that no live host has the lease of any of these threads.
///
/// # Errors
///
/// [`StoreError::Leased`] if a live host has the lease of one of them.
pub(super) async fn ensure_unleased(
    database: &Database,
    threads: &[ThreadId],
) -> Result<(), StoreError> {
    const OPERATION: &str = "check leases";
    let ids: Vec<&[u8]> = threads.iter().map(|thread| thread.as_str().as_bytes()).collect();
    let Some(row) = database.row(OPERATION, || sqlx::query(LEASED).bind(&ids)).await? else {
        return Ok(());
    };
    let (id, holder): (Vec<u8>, Vec<u8>) = (
        row.try_get(0).map_err(sqlx_error(OPERATION))?,
        row.try_get(1).map_err(sqlx_error(OPERATION))?,
    );
    match threads.iter().find(|thread| thread.as_str().as_bytes() == id) {
        Some(thread) => {
            Err(leased_error(thread, &LeaseHolder(String::from_utf8_lossy(&holder).into_owned())))
        }
        None => Ok(()),
    }
}

/// See [`Store::orphaned_threads`](wattle_run::ports::Store::orphaned_threads).
pub(super) async fn orphaned_threads(
    database: &Database,
    holder: &LeaseHolder,
    after: Option<&ThreadId>,
) -> Result<Vec<OrphanedThread>, StoreError> {
    const OPERATION: &str = "list orphaned runs";
    let after = after.map(|after| after.as_str().as_bytes());
    let limit = i64::try_from(ORPHANED_PAGE).unwrap_or(i64::MAX);
    let most = i64::try_from(LIST_BYTES).unwrap_or(i64::MAX);
    let list = || {
        let list = sqlx::query(ORPHANED).bind(holder.0.as_bytes()).bind(after);
        list.bind(limit).bind(most)
    };
    let rows = database.rows(OPERATION, list).await?;
    decode_on_blocking_pool(OPERATION, None, move || rows.iter().map(record).collect()).await
}

/// See [`Store::next_lease_expiry`](wattle_run::ports::Store::next_lease_expiry).
pub(super) async fn next_expiry(
    database: &Database,
    holder: &LeaseHolder,
) -> Result<Option<Duration>, StoreError> {
    const OPERATION: &str = "read when leases expire";
    let next = || sqlx::query(NEXT_EXPIRY).bind(holder.0.as_bytes());
    let Some(row) = database.row(OPERATION, next).await? else { return Ok(None) };
    let ms: Option<i64> = row.try_get(0).map_err(sqlx_error(OPERATION))?;
    // The lease may have expired while the statement ran.
    Ok(ms.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or_default())))
}

/// Deletes hosts whose last heartbeat is older than a day. Also deletes rows that contain only a
/// lease: an expired host leased the thread id, but never created the thread.
pub(super) async fn delete_expired_hosts(database: &Database) -> Result<(), StoreError> {
    const OPERATION: &str = "delete expired hosts";
    database.rows(OPERATION, || sqlx::query(DELETE_EMPTY_LEASES)).await?;
    database.rows(OPERATION, || sqlx::query(DELETE_HOLDERS)).await.map(drop)
}
