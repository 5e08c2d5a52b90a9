//! A plugin with write access reaches neither the host's own tables nor anything outside of the
//! database, creates no unbounded values, and leaves the host's tables intact. A reader role reads
//! only what it was granted.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use wattle_graph::failure::Failure;
use wattle_graph::id::AppName;
use wattle_kit::need;
use wattle_kit::postgres::Postgres;
use wattle_run::caller_id::CallerId;
use wattle_run::grant::SqlAccess;
use wattle_run::limit::SqlLimits;
use wattle_run::ports::sql::{CommitMarker, Sql as _};
use wattle_sql::{DatabaseConfig, Databases, ReaderRole, Script, SqlError};

use crate::support::{Fresh, SQLITE_FILE, SQLITE_MEMORY};

fn app() -> AppName {
    AppName::new("app").unwrap()
}

/// A database with a table of an app, a recorded migration and a marker.
struct Bench {
    fresh: Fresh,
}

impl Bench {
    async fn new(fresh: Fresh) -> Self {
        let bench = Self { fresh };
        assert_eq!(bench.migrate(&[NOTES]).await.unwrap(), ["0001_notes"]);
        let mut transaction =
            bench.fresh.databases.begin(CallerId::default(), "main", &limits()).await.unwrap();
        assert_eq!(transaction.claim_marker("key").await.unwrap(), None);
        transaction.execute("INSERT INTO notes VALUES (1, 'a')", &[]).await.unwrap();
        let marker = CommitMarker { key: "key".into(), results: json!(["written"]) };
        transaction.commit(Some(&marker)).await.unwrap();
        bench
    }

    async fn all() -> Vec<Self> {
        join_all(Fresh::all(&[SQLITE_FILE, SQLITE_MEMORY]).await.into_iter().map(Self::new)).await
    }

    async fn migrate(&self, texts: &[&str]) -> Result<Vec<String>, SqlError> {
        self.fresh.databases.migrate(&app(), "main", scripts(texts)).await
    }

    /// Executes a statement with write access: as a query, and in a transaction.
    async fn try_everywhere(&self, text: &str) -> [Result<(), Failure>; 2] {
        let rule = SqlAccess::ReadWrite.into();
        let query = self
            .fresh
            .databases
            .query(CallerId::default(), "main", &rule, &limits(), text, &[])
            .await
            .map(drop);
        let mut transaction =
            self.fresh.databases.begin(CallerId::default(), "main", &limits()).await.unwrap();
        let executed = transaction.execute(text, &[]).await.map(drop);
        transaction.rollback().await.unwrap();
        [query, executed]
    }

    /// Asserts that the host's tables are intact and usable.
    async fn is_whole(&self) {
        assert!(self.migrate(&[NOTES]).await.unwrap().is_empty());
        let mut transaction =
            self.fresh.databases.begin(CallerId::default(), "main", &limits()).await.unwrap();
        let known = transaction.claim_marker("key").await.unwrap();
        assert_eq!(known, Some(json!(["written"])));
        transaction.execute("UPDATE notes SET text = 'b'", &[]).await.unwrap();
        transaction.rollback().await.unwrap();
    }
}

/// Returns migrations with these texts.
fn scripts(texts: &[&str]) -> Vec<Script> {
    let names = ["0001_notes.sql", "0002_more.sql"];
    let script = |(text, name): (&&str, &str)| Script { path: name.into(), text: (*text).into() };
    texts.iter().zip(names).map(script).collect()
}

const NOTES: &str = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);";

fn limits() -> SqlLimits {
    SqlLimits::default()
}

