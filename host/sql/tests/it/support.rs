//! Creates databases for tests.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use wattle_kit::postgres::Postgres;
use wattle_run::ports::sql::Sql as _;
use wattle_sql::{DatabaseConfig, Databases, Script};

pub(crate) const SQLITE_FILE: &str = "sqlite:main.db";
pub(crate) const SQLITE_MEMORY: &str = "sqlite::memory:";

/// A new database with the name `main`.
pub(crate) struct Fresh {
    pub(crate) databases: Databases,
    pub(crate) dialect: &'static str,
    config: DatabaseConfig,
    pub(crate) folder: TempDir,
    /// The server of a PostgreSQL database.
    pub(crate) server: Option<Postgres>,
}

impl Fresh {
    async fn open(url: &str, server: Option<Postgres>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = DatabaseConfig::new(url);
        let databases = open(&config, folder.path()).await;
        let dialect = databases.dialect("main").await.unwrap();
        Self { databases, dialect, config, folder, server }
    }

    /// Opens the database a second time, with another timeout of migrations.
    pub(crate) async fn with_migration_timeout(&self, timeout: Duration) -> Databases {
        open(&self.config.clone().with_migration_timeout(timeout), self.folder.path()).await
    }

    /// Creates a SQLite database.
    pub(crate) async fn sqlite(url: &str) -> Self {
        Self::open(url, None).await
    }

    /// Creates a database on a PostgreSQL server.
    pub(crate) async fn postgres(server: Postgres) -> Self {
        Self::open(&server.url(), Some(server)).await
    }

    /// Creates a SQLite database for each URL in `sqlite`. Also creates a PostgreSQL database if
    /// PostgreSQL is installed.
    pub(crate) async fn all(sqlite: &[&str]) -> Vec<Self> {
        let mut all = Vec::new();
        for url in sqlite {
            all.push(Self::sqlite(url).await);
        }
        if let Ok(server) = Postgres::for_test() {
            all.push(Self::postgres(server).await);
        }
        all
    }
}

async fn open(config: &DatabaseConfig, folder: &Path) -> Databases {
    let configs = BTreeMap::from([("main".to_owned(), config.clone())]);
    Databases::open(configs, folder).await.unwrap()
}

/// Returns the migrations in a folder.
pub(crate) fn scripts(folder: &Path) -> Vec<Script> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|it| it == "sql"));
    paths.map(|path| Script { text: std::fs::read_to_string(&path).unwrap(), path }).collect()
}
