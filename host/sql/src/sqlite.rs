//! SQLite databases: one file, one writer at a time, and concurrent readers.

mod abort_flag;
mod authorizer;
pub(crate) mod limits;
mod value;

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, SqlSafeStr as _};
use sqlx::{SqliteConnection, SqlitePool, Statement as _, Transaction};
use tokio::sync::OnceCell;
use wattle_run::caller_id::CallerId;
use wattle_run::grant::{SqlAccess, SqlRule};
use wattle_run::hostcall::sql::{Executed, Rows};
use wattle_run::limit::SqlLimits;
use wattle_run::places::{Place, Places};
use wattle_run::ports::sql::CommitMarker;

use crate::backend::{
    Backend, MARKER_DAYS, MAX_POOL_CONNECTIONS, SELECT_MARKER, Session, UPDATE_MARKER,
    insert_marker, parse_marker, take_place,
};
use crate::config::DatabaseConfig;
use crate::error::SqlError;
use crate::failure::{StatementError, with_timeout};
use crate::migration::{AppliedMigration, Migration, MigrationError};
use crate::rows::{OnLimit, collect};
use crate::sqlite::abort_flag::AbortFlag;
use crate::sqlite::authorizer::AuthorizerGuard;
use crate::sqlite::value::SqliteReader;
use crate::statement::{Dialect, Statement};

/// Timeout of acquiring the writer or a reader, and of the wait for its place.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

const MARKER_TABLE: &str = "CREATE TABLE IF NOT EXISTS _wattle_journal (
    key TEXT PRIMARY KEY, answers TEXT NOT NULL, at_ms BIGINT NOT NULL)";

const MIGRATION_TABLE: &str = "CREATE TABLE IF NOT EXISTS _wattle_migrations (
    app TEXT NOT NULL, version BIGINT NOT NULL, name TEXT NOT NULL, checksum TEXT NOT NULL,
    PRIMARY KEY (app, version))";

/// Milliseconds since 1970 by SQLite's clock.
const NOW_MS: &str = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)";

/// A SQLite database.
pub(crate) struct Sqlite {
    /// A pool with one connection: SQLite has only one writer at a time, and the fair queue of the
    /// pool is better than the busy waiting of SQLite.
    writer: SqlitePool,
    /// Read-only connections. An in-memory database has only one connection, the writer.
    reader: SqlitePool,
    /// Place for the writer, in turns of callers.
    writer_place: Places,
    /// Places for the readers that callers share. An in-memory database has only the place for the
    /// writer.
    reader_places: Places,
    in_memory: bool,
    marker_table: OnceCell<()>,
}

impl Sqlite {
    pub(crate) async fn open(
        name: &str,
        path: &Path,
        config: &DatabaseConfig,
    ) -> Result<Self, SqlError> {
        let max_bytes = config.max_bytes();
        if let Some(folder) = path.parent() {
            let created = tokio::fs::create_dir_all(folder).await;
            created.map_err(|source| SqlError::File { path: folder.to_owned(), source })?;
        }
        let options = connect_options().filename(path).create_if_missing(true);
        let options =
            options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
        let writer = pool_options(1).after_connect(move |connection, _| {
            Box::pin(async move {
                limits::set(connection).await?;
                limits::limit_file(connection, max_bytes).await
            })
        });
        let writer = writer.connect_with(options).await;
        let writer = writer.map_err(|source| open_error(name, path, source))?;
        let reader = pool_options(MAX_POOL_CONNECTIONS).connect_lazy_with(
            connect_options().filename(path).read_only(true).pragma("query_only", "1"),
        );
        Ok(Self {
            writer,
            reader,
            writer_place: Places::new(1),
            reader_places: Places::new(MAX_POOL_CONNECTIONS as usize),
            in_memory: false,
            marker_table: OnceCell::new(),
        })
    }

    /// Opens an in-memory database, which exists as long as its only connection.
    pub(crate) async fn in_memory(name: &str) -> Result<Self, SqlError> {
        let options = pool_options(1).idle_timeout(None).max_lifetime(None);
        let writer = options.connect_with(connect_options().in_memory(true)).await;
        let writer = writer.map_err(|source| open_error(name, Path::new(":memory:"), source))?;
        let place = Places::new(1);
        Ok(Self {
            reader: writer.clone(),
            writer,
            writer_place: place.clone(),
            reader_places: place,
            in_memory: true,
            marker_table: OnceCell::new(),
        })
    }

