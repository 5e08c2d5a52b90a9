//! Storing confirmed rows: all or nothing, once, and with every invalid field named.

use serde_json::{Value, json};
use wattle_suite::asset::{RESUME, confirmed};
use wattle_suite::server::{Setup, TestServer};

const TRADE: &str = "昨天买入腾讯 100 股 320";

fn trade(ticker: &str, quantity: impl Into<Value>) -> Value {
    json!({ "ticker": ticker, "name": "", "action": "buy", "quantity": quantity.into(),
            "price": 10, "currency": "", "tradedAt": "2025-01-02" })
}

/// Starts a server with a portfolio and a thread that is interrupted by a review.
async fn waiting(text: &str) -> (TestServer, i64, String) {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("长期").await;
    let review = server.invoke_text(text).await;
    (server, portfolio, review.thread)
}

/// Resumes and expects 422 with these fields. The interrupt must stay pending.
async fn refused(server: &TestServer, thread: &str, confirmed: &Value, fields: &[&str]) {
    let answer = server.resume_with(thread, confirmed).await;
    assert_eq!(answer.status, 422, "{}", answer.body);
    assert_eq!(answer.body["fields"], json!(fields), "{}", answer.body);
    assert!(answer.body["error"].as_str().is_some_and(|error| !error.is_empty()));
    let view = server.get(&format!("/api/v1/threads/{thread}")).await.expect(200);
    assert_eq!(view["status"], "interrupted", "the user may correct it");
    assert_eq!(server.counts().await, [0, 0, 0]);
}

#[tokio::test]
async fn s0_62_s0_63_s0_66_ids_follow_the_order_of_rows() {
    let (server, portfolio, thread) = waiting(TRADE).await;
    let rows = json!([trade("AAPL", 1), trade("MSFT", 2), trade("TSLA", 3)]);
    let stored = server.resume(&thread, &rows, portfolio).await.expect(200);
    assert_eq!(stored["storeResult"], json!({ "success": true, "ids": [1, 2, 3] }));
    let stored = server.rows("Operation").await;
    let tickers: Vec<&Value> = stored.iter().map(|row| &row["ticker"]).collect();
    assert_eq!(tickers, ["AAPL", "MSFT", "TSLA"]);
    assert_eq!(server.counts().await, [3, 0, 1]);
}

#[tokio::test]
async fn s0_05_s0_11_s0_63_holdings_are_stored_in_their_table() {
    let (server, portfolio, thread) = waiting("持有贵州茅台 10 股，成本 1500.5").await;
    let rows = json!([{ "ticker": "600519.SS", "name": "贵州茅台", "quantity": 10,
                        "costPrice": 1500.5, "currency": "CNY" }]);
    server.resume(&thread, &rows, portfolio).await.expect(200);
    assert_eq!(
        server.rows("Holding").await,
        [json!({ "id": 1, "ticker": "600519.SS", "name": "贵州茅台", "quantity": 10.0,
                 "costPrice": 1500.5, "currency": "CNY", "riskCategory": "aggressive",
                 "portfolioId": portfolio, "createdAt": "2025-01-15T02:30:45Z" })]
    );
    assert_eq!(server.counts().await, [0, 1, 1]);
}

#[tokio::test]
async fn s0_64_a_trade_without_a_date_is_booked_today() {
    let (server, portfolio, thread) = waiting(TRADE).await;
    let (mut blank, mut absent) = (trade("AAPL", 1), trade("AAPL", 1));
    blank["tradedAt"] = json!("");
    absent["tradedAt"] = json!(null);
    server.resume(&thread, &json!([blank, absent]), portfolio).await.expect(200);
    let days: Vec<Value> =
        server.rows("Operation").await.iter().map(|row| row["tradedAt"].clone()).collect();
    assert_eq!(days, ["2025-01-15", "2025-01-15"]);
}

#[tokio::test]
async fn a6_s0_65_s0_75_s0_76_a_refused_row_rolls_all_back_and_a_retry_works() {
    let (server, portfolio, thread) = waiting(TRADE).await;
    let rows = json!([trade("AAPL", 1), trade("MSFT", 2), trade("TSLA", -3)]);
    let failed = server.resume(&thread, &rows, portfolio).await;
    assert_eq!(failed.status, 500, "{}", failed.body);
    let fields: Vec<&String> = failed.body.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["error"]);
    let error = failed.body["error"].as_str().unwrap();
    assert!(error.starts_with("数据写入失败: ") && error.contains("CHECK"), "{error}");
    assert_eq!(server.counts().await, [0, 0, 0]);
    let view = server.get(&format!("/api/v1/threads/{thread}")).await.expect(200);
    assert_eq!(view["status"], "interrupted");

    let rows = json!([trade("AAPL", 1), trade("MSFT", 2), trade("TSLA", 3)]);
    let stored = server.resume(&thread, &rows, portfolio).await.expect(200);
    assert_eq!(stored["storeResult"]["ids"].as_array().map(Vec::len), Some(3));
    assert_eq!(server.counts().await, [3, 0, 1]);
}

