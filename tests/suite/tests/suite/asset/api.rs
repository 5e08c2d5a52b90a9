//! The application's other endpoints, and the names of its tables.

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use wattle_suite::asset::{INVOKE, RESUME, open_sqlite};
use wattle_suite::guests::root;
use wattle_suite::server::Setup;

#[tokio::test]
async fn s0_79_the_old_endpoints_do_not_exist() {
    let server = Setup::asset().await.start().await;
    for path in ["/api/ai/parse", "/api/ai/parse-text"] {
        assert_eq!(server.post(path, &json!({ "textInput": "买入" })).await.status, 404, "{path}");
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
    assert_eq!(server.get(INVOKE).await.status, 405, "the new endpoints exist");
    assert_eq!(server.get(RESUME).await.status, 405);
}

#[tokio::test]
async fn s0_81_portfolios_are_created_and_listed() {
    let server = Setup::asset().await.start().await;
    assert_eq!(server.get("/api/portfolios").await.parts(), (200, &json!([])));
    let made = server.post("/api/portfolios", &json!({ "name": " 长期 " })).await;
    assert_eq!(made.parts(), (200, &json!({ "id": 1, "name": "长期" })));
    let again = server.post("/api/portfolios", &json!({ "name": "长期" })).await;
    assert_eq!(again.body, made.body, "a double click creates one portfolio");
    let second = server.portfolio("短期").await;
    assert_eq!(
        server.get("/api/portfolios").await.body,
        json!([{ "id": 1, "name": "长期" }, { "id": second, "name": "短期" }])
    );
    for body in [json!({}), json!({ "name": "  " }), json!({ "name": 5 })] {
        let refused = server.post("/api/portfolios", &body).await;
        assert_eq!(refused.status, 400, "{body}");
        assert!(refused.body["error"].is_string());
    }
}

#[tokio::test]
async fn endpoints_are_also_mounted_below_the_app_name() {
    let server = Setup::asset().await.start().await;
    let refused = server.post(&format!("/apps/asset{INVOKE}"), &json!({})).await;
    assert_eq!(refused.parts(), (400, &json!({ "error": "缺少输入参数" })));
}

#[tokio::test]
async fn endpoints_are_in_the_openapi_document_of_the_host() {
    let server = Setup::asset().await.start().await;
    let whole = server.get("/openapi.json").await.expect(200);
    let own = std::fs::read_to_string(root().join("plugins/apps/asset/openapi.json")).unwrap();
    let own: Value = serde_json::from_str(&own).unwrap();
    for (path, methods) in own["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let found = &whole["paths"][format!("/apps/asset{path}")][method];
            for part in ["summary", "parameters"] {
                assert_eq!(found[part], operation[part], "{part} of {method} {path}");
            }
        }
    }
    for (name, schema) in own["components"]["schemas"].as_object().unwrap() {
        let found = &whole["components"]["schemas"][format!("asset.{name}")];
        assert_eq!(found["description"], schema["description"], "{name}");
        assert_eq!(found["required"], schema["required"], "{name}");
    }
}

/// The tables of the former version of the application.
const FORMER: &str = r#"
CREATE TABLE "Portfolio" ("id" INTEGER PRIMARY KEY AUTOINCREMENT, "name" TEXT NOT NULL);
INSERT INTO "Portfolio" ("id", "name") VALUES (7, '旧组合');
CREATE TABLE "Trade" ("id" INTEGER PRIMARY KEY, "ticker" TEXT, "name" TEXT, "action" TEXT,
    "quantity" REAL, "price" REAL, "currency" TEXT, "tradedAt" TEXT, "memo" TEXT,
    "riskCategory" TEXT, "portfolioId" INTEGER, "createdAt" TEXT);
INSERT INTO "Trade" VALUES (3, 'AAPL', '苹果', 'buy', 5, 180, 'USD', '2024-12-31', NULL,
    'aggressive', 7, '2024-12-31T00:00:00Z');
CREATE TABLE "Position" ("id" INTEGER PRIMARY KEY, "ticker" TEXT, "name" TEXT, "quantity" REAL,
    "costPrice" REAL, "currency" TEXT, "riskCategory" TEXT, "portfolioId" INTEGER,
    "createdAt" TEXT);
INSERT INTO "Position" VALUES (4, '0700.HK', '腾讯', 100, 300, 'HKD', 'stable', 7,
    '2024-12-31T00:00:00Z');
"#;

#[tokio::test]
async fn s0_92_former_tables_are_renamed_and_keep_their_rows() {
    let setup = Setup::asset().await;
    let mut database = open_sqlite(&setup.workspace.data().join("asset.db")).await;
    sqlx::raw_sql(AssertSqlSafe(FORMER)).execute(&mut database).await.unwrap();
    drop(database);
    let server = setup.start().await;
    let operations = server.rows("Operation").await;
    assert_eq!(operations.len(), 1);
    assert_eq!((&operations[0]["id"], &operations[0]["ticker"]), (&json!(3), &json!("AAPL")));
    assert_eq!(operations[0]["tradedAt"], "2024-12-31");
    let holdings = server.rows("Holding").await;
    assert_eq!((&holdings[0]["id"], &holdings[0]["costPrice"]), (&json!(4), &json!(300.0)));
    let former: Vec<String> = sqlx::query_scalar(
        "SELECT name FROM sqlite_master WHERE name IN ('Trade', 'Position') ORDER BY name",
    )
    .fetch_all(&mut server.sqlite().await)
    .await
    .unwrap();
    assert!(former.is_empty(), "{former:?}");
    assert_eq!(server.get("/api/portfolios").await.body, json!([{ "id": 7, "name": "旧组合" }]));
    // A second start does not apply the migrations again.
    let server = server.restart().await;
    assert_eq!(server.rows("Operation").await, operations);
}
