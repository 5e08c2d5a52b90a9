//! PostgreSQL databases.
//!
//! Guests use a few simple types and PostgreSQL has hundreds. A statement is therefore prepared on
//! the server, which infers the type of every parameter. The host then executes the statement with
//! literals, which the server parses as the inferred types: a string can be a date, a UUID, a
//! number or an array. Results arrive as text and are parsed by their type. The server prepares
//! only single statements, so a guest cannot send several.

mod prepared;
pub(crate) mod script;
mod value;

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, PgConnection, PgPool};
use sqlx::{SqlSafeStr as _, Statement as _, Transaction};
use tokio::sync::OnceCell;
use wattle_run::caller_id::CallerId;
use wattle_run::grant::SqlRule;
use wattle_run::hostcall::sql::{Executed, Rows};
use wattle_run::limit::SqlLimits;
use wattle_run::places::{Place, Places};
use wattle_run::ports::sql::CommitMarker;

use crate::backend::{
    Backend, MARKER_DAYS, MAX_POOL_CONNECTIONS, SELECT_MARKER, Session, UPDATE_MARKER,
    insert_marker, parse_marker, take_place,
};
use crate::failure::{StatementError, with_timeout};
use crate::migration::{AppliedMigration, Migration, MigrationError};
use crate::postgres::prepared::PreparedStatements;
use crate::rows::OnLimit;
use crate::statement::{Dialect, Statement};

/// Timeout of acquiring a connection, and of the wait for its place.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time after a statement timeout within which the server reports the timeout itself. The
/// connection stays usable after such a report.
const SERVER_TIMEOUT_GRACE: Duration = Duration::from_millis(500);

/// Timeout of creating the host's own tables, in milliseconds. Another host may hold the lock while
/// it creates the tables.
const OWN_TABLES_TIMEOUT_MS: u64 = 30_000;

/// The largest timeout that the server accepts, in milliseconds. The value 0 would mean no timeout.
const MAX_STATEMENT_TIMEOUT_MS: u64 = 2_147_483_647;

/// Statement that suppresses the notices about existing tables.
const HIDE_NOTICES: &str = "SET LOCAL client_min_messages = warning";

/// Statement that acquires the lock under which only one host at a time creates the host's own
/// tables. The number is "wattle" in ASCII.
const ACQUIRE_SCHEMA_LOCK: &str = "SELECT pg_advisory_xact_lock(131260449320037)";

const MARKER_TABLE: &str = "CREATE TABLE IF NOT EXISTS _wattle_journal (
    key TEXT PRIMARY KEY, answers TEXT NOT NULL, at_ms BIGINT NOT NULL)";

const MIGRATION_TABLE: &str = "CREATE TABLE IF NOT EXISTS _wattle_migrations (
    app TEXT NOT NULL, version BIGINT NOT NULL, name TEXT NOT NULL, checksum TEXT NOT NULL,
    PRIMARY KEY (app, version))";

/// Milliseconds since 1970 by the server's clock.
const NOW_MS: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// A PostgreSQL database.
pub(crate) struct Postgres {
    pool: PgPool,
    /// Places for the connections that callers share.
    places: Places,
    own_tables: OnceCell<()>,
}

impl Postgres {
    /// Creates the pool, which connects at its first use.
    pub(crate) fn new(options: PgConnectOptions) -> Self {
        // `DISCARD ALL` would drop the statements that `sqlx` caches.
        let options = options.statement_cache_capacity(0).disable_statement_logging();
        let pool = PgPoolOptions::new()
            .max_connections(MAX_POOL_CONNECTIONS)
            .acquire_timeout(CONNECT_TIMEOUT);
        // Session settings of one caller must not reach the next user of the connection.
        let pool = pool.after_release(|connection, _| {
            Box::pin(async move { connection.execute("DISCARD ALL").await.map(|_| true) })
        });
        Self {
            pool: pool.connect_lazy_with(options),
            places: Places::new(MAX_POOL_CONNECTIONS as usize),
            own_tables: OnceCell::new(),
        }
    }

    /// Creates the host's own tables at the first use.
    async fn ensure_own_tables(&self) -> Result<(), sqlx::Error> {
        self.own_tables.get_or_try_init(|| self.create_own_tables()).await.map(|&()| ())
    }

