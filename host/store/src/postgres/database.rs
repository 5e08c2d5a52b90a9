//! Connection pools of one database, and the statements that may run more than once.

use std::io;
use std::time::Duration;

use sqlx::pool::PoolConnectionMetadata;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgPoolOptions, PgRow, Postgres};
use sqlx::query::Query;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection, PgPool,
    SqlSafeStr as _, Transaction,
};
use tokio::time::timeout;
use wattle_run::ports::store::StoreError;

use crate::error::backend;
use crate::postgres::config::{PostgresConfig, display_url};
use crate::postgres::retry::{RetryState, is_transient, sqlx_error, to_store_error};

/// Number of connections for reads, and for writes other than appends.
const READ_CONNECTIONS: u32 = 8;

/// Number of connections for notifications: one for `LISTEN`, and one for `NOTIFY`.
const NOTIFY_CONNECTIONS: u32 = 2;

/// Timeout for a connection from the pool. The timeout includes the time for which the pool waits
/// for a server that is starting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that was idle for longer than this is pinged before it is used.
const PING_AFTER_IDLE: Duration = Duration::from_secs(1);

/// Timeout of a ping. The operating system takes a quarter of an hour to notice that the network
/// dropped a connection.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// `statement_timeout` of every connection. All statements of the store take far less time, so the
/// timeout only ends statements that hang.
const STATEMENT_TIMEOUT_SECONDS: u64 = 60;

/// Timeout for the reply to a statement. The server has ended the statement by then, so no reply
/// follows.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(STATEMENT_TIMEOUT_SECONDS + 5);

/// `lock_timeout` of every connection: a fifth of the shortest lease. A statement sees the live
/// hosts as of its start. A statement that timed out is sent again and then sees the current live
/// hosts.
const LOCK_TIMEOUT: Duration = Duration::from_millis(400);

/// `idle_in_transaction_session_timeout` is the lease duration divided by this number. A host that
/// hangs with locks in the database then loses the locks before its leases expire.
const IDLE_TX_DIVISOR: u32 = 2;

/// Sets a longer idle timeout for a transaction that no other transaction waits for: a snapshot, or
/// the rewrite of a thread that no host has leased. Between two statements of such a transaction, a
/// host may process a large thread.
pub(super) const RELAXED_IDLE_TIMEOUT: &str =
    "SET LOCAL idle_in_transaction_session_timeout TO '30s'";

/// Begins a snapshot of all tables with [`RELAXED_IDLE_TIMEOUT`], in one round trip.
const SNAPSHOT: &str = "
    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL idle_in_transaction_session_timeout TO '30s'";

/// Settings of writer connections. Their statements look rows up by key, so the server plans each
/// statement once: planning the append statement takes longer than executing it. The settings
/// exclude plans that are only good while the tables are small.
const WRITER_SETTINGS: &str = "
    SET plan_cache_mode TO force_generic_plan; SET jit TO off; SET enable_seqscan TO off;
    SET enable_hashjoin TO off; SET enable_mergejoin TO off";

/// Settings of other connections. JIT compilation would take longer than the statements of these
/// connections, whatever costs the planner estimates.
const READER_SETTINGS: &str = "SET jit TO off";

/// An open transaction, which also serves as a read snapshot.
pub(super) type PgTransaction = Transaction<'static, Postgres>;

/// Connections to one schema of one database.
#[derive(Clone, Debug)]
pub(super) struct Database {
    /// For reads and rare writes.
    pub(super) read_pool: PgPool,
    /// For appends, so that reads never delay them.
    pub(super) append_pool: PgPool,
    /// For notifications, which a crash of the server may lose.
    pub(super) notify_pool: PgPool,
    /// Host and database, for messages.
    pub(super) display_url: String,
    /// The schema of the tables.
    pub(super) schema: String,
    /// Lease duration of this host.
    pub(super) lease_ms: i64,
    /// How long a writer retries while the server is not available: the lease duration. The host
    /// keeps its threads for that long, so the results of their runs must not be lost sooner.
    pub(super) retry_timeout: Duration,
    /// How long batches that no caller awaits are held.
    pub(super) commit_delay: Duration,
}

impl Database {
    /// Creates the pools. They connect on first use.
    pub(super) fn new(
        config: &PostgresConfig,
        append_connections: u32,
    ) -> Result<Self, StoreError> {
        let options = config.options().map_err(|reason| backend("open its database", reason))?;
        let display_url = display_url(&options);
        let settings = session_settings(&config.schema, config.lease);
        let notify = format!("{settings}; SET synchronous_commit TO off");
        let read = format!("{settings}; {READER_SETTINGS}");
        let append = format!("{settings}; {WRITER_SETTINGS}");
        Ok(Self {
            read_pool: pool(&options, &read, READ_CONNECTIONS),
            append_pool: pool(&options, &append, append_connections),
            notify_pool: pool(&options, &notify, NOTIFY_CONNECTIONS),
            display_url,
            schema: config.schema.clone(),
            lease_ms: i64::try_from(config.lease.as_millis()).unwrap_or(i64::MAX),
            retry_timeout: config.lease,
            commit_delay: config.commit_delay,
        })
    }

