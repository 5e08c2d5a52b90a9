//! The implementation of the port `Sql`: all configured databases by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::AppName;
use wattle_graph::suggest;
use wattle_run::caller_id::CallerId;
use wattle_run::grant::{SqlAccess, SqlRule};
use wattle_run::hostcall::sql::{Rows, SqlValue};
use wattle_run::limit::SqlLimits;
use wattle_run::memory_budget::DEFAULT_BUDGET;
use wattle_run::ports::sql::{Sql, SqlTransaction};

use crate::backend::Backend;
use crate::checker::ReadOnlyChecker;
use crate::config::{DatabaseConfig, DatabaseUrl};
use crate::error::SqlError;
use crate::failure::{OperationContext, StatementError};
use crate::migrate::{self, Script, Target};
use crate::postgres::Postgres;
use crate::readwrite;
use crate::sqlite::{Sqlite, limits};
use crate::statement::Statement;
use crate::transaction::OpenTransaction;

/// Databases by name. Clones share the databases.
#[derive(Clone)]
pub struct Databases {
    databases: Arc<BTreeMap<String, Database>>,
    checker: ReadOnlyChecker,
}

/// A configured database.
struct Database {
    backend: Box<dyn Backend>,
    /// Timeout of one migration.
    migration_timeout: Duration,
    /// Locked while a migration is applied, so that the timeout of a migration does not include the
    /// wait for a migration of another app.
    migrating: Mutex<()>,
}

impl Databases {
    /// Opens databases like [`Databases::open_with`]. The SQLite databases of the process get the
    /// memory of [`DEFAULT_BUDGET`].
    ///
    /// # Errors
    ///
    /// See [`Databases::open_with`].
    pub async fn open(
        configs: BTreeMap<String, DatabaseConfig>,
        data_dir: &Path,
    ) -> Result<Self, SqlError> {
        Self::open_with(configs, data_dir, DEFAULT_BUDGET.sqlite_bytes).await
    }

    /// Opens databases. SQLite files are created if missing. Connections to PostgreSQL are made at
    /// the first use, so that the host starts even if a server is down.
    ///
    /// `sqlite_memory_bytes` is the maximum memory of all SQLite databases of the process. SQLite
    /// has one limit for a process, so the value of the last call applies.
    ///
    /// # Errors
    ///
    /// Returns [`SqlError::Url`] for an invalid URL, [`SqlError::File`] if the folder of a SQLite
    /// file cannot be created, and [`SqlError::Open`] if a SQLite file cannot be opened.
    pub async fn open_with(
        configs: BTreeMap<String, DatabaseConfig>,
        data_dir: &Path,
        sqlite_memory_bytes: u64,
    ) -> Result<Self, SqlError> {
        limits::set_memory(sqlite_memory_bytes);
        let mut databases = BTreeMap::new();
        for (name, config) in configs {
            let backend: Box<dyn Backend> = match DatabaseUrl::parse(&name, &config, data_dir)? {
                DatabaseUrl::SqliteFile(path) => {
                    Box::new(Sqlite::open(&name, &path, &config).await?)
                }
                DatabaseUrl::SqliteMemory => Box::new(Sqlite::in_memory(&name).await?),
                DatabaseUrl::Postgres(options) => Box::new(Postgres::new(*options)),
            };
            let (migration_timeout, migrating) = (config.migration_timeout(), Mutex::default());
            databases.insert(name, Database { backend, migration_timeout, migrating });
        }
        Ok(Self { databases: Arc::new(databases), checker: ReadOnlyChecker::new() })
    }

