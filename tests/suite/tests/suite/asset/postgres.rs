//! The application on PostgreSQL. Each test has its own server, which is deleted afterwards.

use serde_json::{Value, json};
use wattle_kit::need;
use wattle_kit::needs::LeftOut;
use wattle_kit::postgres::Postgres;
use wattle_suite::asset::postgres_rows;
use wattle_suite::server::{Setup, TestServer};

/// Creates a database and returns its URL. A test is left out without PostgreSQL.
pub(crate) fn database() -> Result<(Postgres, String), LeftOut> {
    let postgres = Postgres::for_test()?;
    let url = postgres.create_database("asset").unwrap();
    Ok((postgres, url))
}

/// Starts a host on such a database.
async fn start() -> Result<(TestServer, Postgres, String), LeftOut> {
    let (postgres, url) = database()?;
    Ok((Setup::asset_on(&url).await.start().await, postgres, url))
}

async fn counts(url: &str) -> [usize; 2] {
    [postgres_rows(url, "Operation").await.len(), postgres_rows(url, "OperationLog").await.len()]
}

fn trade(ticker: &str, quantity: i64) -> Value {
    json!({ "ticker": ticker, "name": "", "action": "buy", "quantity": quantity, "price": 10.5,
            "currency": "", "tradedAt": "2025-01-02" })
}

#[tokio::test]
async fn a1_on_postgres_rows_and_log_are_written() {
    let (server, _postgres, url) = need!(start().await);
    let portfolio = server.portfolio("长期").await;
    let review = server.invoke_text("昨天买入腾讯 100 股 320").await;
    let stored = server.resume(&review.thread, &review.rows(), portfolio).await;
    assert_eq!(stored.parts(), (200, &json!({ "storeResult": { "success": true, "ids": [1] } })));
    let rows = postgres_rows(&url, "Operation").await;
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!((&row["ticker"], &row["currency"]), (&json!("0700.HK"), &json!("HKD")));
    assert_eq!((row["quantity"].as_f64(), row["price"].as_f64()), (Some(100.0), Some(320.0)));
    assert!(row["tradedAt"].as_str().unwrap().starts_with("2025-01-14"), "{row}");
    let logs = postgres_rows(&url, "OperationLog").await;
    assert_eq!(
        (&logs[0]["action"], &logs[0]["threadId"]),
        (&json!("asset_graph.store"), &json!(review.thread))
    );
    assert_eq!(server.get("/api/portfolios").await.body[0]["id"], portfolio);
}

#[tokio::test]
async fn a6_on_postgres_a_refused_row_rolls_all_back_and_a_retry_works() {
    let (server, _postgres, url) = need!(start().await);
    let portfolio = server.portfolio("长期").await;
    let review = server.invoke_text("昨天买入腾讯 100 股 320").await;
    let rows = json!([trade("AAPL", 1), trade("MSFT", 2), trade("TSLA", -3)]);
    let failed = server.resume(&review.thread, &rows, portfolio).await;
    assert_eq!(failed.status, 500, "{}", failed.body);
    assert!(failed.body["error"].as_str().unwrap().starts_with("数据写入失败: "));
    assert_eq!(counts(&url).await, [0, 0]);
    let rows = json!([trade("AAPL", 1), trade("MSFT", 2), trade("TSLA", 3)]);
    let stored = server.resume(&review.thread, &rows, portfolio).await.expect(200);
    assert_eq!(stored["storeResult"]["ids"].as_array().map(Vec::len), Some(3));
    assert_eq!(counts(&url).await, [3, 1]);
}

#[tokio::test]
async fn a8_on_postgres_concurrent_resumes_write_once() {
    let (server, _postgres, url) = need!(start().await);
    let portfolio = server.portfolio("长期").await;
    let review = server.invoke_text("昨天买入腾讯 100 股 320").await;
    let rows = json!([trade("AAPL", 1), trade("MSFT", 2)]);
    let (one, two) = tokio::join!(
        server.resume(&review.thread, &rows, portfolio),
        server.resume(&review.thread, &rows, portfolio),
    );
    assert_eq!((one.status, &one.body), (two.status, &two.body));
    assert_eq!(one.body, json!({ "storeResult": { "success": true, "ids": [1, 2] } }));
    assert_eq!(counts(&url).await, [2, 1]);
}