#[tokio::test(flavor = "multi_thread")]
async fn host_tables_are_protected() {
    for bench in Bench::all().await {
        for text in [
            "SELECT * FROM _wattle_migrations",
            "SELECT answers FROM \"_wattle_journal\"",
            "DELETE FROM _wattle_migrations",
            "UPDATE _wattle_migrations SET checksum = ''",
            "INSERT INTO _wattle_journal VALUES ('k', 'null', 0)",
            "DROP TABLE _wattle_migrations",
            "TRUNCATE _wattle_migrations",
            "ALTER TABLE _wattle_migrations RENAME TO gone",
            "ALTER TABLE notes RENAME TO _wattle_other",
            "CREATE VIEW v AS SELECT * FROM _wattle_migrations",
            "CREATE INDEX i ON _wattle_journal (key)",
            "INSERT INTO notes SELECT 2, checksum FROM _wattle_migrations",
            "WITH m AS (SELECT * FROM _wattle_migrations) SELECT * FROM m",
            "CREATE TRIGGER t AFTER INSERT ON notes EXECUTE FUNCTION f()",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'DELETE FROM x RETURNING 1'",
            "ATTACH DATABASE 'other.db' AS other",
            "PRAGMA writable_schema = 1",
        ] {
            for answer in bench.try_everywhere(text).await {
                let failure = answer.expect_err(text);
                assert!(
                    ["denied", "invalid"].contains(&failure.code.as_str()),
                    "{text}: {failure}"
                );
            }
        }
        bench.is_whole().await;
    }
}

/// SQLite itself enforces the rule on accesses that the SQL text does not show.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_authorizer_protects_host_tables() {
    let bench = Bench::new(Fresh::sqlite(SQLITE_FILE).await).await;
    // Another program created a view and a trigger over the host's tables.
    let url = format!("sqlite:{}", bench.fresh.folder.path().join("main.db").display());
    let mut direct = sqlx::SqliteConnection::connect(&url).await.unwrap();
    for text in [
        "CREATE VIEW peek AS SELECT checksum AS c FROM _wattle_migrations",
        "CREATE TRIGGER harm AFTER INSERT ON notes BEGIN DELETE FROM _wattle_migrations; END",
    ] {
        direct.execute(text).await.unwrap();
    }
    direct.close().await.unwrap();
    for text in [
        "SELECT c FROM peek",
        "INSERT INTO notes VALUES (7, 'x')",
        "SELECT * FROM sqlite_dbpage",
        "SELECT * FROM pragma_journal_mode",
    ] {
        for answer in bench.try_everywhere(text).await {
            assert!(answer.is_err(), "{text}");
        }
    }
    bench.is_whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_cannot_access_host_tables_or_other_databases() {
    for bench in Bench::all().await {
        let error = bench.migrate(&[NOTES, "DELETE FROM _wattle_journal;"]).await.unwrap_err();
        assert!(error.to_string().contains("belong to the host"), "{error}");
        if bench.fresh.dialect == "sqlite" {
            for text in [
                "ATTACH DATABASE 'other.db' AS other;",
                "PRAGMA query_only = 0;",
                "CREATE TABLE late (id INTEGER); COMMIT;",
                "ROLLBACK; BEGIN;",
                "ROLLBACK; CREATE TABLE late (id INTEGER);",
            ] {
                assert!(bench.migrate(&[NOTES, text]).await.is_err(), "{text}");
            }
            // Further statements that a migration is allowed to run.
            let text = "PRAGMA user_version = 3; PRAGMA defer_foreign_keys = 1;
                CREATE VIRTUAL TABLE words USING fts5(body);
                INSERT INTO words VALUES ('green tea');
                CREATE TRIGGER copy AFTER INSERT ON notes BEGIN
                    INSERT INTO words VALUES (new.text); END;
                ALTER TABLE notes ADD COLUMN tag TEXT;
                ALTER TABLE notes RENAME COLUMN tag TO label;";
            assert_eq!(bench.migrate(&[NOTES, text]).await.unwrap(), ["0002_more"]);
            let [query, executed] =
                bench.try_everywhere("SELECT * FROM words WHERE words MATCH 'tea'").await;
            query.unwrap();
            executed.unwrap();
        }
    }
}

