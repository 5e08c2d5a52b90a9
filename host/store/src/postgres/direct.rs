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
use crate::postgres::facts::Wanted;
use crate::postgres::outcome::{Witness, was_written};
use crate::postgres::stage::{Desk, Head, Past, Stage};
use crate::postgres::writer::{Answer, AppendError, Batches, OPERATION, Writer, stage_all};

/// Maximum number of threads that one writer caches. A full cache is cleared.
const THREAD_LIMIT: usize = 4096;

/// A connection that was idle for longer is pinged before it is used. Resolving a statement whose
/// reply was lost takes far longer than a ping.
const FRESH: Duration = Duration::from_secs(1);

/// Thread states that one writer caches.
#[derive(Debug, Default)]
pub(super) struct Known(HashMap<ThreadId, Desk>);

impl Known {
    /// Caches the current states of the threads of a group.
    pub(super) fn remember(&mut self, stage: Stage) {
        if self.0.len() >= THREAD_LIMIT {
            self.0.clear();
        }
        let desks = stage.desks.into_iter().filter(|(_, desk)| !desk.past.is_large());
        self.0.extend(desks);
    }

    /// Caches the state of a thread as of the acquisition of its lease.
    pub(super) fn leased(&mut self, thread: ThreadId, head: Head) {
        let past = self.past(&thread, &head);
        if self.0.len() < THREAD_LIMIT {
            self.0.insert(thread, Desk { head, past });
        }
    }

    /// Removes a thread, and returns its cached history if its number and newest position are those
    /// of `head`.
    pub(super) fn past(&mut self, thread: &ThreadId, head: &Head) -> Past {
        let known = self.0.remove(thread);
        let place = |head: &Head| (head.number, head.last_place);
        known
            .filter(|desk| place(&desk.head) == place(head))
            // Pending runs may have changed since.
            .map_or_else(Past::default, |it| Past { pending: None, ..it.past })
    }

    /// Removes and returns the threads of a group, if all are cached with the lease epochs of their
    /// batches and nothing has to be looked up.
    fn stage(&mut self, batches: &[(ThreadId, Batch)]) -> Option<Stage> {
        let is_known = |(thread, batch): &(ThreadId, Batch)| {
            let lease = self.0.get(thread).and_then(|desk| desk.head.lease);
            lease.zip(batch.epoch).is_some_and(|(lease, epoch)| lease.epoch == epoch.0)
        };
        if !batches.iter().all(is_known) {
            return None;
        }
        let mut stage = Stage::default();
        for (thread, _) in batches {
            if let Entry::Occupied(known) = self.0.entry(thread.clone()) {
                let (thread, desk) = known.remove_entry();
                stage.desks.insert(thread, desk);
            }
        }
        if Wanted::of(&stage.desks, batches).is_of_runs_only() {
            return Some(stage);
        }
        self.0.extend(stage.desks);
        None
    }
}

/// The connection that one writer keeps. It saves the acquisition from the pool.
#[derive(Debug, Default)]
pub(super) struct Lane(Option<(PoolConnection<Postgres>, Instant)>);

impl Lane {
    async fn open(&mut self, pool: &PgPool) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        match self.0.take() {
            Some((connection, used)) if used.elapsed() < FRESH => Ok(connection),
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

    fn keep(&mut self, connection: PoolConnection<Postgres>) {
        self.0 = Some((connection, Instant::now()));
    }
}

impl Writer {
    /// Appends a group with one statement. Returns `None` if that was not possible; nothing is
    /// written then.
    pub(super) async fn write_directly(
        &mut self,
        batches: &Batches,
    ) -> Result<Option<(Stage, Vec<Answer>)>, AppendError> {
        let Some(stage) = self.known.stage(batches) else { return Ok(None) };
        let staged = batches.clone();
        let staged = spawn_blocking(move || stage_all(stage, &staged)).await;
        let (stage, answers) = staged.map_err(|error| backend(OPERATION, error))?;
        // The cache may be stale, so only the slow path refuses a batch.
        if answers.iter().any(Result::is_err) {
            return Ok(None);
        }
        let Ok(mut connection) = self.lane.open(&self.database.append_pool).await else {
            return Ok(None);
        };
        let write = stage.rows.write();
        match with_timeout(RESPONSE_TIMEOUT, write.fetch_optional(&mut *connection)).await {
            Ok(written) => {
                self.lane.keep(connection);
                Ok(written.map(|_| (stage, answers)))
            }
            Err(error) if is_refusal(&error) => {
                self.lane.keep(connection);
                Ok(None)
            }
            Err(error) => {
                connection.close_on_drop();
                drop(connection);
                tracing::debug!(%error, "reply lost, checking whether the batches were committed");
                let witness = Witness::of(&stage.rows);
                let written = was_written(&self.database, &witness)
                    .await
                    .map_err(AppendError::Unavailable)?;
                Ok(written.then_some((stage, answers)))
            }
        }
    }
}

/// Returns true if the server rejected a statement and keeps the connection open. A server that
/// closes the connection may have executed the statement.
fn is_refusal(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    let error = error.and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    error.is_some_and(|error| error.severity() == PgSeverity::Error)
}