#[tokio::test]
async fn s0_67_for_an_unknown_input_the_shape_of_rows_selects_the_table() {
    let (server, portfolio, thread) = waiting("今天天气很好").await;
    let holding = json!({ "ticker": "AAPL", "name": "", "quantity": 1, "costPrice": 2,
                          "currency": "USD" });
    let neither = json!({ "ticker": "AAPL", "quantity": 1 });
    for rows in [json!([trade("AAPL", 1), holding]), json!([neither])] {
        refused(&server, &thread, &confirmed(&rows, portfolio), &["type"]).await;
    }
    server.resume(&thread, &json!([holding]), portfolio).await.expect(200);
    assert_eq!(server.counts().await, [0, 1, 1]);
}

#[tokio::test]
async fn s0_67_the_user_can_select_the_table() {
    let (server, portfolio, thread) = waiting("今天天气很好").await;
    let both = json!([{ "ticker": "AAPL", "name": "", "action": "buy", "quantity": 1, "price": 2,
                        "costPrice": 3, "currency": "USD" }]);
    refused(&server, &thread, &confirmed(&both, portfolio), &["type"]).await;
    let mut data = confirmed(&both, portfolio);
    data["type"] = json!("operation");
    server.resume_with(&thread, &data).await.expect(200);
    assert_eq!(server.counts().await, [1, 0, 1]);
}

#[tokio::test]
async fn s0_68_all_invalid_fields_are_named_and_the_interrupt_stays_pending() {
    let (server, portfolio, thread) = waiting(TRADE).await;
    let good = json!([trade("AAPL", 1)]);
    let with = |field: &str, value: Value| {
        let mut data = confirmed(&good, portfolio);
        data[field] = value;
        data
    };
    refused(&server, &thread, &with("rows", json!([])), &["rows"]).await;
    refused(&server, &thread, &with("rows", json!("x")), &["rows"]).await;
    refused(&server, &thread, &with("portfolioId", json!(999)), &["portfolioId"]).await;
    refused(&server, &thread, &with("portfolioId", json!("1")), &["portfolioId"]).await;
    refused(&server, &thread, &with("riskCategory", json!(null)), &["riskCategory"]).await;
    refused(&server, &thread, &json!(null), &["rows", "riskCategory", "portfolioId"]).await;
    let mut unknown = trade("UNKNOWN", "many");
    unknown["action"] = json!("hold");
    unknown["price"] = json!(null);
    unknown["tradedAt"] = json!("soon");
    let rows = json!([trade("AAPL", 1), unknown, trade(" ", 1)]);
    let fields = [
        "rows[1].action",
        "rows[1].ticker",
        "rows[1].quantity",
        "rows[1].price",
        "rows[1].tradedAt",
        "rows[2].ticker",
    ];
    refused(&server, &thread, &with("rows", rows), &fields).await;
    let rows = json!([trade("LON:VOD", 1)]);
    refused(&server, &thread, &with("rows", rows), &["rows[0].currency"]).await;
    server.resume_with(&thread, &with("riskCategory", json!("稳健"))).await.expect(200);
    assert_eq!(server.rows("Operation").await[0]["riskCategory"], "稳健");
}

#[tokio::test]
async fn s0_69_the_operation_log_has_the_confirmed_rows() {
    let (server, portfolio, thread) = waiting(TRADE).await;
    let rows = json!([trade("AAPL", 1), trade("MSFT", 2)]);
    server.resume(&thread, &rows, portfolio).await.expect(200);
    let mut logs = server.rows("OperationLog").await;
    let mut log = logs.remove(0);
    let logged: Value = serde_json::from_str(log["rows"].as_str().unwrap()).unwrap();
    assert_eq!(logged, rows);
    log["rows"] = json!(null);
    assert_eq!(
        log,
        json!({ "id": 1, "action": "asset_graph.store", "threadId": thread,
                "portfolioId": portfolio, "riskCategory": "aggressive", "rows": null,
                "createdAt": "2025-01-15T02:30:45Z" })
    );
}

#[tokio::test]
async fn a8_s0_77_a_second_resume_returns_the_same_and_writes_nothing() {
    let (server, portfolio, thread) = waiting(TRADE).await;
    let rows = json!([trade("AAPL", 1)]);
    let first = server.resume(&thread, &rows, portfolio).await.expect(200);
    for again in [rows.clone(), json!([trade("MSFT", 9)]), json!([])] {
        assert_eq!(server.resume(&thread, &again, portfolio).await.parts(), (200, &first));
    }
    assert_eq!(server.counts().await, [1, 0, 1]);
}

#[tokio::test]
async fn a8_s0_77_concurrent_resumes_write_once() {
    let (server, portfolio, thread) = waiting(TRADE).await;
    let rows = json!([trade("AAPL", 1), trade("MSFT", 2)]);
    let (one, two) = tokio::join!(
        server.resume(&thread, &rows, portfolio),
        server.resume(&thread, &rows, portfolio),
    );
    let stored = json!({ "storeResult": { "success": true, "ids": [1, 2] } });
    assert_eq!((one.parts(), two.parts()), ((200, &stored), (200, &stored)));
    assert_eq!(server.counts().await, [2, 0, 1]);
}

#[tokio::test]
async fn s0_71_a_resume_with_an_invalid_body_is_400() {
    let server = Setup::asset().await.start().await;
    for body in [json!({}), json!([]), json!({ "threadId": 5 })] {
        let refused = server.post(RESUME, &body).await;
        assert_eq!(refused.parts(), (400, &json!({ "error": "请求格式不正确" })), "{body}");
    }
}