    /// Returns all rows of a statement that may run more than once.
    pub(super) async fn rows<'q>(
        &self,
        operation: &'static str,
        query: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        self.query_with_retry(query).await.map_err(sqlx_error(operation))
    }

    /// Returns the first row of a statement that may run more than once, or `None` if the server
    /// rejects the statement. The server may do so if a statement needs too many resources.
    pub(super) async fn row_if_supported<'q>(
        &self,
        operation: &'static str,
        query: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Option<Option<PgRow>>, StoreError> {
        match self.query_with_retry(query).await {
            Ok(rows) => Ok(Some(rows.into_iter().next())),
            Err(error) if error.as_database_error().is_some() && !is_transient(&error) => {
                tracing::debug!(operation, %error, "statement rejected, splitting the read");
                Ok(None)
            }
            Err(error) => Err(to_store_error(operation, &error)),
        }
    }

    async fn query_with_retry<'q>(
        &self,
        query: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let mut retry = RetryState::default();
        loop {
            match query().fetch_all(&self.read_pool).await {
                Err(error) if retry.wait_if_retryable(&error).await => {}
                result => return result,
            }
        }
    }

    /// Returns the first row of a statement that may run more than once.
    pub(super) async fn row<'q>(
        &self,
        operation: &'static str,
        query: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Option<PgRow>, StoreError> {
        Ok(self.rows(operation, query).await?.into_iter().next())
    }

    /// Begins a snapshot of all tables.
    pub(super) async fn snapshot(
        &self,
        operation: &'static str,
    ) -> Result<PgTransaction, StoreError> {
        begin(&self.read_pool, operation, SNAPSHOT).await
    }

    /// Begins a transaction for writes other than appends.
    pub(super) async fn transaction(
        &self,
        operation: &'static str,
    ) -> Result<PgTransaction, StoreError> {
        begin(&self.read_pool, operation, "BEGIN").await
    }

    /// Begins a transaction on a writer connection, without a retry.
    pub(super) async fn begin_append(&self) -> Result<PgTransaction, sqlx::Error> {
        self.append_pool.begin().await
    }
}

fn pool(options: &PgConnectOptions, settings: &str, connections: u32) -> PgPool {
    let settings = settings.to_owned();
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(CONNECT_TIMEOUT)
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            let settings = settings.clone();
            Box::pin(async move {
                connection.execute(sqlx::raw_sql(AssertSqlSafe(settings).into_sql_str())).await?;
                Ok(())
            })
        })
        .before_acquire(|connection, metadata| Box::pin(ping_if_idle(connection, metadata)))
        .connect_lazy_with(options.clone())
}

/// Settings of every connection. An acknowledged write must be durable, whatever the default of the
/// database is.
fn session_settings(schema: &str, lease: Duration) -> String {
    let lock_ms = LOCK_TIMEOUT.as_millis();
    let idle_ms = (lease / IDLE_TX_DIVISOR).as_millis();
    format!(
        "SET search_path TO \"{schema}\";
         SET client_min_messages TO warning;
         SET statement_timeout TO '{STATEMENT_TIMEOUT_SECONDS}s';
         SET lock_timeout TO '{lock_ms}ms';
         SET idle_in_transaction_session_timeout TO '{idle_ms}ms';
         SELECT set_config('synchronous_commit', 'on', false)
         WHERE current_setting('synchronous_commit') = 'off'"
    )
}

async fn ping_if_idle(
    connection: &mut PgConnection,
    metadata: PoolConnectionMetadata,
) -> Result<bool, sqlx::Error> {
    if metadata.idle_for > PING_AFTER_IDLE {
        ping(connection).await?;
    }
    Ok(true)
}

/// See [`PostgresStore::unavailable_error`](crate::PostgresStore::unavailable_error).
pub(super) async fn unavailable_error(
    config: &PostgresConfig,
) -> Result<Option<StoreError>, StoreError> {
    let options = config.options().map_err(|reason| backend("open its database", reason))?;
    // A connection pooler may accept a client although it cannot reach the server.
    let probe = async {
        let mut connection = options.connect().await?;
        connection.execute("SELECT 1").await?;
        connection.close().await
    };
    match with_timeout(CONNECT_TIMEOUT, Box::pin(probe)).await {
        Ok(()) => Ok(None),
        Err(error) if is_transient(&error) => {
            Ok(Some(to_store_error("reach its database", &error)))
        }
        Err(error) => Err(to_store_error("reach its database", &error)),
    }
}

/// Pings a connection. A connection that does not respond in time is broken.
pub(super) async fn ping(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    with_timeout(PING_TIMEOUT, connection.ping()).await
}

/// Waits for a reply from the server. A timeout counts as a connection error; the caller must not
/// use the connection again.
pub(super) async fn with_timeout<T>(
    limit: Duration,
    reply: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let result = timeout(limit, reply).await;
    result.unwrap_or_else(|_elapsed| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
}

async fn begin(
    pool: &PgPool,
    operation: &'static str,
    statement: &'static str,
) -> Result<PgTransaction, StoreError> {
    let mut retry = RetryState::default();
    loop {
        match pool.begin_with(statement).await {
            Ok(transaction) => return Ok(transaction),
            Err(error) => retry.wait_or_fail(operation, error).await?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_urls_are_not_quoted() {
        for url in ["mysql://u:topsecret@h/d", "postgres://u:topsecret@h:port/d"] {
            let config = PostgresConfig::new(url).with_password("topsecret");
            let error = Database::new(&config, 1).unwrap_err().to_string();
            assert!(!error.contains("topsecret"), "{error}");
            assert!(!format!("{config:?}").contains("topsecret"));
        }
        let config = PostgresConfig::new("postgres://ada@db.example/threads");
        assert_eq!(config.display_url(), "db.example/threads");
    }
}
