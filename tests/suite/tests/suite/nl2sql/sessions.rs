//! Tests of `POST /api/chat` as HTTP, and of sessions and messages.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::answer::Answer;
use wattle_suite::nl2sql::{ADMIN, CHAT, SESSIONS, writes};
use wattle_suite::server::Setup;

#[tokio::test]
async fn s4_48_invalid_requests_are_rejected_in_the_format_of_the_app() {
    let server = Setup::nl2sql().await.start().await;
    for body in [
        json!({}),
        json!({"message": ""}),
        json!({"message": "  "}),
        json!({"message": 5}),
        json!({"message": "x", "session_id": "a/b"}),
        json!({"message": "x", "session_id": "x".repeat(65)}),
        json!({"message": "x", "unknown": true}),
        json!([]),
    ] {
        let refused = server.post(CHAT, &body).await;
        assert_eq!(refused.status, 400, "{body} {}", refused.body);
        let fields: Vec<&String> = refused.body.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["code", "message", "data"]);
        assert_eq!(refused.body["code"], 400);
    }
    let refused =
        Answer::of(server.request("POST", CHAT).header(ADMIN, "x").json(&json!({"message": "x"})))
            .await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(server.model_calls().is_empty());
}

#[tokio::test]
async fn s4_48_a_session_answers_one_question_at_a_time() {
    let server = Setup::nl2sql().await.start().await;
    let gate = server.standin().gate(Pattern::model("intent"));
    let body = json!({"session_id": "busy", "message": "有多少订单"});
    let first = server.post(CHAT, &body);
    let second = async {
        let wanted = |entry: &wattle_kit::standin::Entry| entry.model.as_deref() == Some("intent");
        server.standin().wait_for_request(wanted).await.unwrap();
        let refused = server.post(CHAT, &body).await;
        gate.open();
        refused
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!((first.status, second.status), (200, 409), "{}", second.body);
}

#[tokio::test]
async fn s4_50_sessions_and_messages_belong_to_their_admin() {
    let server = Setup::nl2sql().await.start().await;
    server.ask_in("one", "有多少客户").await;
    server.clock().advance_ms(1_000);
    server.ask_in("two", "你好").await;
    server.clock().advance_ms(1_000);
    server.ask_in("one", "那上海呢").await;

    let list = server.get(SESSIONS).await.expect(200)["data"].clone();
    assert_eq!(list["total"], 2);
    let names: Vec<&Value> =
        list["sessions"].as_array().unwrap().iter().map(|it| &it["session_id"]).collect();
    assert_eq!(names, ["one", "two"], "the most recently used session is first");
    let session = &list["sessions"][0];
    assert_eq!((&session["title"], &session["message_count"]), (&json!("有多少客户"), &json!(4)));
    assert_eq!(session["created_at"], "2025-01-15T10:30:45+08:00");
    let page = server.get(&format!("{SESSIONS}?offset=1&limit=1")).await.expect(200);
    assert_eq!(page["data"]["sessions"][0]["session_id"], "two");
    assert_eq!(server.get(&format!("{SESSIONS}?limit=0")).await.status, 400);

    let messages = server.get(&format!("{SESSIONS}/one/messages?limit=3")).await.expect(200);
    let messages = &messages["data"];
    assert_eq!(messages["total"], 4);
    let said: Vec<(&Value, &Value)> = messages["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["role"], &it["result"]["final_status"]))
        .collect();
    assert_eq!(
        said,
        [
            (&json!("user"), &json!(null)),
            (&json!("assistant"), &json!("success")),
            (&json!("user"), &json!(null))
        ]
    );

    for (method, path) in [
        ("GET", "one/messages"),
        ("DELETE", "one/messages"),
        ("DELETE", "one"),
        ("GET", "x/messages"),
    ] {
        let refused = server.as_admin("2", method, &format!("{SESSIONS}/{path}")).await;
        assert_eq!(refused.status, 404, "{method} {path} {}", refused.body);
    }
    let body = json!({"session_id": "one", "message": "有多少客户"});
    let refused = Answer::of(server.request("POST", CHAT).header(ADMIN, "2").json(&body)).await;
    assert_eq!(refused.status, 404, "{}", refused.body);
    assert_eq!(server.as_admin("2", "GET", SESSIONS).await.body["data"]["total"], 0);
}

#[tokio::test]
async fn s4_50_deletion_removes_messages_files_and_threads() {
    let server = Setup::nl2sql().await.start().await;
    let result = server.ask_in("gone", "列出2024年北京的订单").await;
    let url = result["download_url"].as_str().unwrap().to_owned();
    let deleted = server.delete(&format!("{SESSIONS}/gone/messages")).await;
    assert_eq!(deleted.status, 200, "{}", deleted.body);
    let messages = server.get(&format!("{SESSIONS}/gone/messages")).await.expect(200);
    assert_eq!(messages["data"]["total"], 0);
    assert_eq!(server.get(&url).await.status, 404);
    assert_eq!(server.get("/api/v1/threads/gone").await.status, 404);
    let fresh = server.ask_in("gone", "那上海呢").await;
    assert_eq!(fresh["is_followup"], false, "earlier messages are deleted");

    let deleted = server.delete(&format!("{SESSIONS}/gone")).await;
    assert_eq!(deleted.status, 200, "{}", deleted.body);
    assert_eq!(server.get(&format!("{SESSIONS}/gone/messages")).await.status, 404);
    assert_eq!(server.get(SESSIONS).await.body["data"]["total"], 0);
    assert_eq!(server.delete(&format!("{SESSIONS}/gone")).await.status, 404);
}

#[tokio::test]
async fn s4_50_sessions_survive_a_restart() {
    let server = Setup::nl2sql().await.start().await;
    server.ask_in("kept", "2024年北京有多少订单").await;
    let server = server.restart().await;
    let result = server.ask_in("kept", "那上海呢").await;
    assert_eq!(result["is_followup"], true);
    assert_eq!(result["task"]["time_range"]["start"], "2024-01-01");
}

#[tokio::test]
async fn s4_50_sessions_of_tenants_are_separate() {
    let setup = Setup::nl2sql().await.with_tenants();
    let server = setup.start().await;
    let send = |tenant: &'static str, method: &str, path: &str| {
        server.request_of(Some(tenant), method, path)
    };
    let body = json!({"session_id": "same", "message": "列出2024年北京的订单"});
    let asked = Answer::of(send("red", "POST", CHAT).json(&body)).await.expect(200);
    let url = asked["data"]["download_url"].as_str().unwrap();
    let refused = Answer::of(send("blue", "POST", CHAT).json(&body)).await;
    assert_eq!(refused.status, 404, "{}", refused.body);
    for (tenant, sessions, status) in [("red", 1, 200), ("blue", 0, 404)] {
        let list = Answer::of(send(tenant, "GET", SESSIONS)).await.expect(200);
        assert_eq!(list["data"]["total"], sessions, "{tenant}");
        assert_eq!(Answer::of(send(tenant, "GET", url)).await.status, status, "{tenant}");
        let messages = format!("{SESSIONS}/same/messages");
        assert_eq!(Answer::of(send(tenant, "GET", &messages)).await.status, status, "{tenant}");
    }
}

#[tokio::test]
async fn s4_50_all_rows_of_an_answer_can_be_read_later() {
    let server = Setup::nl2sql().await.start().await;
    let sql = "WITH x AS (SELECT orders.id AS id, orders.order_no AS order_no FROM orders) \
               SELECT id, order_no FROM x ORDER BY id";
    writes(&server, sql, 1);
    let result = server.ask_in("rows", "列出订单").await;
    let whole = result["sql_validate_result"]["result"].clone();
    assert_eq!(whole.as_array().unwrap().len(), 1_000);
    server.ask_in("rows", "有多少客户").await;
    let list = server.get(&format!("{SESSIONS}/rows/messages")).await.expect(200);
    let messages = list["data"]["messages"].as_array().unwrap();
    let listed = &messages[1]["result"]["sql_validate_result"];
    assert_eq!(listed["result"].as_array().unwrap().len(), 10, "a list has only the first rows");
    assert_eq!(listed["rows"], 1_000);
    let rows = async |message: &Value| {
        server.get(&format!("{SESSIONS}/rows/messages/{message}/rows")).await
    };
    let found = rows(&messages[1]["id"]).await.expect(200);
    assert_eq!(found["data"]["rows"], whole);
    let few = rows(&messages[3]["id"]).await.expect(200);
    assert_eq!(few["data"]["rows"], json!([{"customer_count": 392}]));
    for missing in [messages[0]["id"].clone(), json!(99_999)] {
        let refused = rows(&missing).await;
        assert_eq!((refused.status, &refused.body["code"]), (404, &json!(404)), "{missing}");
    }
    let path = format!("{SESSIONS}/rows/messages/x/rows");
    assert_eq!(server.get(&path).await.status, 404);
    let path = format!("{SESSIONS}/rows/messages/{}/rows", messages[1]["id"]);
    assert_eq!(server.as_admin("2", "GET", &path).await.status, 404, "another admin");
}

#[tokio::test]
async fn s4_50_a_list_shows_whether_an_answer_is_pending() {
    let server = Setup::nl2sql().await.start().await;
    let path = format!("{SESSIONS}/slow/messages");
    let pending = async || server.get(&path).await.expect(200)["data"]["pending"].clone();
    let gate = server.standin().gate(Pattern::model("sql"));
    let body = json!({"session_id": "slow", "message": "有多少订单"});
    let first = server.post(CHAT, &body);
    let meanwhile = async {
        let wanted = |entry: &wattle_kit::standin::Entry| entry.model.as_deref() == Some("sql");
        server.standin().wait_for_request(wanted).await.unwrap();
        let found = pending().await;
        gate.open();
        found
    };
    let (first, meanwhile) = tokio::join!(first, meanwhile);
    assert_eq!((first.status, meanwhile), (200, json!({"status": "running"})));
    assert_eq!(pending().await, json!(null));

    let down = Fault::Status { status: 503, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::model("parse"), down));
    assert_eq!(server.post(CHAT, &body).await.status, 502);
    let failed = pending().await;
    assert_eq!((&failed["status"], &failed["step"]), (&json!("failed"), &json!("task_parse")));
    assert!(!failed["message"].as_str().unwrap().is_empty(), "{failed}");
    server.standin().clear_faults();
    server.ask_in("slow", "有多少订单").await;
    assert_eq!(pending().await, json!(null), "the next answer clears it");
}
