//! Leases, by the server's clock: the hosts' own may differ.

use sqlx::Row as _;
use wattle_graph::id::ThreadId;
use wattle_run::ports::store::{Epoch, Holder, LEASE_MS, StoreError};

use crate::error::backend;
use crate::lease::leased;
use crate::postgres::link::{Link, while_trying};

/// See [`LEASE_MS`].
pub(super) const LEASE: i64 = LEASE_MS.cast_signed();

/// A holder is not noted as living again within this time: the leases that one host takes at once
/// would wait for one another's note.
const BEAT_MS: i64 = LEASE / 5;

/// Attempts at a lease that is given back while its holder is looked up.
const ATTEMPTS: usize = 3;

const BEAT: &str = "INSERT INTO holders (holder, beat) VALUES ($1, clock_timestamp())
    ON CONFLICT (holder) DO UPDATE SET beat = greatest(holders.beat, excluded.beat)";

/// What another host committed while this statement waited for the row is seen: the row is looked
/// at again once it is locked, and the epoch is taken only then.
const TAKE: &str = "
    WITH beating AS (
        INSERT INTO holders (holder, beat) SELECT $2, clock_timestamp()
        WHERE NOT EXISTS (SELECT 1 FROM holders WHERE holder = $2
            AND beat > clock_timestamp() - $4 * interval '1 millisecond')
        ON CONFLICT (holder) DO UPDATE SET beat = greatest(holders.beat, excluded.beat))
    INSERT INTO threads AS thread (id, number, holder, epoch)
    VALUES ($1, nextval('thread_numbers'), $2, nextval('epochs'))
    ON CONFLICT (id) DO UPDATE SET holder = excluded.holder, epoch = nextval('epochs')
    WHERE thread.holder IS NULL OR thread.holder = $2 OR NOT EXISTS (
        SELECT 1 FROM holders WHERE holder = thread.holder
        AND beat > clock_timestamp() - $3 * interval '1 millisecond')
    RETURNING epoch";

const HOLDER: &str = "SELECT holder FROM threads WHERE id = $1 AND holder IS NOT NULL";

const RELEASE: &str = "UPDATE threads SET holder = NULL, epoch = NULL WHERE id = $1 AND epoch = $2";

/// A row that was there for the lease alone.
const SWEEP: &str = "DELETE FROM threads WHERE id = $1 AND record IS NULL AND holder IS NULL";

const LEASED: &str = "
    SELECT id, threads.holder FROM threads JOIN holders ON holders.holder = threads.holder
    WHERE id = ANY($1) AND beat > clock_timestamp() - $2 * interval '1 millisecond' LIMIT 1";

/// Notes of hosts that ended long ago.
const FORGET: &str = "DELETE FROM holders WHERE beat < clock_timestamp() - interval '1 day'";

/// Rows that were there for the lease alone, of holders that are silent. One that is taken
/// meanwhile has another epoch.
const FORGET_LEASES: &str = "
    DELETE FROM threads USING (
        SELECT id, epoch FROM threads AS idle WHERE record IS NULL AND NOT EXISTS (
            SELECT 1 FROM holders WHERE holders.holder = idle.holder
            AND beat > clock_timestamp() - $1 * interval '1 millisecond')) AS old
    WHERE threads.id = old.id AND threads.epoch IS NOT DISTINCT FROM old.epoch
        AND threads.record IS NULL";

/// See [`Store::beat`](wattle_run::ports::Store::beat).
pub(super) async fn beat(link: &Link, holder: &Holder) -> Result<(), StoreError> {
    let beat = || sqlx::query(BEAT).bind(holder.0.as_bytes());
    link.rows("say that this host lives", beat).await.map(drop)
}

/// See [`Store::lease`](wattle_run::ports::Store::lease).
pub(super) async fn take(
    link: &Link,
    thread: &ThreadId,
    holder: &Holder,
) -> Result<Epoch, StoreError> {
    const OPERATION: &str = "lease a thread";
    let id = thread.as_str().as_bytes();
    let take = || sqlx::query(TAKE).bind(id).bind(holder.0.as_bytes()).bind(LEASE).bind(BEAT_MS);
    for _ in 0..ATTEMPTS {
        if let Some(row) = link.row(OPERATION, take).await? {
            let epoch: i64 = row.try_get(0).map_err(while_trying(OPERATION))?;
            return Ok(Epoch(epoch.cast_unsigned()));
        }
        if let Some(row) = link.row(OPERATION, || sqlx::query(HOLDER).bind(id)).await? {
            let holder: Vec<u8> = row.try_get(0).map_err(while_trying(OPERATION))?;
            return Err(leased(thread, &Holder(String::from_utf8_lossy(&holder).into_owned())));
        }
    }
    Err(backend(OPERATION, format!("the lease of `{thread}` changes hands all the time")))
}

/// See [`Store::release`](wattle_run::ports::Store::release).
pub(super) async fn release(
    link: &Link,
    thread: &ThreadId,
    epoch: Epoch,
) -> Result<(), StoreError> {
    const OPERATION: &str = "give a lease back";
    let id = thread.as_str().as_bytes();
    let release = || sqlx::query(RELEASE).bind(id).bind(epoch.0.cast_signed());
    link.rows(OPERATION, release).await?;
    link.rows(OPERATION, || sqlx::query(SWEEP).bind(id)).await.map(drop)
}

/// Refuses what takes things away from threads while somebody works on one.
pub(super) async fn free(link: &Link, threads: &[ThreadId]) -> Result<(), StoreError> {
    const OPERATION: &str = "look for leases";
    let ids: Vec<&[u8]> = threads.iter().map(|thread| thread.as_str().as_bytes()).collect();
    let Some(row) = link.row(OPERATION, || sqlx::query(LEASED).bind(&ids).bind(LEASE)).await?
    else {
        return Ok(());
    };
    let (id, holder): (Vec<u8>, Vec<u8>) = (
        row.try_get(0).map_err(while_trying(OPERATION))?,
        row.try_get(1).map_err(while_trying(OPERATION))?,
    );
    match threads.iter().find(|thread| thread.as_str().as_bytes() == id) {
        Some(thread) => Err(leased(thread, &Holder(String::from_utf8_lossy(&holder).into_owned()))),
        None => Ok(()),
    }
}

/// Forgets hosts that ended long ago, and threads that hosts which ended have leased and never
/// begun.
pub(super) async fn forget_silent(link: &Link) -> Result<(), StoreError> {
    const OPERATION: &str = "forget hosts that ended";
    link.rows(OPERATION, || sqlx::query(FORGET_LEASES).bind(LEASE)).await?;
    link.rows(OPERATION, || sqlx::query(FORGET)).await.map(drop)
}
