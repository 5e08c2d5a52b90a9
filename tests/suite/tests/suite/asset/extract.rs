//! The extraction of rows from a text or a picture.

use serde_json::{Value, json};
use wattle_kit::standin::Entry;
use wattle_suite::asset::picture;
use wattle_suite::server::{Setup, TestServer};

use crate::asset::extracts;

/// Returns the last model request, which is the extraction.
fn last(server: &TestServer) -> Entry {
    let mut entries = server.standin().requests();
    entries.retain(|entry| entry.path == "/v1/chat/completions");
    entries.pop().unwrap()
}

fn schema_of(entry: &Entry) -> Value {
    entry.body.as_ref().unwrap()["response_format"]["json_schema"].clone()
}

#[tokio::test]
async fn s0_34_s0_35_s0_37_input_and_kind_select_model_and_schema() {
    let server = Setup::asset().await.start().await;
    for (kind, text, schema, list) in [
        ("operation", "买入腾讯 100 股 320", "OperationParseSchema", "operations"),
        ("holding", "持有腾讯 100 股，成本 320", "HoldingParseSchema", "holdings"),
    ] {
        for (body, route) in [
            (json!({ "textInput": text }), "chat"),
            (json!({ "imageData": picture(text, 0) }), "vision"),
        ] {
            let review = server.invoke(&body).await;
            assert_eq!(review.payload["type"], kind);
            let request = last(&server);
            assert_eq!(request.model.as_deref(), Some(route));
            let asked = schema_of(&request);
            assert_eq!(asked["name"], schema);
            assert!(asked["schema"]["properties"][list].is_object(), "{asked}");
            assert!(!asked.to_string().contains("currency"), "S0-36: the currency comes later");
        }
    }
}

#[tokio::test]
async fn s0_10_s0_34_several_trades_keep_their_order() {
    let server = Setup::asset().await.start().await;
    let review = server.invoke_text("昨天买入腾讯100股320，今天卖出苹果50股190").await;
    assert_eq!(
        review.rows(),
        json!([
            { "ticker": "0700.HK", "name": "腾讯", "action": "buy", "quantity": 100, "price": 320,
              "currency": "HKD", "tradedAt": "2025-01-14" },
            { "ticker": "AAPL", "name": "苹果", "action": "sell", "quantity": 50, "price": 190,
              "currency": "USD", "tradedAt": "2025-01-15" },
        ])
    );
}

#[tokio::test]
async fn s0_11_s0_12_s0_34_holdings_have_a_cost_and_no_date() {
    let server = Setup::asset().await.start().await;
    let review = server.invoke_text("持有贵州茅台 10 股，成本 1500.5").await;
    assert_eq!(
        review.payload,
        json!({
            "type": "holding",
            "rows": [{ "ticker": "600519.SS", "name": "贵州茅台", "quantity": 10,
                       "costPrice": 1500.5, "currency": "CNY" }],
            "missingFields": [],
            "warnings": [],
        })
    );
}

#[tokio::test]
async fn s0_38_absent_values_are_null_or_empty() {
    let server = Setup::asset().await.start().await;
    let row = json!({ "ticker": "AAPL", "name": null, "action": "buy", "quantity": null,
                      "price": null, "tradedAt": null, "memo": null });
    extracts(&server, &json!({ "operations": [row] }));
    let review = server.invoke_text("买入 AAPL").await;
    let row = &review.rows()[0];
    assert_eq!((&row["quantity"], &row["price"]), (&json!(null), &json!(null)));
    assert_eq!(row.get("memo"), None, "an absent memo is left out");
    assert_eq!(review.payload["missingFields"], json!(["rows[0].quantity", "rows[0].price"]));
}

#[tokio::test]
async fn s0_39_an_extraction_without_rows_is_a_warning_and_the_user_can_add_rows() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("手工").await;
    extracts(&server, &json!({ "operations": [] }));
    let review = server.invoke_text("买入").await;
    assert_eq!(
        review.payload,
        json!({ "type": "operation", "rows": [], "missingFields": [], "warnings": ["未提取到任何记录"] })
    );
    let rows = json!([{ "ticker": "AAPL", "name": "苹果", "action": "buy", "quantity": 1,
                        "price": 2, "currency": "USD", "tradedAt": "2025-01-02" }]);
    server.resume(&review.thread, &rows, portfolio).await.expect(200);
    assert_eq!(server.rows("Operation").await[0]["tradedAt"], "2025-01-02");
}
