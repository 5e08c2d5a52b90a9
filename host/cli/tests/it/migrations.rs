//! Migrations of apps: the databases that they may change, and work that does not wait for them.

use std::path::Path;

use wattle::load::Change;
use wattle_run::caller_id::CallerId;
use wattle_run::grant::SqlAccess;
use wattle_run::hostcall::sql::SqlValue;
use wattle_run::limit::SqlLimits;
use wattle_run::ports::sql::Sql as _;
use wattle_sql::{DatabaseConfig, Databases};

use crate::fixture::{Fixture, write_app};

const DATABASE: &str = "[sql.notes]\nurl = \"sqlite:notes.db\"\n";

const GRANT: &str = "[grants.greeter]\nsql = [{ database = \"notes\", access = \"read-write\" }]\n";

/// A migration that does not end.
const ENDLESS: &str = "CREATE TABLE late AS WITH RECURSIVE n (i) AS
    (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n;";

/// Writes an app with one migration for a database.
fn write_app_with(plugins: &Path, name: &str, database: &str, migration: &str) {
    write_app(plugins, name);
    let folder = plugins.join(name);
    let manifest = folder.join("app.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let tables = format!(
        "[needs]\nsql = [{{ database = \"{database}\", access = \"read-write\" }}]\n\
         [migrations.{database}]\nsqlite = \"migrations\"\n"
    );
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
    let rows =
        databases.query(CallerId::default(), "notes", &rule, &limits, text, &[]).await.unwrap();
    databases.close().await;
    rows.rows[0][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_without_write_access_changes_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app_with(&plugins, "greeter", "notes", "CREATE TABLE notes (id INTEGER);");
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

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_migration_makes_only_its_app_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app_with(&plugins, "greeter", "slow", ENDLESS);
    write_app_with(&plugins, "zeta", "notes", "CREATE TABLE notes (id INTEGER);");
    let slow = "[sql.slow]\nurl = \"sqlite:slow.db\"\nmigration_timeout = \"500ms\"\n";
    let trust = "[apps.greeter]\n[apps.zeta]\n";
    let fixture = Fixture::start_in(folder, &format!("{DATABASE}{slow}{trust}")).await;
    assert_eq!(fixture.get("/apps/zeta/echo/x").await.0, 200);

    let (status, problem) = fixture.get("/apps/greeter/echo/x").await;
    assert_eq!((status, &problem["code"]), (503, &"unavailable".into()), "{problem}");
    let (status, problem) = fixture.get("/api/v1/apps/greeter").await;
    assert_eq!(status, 503, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("its migrations were not applied"));
    assert_eq!(fixture.get("/api/v1/health").await.1["problems"], 1);
    let (_, problems) = fixture.get("/api/v1/problems").await;
    assert_eq!(problems[0]["app"], "greeter");
    let message = problems[0]["message"].as_str().unwrap();
    assert!(message.contains("`migration_timeout` under `[sql.slow]`"), "{message}");

    // A corrected migration is applied with the next reload.
    let migration = fixture.folder.path().join("plugins/greeter/migrations/0001_tables.sql");
    std::fs::write(migration, "SELECT 1;").unwrap();
    assert!(matches!(fixture.server.reload().await[..], [Change::App { .. }]));
    assert_eq!(fixture.get("/apps/greeter/echo/x").await.0, 200);
    assert_eq!(fixture.get("/api/v1/problems").await.1, serde_json::json!([]));
}
