//! Types for available migrations, applied migrations and errors of migrations.

use crate::failure::is_statement_timeout;

/// A migration of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Migration {
    /// The number `NNNN` of the file name.
    pub(crate) version: i64,
    /// File name without extension, such as `0001_tables`.
    pub(crate) name: String,
    /// Digest of `text` with LF line endings.
    pub(crate) checksum: String,
    /// SQL statements.
    pub(crate) text: String,
}

/// A migration that was applied to a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AppliedMigration {
    pub(crate) version: i64,
    pub(crate) name: String,
    pub(crate) checksum: String,
}

/// Why a migration was not applied.
#[derive(Debug)]
pub(crate) enum MigrationError {
    /// An error of the database or of the connection.
    Database(sqlx::Error),
    /// The migration timed out.
    TimedOut,
}

impl From<sqlx::Error> for MigrationError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(reason) if is_statement_timeout(reason.as_ref()) => {
                Self::TimedOut
            }
            error => Self::Database(error),
        }
    }
}