/// The modules of SQLite store virtual tables in ordinary tables, which they parse in the process
/// of the host.
#[tokio::test(flavor = "multi_thread")]
async fn tables_of_a_virtual_table_are_changed_by_its_module_only() {
    let bench = Bench::new(Fresh::sqlite(SQLITE_FILE).await).await;
    let tables = "CREATE VIRTUAL TABLE words USING fts5(body);
        CREATE VIRTUAL TABLE areas USING rtree(id, low, high);
        CREATE TRIGGER copy AFTER INSERT ON notes BEGIN INSERT INTO words VALUES (new.text); END;";
    assert_eq!(bench.migrate(&[NOTES, tables]).await.unwrap(), ["0002_more"]);
    for text in [
        "UPDATE words_data SET block = x'00'",
        "DELETE FROM words_idx",
        "INSERT INTO words_config VALUES ('version', 9)",
        "UPDATE areas_node SET data = x'00'",
        "DROP TABLE words_data",
    ] {
        for answer in bench.try_everywhere(text).await {
            let failure = answer.expect_err(text);
            assert!(failure.message.contains("may not be"), "{text}: {failure}");
        }
    }
    let mut transaction =
        bench.fresh.databases.begin(CallerId::default(), "main", &limits()).await.unwrap();
    for text in [
        "INSERT INTO notes VALUES (2, 'green tea')",
        "UPDATE words SET body = 'black tea' WHERE words MATCH 'green'",
        "INSERT INTO words (words) VALUES ('integrity-check')",
        "INSERT INTO areas VALUES (1, 2, 3)",
        "ALTER TABLE words RENAME TO phrases",
        "DROP TABLE areas",
    ] {
        transaction.execute(text, &[]).await.unwrap_or_else(|failure| panic!("{failure}"));
    }
    let found = transaction.query("SELECT * FROM phrases WHERE phrases MATCH 'black'", &[]).await;
    assert_eq!(found.unwrap().rows.len(), 1);
    transaction.commit(None).await.unwrap();
    assert_eq!(bench.migrate(&[NOTES, tables]).await.unwrap(), Vec::<String>::new());
}

