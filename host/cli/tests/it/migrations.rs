//! Migrations of apps: what they may change, and what does not wait for them.

use std::path::Path;

use wattle::load::Change;
use wattle_run::grant::SqlAccess;
use wattle_run::hostcall::sql::SqlValue;
use wattle_run::limit::SqlLimits;
use wattle_run::ports::sql::Sql as _;
use wattle_sql::{DatabaseConfig, Databases};

use crate::fixture::{Fixture, write_app};

const DATABASE: &str = "[sql.notes]\nurl = \"sqlite:notes.db\"\n";

const GRANT: &str = "[grants.greeter]\nsql = [{ database = \"notes\", access = \"read-write\" }]\n";

/// Writes an app with one migration for the database `notes`.
fn write_app_with(plugins: &Path, name: &str, migration: &str) {
    write_app(plugins, name);
    let folder = plugins.join(name);
    let manifest = folder.join("app.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let tables = "[needs]\nsql = [{ database = \"notes\", access = \"read-write\" }]\n\
                  [migrations.notes]\nsqlite = \"migrations\"\n";
    std::fs::write(&manifest, format!("{text}{tables}")).unwrap();
    std::fs::create_dir_all(folder.join("migrations")).unwrap();
    std::fs::write(folder.join("migrations/0001_tables.sql"), migration).unwrap();
}

/// Returns the number of tables of the database whose name is `notes`.
async fn tables(data: &Path) -> SqlValue {
    let config = DatabaseConfig::new("sqlite:notes.db");
    let databases = Databases::open([("notes".to_owned(), config)].into(), data).await.unwrap();
    let (rule, limits) = (SqlAccess::ReadWrite.into(), SqlLimits::default());
    let text = "SELECT count(*) FROM sqlite_master WHERE name = 'notes'";
    let rows = databases.query("notes", &rule, &limits, text, &[]).await.unwrap();
    databases.close().await;
    rows.rows[0][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_without_write_access_changes_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app_with(&plugins, "greeter", "CREATE TABLE notes (id INTEGER);");
    write_app(&plugins, "other");
    let fixture = Fixture::start_in(folder, DATABASE).await;
    let [Change::Problem { message, .. }, Change::App { .. }] = &fixture.server.changes[..] else {
        panic!("{:?}", fixture.server.changes);
    };
    let entry = "`sql = [{ database = \"notes\", access = \"read-write\" }]` under \
                 `[grants.greeter]`";
    assert!(message.contains(entry), "{message}");
    assert_eq!(fixture.get("/api/v1/health").await.1["problems"], 1);
    assert_eq!(fixture.get("/apps/other/echo/x").await.0, 200);

    let Fixture { server, folder, .. } = fixture;
    server.shutdown().await;
    assert_eq!(tables(&folder.path().join("data")).await, SqlValue::Integer(0));
    let fixture = Fixture::start_in(folder, &format!("{DATABASE}{GRANT}")).await;
    assert_eq!(fixture.get("/apps/greeter/echo/x").await.0, 200);
    assert_eq!(fixture.get("/api/v1/health").await.1["problems"], serde_json::Value::Null);
    let data = fixture.folder.path().join("data");
    assert_eq!(tables(&data).await, SqlValue::Integer(1));
}
