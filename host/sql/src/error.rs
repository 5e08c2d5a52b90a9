//! Errors that the operator gets when a database cannot be opened or migrated.

use std::path::PathBuf;

/// A database cannot be used as configured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// There is no such name in the configuration.
    #[error("there is no database `{name}`; define it with `url = ...` under `[sql.{name}]`")]
    UnknownDatabase {
        /// The name asked for.
        name: String,
    },
    /// The address is not one that can be understood. It is not shown: it may hold a password.
    #[error("the url of `[sql.{name}]` cannot be used: {reason}")]
    Url {
        /// The database.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A SQLite file cannot be opened or created.
    #[error("cannot open the SQLite file {path} of `[sql.{name}]`")]
    Open {
        /// The database.
        name: String,
        /// Its file.
        path: String,
        /// Why not.
        source: sqlx::Error,
    },
    /// A file or folder cannot be read or created.
    #[error("cannot access {path}")]
    File {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The app has no migrations for the kind of database that is configured.
    #[error(
        "app `{app}` has no migrations for {dialect}, which `[sql.{database}]` is; add a folder \
         `{dialect} = ...` under `[migrations.{database}]` in app.toml or configure another database"
    )]
    NoDialect {
        /// The app.
        app: String,
        /// The database.
        database: String,
        /// Its dialect.
        dialect: &'static str,
    },
    /// A migration's file name says neither version nor name.
    #[error("the migration {path} must be named `NNNN_name.sql`, such as `0001_tables.sql`")]
    MigrationName {
        /// The file.
        path: PathBuf,
    },
    /// Two migrations have one version.
    #[error("the migrations `{first}` and `{second}` have the same number; renumber the newer one")]
    MigrationTwice {
        /// One file name.
        first: String,
        /// The other.
        second: String,
    },
    /// A migration that was applied reads differently now.
    #[error(
        "the migration `{migration}` of app `{app}` was changed after it had been applied to \
         database `{database}`; restore the file and write a new migration for the change"
    )]
    MigrationChanged {
        /// The app.
        app: String,
        /// The database.
        database: String,
        /// File name without ending.
        migration: String,
    },
    /// A new migration has a smaller number than one that was applied.
    #[error(
        "the migration `{migration}` of app `{app}` comes before `{applied}`, which database \
         `{database}` already has; give it a higher number"
    )]
    MigrationOrder {
        /// The app.
        app: String,
        /// The database.
        database: String,
        /// The new one.
        migration: String,
        /// The latest applied.
        applied: String,
    },
    /// The database has a migration that the app does not know.
    #[error(
        "database `{database}` has the migration `{migration}` of app `{app}`, which the app's \
         folder lacks; use the app's newer version"
    )]
    MigrationMissing {
        /// The app.
        app: String,
        /// The database.
        database: String,
        /// The one that is missing.
        migration: String,
    },
    /// A role for a reader cannot be made.
    #[error("the role `{role}` cannot be made: {reason}")]
    Reader {
        /// The role.
        role: String,
        /// Why not.
        reason: String,
    },
    /// A migration names a table of the host.
    #[error(
        "the migration `{migration}` of app `{app}` names a table that begins with `_wattle_`; such \
         tables belong to the host: take the name out of the migration"
    )]
    MigrationOwn {
        /// The app.
        app: String,
        /// File name without ending.
        migration: String,
    },
    /// A migration or its bookkeeping failed; nothing of it was kept.
    #[error("cannot {operation} of app `{app}` on database `{database}`")]
    Migration {
        /// What was being done, such as `apply migration 0001_tables`.
        operation: String,
        /// The app.
        app: String,
        /// The database.
        database: String,
        /// Why it failed.
        source: sqlx::Error,
    },
}