/// All writers of a SQLite database share one connection, and a temporary object lasts as long as
/// its connection.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_writers_and_migrations_create_no_temporary_objects() {
    for url in [SQLITE_FILE, SQLITE_MEMORY] {
        let bench = Bench::new(Fresh::sqlite(url).await).await;
        for text in [
            "CREATE TEMP TABLE notes (id INTEGER, text TEXT)",
            "CREATE TABLE temp.notes (id INTEGER, text TEXT)",
            "CREATE TABLE \"temp\".notes AS SELECT 1 AS id, '' AS text",
            "CREATE TEMP VIEW notes AS SELECT 1 AS id, 'c' AS text",
            "CREATE VIEW temp.notes AS SELECT 1 AS id, 'c' AS text",
            "CREATE VIRTUAL TABLE temp.notes USING fts5(id, text)",
            "INSERT INTO temp.sqlite_master VALUES ('table', 'notes', 'notes', 0, '')",
        ] {
            for answer in bench.try_everywhere(text).await {
                let failure = answer.expect_err(text);
                assert_eq!(failure.code, "denied", "{text}: {failure}");
            }
            assert!(bench.migrate(&[NOTES, text]).await.is_err(), "{text}");
        }
        for text in [
            "CREATE TEMP TRIGGER t AFTER INSERT ON notes BEGIN DELETE FROM notes; END;",
            "CREATE TRIGGER temp.t AFTER INSERT ON main.notes BEGIN DELETE FROM notes; END;",
        ] {
            assert!(bench.migrate(&[NOTES, text]).await.is_err(), "{text}");
        }
        bench.is_whole().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_of_postgresql_can_neither_define_nor_run_code() {
    let server = need!(Postgres::for_test());
    let bench = Bench::new(Fresh::postgres(server).await).await;
    for (text, reason) in [
        ("DO $$ BEGIN EXECUTE 'DELETE FROM _watt' || 'le_journal'; END $$;", "`DO`"),
        (
            "CREATE FUNCTION harm() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN EXECUTE 'DELETE FROM _watt' || 'le_journal'; RETURN NULL; END $$;",
            "`CREATE FUNCTION`",
        ),
        ("CREATE TRIGGER t AFTER INSERT ON notes EXECUTE FUNCTION f();", "`CREATE TRIGGER`"),
        ("CREATE RULE r AS ON INSERT TO notes DO ALSO (SELECT 1; SELECT 2);", "`CREATE RULE`"),
        ("CREATE EXTENSION dblink;", "`CREATE EXTENSION`"),
        ("SELECT query_to_xml('DELETE FROM _watt' || 'le_journal', true, true, '');", "`query_to"),
        ("SELECT set_config('statement_timeout', '0', false);", "`set_config`"),
        ("SET statement_timeout = 0;", "`SET`"),
        ("COMMIT;", "`COMMIT`"),
        ("COPY notes FROM PROGRAM 'true';", "`COPY`"),
        ("DELETE FROM U&\"\\005fwattle_journal\";", "escapes"),
        ("SELECT E'a'\n'\\''; DO $a$ BEGIN END $a$; --';", "Unterminated"),
    ] {
        let text = format!("-- first\nINSERT INTO notes VALUES (2, 'b');\n{text}");
        let error = bench.migrate(&[NOTES, &text]).await.unwrap_err();
        let SqlError::MigrationStatement { line, reason: found, .. } = &error else {
            panic!("{text}: {error}");
        };
        assert!(*line >= 3 && found.contains(reason), "{text}: {error}");
    }
    bench.is_whole().await;
    let long = format!("SELECT '{}';", "x".repeat(1 << 20));
    let error = bench.migrate(&[NOTES, &long]).await.unwrap_err();
    assert!(error.to_string().contains("1048576 are allowed"), "{error}");

    // The same texts in strings and comments, which PostgreSQL does not execute, are allowed.
    let text = "INSERT INTO notes VALUES (2, $$DO ';'; CREATE FUNCTION f()$$); -- DO;
        COMMENT ON TABLE notes IS 'SET role; COMMIT;';
        ALTER TABLE notes ADD COLUMN tag TEXT DEFAULT E'\\';';
        CREATE VIEW tags AS SELECT tag FROM notes;";
    assert_eq!(bench.migrate(&[NOTES, text]).await.unwrap(), ["0002_more"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_that_does_not_end_in_time_is_stopped() {
    let rows = "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n)";
    let table = "CREATE TABLE late (id INTEGER);";
    for fresh in Fresh::all(&[SQLITE_FILE]).await {
        let bench = Bench::new(fresh).await;
        let hasty = bench.fresh.with_migration_timeout(Duration::from_millis(200)).await;
        let mut endless = vec![
            format!("{rows} SELECT count(*) FROM n;"),
            format!("{table} INSERT INTO notes {rows} SELECT i, 'x' FROM n;"),
        ];
        if bench.fresh.dialect == "postgres" {
            // No single statement of this migration is slow.
            endless.push("SELECT pg_sleep(0.1);".repeat(100));
        }
        for text in &endless {
            let error = hasty.migrate(&app(), "main", scripts(&[NOTES, text])).await.unwrap_err();
            assert!(matches!(error, SqlError::MigrationTimeout { .. }), "{text}: {error}");
            let hint = "`migration_timeout` under `[sql.main]`";
            assert!(error.to_string().contains(hint), "{error}");
            // Writers of this host and of another host can continue.
            let transaction = hasty.begin(CallerId::default(), "main", &limits()).await.unwrap();
            transaction.rollback().await.unwrap();
            bench.is_whole().await;
        }
        // The stopped migrations changed nothing, and a corrected migration can be applied.
        assert_eq!(bench.migrate(&[NOTES, table]).await.unwrap(), ["0002_more"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn value_sizes_are_limited() {
    let bench = Bench::new(Fresh::sqlite(SQLITE_FILE).await).await;
    for text in [
        "SELECT hex(zeroblob(450000000))",
        "SELECT length(hex(zeroblob(450000000)))",
        "INSERT INTO notes VALUES (3, CAST(zeroblob(900000000) AS TEXT))",
        "SELECT length(replace(hex(zeroblob(100000)), '0', hex(zeroblob(100000))))",
    ] {
        for answer in bench.try_everywhere(text).await {
            // A query outside of a transaction cannot insert.
            let Err(failure) = answer else { panic!("{text}") };
            let is_query =
                failure.message.contains("readonly") || failure.message.contains("query");
            assert!(failure.code == "limit" || is_query, "{text}: {failure}");
        }
    }
    let [_, executed] = bench.try_everywhere("SELECT zeroblob(17000000)").await;
    let failure = executed.unwrap_err();
    assert_eq!(failure.details.unwrap()["limit"], "sql.value_bytes");
    // The same limits apply to the connection of the host's tables, which still works.
    bench.is_whole().await;
}

/// A row of PostgreSQL counts as the server sends it, before the host parses its values.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_postgresql_are_limited_as_they_are_sent() {
    let server = need!(Postgres::for_test());
    let bench = Bench::new(Fresh::postgres(server).await).await;
    let query = "SELECT ('[' || repeat(' ', 30000000) || ']')::json";
    let rule = SqlAccess::ReadWrite.into();
    let rows = bench
        .fresh
        .databases
        .query(CallerId::default(), "main", &rule, &limits(), query, &[])
        .await
        .unwrap();
    assert!(rows.truncated && rows.rows.is_empty());
    assert_eq!(rows.columns.len(), 1);
    let mut transaction =
        bench.fresh.databases.begin(CallerId::default(), "main", &limits()).await.unwrap();
    let returned = transaction.execute(query, &[]).await.unwrap().returned;
    assert!(returned.truncated && returned.rows.is_empty());
    transaction.rollback().await.unwrap();
    bench.is_whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_databases_are_shortened() {
    for bench in Bench::all().await {
        // The message quotes the value, or the name of the column.
        let text = if bench.fresh.dialect == "postgres" {
            "SELECT repeat('x', 3000000)::integer".to_owned()
        } else {
            format!("SELECT {}", "x".repeat(100_000))
        };
        for answer in bench.try_everywhere(&text).await {
            let failure = answer.unwrap_err();
            assert_eq!(failure.code, "invalid");
            assert!(failure.message.ends_with("xxx..."));
            assert!(failure.message.len() < 3_000);
        }
        bench.is_whole().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_memory_is_limited() {
    let bench = Bench::new(Fresh::sqlite(SQLITE_MEMORY).await).await;
    // In an in-memory database, a statement fills memory and not a file.
    let mut transaction =
        bench.fresh.databases.begin(CallerId::default(), "main", &limits()).await.unwrap();
    let fill = "INSERT INTO notes WITH RECURSIVE n (i) AS
        (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
        SELECT i, CAST(zeroblob(8000000) AS TEXT) FROM n";
    let failure = transaction.execute(fill, &[]).await.unwrap_err();
    assert_eq!(failure.code, "limit", "{failure}");
    assert_eq!(failure.details.unwrap()["limit"], "sql.memory");
    drop(transaction);
    bench.is_whole().await;
}

/// SQLite would write the rows that do not fit into its cache to a temporary file.
#[tokio::test(flavor = "multi_thread")]
async fn intermediate_tables_of_sqlite_are_limited() {
    let bench = Bench::new(Fresh::sqlite(SQLITE_FILE).await).await;
    let gigabyte = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        SELECT count(*) FROM (SELECT DISTINCT i || hex(zeroblob(500000)) FROM n)";
    for answer in bench.try_everywhere(gigabyte).await {
        let failure = answer.unwrap_err();
        assert_eq!(failure.code, "limit", "{failure}");
        assert_eq!(failure.details.unwrap()["limit"], "sql.memory");
    }
    bench.is_whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_files_are_limited_and_deleted_rows_make_room() {
    let folder = tempfile::tempdir().unwrap();
    let config = DatabaseConfig::new(SQLITE_FILE).with_max_bytes(1 << 20);
    let configs = BTreeMap::from([("main".to_owned(), config)]);
    let databases = Databases::open(configs, folder.path()).await.unwrap();
    let write = async |text: &str| {
        let mut transaction = databases.begin(CallerId::default(), "main", &limits()).await?;
        transaction.execute(text, &[]).await?;
        transaction.commit(None).await
    };
    write(NOTES.trim_end_matches(';')).await.unwrap();
    // Eight rows of 100 KB fit, and eight more do not.
    let fill = "INSERT INTO notes (text) WITH RECURSIVE n (i) AS
        (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8)
        SELECT CAST(zeroblob(100000) AS TEXT) FROM n";
    write(fill).await.unwrap();
    let failure = write(fill).await.unwrap_err();
    assert_eq!(failure.code, "limit", "{failure}");
    assert_eq!(failure.details.unwrap()["limit"], "sql.file_bytes");
    write("DELETE FROM notes").await.unwrap();
    write(fill).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn log_of_sqlite_is_cut_after_a_large_transaction() {
    let fresh = Fresh::sqlite(SQLITE_FILE).await;
    let log = fresh.folder.path().join("main.db-wal");
    let write = async |text: &str| {
        let mut transaction =
            fresh.databases.begin(CallerId::default(), "main", &limits()).await.unwrap();
        transaction.execute(text, &[]).await.unwrap();
        transaction.commit(None).await.unwrap();
        std::fs::metadata(&log).unwrap().len()
    };
    write(NOTES.trim_end_matches(';')).await;
    let large = "INSERT INTO notes (text) WITH RECURSIVE n (i) AS
        (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4)
        SELECT CAST(zeroblob(8000000) AS TEXT) FROM n";
    assert!(write(large).await > 32_000_000, "the log has the whole transaction");
    let kept = write("INSERT INTO notes (text) VALUES ('a')").await;
    assert!(kept <= 16 << 20, "{kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reader_role_reads_only_its_grants() {
    let server = need!(Postgres::for_test());
    let bench = Bench::new(Fresh::postgres(server).await).await;
    let server = bench.fresh.server.as_ref().unwrap();
    let mut admin = PgConnection::connect(&server.url()).await.unwrap();
    for text in [
        "CREATE SCHEMA sales",
        "CREATE TABLE sales.\"Orders\" (id INTEGER)",
        "CREATE TABLE secrets (value TEXT)",
        "CREATE TABLE open (id INTEGER)",
        "GRANT SELECT ON open TO PUBLIC",
    ] {
        admin.execute(text).await.unwrap();
    }
    let role = |tables: &[&str]| {
        ReaderRole::new("shop_reader", tables.iter().map(|&it| it.to_owned()).collect()).unwrap()
    };
    let config = DatabaseConfig::new(server.url());
    let apply = |tables| {
        let config = &config;
        async move { role(tables).apply("main", config, Some("it's")).await }
    };
    // The second call revokes the right on `secrets`, which only the first call grants.
    apply(&["notes", "secrets"]).await.unwrap();
    assert_eq!(apply(&["notes", "sales.Orders"]).await.unwrap(), ["public.open"]);

    let url = server.url().replace("postgres@", "shop_reader@");
    let mut reader = PgConnection::connect(&url).await.unwrap();
    for text in ["SELECT text FROM notes", "SELECT * FROM sales.\"Orders\""] {
        reader.fetch_all(text).await.unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    reader.execute("SET default_transaction_read_only = off").await.unwrap();
    for text in [
        "SELECT * FROM secrets",
        "SELECT * FROM _wattle_migrations",
        "SELECT * FROM _wattle_journal",
        "INSERT INTO notes VALUES (9, 'x')",
        "UPDATE notes SET text = ''",
        "DELETE FROM notes",
        "TRUNCATE notes",
        "CREATE ROLE other",
        "CREATE SCHEMA other",
        "SELECT pg_read_file('/etc/passwd')",
    ] {
        let error = reader.execute(text).await.unwrap_err();
        let state = error.into_database_error().unwrap().code().unwrap().into_owned();
        assert_eq!(state, "42501", "{text}");
    }
    // A role with more rights is rejected.
    for text in ["CREATE ROLE boss CREATEROLE LOGIN", "CREATE ROLE owner LOGIN"] {
        admin.execute(text).await.unwrap();
    }
    admin.execute(AssertSqlSafe("ALTER TABLE secrets OWNER TO owner")).await.unwrap();
    for name in ["boss", "owner", "postgres"] {
        let role = ReaderRole::new(name, ["notes".to_owned()].into()).unwrap();
        let error = role.apply("main", &config, None).await.unwrap_err();
        assert!(error.to_string().contains("choose another name"), "{error}");
    }
    let missing = ReaderRole::new("r", ["nothing".to_owned()].into()).unwrap();
    let error = missing.apply("main", &config, None).await.unwrap_err().to_string();
    assert!(error.contains("nothing"), "{error}");
}
