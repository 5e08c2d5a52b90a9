//! The asset application: stored trades and holdings, and a review that waits.

use serde_json::json;
use wattle_suite::asset::{RESUME, STREAM, confirmed};
use wattle_suite::before::{get, post};
use wattle_suite::server::TestServer;

use crate::requests::{Requests, pause};

const TRADES: &str = "昨天买入腾讯 100 股 320";
const HOLDINGS: &str = "持有贵州茅台 10 股，成本 1500.5";
const WAITING: &str = "昨天卖出苹果 10 股 190";
const LATER: &str = "持有腾讯 100 股，成本 320";

/// The path of a thread's review.
fn review(thread: &str) -> String {
    format!("/api/ai/asset-graph/threads/{thread}")
}

/// Creates the reviews. The last one is the youngest, because reviews expire after half an hour.
pub(crate) async fn make(server: &TestServer) -> Requests {
    let (first, second) = (server.portfolio("长期").await, server.portfolio("短期").await);
    let trades = server.invoke_text(TRADES).await;
    server.resume(&trades.thread, &trades.rows(), first).await.expect(200);
    pause(server);
    let holdings = server.invoke_image(HOLDINGS).await;
    server.resume(&holdings.thread, &holdings.rows(), second).await.expect(200);
    pause(server);
    let waiting = server.invoke_text(WAITING).await;

    let answer = json!({ "threadId": waiting.thread,
        "confirmedData": confirmed(&waiting.rows(), second) });
    let again = json!({ "threadId": trades.thread,
        "confirmedData": confirmed(&trades.rows(), first) });
    let invalid = json!({ "threadId": waiting.thread, "confirmedData": { "rows": [] } });
    Requests {
        stored: vec![
            get("/api/portfolios"),
            get("/api/operations"),
            get(&format!("/api/operations?limit=1&portfolioId={first}")),
            get("/api/holdings"),
            get(&review(&trades.thread)),
            get(&review(&holdings.thread)),
            get(&review(&waiting.thread)),
            get(&review("no-such-thread")),
        ],
        continued: vec![
            get(&review(&waiting.thread)),
            post(RESUME, &invalid),
            post(RESUME, &answer),
            post(RESUME, &answer),
            post(RESUME, &again),
            get(&review(&waiting.thread)),
            post(STREAM, &json!({ "textInput": LATER })),
            get("/api/operations"),
            get("/api/holdings"),
        ],
    }
}