    async fn create_own_tables(&self) -> Result<(), sqlx::Error> {
        let begin = begin_sql("READ WRITE", OWN_TABLES_TIMEOUT_MS);
        let mut transaction = self.pool.begin_with(begin).await?;
        transaction.execute(HIDE_NOTICES).await?;
        transaction.execute(ACQUIRE_SCHEMA_LOCK).await?;
        transaction.execute(MARKER_TABLE).await?;
        transaction.execute(MIGRATION_TABLE).await?;
        let keep_ms = i64::from(MARKER_DAYS) * 86_400_000;
        let old = format!("DELETE FROM _wattle_journal WHERE at_ms < {NOW_MS} - {keep_ms}");
        transaction.execute(AssertSqlSafe(old)).await?;
        transaction.commit().await
    }

    /// Ends the session of the server in which a migration did not end in time.
    async fn terminate(&self, pid: i32) {
        let statement = sqlx::query("SELECT pg_terminate_backend($1)").bind(pid);
        if let Err(error) = statement.execute(&self.pool).await {
            tracing::warn!(%error, "cannot end the session of a migration that timed out");
        }
    }
}

/// Returns the statements that begin a transaction. Whatever the defaults of the server are, the
/// server then reads string constants in the same way as the checks of statements, and returns
/// bytes in hex.
fn begin_sql(mode: &str, timeout_ms: u64) -> AssertSqlSafe<String> {
    let timeout_ms = timeout_ms.clamp(1, MAX_STATEMENT_TIMEOUT_MS);
    AssertSqlSafe(format!(
        "BEGIN {mode}; SET LOCAL statement_timeout = {timeout_ms}; SET LOCAL bytea_output = 'hex'; \
         SET LOCAL standard_conforming_strings = on"
    ))
}

#[async_trait]
impl Backend for Postgres {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn query(
        &self,
        owner: CallerId,
        statement: &Statement<'_>,
        _rule: &SqlRule,
        limits: &SqlLimits,
    ) -> Result<Rows, StatementError> {
        let _place = take_place(&self.places, owner, CONNECT_TIMEOUT).await?;
        let mut connection = self.pool.acquire().await?;
        let start = begin_sql("READ ONLY", limits.timeout_ms).into_sql_str();
        let mut transaction: Transaction<'_, sqlx::Postgres> =
            Transaction::begin(&mut *connection, Some(start)).await?;
        let mut prepared = PreparedStatements::default();
        let result = with_timeout(limits, SERVER_TIMEOUT_GRACE, async {
            let executed = prepared.run(&mut transaction, statement, limits, OnLimit::Stop).await?;
            let mut rows = executed.returned;
            if rows.columns.is_empty() {
                let text = AssertSqlSafe(statement.text).into_sql_str();
                let described = transaction.prepare(text).await?;
                rows.columns = value::columns(described.columns());
            }
            Ok::<_, StatementError>(rows)
        })
        .await;
        if matches!(&result, Ok(rows) if !rows.truncated) {
            transaction.rollback().await?;
            return result;
        }
        // The server may still have rows to send or to compute, so the connection is closed.
        drop(transaction);
        drop(connection.detach());
        result
    }

    async fn begin(
        &self,
        owner: CallerId,
        limits: &SqlLimits,
    ) -> Result<Box<dyn Session>, StatementError> {
        let place = take_place(&self.places, owner, CONNECT_TIMEOUT).await?;
        self.ensure_own_tables().await?;
        let begin = begin_sql("READ WRITE", limits.timeout_ms);
        let transaction = self.pool.begin_with(begin).await?;
        Ok(Box::new(PostgresSession {
            transaction,
            prepared: PreparedStatements::default(),
            claimed: false,
            _place: place,
        }))
    }

    async fn applied_migrations(&self, app: &str) -> Result<Vec<AppliedMigration>, sqlx::Error> {
        let rows = sqlx::query_as::<_, (i64, String, String)>(
            "SELECT version, name, checksum FROM _wattle_migrations
             WHERE app = $1 ORDER BY version",
        )
        .bind(app)
        .fetch_all(&self.pool)
        .await;
        let rows = rows.map(Some).or_else(missing_table)?.unwrap_or_default();
        let applied = |(version, name, checksum)| AppliedMigration { version, name, checksum };
        Ok(rows.into_iter().map(applied).collect())
    }

