//! The review that a person sees, and its confirmation, which repeats no calls.

use serde_json::json;
use wattle_suite::server::Setup;

#[tokio::test]
async fn s0_57_s0_61_the_run_is_interrupted_with_the_whole_payload() {
    let server = Setup::asset().await.start().await;
    let review = server.invoke_text("买入青杉玩偶 100 股").await;
    let thread = server.get(&format!("/api/v1/threads/{}", review.thread)).await.expect(200);
    assert_eq!(thread["status"], "interrupted");
    assert_eq!(thread["interrupts"].as_array().unwrap().len(), 1);
    let question = &thread["interrupts"][0];
    assert_eq!(question["node"], "present_review");
    assert_eq!(question["payload"], review.payload);
    assert_eq!(
        question["expires_ms"].as_i64().unwrap() - question["asked_ms"].as_i64().unwrap(),
        30 * 60 * 1_000
    );
    assert_eq!(server.counts().await, [0, 0, 0], "nothing is written before the confirmation");
}

#[tokio::test]
async fn s0_59_s0_60_resuming_calls_no_model_and_no_service() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("确认").await;
    let review = server.invoke_text("买入 Quillmere 10 股 80，买入澜山潮能 1 股 260").await;
    let before = server.standin().requests().len();
    server.resume(&review.thread, &review.rows(), portfolio).await.expect(200);
    assert_eq!(server.standin().requests().len(), before);
}

#[tokio::test]
async fn a4_s0_58_an_unknown_input_accepts_rows_of_the_user() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("手工").await;
    let review = server.invoke_image("一只猫").await;
    assert_eq!((&review.payload["type"], review.rows()), (&json!("unknown"), json!([])));
    let rows = json!([{ "ticker": "0700.HK", "name": "腾讯", "action": "buy", "quantity": 100,
                        "price": 320, "currency": "HKD", "tradedAt": null }]);
    let stored = server.resume(&review.thread, &rows, portfolio).await;
    assert_eq!(stored.parts(), (200, &json!({ "storeResult": { "success": true, "ids": [1] } })));
    assert_eq!(server.counts().await, [1, 0, 1]);
}

#[tokio::test]
async fn s0_03_the_user_can_change_every_row() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("修改").await;
    let review = server.invoke_text("买入青杉玩偶 100 股").await;
    let mut rows = review.rows();
    rows[0]["ticker"] = json!("9992.HK");
    rows[0]["price"] = json!(180.5);
    server.resume(&review.thread, &rows, portfolio).await.expect(200);
    let stored = server.rows("Operation").await;
    assert_eq!((&stored[0]["ticker"], &stored[0]["price"]), (&json!("9992.HK"), &json!(180.5)));
    assert_eq!(stored[0]["currency"], "HKD", "a currency that was left empty follows the ticker");
}
