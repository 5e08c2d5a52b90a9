//! `GET /api/ai/asset-graph/threads/{threadId}`: the review of a thread, for a page that is opened
//! again.

use serde_json::json;
use wattle_suite::server::Setup;

const EXPIRED: &str = "上次解析结果已过期，请重新输入";

/// Half an hour.
const TTL_MS: u32 = 30 * 60 * 1_000;

fn path(thread: &str) -> String {
    format!("/api/ai/asset-graph/threads/{thread}")
}

#[tokio::test]
async fn s0_85_s0_86_reading_a_review_again_keeps_it_pending() {
    let server = Setup::asset().await.start().await;
    let portfolio = server.portfolio("再读").await;
    let review = server.invoke_text("昨天买入腾讯 100 股 320").await;
    let calls = server.standin().requests().len();
    for _ in 0..2 {
        let again = server.get(&path(&review.thread)).await;
        let body = json!({ "threadId": review.thread, "reviewPayload": review.payload });
        assert_eq!(again.parts(), (200, &body));
    }
    assert_eq!(server.standin().requests().len(), calls, "reading makes no calls");
    let stored = server.resume(&review.thread, &review.rows(), portfolio).await.expect(200);
    let after = server.get(&path(&review.thread)).await.expect(200);
    assert_eq!(after, json!({ "threadId": review.thread, "storeResult": stored["storeResult"] }));
}

#[tokio::test]
async fn s0_74_s0_85_an_expired_or_unknown_thread_is_410() {
    let server = Setup::asset().await.start().await;
    let review = server.invoke_text("昨天买入腾讯 100 股 320").await;
    server.clock().advance_ms(TTL_MS);
    for thread in [review.thread.as_str(), "0b8e7a1c-9f8e-4b6f-8a5c-2d3e4f5a6b7c", "no-such"] {
        let gone = server.get(&path(thread)).await;
        assert_eq!(gone.parts(), (410, &json!({ "error": EXPIRED })), "{thread}");
    }
}
