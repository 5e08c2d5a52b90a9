//! The real binary, killed at several points: paid calls are not repeated.

use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use wattle_kit::need;
use wattle_kit::standin::{Outcome, Pattern};
use wattle_suite::asset::{
    INVOKE, MASSIVE_PATH, RESUME, confirmed, open_sqlite, postgres_rows, sqlite_rows,
};
use wattle_suite::binary::{self, Served};
use wattle_suite::scene::Scene;
use wattle_suite::workspace;

/// Creates a scene with both apps, so that one configuration serves all tests.
async fn scene() -> Scene {
    scene_on("sqlite:asset.db").await
}

async fn scene_on(sql_url: &str) -> Scene {
    Scene::new(|workspace, standin| {
        workspace.add_misdeeds(&super::sandbox::graphs());
        let toml = [
            workspace::base_toml(standin),
            workspace::asset_toml(standin, sql_url),
            workspace::misdeeds_toml(standin),
        ];
        toml.concat()
    })
    .await
}

async fn rows(scene: &Scene, table: &str) -> Vec<Value> {
    let mut database = open_sqlite(&scene.workspace.data().join("asset.db")).await;
    sqlite_rows(&mut database, table).await
}

#[tokio::test]
async fn a_review_is_confirmed_after_a_kill() {
    let scene = scene().await;
    let (mut server, body) = confirming(&scene).await;
    let calls = scene.standin.requests().len();
    server.program.kill().await.unwrap();

    let server = binary::serve(&scene.workspace).await;
    let stored = scene.post(&server, RESUME, &body).await.expect(200);
    assert_eq!(stored["storeResult"], json!({ "success": true, "ids": [1] }));
    assert_eq!(scene.standin.requests().len(), calls, "no call is repeated");
    assert_eq!(rows(&scene, "Operation").await[0]["ticker"], "0700.HK");
    assert_eq!(rows(&scene, "OperationLog").await.len(), 1);
}

#[tokio::test]
async fn a_kill_during_a_node_repeats_no_model_call() {
    let scene = scene().await;
    let held = "/count/held";
    let gate = scene.standin.gate(Pattern::path(held));
    let server = binary::serve(&scene.workspace).await;
    let url = format!("{}{held}", scene.standin.base_url);
    let input = json!({ "route": "chat", "text": "hello", "url": url });
    let start = json!({ "graph": "call_then_wait", "input": input });
    let run = scene.post(&server, "/api/v1/apps/misdeeds/runs", &start).await.expect(202);
    gate.arrived(1).await.unwrap();
    let server = scene.kill_and_restart(server, Some(&gate)).await;
    let path = format!("/api/v1/runs/{}", run["run"].as_str().unwrap());
    let ended = scene.until(&server, &path, |run| run["status"] != "running").await;
    assert_eq!(ended["status"], "completed", "the run is recovered: {ended}");
    let thread = format!("/api/v1/threads/{}", run["thread"].as_str().unwrap());
    let state = scene.get(&server, &format!("{thread}/state")).await;
    assert!(state["text"].as_str().unwrap().contains("hello"), "{state}");
    assert_eq!(scene.answered("/v1/chat/completions"), 1);
    assert_eq!(scene.answered(held), 1);
    let trace = scene.get(&server, &format!("{thread}/trace")).await;
    assert_eq!(trace["runs"][0]["recoveries"], 1, "{trace}");
    let shown = trace.to_string();
    assert!(shown.contains("\"cut\"") && !shown.contains("\"running\""), "{trace}");
}

