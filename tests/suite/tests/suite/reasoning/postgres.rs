//! Test of the application on PostgreSQL.

use serde_json::json;
use wattle_kit::need;
use wattle_suite::asset::postgres_rows;
use wattle_suite::reasoning::{data, pairs};
use wattle_suite::server::Setup;

use crate::asset::postgres::database;

#[tokio::test]
async fn s1_68_on_postgres_a_session_with_a_question_completes() {
    let (_postgres, url) = need!(database());
    let server = Setup::reasoning_on(&url).await.start().await;
    let app = server.reasoning();
    let session = app.ask("火星天气").await;
    assert_eq!(app.run(&session).await["status"], "waiting_clarification");
    let answer = json!({ "answer": { "type": "clarification", "text": "客户张伟的订单" } });
    let (one, two) =
        tokio::join!(app.on(&session, "clarify", &answer), app.on(&session, "clarify", &answer));
    assert_eq!(one.status.min(two.status), 200);
    assert_eq!(one.status.max(two.status), 400, "one of two answers is accepted");
    assert_eq!(app.run(&session).await["result"]["data_execution"]["total"], 3);
    let body = json!({ "user_input": "统计各区域的客户数量" });
    assert_eq!(data(app.on(&session, "run", &body).await)["turn"]["turn_no"], 2);
    let trace = app.trace(&session).await;
    pairs(&trace);
    assert_eq!(postgres_rows(&url, "reasoning_trace_event").await.len(), trace.len());
    assert_eq!(postgres_rows(&url, "reasoning_task").await.len(), 2);
}
