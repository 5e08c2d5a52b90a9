//! Errors of opening and migrating a database, for operators.

use std::path::PathBuf;
use std::time::Duration;

/// The error of a database that cannot be used as configured, or of its migrations.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The configuration has no database with this name.
    #[error(
        "there is no database `{name}`; define it with `url = ...` under `[sql.{name}]`; {hint}"
    )]
    UnknownDatabase {
        /// The requested name.
        name: String,
        /// A similar name, if there is one, and the names of the databases.
        hint: String,
    },
    /// The URL is invalid. The message omits the URL, since a URL can contain a password.
    #[error("the url of `[sql.{name}]` cannot be used: {reason}")]
    Url {
        /// Name of the database.
        name: String,
        /// What is wrong with the URL.
        reason: String,
    },
    /// A SQLite file cannot be opened or created.
    #[error("cannot open the SQLite file {path} of `[sql.{name}]`")]
    Open {
        /// Name of the database.
        name: String,
        /// Path of the file.
        path: String,
        /// The error of the database.
        source: sqlx::Error,
    },
    /// A file or directory cannot be read or created.
    #[error("cannot access {path}")]
    File {
        /// Path of the file or directory.
        path: PathBuf,
        /// Why the operating system refused the access.
        source: std::io::Error,
    },
    /// The app has no migrations for the dialect of the configured database.
    #[error(
        "app `{app}` has no migrations for {dialect}, the dialect of `[sql.{database}]`; add a \
         folder `{dialect} = ...` under `[migrations.{database}]` in app.toml or configure another \
         database"
    )]
    NoDialect {
        /// Name of the app whose migrations were requested.
        app: String,
        /// Name of the database.
        database: String,
        /// Dialect of the database.
        dialect: &'static str,
    },
    /// The name of a migration file does not have the form `NNNN_name.sql`.
    #[error("the migration {path} must be named `NNNN_name.sql`, such as `0001_tables.sql`")]
    MigrationName {
        /// Path of the file.
        path: PathBuf,
    },
    /// Two migrations have the same number.
    #[error("the migrations `{first}` and `{second}` have the same number; renumber the newer one")]
    MigrationDuplicate {
        /// Name of one file.
        first: String,
        /// Name of the other file.
        second: String,
    },
    /// An applied migration was changed.
    #[error(
        "the migration `{migration}` of app `{app}` was changed after it had been applied to \
         database `{database}`; restore the file and write a new migration for the change"
    )]
    MigrationChanged {
        /// Name of the app.
        app: String,
        /// Name of the database.
        database: String,
        /// File name without extension.
        migration: String,
    },
    /// A new migration has a lower number than an applied one.
    #[error(
        "the migration `{migration}` of app `{app}` comes before `{applied}`, which database \
         `{database}` already has; give it a higher number"
    )]
    MigrationOrder {
        /// Name of the app.
        app: String,
        /// Name of the database.
        database: String,
        /// Name of the new migration.
        migration: String,
        /// Name of the applied migration.
        applied: String,
    },
    /// The database has a migration that the app lacks.
    #[error(
        "database `{database}` has the migration `{migration}` of app `{app}`, which the app's \
         folder lacks; use the app's newer version"
    )]
    MigrationMissing {
        /// Name of the app.
        app: String,
        /// Name of the database.
        database: String,
        /// Name of the missing migration.
        migration: String,
    },
    /// A reader role cannot be created.
    #[error("cannot create the role `{role}`: {reason}")]
    Reader {
        /// Name of the role.
        role: String,
        /// Why the role cannot be created.
        reason: String,
    },
    /// A migration contains the name of a table of the host.
    #[error(
        "the migration `{migration}` of app `{app}` has a name that begins with `_wattle_`; tables \
         with such names belong to the host, so remove the name from the migration"
    )]
    MigrationHostTable {
        /// Name of the app.
        app: String,
        /// File name without extension.
        migration: String,
    },
    /// A migration of PostgreSQL has a statement that is not allowed.
    #[error(
        "line {line} of the migration `{migration}` of app `{app}` cannot be applied: {reason}"
    )]
    MigrationStatement {
        /// Name of the app.
        app: String,
        /// File name without extension.
        migration: String,
        /// Number of the line on which the statement begins.
        line: usize,
        /// Why the statement is not allowed, and what is allowed instead.
        reason: String,
    },
    /// A migration did not end in time; the transaction was rolled back.
    #[error(
        "the migration `{migration}` of app `{app}` was stopped after {timeout:?} and changed \
         nothing in database `{database}`; split it into smaller migrations, or set a longer \
         `migration_timeout` under `[sql.{database}]`"
    )]
    MigrationTimeout {
        /// Name of the app.
        app: String,
        /// Name of the database.
        database: String,
        /// File name without extension.
        migration: String,
        /// Timeout of one migration.
        timeout: Duration,
    },
    /// A migration or its record failed; the transaction was rolled back.
    #[error("cannot {operation} of app `{app}` on database `{database}`")]
    Migration {
        /// The failed operation, such as ``apply migration `0001_tables` ``.
        operation: String,
        /// Name of the app that the migration belongs to.
        app: String,
        /// Name of the database.
        database: String,
        /// The error of the database.
        source: sqlx::Error,
    },
}
