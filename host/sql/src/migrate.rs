//! Migrations of apps: files `NNNN_name.sql`, applied once and in order. The table
//! `_wattle_migrations` of the database records each applied migration with its checksum.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::Mutex;
use wattle_graph::id::AppName;
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::caller_id::CallerId;
use wattle_run::limit::SqlLimits;

use crate::backend::Backend;
use crate::error::SqlError;
use crate::limit::MIGRATION_STATEMENT_BYTES;
use crate::migration::{AppliedMigration, Migration, MigrationError};
use crate::postgres::script;
use crate::readwrite;
use crate::statement::{Dialect, Statement};

/// The contents of a migration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Path of the file. The file name without extension is the name of the migration.
    pub path: PathBuf,
    /// SQL statements.
    pub text: String,
}

/// The database that is migrated.
pub(crate) struct Target<'a> {
    pub(crate) backend: &'a dyn Backend,
    pub(crate) name: &'a str,
    /// Timeout of one migration.
    pub(crate) timeout: Duration,
    /// Locked while a migration is applied.
    pub(crate) turns: &'a Mutex<()>,
}

pub(crate) async fn run(
    target: Target<'_>,
    app: &AppName,
    scripts: Vec<Script>,
) -> Result<Vec<String>, SqlError> {
    let Target { backend, name: database, timeout, turns } = target;
    let owner = CallerId::of_app(app);
    let app = app.as_str();
    let available = parse_in_order(scripts)?;
    let applied = backend.applied_migrations(app).await;
    let applied = applied.map_err(|source| SqlError::Migration {
        operation: "read the applied migrations".to_owned(),
        app: app.to_owned(),
        database: database.to_owned(),
        source,
    })?;
    let pending = pending_migrations(app, database, &available, &applied)?;
    let bytes: usize = pending.iter().map(|migration| migration.text.len()).sum();
    block_in_place_in_turn(owner, is_long_parse(bytes), || {
        pending.iter().try_for_each(|migration| check(backend.dialect(), app, migration))
    })
    .await?;
    for migration in pending {
        let _turn = turns.lock().await;
        let result = backend.apply_migration(app, migration, timeout).await;
        result.map_err(|error| {
            let (app, database) = (app.to_owned(), database.to_owned());
            match error {
                MigrationError::TimedOut => {
                    let migration = migration.name.clone();
                    SqlError::MigrationTimeout { app, database, migration, timeout }
                }
                MigrationError::Database(source) => {
                    let operation = format!("apply migration `{}`", migration.name);
                    SqlError::Migration { operation, app, database, source }
                }
            }
        })?;
        tracing::info!(app, database, migration = migration.name, "migration applied");
    }
    Ok(pending.iter().map(|migration| migration.name.clone()).collect())
}

/// Checks that a migration does not access the host's own tables. On PostgreSQL, also checks each
/// statement. On SQLite, the authorizer checks accesses that the text does not show.
fn check(dialect: Dialect, app: &str, migration: &Migration) -> Result<(), SqlError> {
    let (app, name) = (app.to_owned(), migration.name.clone());
    if readwrite::names_host_table(&migration.text) {
        return Err(SqlError::MigrationHostTable { app, migration: name });
    }
    if dialect == Dialect::Sqlite {
        return Ok(());
    }
    let limits = SqlLimits { statement_bytes: MIGRATION_STATEMENT_BYTES, ..SqlLimits::default() };
    for statement in script::statements(&migration.text) {
        let checked = Statement::check(dialect, statement.text, &[], &limits);
        let checked = checked.and_then(|_| readwrite::check(dialect, statement.text));
        if let Err(failure) = checked {
            let (line, reason) = (statement.line, failure.message);
            return Err(SqlError::MigrationStatement { app, migration: name, line, reason });
        }
    }
    Ok(())
}

