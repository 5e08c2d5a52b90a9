//! Behavior that SQLite and PostgreSQL share.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wattle_graph::failure::Failure;
use wattle_graph::id::AppName;
use wattle_run::caller_id::CallerId;
use wattle_run::grant::SqlAccess;
use wattle_run::hostcall::sql::{Rows, SqlValue};
use wattle_run::limit::SqlLimits;
use wattle_run::ports::sql::{CommitMarker, Sql as _, SqlTransaction};
use wattle_sql::{DatabaseConfig, Databases, SqlError};

use crate::support::{Fresh, SQLITE_FILE, SQLITE_MEMORY, scripts};

const TABLE: &str = "CREATE TABLE item (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, price NUMERIC NOT NULL CHECK (price > 0),
    parent INTEGER REFERENCES item (id), active BOOLEAN)";

struct Bench {
    fresh: Fresh,
}

impl Bench {
    async fn sqlite(url: &str) -> Self {
        Self { fresh: Fresh::sqlite(url).await }
    }

    async fn all() -> Vec<Self> {
        let all = Fresh::all(&[SQLITE_FILE, SQLITE_MEMORY]).await;
        all.into_iter().map(|fresh| Self { fresh }).collect()
    }

    async fn query(&self, text: &str, parameters: &[SqlValue]) -> Result<Rows, Failure> {
        self.query_within(&SqlLimits::default(), SqlAccess::ReadOnly, text, parameters).await
    }

    async fn query_within(
        &self,
        limits: &SqlLimits,
        access: SqlAccess,
        text: &str,
        parameters: &[SqlValue],
    ) -> Result<Rows, Failure> {
        self.fresh
            .databases
            .query(CallerId::default(), "main", &access.into(), limits, text, parameters)
            .await
    }

    async fn begin(&self) -> Box<dyn SqlTransaction> {
        self.fresh
            .databases
            .begin(CallerId::default(), "main", &SqlLimits::default())
            .await
            .unwrap()
    }

    /// Returns the results that the marker of `key` recorded; `None` without a marker.
    async fn committed(&self, key: &str) -> Option<Value> {
        let mut transaction = self.begin().await;
        let answers = transaction.claim_marker(key).await.unwrap();
        transaction.rollback().await.unwrap();
        answers
    }

    async fn execute(&self, text: &str, parameters: &[SqlValue]) -> Result<Rows, Failure> {
        let mut transaction = self.begin().await;
        let executed = transaction.execute(text, parameters).await?;
        transaction.commit(None).await?;
        Ok(executed.returned)
    }

    async fn count(&self) -> SqlValue {
        self.query("SELECT count(*) FROM item", &[]).await.unwrap().rows[0][0].clone()
    }

    fn is_postgres(&self) -> bool {
        self.fresh.dialect == "postgres"
    }
}

