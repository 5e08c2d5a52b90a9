//! The connection that one writer keeps for the fast path.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use sqlx::pool::PoolConnection;
use sqlx::postgres::Postgres;

use crate::postgres::database::ping;

/// A connection that was idle for longer than this is pinged before it is used. Resolving a
/// statement whose reply was lost takes far longer than a ping.
const PING_AFTER_IDLE: Duration = Duration::from_secs(1);

/// The connection that one writer keeps, so that it need not acquire a connection from the pool for
/// each group.
#[derive(Debug, Default)]
pub(super) struct PinnedConnection(Option<(PoolConnection<Postgres>, Instant)>);

impl PinnedConnection {
    /// Takes the kept connection if it responds, and otherwise acquires a connection from the pool.
    pub(super) async fn acquire(
        &mut self,
        pool: &PgPool,
    ) -> Result<PoolConnection<Postgres>, sqlx::Error> {
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

    /// Keeps a connection.
    pub(super) fn release(&mut self, connection: PoolConnection<Postgres>) {
        self.0 = Some((connection, Instant::now()));
    }
}
