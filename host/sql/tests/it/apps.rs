//! Migrations of the bundled apps on all dialects that they support.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wattle_graph::id::AppName;
use wattle_run::caller_id::CallerId;
use wattle_run::grant::SqlAccess;
use wattle_run::hostcall::sql::SqlValue;
use wattle_run::limit::SqlLimits;
use wattle_run::ports::sql::Sql as _;

use crate::support::{Fresh, SQLITE_FILE, scripts};

struct Bench {
    fresh: Fresh,
}

impl Bench {
    async fn all() -> Vec<Self> {
        Fresh::all(&[SQLITE_FILE]).await.into_iter().map(|fresh| Self { fresh }).collect()
    }

    async fn migrate(&self, app: &str, folders: &BTreeMap<String, PathBuf>) -> Vec<String> {
        let folder = self.fresh.databases.migration_folder(app, "main", folders).unwrap();
        let app = AppName::new(app).unwrap();
        self.fresh.databases.migrate(&app, "main", scripts(folder)).await.unwrap()
    }

    async fn execute(&self, text: &str) -> Vec<Vec<SqlValue>> {
        let limits = SqlLimits::default();
        let mut transaction =
            self.fresh.databases.begin(CallerId::default(), "main", &limits).await.unwrap();
        let executed = transaction.execute(text, &[]).await.unwrap();
        transaction.commit(None).await.unwrap();
        executed.returned.rows
    }

    async fn query(&self, text: &str) -> Vec<Vec<SqlValue>> {
        let limits = SqlLimits::default();
        let rows = self
            .fresh
            .databases
            .query(CallerId::default(), "main", &SqlAccess::ReadOnly.into(), &limits, text, &[])
            .await;
        rows.unwrap().rows
    }
}

fn apps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/apps")
}

/// Returns the migration folders of an app, by dialect.
fn folders(app: &Path) -> BTreeMap<String, PathBuf> {
    ["sqlite", "postgres"]
        .map(|dialect| (dialect.to_owned(), app.join("migrations").join(dialect)))
        .into()
}

#[tokio::test(flavor = "multi_thread")]
async fn app_migrations_apply_in_both_dialects() {
    for bench in Bench::all().await {
        for entry in std::fs::read_dir(apps()).unwrap() {
            let app = entry.unwrap().path();
            if !app.join("migrations").is_dir() {
                continue;
            }
            let name = app.file_name().unwrap().to_string_lossy().into_owned();
            let folders = folders(&app);
            let applied = bench.migrate(&name, &folders).await;
            assert!(!applied.is_empty(), "{name}");
            assert!(bench.migrate(&name, &folders).await.is_empty());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_of_asset_keep_trades_and_positions_of_older_tables() {
    for bench in Bench::all().await {
        bench.execute(r#"CREATE TABLE "Portfolio" ("id" INTEGER PRIMARY KEY, "name" TEXT)"#).await;
        bench.execute(r#"INSERT INTO "Portfolio" VALUES (1, 'core')"#).await;
        let columns = r#""ticker" TEXT, "name" TEXT, "quantity" REAL, "currency" TEXT,
            "riskCategory" TEXT, "portfolioId" INTEGER"#;
        bench
            .execute(&format!(
                r#"CREATE TABLE "Trade" ("id" INTEGER PRIMARY KEY, {columns}, "action" TEXT,
                "price" REAL, "tradedAt" DATE, "memo" TEXT, "createdAt" TIMESTAMP)"#
            ))
            .await;
        bench
            .execute(
                r#"INSERT INTO "Trade" ("id", "ticker", "quantity", "portfolioId", "action", "price",
                "tradedAt") VALUES (7, 'AAPL', 2, 1, 'buy', 1.5, '2024-05-01')"#,
            )
            .await;
        bench
            .execute(&format!(
                r#"CREATE TABLE "Position" ("id" INTEGER PRIMARY KEY, {columns},
                "costPrice" REAL, "createdAt" TIMESTAMP)"#
            ))
            .await;
        bench
            .execute(
                r#"INSERT INTO "Position" ("id", "ticker", "quantity", "portfolioId", "costPrice")
                VALUES (3, '0700.HK', 100, 9, 320)"#,
            )
            .await;
        let folders = folders(&apps().join("asset"));
        bench.migrate("asset", &folders).await;

        let text = |value: &str| SqlValue::Text(value.to_owned());
        assert_eq!(
            bench.query(r#"SELECT "id", "ticker", "price" FROM "Operation""#).await,
            [[SqlValue::Integer(7), text("AAPL"), SqlValue::Real(1.5)]]
        );
        assert_eq!(
            bench.query(r#"SELECT "id", "ticker", "portfolioId" FROM "Holding""#).await,
            [[SqlValue::Integer(3), text("0700.HK"), SqlValue::Integer(9)]]
        );
        assert_eq!(
            bench.query(r#"SELECT "name" FROM "Portfolio" ORDER BY "id""#).await,
            [[text("core")], [text("Portfolio 9")]]
        );
        let next = bench
            .execute(
                r#"INSERT INTO "Holding" ("ticker", "name", "quantity", "costPrice", "currency",
                "riskCategory", "portfolioId", "createdAt")
                VALUES ('A', '', 1, 1, 'USD', '', 1, '2025-01-01T00:00:00Z') RETURNING "id""#,
            )
            .await;
        assert_eq!(next, [[SqlValue::Integer(4)]], "ids continue after the migrated rows");
    }
}

/// The sample has the same data in both dialects, so query results do not depend on the database.
#[tokio::test(flavor = "multi_thread")]
async fn nl2sql_sample_is_equal_in_both_dialects() {
    for bench in Bench::all().await {
        let folder = |dialect: &str| apps().join("nl2sql/sample").join(dialect);
        let folders = ["sqlite", "postgres"].map(|dialect| (dialect.to_owned(), folder(dialect)));
        bench.migrate("nl2sql", &folders.into()).await;
        for (query, answer) in [
            ("SELECT count(*) FROM customers", 400),
            ("SELECT count(DISTINCT name) FROM customers", 335),
            ("SELECT count(*) FROM customers WHERE phone IS NULL", 57),
            ("SELECT count(*) FROM products WHERE is_deleted = 0", 58),
            ("SELECT count(*) FROM orders", 6_000),
            ("SELECT count(*) FROM order_items", 11_144),
            ("SELECT count(*) FROM order_items WHERE product_id = 60", 0),
            ("SELECT CAST(sum(total_amount) AS INTEGER) FROM orders", 38_973_386),
            ("SELECT count(*) FROM orders WHERE status = 'cancelled'", 536),
            ("SELECT count(*) FROM orders WHERE ordered_at < '2023-01-15'", 0),
            ("SELECT count(*) FROM orders WHERE ordered_at >= '2025-01-01'", 133),
            ("SELECT count(*) FROM orders WHERE ordered_at >= '2025-01-15'", 0),
            ("SELECT count(*) FROM orders WHERE shipped_at < ordered_at", 0),
            ("SELECT sum(customer_id) FROM orders", 800_880),
            ("SELECT sum(product_id * quantity) FROM order_items", 636_199),
        ] {
            let rows = bench.query(query).await;
            assert_eq!(rows, [[SqlValue::Integer(answer)]], "{query}");
        }
    }
}