fn text(value: &str) -> SqlValue {
    SqlValue::Text(value.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_written_and_read_unchanged() {
    for bench in Bench::all().await {
        bench.execute(TABLE, &[]).await.unwrap();
        let insert =
            "INSERT INTO item (name, price, active) VALUES ($1, $2, $3) RETURNING id, active";
        let insert = if bench.is_postgres() {
            insert
                .replace("(name, price, active) VALUES (", "(id, name, price, active) VALUES (1, ")
        } else {
            insert.to_owned()
        };
        let values = [text("it's \\ 腾讯"), SqlValue::Integer(320), SqlValue::Boolean(true)];
        let returned = bench.execute(&insert, &values).await.unwrap();
        assert_eq!(returned.rows, [[SqlValue::Integer(1), SqlValue::Boolean(true)]]);
        assert_eq!(returned.columns[0].name, "id");

        let select = "SELECT name, parent, active FROM item WHERE price = $1 AND name = $2";
        let rows =
            bench.query(select, &[SqlValue::Real(320.0), text("it's \\ 腾讯")]).await.unwrap();
        assert_eq!(rows.rows, [[text("it's \\ 腾讯"), SqlValue::Null, SqlValue::Boolean(true)]]);
        assert!(!rows.truncated);
        let none = bench.query(select, &[SqlValue::Integer(1), text("")]).await.unwrap();
        assert!(none.rows.is_empty());
        assert_eq!(none.columns.len(), 3, "columns are known without rows");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_infers_parameter_types() {
    for bench in Bench::all().await {
        if !bench.is_postgres() {
            continue;
        }
        let select = "SELECT $1::int2, $2::int8, $3::numeric, $4::date, $5::timestamptz, $6::uuid,
            $7::jsonb, $8::bytea, $9::text[], $10::float8, $11::int4, 'NaN'::float8 AS nan, $12";
        let values = [
            SqlValue::Integer(7),
            SqlValue::Integer(1 << 40),
            SqlValue::Real(1.5),
            text("2025-01-15"),
            text("2025-01-15T10:30:45+08:00"),
            text("0190f3c8-6b0a-7000-8000-000000000000"),
            SqlValue::Json(json!({ "a": ["'", "\\"] })),
            SqlValue::Bytes(vec![0, 1, 255].into()),
            text("{a,b}"),
            SqlValue::Integer(3),
            SqlValue::Real(4.0),
            SqlValue::Integer(9),
        ];
        let rows = bench.query(select, &values).await.unwrap();
        let other = |value: &str| SqlValue::Other(value.to_owned());
        assert_eq!(
            rows.rows[0],
            [
                SqlValue::Integer(7),
                SqlValue::Integer(1 << 40),
                other("1.5"),
                other("2025-01-15"),
                other("2025-01-15 02:30:45+00"),
                other("0190f3c8-6b0a-7000-8000-000000000000"),
                SqlValue::Json(json!({ "a": ["'", "\\"] })),
                SqlValue::Bytes(vec![0, 1, 255].into()),
                other("{a,b}"),
                SqlValue::Real(3.0),
                SqlValue::Integer(4),
                other("NaN"),
                text("9"),
            ]
        );
        assert_eq!(rows.columns[3].type_name, "date");
        let wrong = bench.query("SELECT $1::int4", &[text("x")]).await.unwrap_err();
        assert_eq!(wrong.code, "invalid", "{wrong}");
        assert_eq!(wrong.details, Some(json!({ "dialect": "postgres", "sqlstate": "22P02" })));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_values_keep_their_types() {
    let bench = Bench::sqlite(SQLITE_FILE).await;
    let values = [SqlValue::Bytes(vec![0, 255].into()), SqlValue::Real(1.5), SqlValue::Null];
    let rows = bench.query("SELECT $1, $2, $3, $1", &values).await.unwrap();
    let [bytes, real, null] = values;
    assert_eq!(rows.rows, [[bytes.clone(), real, null, bytes]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_cannot_write() {
    for bench in Bench::all().await {
        bench.execute(TABLE, &[]).await.unwrap();
        let write = "INSERT INTO item (id, name, price) VALUES (1, 'a', 1) RETURNING id";
        let denied = bench.query(write, &[]).await.unwrap_err();
        assert_eq!(denied.code, "denied", "by the parser: {denied}");
        let limits = SqlLimits::default();
        let denied =
            bench.query_within(&limits, SqlAccess::ReadWrite, write, &[]).await.unwrap_err();
        assert_eq!(denied.code, "denied", "by the database: {denied}");
        assert_eq!(bench.count().await, SqlValue::Integer(0));
        bench.execute(write, &[]).await.unwrap();
        assert_eq!(bench.count().await, SqlValue::Integer(1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn constraint_violations_name_the_constraint() {
    for bench in Bench::all().await {
        bench.execute(TABLE, &[]).await.unwrap();
        let row = "INSERT INTO item (id, name, price, parent) VALUES ";
        bench.execute(&format!("{row} (1, 'a', 1, NULL)"), &[]).await.unwrap();
        for (values, kind) in [
            ("(2, 'a', 1, NULL)", "unique"),
            ("(2, 'b', 0, NULL)", "check"),
            ("(2, NULL, 1, NULL)", "not-null"),
            ("(2, 'b', 1, 99)", "foreign-key"),
        ] {
            let failure = bench.execute(&format!("{row} {values}"), &[]).await.unwrap_err();
            assert_eq!(failure.code, "conflict", "{failure}");
            let details = failure.details.unwrap();
            assert_eq!(details["kind"], kind);
            if kind != "foreign-key" {
                assert!(details["constraint"].is_string(), "{kind}");
            }
        }
        let failure = bench.query("SELECT * FROM nothing", &[]).await.unwrap_err();
        assert_eq!(failure.code, "invalid");
        assert!(failure.message.contains("nothing"), "{failure}");
        assert_eq!(bench.query("SELECT FROM WHERE", &[]).await.unwrap_err().code, "invalid");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_statement_fails_its_transaction() {
    for bench in Bench::all().await {
        bench.execute(TABLE, &[]).await.unwrap();
        let insert = "INSERT INTO item (id, name, price) VALUES ($1, $2, 1)";
        let mut transaction = bench.begin().await;
        let first = transaction.execute(insert, &[SqlValue::Integer(1), text("a")]).await;
        assert_eq!(first.unwrap().rows_affected, 1);
        transaction.execute(insert, &[SqlValue::Integer(1), text("a")]).await.unwrap_err();
        let later = transaction.execute(insert, &[SqlValue::Integer(2), text("b")]).await;
        assert_eq!(later.unwrap_err().code, "conflict");
        assert_eq!(transaction.commit(None).await.unwrap_err().code, "conflict");
        assert_eq!(bench.count().await, SqlValue::Integer(0));

        let mut dropped = bench.begin().await;
        dropped.execute(insert, &[SqlValue::Integer(1), text("a")]).await.unwrap();
        drop(dropped);
        assert_eq!(bench.count().await, SqlValue::Integer(0));
        let mut undone = bench.begin().await;
        undone.execute(insert, &[SqlValue::Integer(1), text("a")]).await.unwrap();
        let seen = undone.query("SELECT id FROM item", &[]).await.unwrap();
        assert_eq!(seen.rows, [[SqlValue::Integer(1)]]);
        undone.rollback().await.unwrap();
        assert_eq!(bench.count().await, SqlValue::Integer(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_records_the_results_under_the_key_of_its_marker() {
    for bench in Bench::all().await {
        assert_eq!(bench.committed("task/1").await, None);
        bench.execute(TABLE, &[]).await.unwrap();
        let marker = CommitMarker { key: "task/1".to_owned(), results: json!([{ "rows": 1 }]) };
        let mut transaction = bench.begin().await;
        let insert = "INSERT INTO item (id, name, price) VALUES (1, 'a', 1)";
        transaction.execute(insert, &[]).await.unwrap();
        transaction.commit(Some(&marker)).await.unwrap();
        assert_eq!(bench.committed("task/1").await, Some(marker.results.clone()));
        assert_eq!(bench.committed("task/2").await, None);

        let again = bench.begin().await.commit(Some(&marker)).await.unwrap_err();
        assert_eq!(again.code, "conflict", "one transaction is committed once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn second_claim_of_a_key_waits_for_the_transaction_that_claimed_it() {
    for bench in Bench::all().await {
        let marker = CommitMarker { key: "task/1".to_owned(), results: json!([{ "rows": 1.1 }]) };
        let mut first = bench.begin().await;
        assert_eq!(first.claim_marker("task/1").await, Ok(None));
        let commit = async {
            // The second transaction waits for the single writer (SQLite) or for the marker
            // (PostgreSQL).
            tokio::task::yield_now().await;
            first.commit(Some(&marker)).await
        };
        let (second, committed) = tokio::join!(bench.committed("task/1"), commit);
        committed.unwrap();
        assert_eq!(second, Some(marker.results.clone()));

        let mut undone = bench.begin().await;
        assert_eq!(undone.claim_marker("task/2").await, Ok(None));
        let (second, undone) = tokio::join!(bench.committed("task/2"), undone.rollback());
        undone.unwrap();
        assert_eq!(second, None, "a rollback leaves no marker");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_and_bytes_are_limited() {
    let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        SELECT i, 'some text' FROM n";
    for bench in Bench::all().await {
        let all = bench.query(numbers, &[]).await.unwrap();
        assert_eq!((all.rows.len(), all.truncated), (5000, false));
        let few = SqlLimits { rows: 3, ..SqlLimits::default() };
        let cut = bench.query_within(&few, SqlAccess::ReadOnly, numbers, &[]).await.unwrap();
        assert_eq!((cut.rows.len(), cut.truncated), (3, true));
        let small = SqlLimits { bytes: 100, ..SqlLimits::default() };
        let cut = bench.query_within(&small, SqlAccess::ReadOnly, numbers, &[]).await.unwrap();
        assert_eq!((cut.rows.len(), cut.truncated), (4, true));
        assert_eq!(bench.query(numbers, &[]).await.unwrap().rows.len(), 5000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statement_timeout_stops_the_statement() {
    let endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
        SELECT count(*) FROM n";
    let limits = SqlLimits { timeout_ms: 200, ..SqlLimits::default() };
    for bench in Bench::all().await {
        let started = Instant::now();
        let failure =
            bench.query_within(&limits, SqlAccess::ReadOnly, endless, &[]).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("timeout", true), "{failure}");
        let mut transaction =
            bench.fresh.databases.begin(CallerId::default(), "main", &limits).await.unwrap();
        assert_eq!(transaction.query(endless, &[]).await.unwrap_err().code, "timeout");
        transaction.rollback().await.unwrap();
        bench.execute(TABLE, &[]).await.unwrap();
        assert!(started.elapsed() < Duration::from_secs(4), "the connection is free at once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writer_is_usable_after_a_write_that_timed_out() {
    let endless = "INSERT INTO item (id, name, price)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
        SELECT i, 'item ' || i, 1 FROM n";
    let limits = SqlLimits { timeout_ms: 200, ..SqlLimits::default() };
    for bench in Bench::all().await {
        bench.execute(TABLE, &[]).await.unwrap();
        for _ in 0..2 {
            let mut transaction =
                bench.fresh.databases.begin(CallerId::default(), "main", &limits).await.unwrap();
            assert_eq!(transaction.execute(endless, &[]).await.unwrap_err().code, "timeout");
            transaction.rollback().await.unwrap();
        }
        assert_eq!(bench.count().await, SqlValue::Integer(0));
        let insert = "INSERT INTO item (id, name, price) VALUES (1, 'a', 1)";
        bench.execute(insert, &[]).await.unwrap();
        assert_eq!(bench.count().await, SqlValue::Integer(1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_readers_do_not_wait_for_the_writer() {
    let bench = Bench::sqlite(SQLITE_FILE).await;
    bench.execute(TABLE, &[]).await.unwrap();
    let mut transaction = bench.begin().await;
    transaction
        .execute("INSERT INTO item (id, name, price) VALUES (1, 'a', 1)", &[])
        .await
        .unwrap();
    assert_eq!(bench.count().await, SqlValue::Integer(0));
    transaction.commit(None).await.unwrap();
    assert_eq!(bench.count().await, SqlValue::Integer(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_are_serialized() {
    for bench in Bench::all().await {
        bench.execute(TABLE, &[]).await.unwrap();
        let writers = (1..=20).map(|id| {
            let bench = &bench;
            async move {
                let insert = "INSERT INTO item (id, name, price) VALUES ($1, $2, 1)";
                bench.execute(insert, &[SqlValue::Integer(id), text(&id.to_string())]).await
            }
        });
        let outcomes = futures::future::join_all(writers).await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        assert_eq!(bench.count().await, SqlValue::Integer(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn session_state_does_not_reach_the_next_user_of_a_connection() {
    for bench in Bench::all().await {
        bench.execute(TABLE, &[]).await.unwrap();
        for text in [
            "CREATE TEMP TABLE item (id INTEGER, name TEXT, price NUMERIC)",
            "CREATE TEMP TABLE leaked (id INTEGER)",
        ] {
            let made = bench.execute(text, &[]).await;
            assert_eq!(made.is_ok(), bench.is_postgres(), "{text}: {made:?}");
        }
        for id in 1..=3 {
            let (limits, access) = (SqlLimits::default(), SqlAccess::ReadWrite);
            let query = "SELECT id FROM leaked";
            let failure = bench.query_within(&limits, access, query, &[]).await.unwrap_err();
            assert_eq!(failure.code, "invalid", "{failure}");
            // The row of a later transaction is in the table that a reader sees.
            let insert = "INSERT INTO item (id, name, price) VALUES ($1, $2, 1)";
            let values = [SqlValue::Integer(id), text(&id.to_string())];
            bench.execute(insert, &values).await.unwrap();
            assert_eq!(bench.count().await, SqlValue::Integer(id));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_databases_and_servers_are_reported() {
    let configs = BTreeMap::from([(
        "far".to_owned(),
        DatabaseConfig::new("postgres://user:topsecret@127.0.0.1:1/db"),
    )]);
    let folder = tempfile::tempdir().unwrap();
    let databases = Databases::open(configs, folder.path()).await.unwrap();
    let limits = SqlLimits::default();
    let failure = databases
        .query(CallerId::default(), "far", &SqlAccess::ReadOnly.into(), &limits, "SELECT 1", &[])
        .await
        .unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", true));
    assert!(!failure.message.contains("topsecret"));
    let failure = databases.dialect("near").await.unwrap_err();
    assert_eq!(failure.code, "not-found");
    assert!(failure.message.ends_with("`[sql.near]` in wattle.toml"), "{failure}");
    // Only messages for the operator name the other databases.
    let error = databases.migration_folder("shop", "fra", &BTreeMap::new()).unwrap_err();
    assert!(error.to_string().contains("did you mean `far`?"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_are_applied_once_and_must_not_change() {
    for bench in Bench::all().await {
        let folder = bench.fresh.folder.path().join("migrations");
        std::fs::create_dir(&folder).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        let app = AppName::new("asset").unwrap();
        let migrate = || bench.fresh.databases.migrate(&app, "main", scripts(&folder));

        write("0001_tables.sql", &format!("{TABLE};\nCREATE TABLE other (id INTEGER);\n"));
        write("notes.txt", "not a migration");
        assert_eq!(migrate().await.unwrap(), ["0001_tables"]);
        assert!(migrate().await.unwrap().is_empty());

        write("0002_rows.sql", "INSERT INTO other VALUES (1); INSERT INTO nothing VALUES (1);");
        let failed = migrate().await.unwrap_err();
        assert!(matches!(failed, SqlError::Migration { .. }), "{failed}");
        let rows = bench.query("SELECT * FROM other", &[]).await.unwrap().rows;
        assert!(rows.is_empty(), "a failed migration is rolled back");
        write("0002_rows.sql", "INSERT INTO other VALUES (1); INSERT INTO other VALUES (2);");
        assert_eq!(migrate().await.unwrap(), ["0002_rows"]);
        assert_eq!(bench.query("SELECT * FROM other", &[]).await.unwrap().rows.len(), 2);

        write("0001_tables.sql", "CREATE TABLE changed (id INTEGER);");
        let changed = migrate().await.unwrap_err();
        assert!(matches!(changed, SqlError::MigrationChanged { .. }), "{changed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_dialect_of_migrations_is_reported() {
    let bench = Bench::sqlite(SQLITE_MEMORY).await;
    let none = BTreeMap::new();
    let error = bench.fresh.databases.migration_folder("asset", "main", &none).unwrap_err();
    assert!(error.to_string().contains("sqlite"), "{error}");
}