    async fn apply_migration(
        &self,
        app: &str,
        migration: &Migration,
        timeout: Duration,
    ) -> Result<(), MigrationError> {
        self.ensure_own_tables().await?;
        let mut connection = self.pool.acquire().await?;
        // The session is closed after the migration, even if the caller drops the future, so that
        // no later caller gets session state of a migration.
        connection.close_on_drop();
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let begin = begin_sql("READ WRITE", timeout_ms).into_sql_str();
        let mut transaction: Transaction<'_, sqlx::Postgres> =
            Transaction::begin(&mut *connection, Some(begin)).await?;
        transaction.execute(HIDE_NOTICES).await?;
        let pid = sqlx::query_scalar::<_, i32>("SELECT pg_backend_pid()");
        let pid = pid.fetch_one(&mut *transaction).await?;
        // This insert waits for another host that applies the same migration.
        let recorded = sqlx::query(
            "INSERT INTO _wattle_migrations (app, version, name, checksum)
             VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        )
        .bind(app)
        .bind(migration.version)
        .bind(&migration.name)
        .bind(&migration.checksum)
        .execute(&mut *transaction)
        .await?;
        if recorded.rows_affected() == 1 {
            let work = execute_script(&mut transaction, &migration.text);
            let allowed = timeout.saturating_add(SERVER_TIMEOUT_GRACE);
            match tokio::time::timeout(allowed, work).await {
                Ok(result) => result?,
                Err(_) => {
                    // The timeout of the server is for each statement. All statements together took
                    // too long.
                    drop(transaction);
                    drop(connection.detach());
                    self.terminate(pid).await;
                    return Err(MigrationError::TimedOut);
                }
            }
        }
        Ok(transaction.commit().await?)
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}

/// Executes the statements of a migration one by one.
async fn execute_script(connection: &mut PgConnection, text: &str) -> Result<(), sqlx::Error> {
    for statement in script::statements(text) {
        // `sqlx` sends the statement by the extended query protocol, which accepts only one
        // statement.
        let query = sqlx::query(AssertSqlSafe(statement.text)).persistent(false);
        query.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Converts the error that a table of the host does not exist to `None`.
fn missing_table<T>(error: sqlx::Error) -> Result<Option<T>, sqlx::Error> {
    match &error {
        sqlx::Error::Database(reason) if reason.code().as_deref() == Some("42P01") => Ok(None),
        _ => Err(error),
    }
}

/// A transaction that can write.
struct PostgresSession {
    transaction: Transaction<'static, sqlx::Postgres>,
    prepared: PreparedStatements,
    /// Whether this transaction has claimed the key of its marker by inserting the marker, which
    /// then has no results yet.
    claimed: bool,
    _place: Place,
}

#[async_trait]
impl Session for PostgresSession {
    async fn run(
        &mut self,
        statement: &Statement<'_>,
        limits: &SqlLimits,
    ) -> Result<Executed, StatementError> {
        let work = self.prepared.run(&mut self.transaction, statement, limits, OnLimit::Finish);
        with_timeout(limits, SERVER_TIMEOUT_GRACE, work).await
    }

    async fn claim(&mut self, key: &str) -> Result<Option<Value>, StatementError> {
        let insert = format!("{} ON CONFLICT (key) DO NOTHING", insert_marker(NOW_MS));
        let inserted = sqlx::query(AssertSqlSafe(insert))
            .bind(key)
            .bind(Value::Null.to_string())
            .execute(&mut *self.transaction)
            .await?;
        self.claimed = inserted.rows_affected() == 1;
        if self.claimed {
            return Ok(None);
        }
        let found = sqlx::query_scalar::<_, String>(SELECT_MARKER).bind(key);
        Ok(Some(parse_marker(&found.fetch_one(&mut *self.transaction).await?)?))
    }

    async fn write_marker(&mut self, marker: &CommitMarker) -> Result<(), StatementError> {
        let write = if self.claimed { UPDATE_MARKER.to_owned() } else { insert_marker(NOW_MS) };
        sqlx::query(AssertSqlSafe(write))
            .bind(&marker.key)
            .bind(marker.results.to_string())
            .execute(&mut *self.transaction)
            .await?;
        Ok(())
    }

    async fn commit(self: Box<Self>) -> Result<(), StatementError> {
        Ok(self.transaction.commit().await?)
    }

    async fn rollback(self: Box<Self>) -> Result<(), StatementError> {
        Ok(self.transaction.rollback().await?)
    }
}