    /// Returns the migration folder of an app for the dialect of a database. The keys of `folders`
    /// are dialects.
    ///
    /// # Errors
    ///
    /// Returns [`SqlError::UnknownDatabase`] if no database has the name, and
    /// [`SqlError::NoDialect`] if `folders` has no folder for the dialect.
    pub fn migration_folder<'a>(
        &self,
        app: &str,
        database: &str,
        folders: &'a BTreeMap<String, PathBuf>,
    ) -> Result<&'a Path, SqlError> {
        let dialect = self.configured_database(database)?.backend.dialect().name();
        let folder = folders.get(dialect).ok_or_else(|| SqlError::NoDialect {
            app: app.to_owned(),
            database: database.to_owned(),
            dialect,
        })?;
        Ok(folder)
    }

    /// Applies the pending migrations of an app, and returns their names. The caller reads the
    /// migration files, since the caller knows which files may be read. The caller also checks
    /// whether the operator's configuration permits the app to change the database. Migrations of
    /// one database are applied one at a time.
    ///
    /// # Errors
    ///
    /// Returns [`SqlError::UnknownDatabase`], or a variant whose name begins with `Migration`. The
    /// migrations before a failed migration stay applied.
    pub async fn migrate(
        &self,
        app: &AppName,
        database: &str,
        scripts: Vec<Script>,
    ) -> Result<Vec<String>, SqlError> {
        let configured = self.configured_database(database)?;
        let target = Target {
            backend: configured.backend.as_ref(),
            name: database,
            timeout: configured.migration_timeout,
            turns: &configured.migrating,
        };
        migrate::run(target, app, scripts).await
    }

    fn configured_database(&self, database: &str) -> Result<&Database, SqlError> {
        self.databases.get(database).ok_or_else(|| {
            let known = self.databases.keys().map(String::as_str);
            let hint = suggest::hint(database, "databases", known);
            SqlError::UnknownDatabase { name: database.to_owned(), hint }
        })
    }

    /// Closes all connections. Later calls fail.
    pub async fn close(&self) {
        for database in self.databases.values() {
            database.backend.close().await;
        }
    }

    fn backend(&self, database: &str) -> Result<&dyn Backend, Failure> {
        self.databases.get(database).map(|it| it.backend.as_ref()).ok_or_else(|| {
            Failure::new(
                code::NOT_FOUND,
                format!(
                    "there is no database `{database}`; define it with `url = ...` under \
                     `[sql.{database}]` in wattle.toml"
                ),
            )
        })
    }
}

#[async_trait]
impl Sql for Databases {
    async fn dialect(&self, database: &str) -> Result<&'static str, Failure> {
        Ok(self.backend(database)?.dialect().name())
    }

    async fn query(
        &self,
        owner: CallerId,
        database: &str,
        rule: &SqlRule,
        limits: &SqlLimits,
        statement: &str,
        parameters: &[SqlValue],
    ) -> Result<Rows, Failure> {
        let backend = self.backend(database)?;
        let limits = effective_limits(limits, rule);
        let checked = Statement::check(backend.dialect(), statement, parameters, &limits)?;
        if rule.access == SqlAccess::ReadOnly {
            self.checker.check(backend.dialect(), statement, rule).await?;
        } else {
            readwrite::check(backend.dialect(), statement)?;
        }
        let subject = OperationContext { operation: "query", database };
        let result = backend.query(owner, &checked, rule, &limits).await;
        let rows = result.map_err(|error| subject.failure(error))?;
        ensure_complete(&rows, rule, &limits).map_err(|error| subject.failure(error))?;
        Ok(rows)
    }

    async fn begin(
        &self,
        owner: CallerId,
        database: &str,
        limits: &SqlLimits,
    ) -> Result<Box<dyn SqlTransaction>, Failure> {
        let backend = self.backend(database)?;
        let subject = OperationContext { operation: "begin a transaction on", database };
        let session = backend.begin(owner, limits).await.map_err(|error| subject.failure(error))?;
        Ok(Box::new(OpenTransaction::new(session, database, backend.dialect(), limits)))
    }
}

/// Returns the limits of a plugin, with the overrides of the rule for a database.
fn effective_limits(limits: &SqlLimits, rule: &SqlRule) -> SqlLimits {
    SqlLimits {
        rows: rule.rows.unwrap_or(limits.rows),
        bytes: rule.bytes.unwrap_or(limits.bytes),
        timeout_ms: rule.timeout_ms.unwrap_or(limits.timeout_ms),
        statement_bytes: limits.statement_bytes,
    }
}

/// Returns an error if the rows were truncated at a limit that the rule sets. A rule that sets a
/// limit permits no partial results.
fn ensure_complete(rows: &Rows, rule: &SqlRule, limits: &SqlLimits) -> Result<(), StatementError> {
    if !rows.truncated {
        return Ok(());
    }
    let read = rows.rows.len() as u64;
    let is_full = read >= limits.rows;
    match (is_full, rule.rows, rule.bytes) {
        (true, Some(allowed), _) => {
            Err(StatementError::LimitExceeded { limit: "sql.rows", allowed, read })
        }
        (false, _, Some(allowed)) => {
            Err(StatementError::LimitExceeded { limit: "sql.bytes", allowed, read })
        }
        _ => Ok(()),
    }
}