    async fn reader(&self) -> Result<PoolConnection<sqlx::Sqlite>, sqlx::Error> {
        let mut connection = self.reader.acquire().await?;
        reset(&mut connection).await?;
        if self.in_memory {
            connection.execute("PRAGMA query_only = 1").await?;
        }
        Ok(connection)
    }

    /// Begins a transaction with the write lock, since a later upgrade of a read lock can fail
    /// permanently.
    async fn writer(&self) -> Result<Transaction<'static, sqlx::Sqlite>, sqlx::Error> {
        let mut connection = self.writer.acquire().await?;
        reset(&mut connection).await?;
        if self.in_memory {
            connection.execute("PRAGMA query_only = 0").await?;
        }
        Transaction::begin(connection, Some("BEGIN IMMEDIATE".into_sql_str())).await
    }

    async fn create_marker_table(&self) -> Result<(), sqlx::Error> {
        let mut transaction = self.writer().await?;
        transaction.execute(MARKER_TABLE).await?;
        // The host also creates this table here, before a guest could create another table with
        // this name.
        transaction.execute(MIGRATION_TABLE).await?;
        let keep_ms = i64::from(MARKER_DAYS) * 86_400_000;
        let old = format!("DELETE FROM _wattle_journal WHERE at_ms < {NOW_MS} - {keep_ms}");
        transaction.execute(AssertSqlSafe(old)).await?;
        transaction.commit().await
    }
}

fn connect_options() -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .foreign_keys(true)
        .busy_timeout(ACQUIRE_TIMEOUT)
        .disable_statement_logging()
}

fn pool_options(connections: u32) -> SqlitePoolOptions {
    let options =
        SqlitePoolOptions::new().max_connections(connections).acquire_timeout(ACQUIRE_TIMEOUT);
    options.after_connect(|connection, _| Box::pin(limits::set(connection)))
}

/// Removes the authorizer, the progress handler and an open transaction of the previous user of a
/// connection.
async fn reset(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    authorizer::uninstall(connection).await?;
    abort_flag::uninstall(connection).await?;
    if connection.is_in_transaction() {
        end_transaction(connection).await;
    }
    Ok(())
}

/// Ends a transaction that `sqlx` counts as open.
///
/// SQLite rolls a transaction back by itself when it interrupts a statement that writes. The
/// `ROLLBACK` of `sqlx` then fails, and no further transaction could begin on the connection.
async fn end_transaction(connection: &mut SqliteConnection) {
    // This statement fails if SQLite has an open transaction. In both cases SQLite has an open
    // transaction afterwards.
    let _ = connection.execute("BEGIN").await;
    // `sqlx` refuses to begin a second transaction, and rolls the open transaction back.
    drop(connection.begin_with("BEGIN").await);
}

fn open_error(name: &str, path: &Path, source: sqlx::Error) -> SqlError {
    SqlError::Open { name: name.to_owned(), path: path.display().to_string(), source }
}

