//! Fast path: appends a group of batches with one statement, in one round trip.
//!
//! The host that holds the lease is the only writer of a thread, so the writer task caches the
//! state of the thread. The statement compares the cached state with the row, and writes nothing if
//! they differ. The group then takes the slow path, which locks and reads the rows first. A stale
//! cache costs time, never correctness.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use sqlx::PgPool;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgDatabaseError, PgSeverity, Postgres};
use tokio::task::spawn_blocking;
use wattle_graph::id::ThreadId;
use wattle_run::ports::store::Batch;

use crate::error::backend;
use crate::postgres::database::{RESPONSE_TIMEOUT, ping, with_timeout};
use crate::postgres::in_doubt::{WriteProbe, resolve_in_doubt};
use crate::postgres::prefetch::Lookups;
use crate::postgres::stage::{CachedThread, CommitGroup, HistoryCache, ThreadRow};
use crate::postgres::writer::{AppendError, AppendResult, Batches, OPERATION, Writer, stage_all};

/// Maximum number of threads that one writer caches. A full cache is cleared.
const MAX_CACHED_THREADS: usize = 4096;

/// A connection that was idle for longer is pinged before it is used. Resolving a statement whose
/// reply was lost takes far longer than a ping.
const PING_AFTER_IDLE: Duration = Duration::from_secs(1);

/// Thread states that one writer caches.
#[derive(Debug, Default)]
pub(super) struct ThreadCache(HashMap<ThreadId, CachedThread>);

impl ThreadCache {
    /// Caches the current states of the threads of a group.
    pub(super) fn insert_group(&mut self, group: CommitGroup) {
        if self.0.len() >= MAX_CACHED_THREADS {
            self.0.clear();
        }
        let threads = group.threads.into_iter().filter(|(_, cached)| !cached.history.is_large());
        self.0.extend(threads);
    }

    /// Caches the state of a thread as of the acquisition of its lease.
    pub(super) fn insert_leased(&mut self, thread: ThreadId, row: ThreadRow) {
        let history = self.take_history(&thread, &row);
        if self.0.len() < MAX_CACHED_THREADS {
            self.0.insert(thread, CachedThread { row, history });
        }
    }

    /// Removes a thread, and returns its cached history if the cached number and newest position
    /// are those of `row`.
    pub(super) fn take_history(&mut self, thread: &ThreadId, row: &ThreadRow) -> HistoryCache {
        let known = self.0.remove(thread);
        let position = |row: &ThreadRow| (row.number, row.last_position);
        known
            .filter(|cached| position(&cached.row) == position(row))
            // Pending runs may have changed since.
            .map_or_else(HistoryCache::default, |it| HistoryCache { pending: None, ..it.history })
    }

    /// Removes and returns the threads of a group, if all are cached with the lease epochs of their
    /// batches and nothing has to be looked up.
    fn take_group(&mut self, batches: &[(ThreadId, Batch)]) -> Option<CommitGroup> {
        let is_known = |(thread, batch): &(ThreadId, Batch)| {
            let lease = self.0.get(thread).and_then(|cached| cached.row.lease);
            lease.zip(batch.epoch).is_some_and(|(lease, epoch)| lease.epoch == epoch.0)
        };
        if !batches.iter().all(is_known) {
            return None;
        }
        let mut group = CommitGroup::default();
        for (thread, _) in batches {
            if let Entry::Occupied(known) = self.0.entry(thread.clone()) {
                let (thread, cached) = known.remove_entry();
                group.threads.insert(thread, cached);
            }
        }
        if Lookups::of(&group.threads, batches).needs_only_run_owners() {
            return Some(group);
        }
        self.0.extend(group.threads);
        None
    }
}

/// The connection that one writer keeps. It saves the acquisition from the pool.
#[derive(Debug, Default)]
pub(super) struct PinnedConnection(Option<(PoolConnection<Postgres>, Instant)>);

impl PinnedConnection {
    async fn acquire(&mut self, pool: &PgPool) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        match self.0.take() {
            Some((connection, used)) if used.elapsed() < PING_AFTER_IDLE => Ok(connection),
            Some((mut connection, _)) => match ping(&mut connection).await {
                Ok(()) => Ok(connection),
                Err(_) => {
                    connection.close_on_drop();
                    drop(connection);
                    pool.acquire().await
                }
            },
            None => pool.acquire().await,
        }
    }

    fn release(&mut self, connection: PoolConnection<Postgres>) {
        self.0 = Some((connection, Instant::now()));
    }
}

impl Writer {
    /// Appends a group with one statement. Returns `None` if that was not possible; nothing is
    /// written then.
    pub(super) async fn write_fast_path(
        &mut self,
        batches: &Batches,
    ) -> Result<Option<(CommitGroup, Vec<AppendResult>)>, AppendError> {
        let Some(group) = self.cache.take_group(batches) else { return Ok(None) };
        let staged = batches.clone();
        let staged = spawn_blocking(move || stage_all(group, &staged)).await;
        let (group, results) = staged.map_err(|error| backend(OPERATION, error))?;
        // The cache may be stale, so only the slow path refuses a batch.
        if results.iter().any(Result::is_err) {
            return Ok(None);
        }
        let Ok(mut connection) = self.connection.acquire(&self.database.append_pool).await else {
            return Ok(None);
        };
        let write = group.write_set.statement();
        match with_timeout(RESPONSE_TIMEOUT, write.fetch_optional(&mut *connection)).await {
            Ok(written) => {
                self.connection.release(connection);
                Ok(written.map(|_| (group, results)))
            }
            Err(error) if is_rejected_statement(&error) => {
                self.connection.release(connection);
                Ok(None)
            }
            Err(error) => {
                connection.close_on_drop();
                drop(connection);
                tracing::debug!(%error, "reply lost, checking whether the batches were committed");
                let probe = WriteProbe::of(&group.write_set);
                let written = resolve_in_doubt(&self.database, &probe)
                    .await
                    .map_err(AppendError::Unavailable)?;
                Ok(written.then_some((group, results)))
            }
        }
    }
}

/// Returns true if the server rejected a statement and keeps the connection open. A server that
/// closes the connection may have executed the statement.
fn is_rejected_statement(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    let error = error.and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    error.is_some_and(|error| error.severity() == PgSeverity::Error)
}