fn parse_in_order(scripts: Vec<Script>) -> Result<Vec<Migration>, SqlError> {
    let migrations = scripts
        .into_iter()
        .map(|Script { path, text }| parse(&path, text).ok_or(SqlError::MigrationName { path }));
    let mut migrations = migrations.collect::<Result<Vec<_>, _>>()?;
    migrations.sort_by_key(|left| left.version);
    for pair in migrations.windows(2) {
        if pair[0].version == pair[1].version {
            let (first, second) = (pair[0].name.clone(), pair[1].name.clone());
            return Err(SqlError::MigrationDuplicate { first, second });
        }
    }
    Ok(migrations)
}

fn parse(path: &Path, text: String) -> Option<Migration> {
    let name = path.file_stem()?.to_str()?;
    let (digits, rest) = name.split_once('_')?;
    if digits.len() != 4 || rest.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // A checkout on another operating system can change the line endings.
    let checksum = blake3::hash(text.replace("\r\n", "\n").as_bytes()).to_hex().to_string();
    Some(Migration { version: digits.parse().ok()?, name: name.to_owned(), checksum, text })
}

/// Returns the pending migrations, if the applied migrations are a prefix of the available
/// migrations.
fn pending_migrations<'a>(
    app: &str,
    database: &str,
    available: &'a [Migration],
    applied: &[AppliedMigration],
) -> Result<&'a [Migration], SqlError> {
    let (app, database) = (app.to_owned(), database.to_owned());
    for (position, done) in applied.iter().enumerate() {
        let Some(migration) = available.iter().find(|it| it.version == done.version) else {
            let migration = done.name.clone();
            return Err(SqlError::MigrationMissing { app, database, migration });
        };
        if migration.checksum != done.checksum {
            let migration = migration.name.clone();
            return Err(SqlError::MigrationChanged { app, database, migration });
        }
        if available[position].version != done.version {
            let migration = available[position].name.clone();
            let applied = done.name.clone();
            return Err(SqlError::MigrationOrder { app, database, migration, applied });
        }
    }
    Ok(&available[applied.len()..])
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{AppliedMigration, Migration, parse, pending_migrations};

    fn migration(name: &str) -> Migration {
        parse(&Path::new("folder").join(format!("{name}.sql")), name.to_owned()).unwrap()
    }

    fn check(available: &[&str], applied: &[&str]) -> Result<Vec<String>, String> {
        let available: Vec<Migration> = available.iter().map(|name| migration(name)).collect();
        let applied: Vec<AppliedMigration> = applied
            .iter()
            .map(|name| migration(name))
            .map(|Migration { version, name, checksum, .. }| AppliedMigration {
                version,
                name,
                checksum,
            })
            .collect();
        pending_migrations("asset", "main", &available, &applied)
            .map(|pending| pending.iter().map(|it| it.name.clone()).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn unapplied_migrations_are_pending() {
        assert_eq!(check(&["0001_a", "0002_b"], &["0001_a"]).unwrap(), ["0002_b"]);
        assert!(check(&["0001_a"], &["0001_a"]).unwrap().is_empty());
    }

    #[test]
    fn conflicting_histories_are_rejected() {
        let changed = check(&["0001_b"], &["0001_a"]).unwrap_err();
        assert!(changed.contains("`0001_b`") && changed.contains("changed"), "{changed}");
        let missing = check(&["0001_a"], &["0001_a", "0002_b"]).unwrap_err();
        assert!(missing.contains("`0002_b`") && missing.contains("newer"), "{missing}");
        let order = check(&["0001_a", "0002_b"], &["0002_b"]).unwrap_err();
        assert!(order.contains("`0001_a`") && order.contains("higher"), "{order}");
    }

    #[test]
    fn migration_names_begin_with_four_digits() {
        for name in ["1_a", "0001", "0001_", "abcd_x", "00001_x"] {
            assert!(parse(Path::new(&format!("{name}.sql")), String::new()).is_none(), "{name}");
        }
    }
}
