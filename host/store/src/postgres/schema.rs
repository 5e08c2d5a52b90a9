//! The tables and their migrations. Migrations are numbered and applied under a lock, so that any
//! number of hosts can start concurrently.

use sqlx::{AssertSqlSafe, Executor as _, Row as _, SqlSafeStr as _};
use wattle_run::ports::store::StoreError;

use crate::error::backend;
use crate::postgres::database::Database;
use crate::postgres::retry::sqlx_error;

/// The migration with index `n` migrates the schema from format `n` to format `n + 1`. The first
/// migration creates format 1.
const MIGRATIONS: [&str; 8] = [
    include_str!("migrations/0001_threads.sql"),
    include_str!("migrations/0002_memory.sql"),
    include_str!("migrations/0003_leases.sql"),
    include_str!("migrations/0004_pending.sql"),
    include_str!("migrations/0005_hosts.sql"),
    include_str!("migrations/0006_callers.sql"),
    include_str!("migrations/0007_search.sql"),
    include_str!("migrations/0008_run_search.sql"),
];

/// The newest format.
const FORMAT: u32 = MIGRATIONS.len() as u32;

/// Version number of the oldest server that supports `pg_current_xact_id`.
const MIN_SERVER_VERSION: i32 = 130_000;

/// Advisory lock under which one host at a time creates tables. The number is the word "wattle" in
/// ASCII plus one; the databases of apps use the word itself.
const LOCK: &str = "SELECT pg_advisory_xact_lock(131260449320038)";

const OPERATION: &str = "prepare its tables";

/// Migrates the schema to the newest format.
///
/// # Errors
///
/// [`StoreError::NewerFormat`] if a newer Wattle created the schema, [`StoreError::Backend`] if the
/// server fails or the user has no permission.
pub(super) async fn migrate(database: &Database) -> Result<(), StoreError> {
    check_server(database).await?;
    if format(database).await? == FORMAT {
        return Ok(());
    }
    let mut transaction = database.transaction(OPERATION).await?;
    let trying = sqlx_error(OPERATION);
    // This host waits for the lock without a timeout, since another host may take any time to
    // create the tables.
    transaction.execute("SET LOCAL lock_timeout TO 0").await.map_err(&trying)?;
    transaction.execute(LOCK).await.map_err(&trying)?;
    // Another host may have created all tables while this host waited for the lock.
    let found = format(database).await?;
    if found == 0 {
        let schema = &database.schema;
        let create = format!(
            "CREATE SCHEMA IF NOT EXISTS \"{schema}\";
             CREATE TABLE format (
                 single boolean PRIMARY KEY DEFAULT true CHECK (single), number integer NOT NULL);
             INSERT INTO format (number) VALUES (0)"
        );
        let create = AssertSqlSafe(create).into_sql_str();
        sqlx::raw_sql(create).execute(&mut *transaction).await.map_err(&trying)?;
    }
    for migration in MIGRATIONS.iter().skip(found as usize) {
        sqlx::raw_sql(*migration).execute(&mut *transaction).await.map_err(&trying)?;
    }
    let update = sqlx::query("UPDATE format SET number = $1").bind(FORMAT.cast_signed());
    update.execute(&mut *transaction).await.map_err(&trying)?;
    transaction.commit().await.map_err(trying)
}

/// Returns true if the tables exist, in a format that this Wattle can read or migrate. Changes
/// nothing.
///
/// # Errors
///
/// The errors of [`migrate`].
pub(super) async fn exists(database: &Database) -> Result<bool, StoreError> {
    check_server(database).await?;
    format(database).await.map(|format| format > 0)
}

async fn check_server(database: &Database) -> Result<(), StoreError> {
    let version = || sqlx::query("SELECT current_setting('server_version_num')::int4");
    let row = database.row("reach its database", version).await?;
    let version = row.and_then(|row| row.try_get::<i32, _>(0).ok()).unwrap_or_default();
    if version < MIN_SERVER_VERSION {
        let (found, oldest) = (version / 10_000, MIN_SERVER_VERSION / 10_000);
        let message = format!("its server is PostgreSQL {found}; it must be {oldest} or newer");
        return Err(backend("use its database", message));
    }
    Ok(())
}

/// Returns the format of the schema; 0 if the schema has no tables.
async fn format(database: &Database) -> Result<u32, StoreError> {
    let table = format!("\"{}\".format", database.schema);
    let exists = || sqlx::query("SELECT to_regclass($1) IS NOT NULL").bind(&table);
    let row = database.row(OPERATION, exists).await?;
    if !row.is_some_and(|row| row.try_get(0).unwrap_or(false)) {
        return Ok(0);
    }
    let row = database.row(OPERATION, || sqlx::query("SELECT number FROM format")).await?;
    let found = row.and_then(|row| row.try_get::<i32, _>(0).ok()).unwrap_or_default();
    let found = u32::try_from(found).unwrap_or_default();
    if found > FORMAT {
        let path = format!("{} (schema `{}`)", database.display_url, database.schema);
        return Err(StoreError::NewerFormat { path, found, known: FORMAT });
    }
    Ok(found)
}