#[async_trait]
impl Backend for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn query(
        &self,
        owner: CallerId,
        statement: &Statement<'_>,
        rule: &SqlRule,
        limits: &SqlLimits,
    ) -> Result<Rows, StatementError> {
        let _place = take_place(&self.reader_places, owner, ACQUIRE_TIMEOUT).await?;
        let mut connection = self.reader().await?;
        let abort_flag = AbortFlag::install(&mut connection).await?;
        let _authorized = match rule.access {
            SqlAccess::ReadOnly => {
                Some(AuthorizerGuard::install(&mut connection, rule, limits).await?)
            }
            SqlAccess::ReadWrite => {
                authorizer::install_writer_rule(&mut connection).await?;
                None
            }
        };
        let mut rows =
            run(&mut connection, &abort_flag, statement, limits, OnLimit::Stop).await?.returned;
        if rows.columns.is_empty() {
            let text = AssertSqlSafe(statement.text).into_sql_str();
            rows.columns = value::columns(connection.prepare(text).await?.columns());
        }
        Ok(rows)
    }

    async fn begin(
        &self,
        owner: CallerId,
        _limits: &SqlLimits,
    ) -> Result<Box<dyn Session>, StatementError> {
        let place = take_place(&self.writer_place, owner, ACQUIRE_TIMEOUT).await?;
        self.marker_table.get_or_try_init(|| self.create_marker_table()).await?;
        let mut transaction = self.writer().await?;
        let abort_flag = AbortFlag::install(&mut transaction).await?;
        authorizer::install_writer_rule(&mut transaction).await?;
        Ok(Box::new(SqliteSession { transaction, abort_flag, claimed: false, _place: place }))
    }

    async fn applied_migrations(&self, app: &str) -> Result<Vec<AppliedMigration>, sqlx::Error> {
        let rows = sqlx::query_as::<_, (i64, String, String)>(
            "SELECT version, name, checksum FROM _wattle_migrations
             WHERE app = $1 ORDER BY version",
        )
        .bind(app)
        .fetch_all(&mut *self.reader().await?)
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
        let mut transaction = self.writer().await?;
        transaction.execute(MIGRATION_TABLE).await?;
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
            let abort_flag = AbortFlag::install(&mut transaction).await?;
            authorizer::install_migration_rule(&mut transaction).await?;
            let abort_guard = abort_flag.arm();
            let text = AssertSqlSafe(migration.text.as_str());
            let work = sqlx::raw_sql(text).execute(&mut *transaction);
            let result = tokio::time::timeout(timeout, work).await;
            result.map_err(|_| MigrationError::TimedOut)??;
            abort_guard.disarm();
            // The rule of migrations does not permit a commit.
            authorizer::uninstall(&mut transaction).await?;
        }
        Ok(transaction.commit().await?)
    }

    async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
    }
}

/// Converts the error that a table of the host does not exist to `None`.
fn missing_table<T>(error: sqlx::Error) -> Result<Option<T>, sqlx::Error> {
    match &error {
        sqlx::Error::Database(reason) if reason.message().starts_with("no such table: _wattle") => {
            Ok(None)
        }
        _ => Err(error),
    }
}

/// A transaction that holds the write lock.
struct SqliteSession {
    transaction: Transaction<'static, sqlx::Sqlite>,
    abort_flag: AbortFlag,
    /// Whether this transaction has claimed the key of its marker by inserting the marker, which
    /// then has no results yet.
    claimed: bool,
    _place: Place,
}

#[async_trait]
impl Session for SqliteSession {
    async fn run(
        &mut self,
        statement: &Statement<'_>,
        limits: &SqlLimits,
    ) -> Result<Executed, StatementError> {
        run(&mut self.transaction, &self.abort_flag, statement, limits, OnLimit::Finish).await
    }

    async fn claim(&mut self, key: &str) -> Result<Option<Value>, StatementError> {
        authorizer::uninstall(&mut self.transaction).await?;
        let insert = format!("{} ON CONFLICT (key) DO NOTHING", insert_marker(NOW_MS));
        let inserted = sqlx::query(AssertSqlSafe(insert))
            .bind(key)
            .bind(Value::Null.to_string())
            .execute(&mut *self.transaction)
            .await?;
        self.claimed = inserted.rows_affected() == 1;
        let found = if self.claimed {
            None
        } else {
            let found = sqlx::query_scalar::<_, String>(SELECT_MARKER).bind(key);
            Some(parse_marker(&found.fetch_one(&mut *self.transaction).await?)?)
        };
        authorizer::install_writer_rule(&mut self.transaction).await?;
        Ok(found)
    }

    async fn write_marker(&mut self, marker: &CommitMarker) -> Result<(), StatementError> {
        // The marker is the last write, so no statement of the guest follows.
        authorizer::uninstall(&mut self.transaction).await?;
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

async fn run(
    connection: &mut SqliteConnection,
    abort_flag: &AbortFlag,
    statement: &Statement<'_>,
    limits: &SqlLimits,
    rest: OnLimit,
) -> Result<Executed, StatementError> {
    let arguments = value::arguments(statement.parameters).map_err(sqlx::Error::Encode)?;
    let query = sqlx::query_with(AssertSqlSafe(statement.text), arguments);
    let abort_guard = abort_flag.arm();
    let executed = with_timeout(
        limits,
        Duration::ZERO,
        collect::<SqliteReader>(connection.fetch_many(query), limits, rest),
    )
    .await?;
    abort_guard.disarm();
    Ok(executed)
}
