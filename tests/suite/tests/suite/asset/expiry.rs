//! Interrupts that expire without an answer after half an hour.

use serde_json::json;
use wattle_suite::server::Setup;

const TRADE: &str = "昨天买入腾讯 100 股 320";

/// Half an hour.
const TTL_MS: u32 = 30 * 60 * 1_000;

const EXPIRED: &str = "上次解析结果已过期，请重新输入";

#[tokio::test]
async fn s0_84_a_review_can_be_confirmed_until_29_minutes_59() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("准时").await;
    let review = server.invoke_text(TRADE).await;
    server.clock().advance_ms(TTL_MS - 1_000);
    assert_eq!(server.running.engine.sweep().await, 0);
    server.resume(&review.thread, &review.rows(), portfolio).await.expect(200);
}

#[tokio::test]
async fn s0_73_s0_84_s0_85_a_resume_after_30_minutes_is_410() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("迟到").await;
    let review = server.invoke_text(TRADE).await;
    server.clock().advance_ms(TTL_MS);
    for _ in 0..2 {
        let late = server.resume(&review.thread, &review.rows(), portfolio).await;
        assert_eq!(late.parts(), (410, &json!({ "error": EXPIRED })));
    }
    assert_eq!(server.counts().await, [0, 0, 0]);
}

#[tokio::test]
async fn s0_82_s0_84_the_sweep_deletes_expired_threads() {
    let server = Setup::asset().await.start().await;
    let review = server.invoke_text(TRADE).await;
    server.clock().advance_ms(TTL_MS - 1);
    let fresh = server.invoke_text(TRADE).await;
    server.clock().advance_ms(1);
    assert_eq!(server.running.engine.sweep().await, 1);
    let path = |thread: &str| format!("/api/v1/threads/{thread}");
    assert_eq!(server.get(&path(&review.thread)).await.status, 404);
    assert_eq!(server.get(&path(&fresh.thread)).await.status, 200);
    let store = &server.running.engine.ports().store;
    let thread = review.thread.parse().unwrap();
    assert_eq!(store.stored_bytes(&thread).await.unwrap(), 0, "all data is deleted");
}

#[tokio::test]
async fn s0_74_a_resume_of_an_unknown_thread_is_410() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("没有").await;
    for thread in ["0b8e7a1c-9f8e-4b6f-8a5c-2d3e4f5a6b7c", "no such thread/", ""] {
        let answer = server.resume(thread, &json!([]), portfolio).await;
        assert_eq!(answer.parts(), (410, &json!({ "error": EXPIRED })), "{thread}");
    }
}

#[tokio::test]
async fn a7_s0_84_expiry_includes_the_downtime_of_the_server() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("重启").await;
    let in_time = server.invoke_text(TRADE).await;
    server.clock().advance_ms(1_000);
    let late = server.invoke_text(TRADE).await;
    server.clock().advance_ms(TTL_MS - 2_000);
    let server = server.restart().await;
    server.resume(&in_time.thread, &in_time.rows(), portfolio).await.expect(200);
    server.clock().advance_ms(2_000);
    let server = server.restart().await;
    let answer = server.resume(&late.thread, &late.rows(), portfolio).await;
    assert_eq!(answer.parts(), (410, &json!({ "error": EXPIRED })));
    assert_eq!(server.counts().await, [1, 0, 1]);
}

#[tokio::test]
async fn s0_77_a_stored_result_is_returned_after_the_expiry() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("已存").await;
    let review = server.invoke_text(TRADE).await;
    let stored = server.resume(&review.thread, &review.rows(), portfolio).await.expect(200);
    server.clock().advance_ms(TTL_MS);
    let again = server.resume(&review.thread, &review.rows(), portfolio).await;
    assert_eq!(again.parts(), (200, &stored));
}
