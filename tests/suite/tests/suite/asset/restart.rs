//! A server that restarts between review and confirmation.

use serde_json::json;
use wattle_suite::asset::picture;
use wattle_suite::server::Setup;

#[tokio::test]
async fn s0_60_s0_83_confirming_a_review_after_a_restart_makes_no_calls() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("重启").await;
    let body = json!({ "imageData": picture("买入 Quillmere 10 股 80", 0) });
    let review = server.invoke(&body).await;
    let calls = server.standin().requests().len();
    let server = server.restart().await;
    let recovery = server.running.recovery().await;
    assert_eq!(recovery.found, 0, "an interrupted thread needs no recovery");
    let thread = server.get(&format!("/api/v1/threads/{}", review.thread)).await.expect(200);
    assert_eq!(thread["interrupts"][0]["payload"], review.payload);
    let stored = server.resume(&review.thread, &review.rows(), portfolio).await.expect(200);
    assert_eq!(server.standin().requests().len(), calls);
    assert_eq!(server.counts().await, [1, 0, 1]);
    let server = server.restart().await;
    let again = server.resume(&review.thread, &review.rows(), portfolio).await;
    assert_eq!(again.parts(), (200, &stored), "S0-77 holds after a restart, too");
    assert_eq!(server.counts().await, [1, 0, 1]);
}

#[tokio::test]
async fn s0_83_a_memory_store_loses_threads_at_a_restart() {
    let setup = Setup::asset().await.with("[store]\nkind = \"memory\"\n");
    let server = setup.start().await;
    let portfolio = server.portfolio("内存").await;
    let review = server.invoke_text("昨天买入腾讯 100 股 320").await;
    let server = server.restart().await;
    let gone = server.resume(&review.thread, &review.rows(), portfolio).await;
    assert_eq!(gone.parts(), (410, &json!({ "error": "上次解析结果已过期，请重新输入" })));
    assert_eq!(server.get("/api/portfolios").await.body[0]["name"], "内存", "the database is kept");
}
