//! The URLs of databases.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;

use crate::error::SqlError;
use crate::limit::MIGRATION_TIMEOUT;
use crate::sqlite::limits::FILE_BYTES;

/// An `[sql.<name>]` table of the configuration.
#[derive(Clone)]
pub struct DatabaseConfig {
    url: String,
    password: Option<String>,
    migration_timeout: Duration,
    max_bytes: u64,
}

impl DatabaseConfig {
    /// Returns a database by its URL: `sqlite:<path>` (relative to the data folder),
    /// `sqlite::memory:` or `postgres://user@host/database`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            password: None,
            migration_timeout: MIGRATION_TIMEOUT,
            max_bytes: FILE_BYTES,
        }
    }

    /// Sets the password for PostgreSQL. This password replaces a password in the URL.
    pub fn with_password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Sets the timeout of one migration. Default: [`MIGRATION_TIMEOUT`].
    pub fn with_migration_timeout(mut self, timeout: Duration) -> Self {
        self.migration_timeout = timeout;
        self
    }

    pub(crate) fn migration_timeout(&self) -> Duration {
        self.migration_timeout
    }

    /// Sets the maximum size of the file of a SQLite database, in bytes. Default: 16 GiB.
    pub fn with_max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    pub(crate) fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Returns the file of a SQLite database. Returns `None` for other databases, and for an
    /// invalid URL.
    pub fn sqlite_file(&self, data_dir: &Path) -> Option<PathBuf> {
        match DatabaseUrl::parse("", self, data_dir) {
            Ok(DatabaseUrl::SqliteFile(path)) => Some(path),
            _ => None,
        }
    }
}

/// Omits the URL, which can contain a password.
impl fmt::Debug for DatabaseConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DatabaseConfig").finish_non_exhaustive()
    }
}

/// A parsed database URL.
pub(crate) enum DatabaseUrl {
    /// A file, which is created if missing.
    SqliteFile(PathBuf),
    /// A database in memory, for tests.
    SqliteMemory,
    /// A PostgreSQL server.
    Postgres(Box<PgConnectOptions>),
}

impl DatabaseUrl {
    pub(crate) fn parse(
        name: &str,
        config: &DatabaseConfig,
        data_dir: &Path,
    ) -> Result<Self, SqlError> {
        let wrong = |reason: String| SqlError::Url { name: name.to_owned(), reason };
        if let Some(path) = config.url.strip_prefix("sqlite:") {
            return Self::sqlite(path, data_dir).map_err(wrong);
        }
        if !config.url.starts_with("postgres://") && !config.url.starts_with("postgresql://") {
            return Err(wrong("it must begin with `sqlite:` or `postgres://`".to_owned()));
        }
        let options = PgConnectOptions::from_str(&config.url)
            .map_err(|error| wrong(format!("it is not a PostgreSQL URL ({error})")))?;
        Ok(Self::Postgres(Box::new(match &config.password {
            Some(password) => options.password(password),
            None => options,
        })))
    }

    fn sqlite(path: &str, data_dir: &Path) -> Result<Self, String> {
        if path == ":memory:" {
            return Ok(Self::SqliteMemory);
        }
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path.contains('?') {
            return Err("it must be `sqlite:` and a path, without options".to_owned());
        }
        Ok(Self::SqliteFile(data_dir.join(path)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{DatabaseConfig, DatabaseUrl};

    fn parse(url: &str) -> Result<DatabaseUrl, String> {
        DatabaseUrl::parse("main", &DatabaseConfig::new(url), Path::new("/data"))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn sqlite_paths_are_relative_to_the_data_folder() {
        for (url, expected) in [
            ("sqlite:a.db", "/data/a.db"),
            ("sqlite://sub/a.db", "/data/sub/a.db"),
            ("sqlite:///var/a.db", "/var/a.db"),
            ("sqlite:/var/a.db", "/var/a.db"),
        ] {
            let Ok(DatabaseUrl::SqliteFile(path)) = parse(url) else { panic!("{url}") };
            assert_eq!(path, Path::new(expected), "{url}");
            let file = DatabaseConfig::new(url).sqlite_file(Path::new("/data"));
            assert_eq!(file.as_deref(), Some(Path::new(expected)), "{url}");
        }
        let elsewhere = DatabaseConfig::new("postgres://u@h/d");
        assert_eq!(elsewhere.sqlite_file(Path::new("/data")), None);
        assert!(matches!(parse("sqlite::memory:"), Ok(DatabaseUrl::SqliteMemory)));
    }

    #[test]
    fn invalid_urls_are_rejected_without_showing_them() {
        for url in ["mysql://u:topsecret@h/d", "sqlite:", "postgres://u:topsecret@h:port/d"] {
            let Err(message) = parse(url) else { panic!("{url}") };
            assert!(message.contains("[sql.main]") && !message.contains("topsecret"), "{message}");
        }
        let config = DatabaseConfig::new("postgres://u:topsecret@h/d").with_password("topsecret");
        assert!(!format!("{config:?}").contains("topsecret"));
    }
}
