//! The check for missing fields, and the current date.

use serde_json::{Value, json};
use wattle_suite::server::Setup;

use crate::asset::extracts;

/// 2025-01-16 01:00 in Shanghai, still the 15th in UTC and in New York.
const LATE_MS: i64 = 1_736_960_400_000;

fn trade(name: &str, quantity: Value, price: Value, day: Value) -> Value {
    json!({ "ticker": null, "name": name, "action": "buy", "quantity": quantity, "price": price,
            "tradedAt": day, "memo": null })
}

#[tokio::test]
async fn s0_49_s0_50_s0_54_s0_55_missing_fields_of_trades_are_listed_by_row_and_field() {
    let server = Setup::asset().await.start().await;
    let rows = [
        trade("青杉玩偶", json!(null), json!(null), json!(null)),
        trade("腾讯", json!(0), json!(null), json!(null)),
        trade("苹果", json!(1), json!(0), json!(null)),
    ];
    extracts(&server, &json!({ "operations": rows }));
    let review = server.invoke_text("买入").await;
    assert_eq!(
        review.payload["missingFields"],
        json!(["rows[0].ticker", "rows[0].quantity", "rows[0].price", "rows[1].price"])
    );
    assert_eq!(review.payload["warnings"], json!(["UNKNOWN ticker: 青杉玩偶"]), "S0-51");
}

#[tokio::test]
async fn s0_49_holdings_need_their_cost() {
    let server = Setup::asset().await.start().await;
    let row = json!({ "ticker": null, "name": "腾讯", "quantity": null, "costPrice": null });
    extracts(&server, &json!({ "holdings": [row] }));
    let review = server.invoke_text("持有").await;
    assert_eq!(review.payload["missingFields"], json!(["rows[0].quantity", "rows[0].costPrice"]));
    assert_eq!(review.rows()[0].get("tradedAt"), None);
}

#[tokio::test]
async fn s0_52_s0_53_trades_without_a_date_get_today_and_dates_have_one_form() {
    let server = Setup::asset().await.start().await;
    let rows = [
        trade("腾讯", json!(1), json!(1), json!(null)),
        trade("腾讯", json!(1), json!(1), json!("2025/1/9")),
    ];
    extracts(&server, &json!({ "operations": rows }));
    let review = server.invoke_text("买入").await;
    assert_eq!(review.rows()[0]["tradedAt"], "2025-01-15");
    assert_eq!(review.rows()[1]["tradedAt"], "2025-01-09");
    assert_eq!(review.payload["missingFields"], json!([]), "a date is never missing");
}

#[tokio::test]
async fn s0_54_today_is_a_date_in_the_configured_zone() {
    let server = Setup::asset().await.start().await;
    server.clock().set_now_ms(LATE_MS);
    let review = server.invoke_text("买入腾讯 100 股 320").await;
    assert_eq!(review.rows()[0]["tradedAt"], "2025-01-16", "in Shanghai");
    let review = server.invoke_text("昨天买入腾讯 100 股 320").await;
    assert_eq!(review.rows()[0]["tradedAt"], "2025-01-15", "the prompt contains the current date");

    let setup = Setup::asset().await;
    let setup = setup.replace("settings = { ", "settings = { time_zone = \"America/New_York\", ");
    let server = setup.start().await;
    server.clock().set_now_ms(LATE_MS);
    let review = server.invoke_text("买入腾讯 100 股 320").await;
    assert_eq!(review.rows()[0]["tradedAt"], "2025-01-15", "in New York");
}

#[tokio::test]
async fn s0_54_today_is_a_date_in_shanghai_by_default() {
    let setup = Setup::asset().await;
    let mut setup = setup.replace("time_zone = \"Asia/Shanghai\"", "time_zone = \"UTC\"");
    setup.clock = setup.clock.in_zone("UTC");
    let server = setup.start().await;
    server.clock().set_now_ms(LATE_MS);
    let review = server.invoke_text("买入腾讯 100 股 320").await;
    assert_eq!(review.rows()[0]["tradedAt"], "2025-01-16");
}

#[tokio::test]
async fn s0_56_the_check_calls_no_model() {
    let server = Setup::asset().await.start().await;
    let review = server.invoke_text("买入腾讯 100 股").await;
    let trace = server.get(&format!("/api/v1/threads/{}/trace", review.thread)).await.expect(200);
    let steps = trace["runs"][0]["steps"].as_array().unwrap();
    let mut models = Vec::new();
    for task in steps.iter().flat_map(|step| step["tasks"].as_array().unwrap()) {
        let calls = task["attempts"][0]["calls"].as_array().unwrap();
        if calls.iter().any(|call| call["function"].as_str().unwrap().starts_with("llm.")) {
            models.push(task["node"].as_str().unwrap());
        }
    }
    assert_eq!(models, ["text_classify", "ext_op"]);
}