#[tokio::test]
async fn a_kill_during_a_lookup_repeats_no_finished_call() {
    let scene = scene().await;
    let gate = scene.standin.gate(Pattern::model("light"));
    let server = binary::serve(&scene.workspace).await;
    let text = json!({ "textInput": "买入澜山潮能 100 股 260" });
    scene.post_in_vain(&server, INVOKE, &text);
    gate.arrived(1).await.unwrap();
    let server = scene.kill_and_restart(server, Some(&gate)).await;
    let open = "/api/v1/threads?status=interrupted";
    let threads =
        scene.until(&server, open, |list| list["items"].as_array().is_some_and(|it| it.len() == 1));
    let thread = threads.await["items"][0]["thread"].as_str().unwrap().to_owned();
    let view = scene.get(&server, &format!("/api/v1/threads/{thread}")).await;
    let row = &view["interrupts"][0]["payload"]["rows"][0];
    assert_eq!((&row["ticker"], &row["currency"]), (&json!("309999.SZ"), &json!("CNY")), "{view}");
    let models: Vec<_> = scene
        .standin
        .requests()
        .into_iter()
        .filter(|it| it.path == "/v1/chat/completions" && it.outcome == Outcome::Answered)
        .filter_map(|it| it.model)
        .collect();
    assert_eq!(models, ["chat", "chat", "light"], "each call has one response");
    assert_eq!(scene.answered(MASSIVE_PATH), 1);
}

/// Starts a server with a pending review, and returns it with the request that confirms the review.
async fn confirming(scene: &Scene) -> (Served, Value) {
    let server = binary::serve(&scene.workspace).await;
    let portfolio = scene.post(&server, "/api/portfolios", &json!({ "name": "崩溃" })).await;
    let portfolio = portfolio.body["id"].as_i64().unwrap();
    let text = json!({ "textInput": "买入腾讯 100 股 320" });
    let review = scene.post(&server, INVOKE, &text).await.expect(200);
    let data = confirmed(&review["reviewPayload"]["rows"], portfolio);
    (server, json!({ "threadId": review["threadId"], "confirmedData": data }))
}

#[tokio::test]
async fn a_kill_during_a_wait_for_the_database_writes_rows_once() {
    let scene = scene().await;
    let (mut server, body) = confirming(&scene).await;
    // Another connection holds the write lock, so that the transaction of the node waits when the
    // server is killed.
    let mut writer = open_sqlite(&scene.workspace.data().join("asset.db")).await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut writer).await.unwrap();
    scene.post_in_vain(&server, RESUME, &body);
    let history = format!("/api/v1/threads/{}/history?limit=1", body["threadId"].as_str().unwrap());
    scene.until(&server, &history, |history| history[0]["next"] == json!(["store_db"])).await;
    server.program.kill().await.unwrap();
    sqlx::raw_sql("ROLLBACK").execute(&mut writer).await.unwrap();

    let server = binary::serve(&scene.workspace).await;
    let stored = scene.post(&server, RESUME, &body).await.expect(200);
    assert_eq!(stored["storeResult"], json!({ "success": true, "ids": [1] }));
    assert_eq!(rows(&scene, "Operation").await.len(), 1);
    assert_eq!(rows(&scene, "OperationLog").await.len(), 1);
}

#[tokio::test]
async fn a_kill_between_two_statements_on_postgres_writes_rows_once() {
    let (_postgres, url) = need!(crate::asset::postgres::database());
    let scene = scene_on(&url).await;
    let (mut server, body) = confirming(&scene).await;
    // The row is inserted, and the insert into the log waits for a lock when the server is killed.
    let mut holder = PgConnection::connect(&url).await.unwrap();
    let lock = "BEGIN; LOCK TABLE \"OperationLog\" IN EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut holder).await.unwrap();
    scene.post_in_vain(&server, RESUME, &body);
    wait_for_a_blocked_statement(&scene, &url).await;
    server.program.kill().await.unwrap();
    sqlx::raw_sql("ROLLBACK").execute(&mut holder).await.unwrap();

    let server = binary::serve(&scene.workspace).await;
    let stored = scene.post(&server, RESUME, &body).await.expect(200);
    assert_eq!(stored["storeResult"]["success"], true);
    assert_eq!(postgres_rows(&url, "Operation").await.len(), 1);
    assert_eq!(postgres_rows(&url, "OperationLog").await.len(), 1);
}

async fn wait_for_a_blocked_statement(scene: &Scene, url: &str) {
    scene
        .until_so("a statement that waits for the lock", async || {
            let mut observer = PgConnection::connect(url).await.unwrap();
            let blocked: i64 =
                sqlx::query_scalar("SELECT count(*) FROM pg_locks WHERE NOT granted")
                    .fetch_one(&mut observer)
                    .await
                    .unwrap();
            blocked > 0
        })
        .await;
}
